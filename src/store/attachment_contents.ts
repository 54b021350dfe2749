/** The content of attachments in the store, and content that is no longer needed. */

import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { deletePortion } from "../database/delete_portion.ts";

type Content = { sha256: string; bytes: number };

/**
 * Claims content for an upload, so that it is not removed for at least `CLAIM_MINUTES`. Returns by hexadecimal hash whether the store has
 * it, and whether it was unclaimed.
 */
export async function claimContents(
  sql: Sql,
  projectId: string,
  contents: readonly Content[],
): Promise<Map<string, { isStored: boolean; isNew: boolean }>> {
  const rows = await sql<{ sha256: string; isStored: boolean; isNew: boolean }[]>`
    with claimed as (
      insert into attachment_content (owner_id, sha256, bytes)
      select distinct on (sha256) ${projectId}::uuid, decode(sha256, 'hex'), bytes
      from unnest(${toTextArray(contents.map(({ sha256 }) => sha256))}::text[],
        ${toNumberArray(contents.map(({ bytes }) => bytes))}::bigint[]) as given (sha256, bytes)
      -- One order of all uploads, so that no two wait for each other.
      order by sha256
      on conflict (owner_id, sha256) do update set claimed_at = now()
      returning sha256, is_stored, xmax = 0 as is_new
    ), queued as (
      -- The upload may break off before there is an attachment.
      insert into attachment_loose_content (owner_id, sha256) select ${projectId}::uuid, sha256 from claimed where is_new
    )
    select encode(sha256, 'hex') as sha256, is_stored as "isStored", is_new as "isNew" from claimed`;
  return new Map(rows.map(({ sha256, ...claim }) => [sha256, claim]));
}

/** The version of a content's row: every claim of it makes another one. */
export type ContentVersion = { sha256: string; version: string };

/** Says that the store has the content. */
export const updateStored = (sql: Sql, projectId: string, hashes: readonly string[]) => sql<ContentVersion[]>`
  update attachment_content set is_stored = true
  where owner_id = ${projectId} and sha256 in (
    select sha256 from attachment_content
    where owner_id = ${projectId} and sha256 = any(array(
      select decode(hash, 'hex') from unnest(${toTextArray(hashes)}::text[]) hash))
    order by sha256 for no key update)
  returning encode(sha256, 'hex') as sha256, xmin::text as version`;

/** Bytes of the content of a project. */
export const selectContentBytes = async (sql: Sql, projectId: string): Promise<number> => {
  const [row] = await sql<{ bytes: number }[]>`
    select coalesce(sum(bytes), 0)::float8 as bytes from attachment_content where owner_id = ${projectId}`;
  return row!.bytes;
};

/** Releases the claims of an upload on content that no other upload has claimed since. Returns the content that may be removed now. */
export const releaseClaims = (sql: Tx, projectId: string, claims: readonly ContentVersion[]) => sql<
  { sha256: string }[]
>`
  update attachment_content c set is_stored = false, claimed_at = now() - ${2 * CLAIM_MINUTES} * interval '1 minute'
  from unnest(${toTextArray(claims.map(({ sha256 }) => sha256))}::text[],
    ${toTextArray(claims.map(({ version }) => version))}::text[]) as given (sha256, version)
  where c.owner_id = ${projectId} and c.sha256 = decode(given.sha256, 'hex') and c.xmin::text = given.version
    and ${isUnused(sql, sql`c`)}
  returning given.sha256`;

/** Longer than any request lasts that has claimed content and not yet said which attachment it is of. */
const CLAIM_MINUTES = 60;

const isAged = (sql: Sql, time: Fragment) => sql`${time} < now() - ${CLAIM_MINUTES} * interval '1 minute'`;

/** A condition: no attachment has the content of the row `c`. */
const isUnused = (sql: Sql, c: Fragment) => sql`not exists (
  select from attachment a where a.project_id = ${c}.owner_id and a.sha256 = ${c}.sha256 offset 0)`;

const isLoose = (sql: Sql) => sql`${isAged(sql, sql`c.claimed_at`)} and ${isUnused(sql, sql`c`)}`;

/** Content as the sweep of orphans knows it. */
export type LooseContent = { projectId: string; sha256: string };

/** Removes a portion of content that has attachments, or no longer exists, from the queue; returns the number of rows. */
export const deleteSettledContents = (sql: Sql, limit: number): Promise<number> => {
  const l = sql`attachment_loose_content`;
  const isSettled = sql`
    ${isAged(sql, sql`${l}.since`)} and (not ${isUnused(sql, l)} or not exists (
      select from attachment_content c where c.owner_id = ${l}.owner_id and c.sha256 = ${l}.sha256 offset 0))`;
  return deletePortion(sql, "attachment_loose_content", isSettled, { limit });
};

/**
 * Releases a portion of the queued content that has no attachment and no recent claim, in the order of its keys, after `after`: queued rows
 * of removed content stay for the next sweep, and must not be read for every portion. From now on uploads store it again, so it can be
 * removed.
 */
export const releaseLooseContents = async (
  sql: Sql,
  limit: number,
  after: LooseContent | undefined,
): Promise<LooseContent[]> => {
  const isBehind = after
    ? sql`and (l.owner_id, l.sha256) > (${after.projectId}, decode(${after.sha256}, 'hex'))`
    : sql``;
  return await sql<LooseContent[]>`
    with released as (
      update attachment_content c set is_stored = false
      from (
        select c.owner_id, c.sha256
        from (
          select distinct owner_id, sha256 from attachment_loose_content l
          where ${isAged(sql, sql`l.since`)} ${isBehind} order by owner_id, sha256
        ) l
        cross join lateral (
          select * from attachment_content c
          where c.owner_id = l.owner_id and c.sha256 = l.sha256 and ${isLoose(sql)}
          for no key update skip locked) c
        order by l.owner_id, l.sha256 limit ${limit}
      ) loose
      where c.owner_id = loose.owner_id and c.sha256 = loose.sha256
      returning c.owner_id, c.sha256
    )
    select owner_id as "projectId", encode(sha256, 'hex') as sha256 from released order by owner_id, released.sha256`;
};

/** Locks content that is still loose, so that an upload of it waits until it is removed. Answers whether it is. */
export const lockLooseContent = async (sql: Tx, { projectId, sha256 }: LooseContent): Promise<boolean> => {
  const rows = await sql`
    select from attachment_content c
    where c.owner_id = ${projectId} and c.sha256 = decode(${sha256}, 'hex') and not c.is_stored and ${isLoose(sql)}
    for update skip locked`;
  return rows.length > 0;
};

/** Its row in the queue is deleted by the next sweep. */
export const deleteContent = (sql: Tx, { projectId, sha256 }: LooseContent) => sql`
  delete from attachment_content where owner_id = ${projectId} and sha256 = decode(${sha256}, 'hex')`;
