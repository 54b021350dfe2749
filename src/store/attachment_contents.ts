/** Which content of attachments the store has, and which of it nobody needs any more. */

import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { deletePortion } from "../database/delete_portion.ts";

type Content = { sha256: string; bytes: number };

/**
 * Says that an upload relies on content from now on. Answers which of it the store has, by hexadecimal hashes: it is not
 * removed for at least `CLAIM_MINUTES`.
 */
export async function claimContents(sql: Sql, projectId: string, contents: readonly Content[]): Promise<Set<string>> {
  const rows = await sql<{ sha256: string }[]>`
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
    select encode(sha256, 'hex') as sha256 from claimed where is_stored`;
  return new Set(rows.map(({ sha256 }) => sha256));
}

/** Says that the store has the content. */
export const updateStored = (sql: Sql, projectId: string, hashes: readonly string[]) => sql`
  update attachment_content set is_stored = true
  where owner_id = ${projectId} and sha256 in (
    select sha256 from attachment_content
    where owner_id = ${projectId} and sha256 = any(array(
      select decode(hash, 'hex') from unnest(${toTextArray(hashes)}::text[]) hash))
    order by sha256 for no key update)`;

/** Longer than any request lasts that has claimed content and not yet said which attachment it is of. */
const CLAIM_MINUTES = 60;

const isAged = (sql: Sql, time: Fragment) => sql`${time} < now() - ${CLAIM_MINUTES} * interval '1 minute'`;

/** A condition: no attachment has the content of the row `c`. */
const isUnused = (sql: Sql, c: Fragment) => sql`not exists (
  select from attachment a where a.project_id = ${c}.owner_id and a.sha256 = ${c}.sha256 offset 0)`;

const isLoose = (sql: Sql) => sql`${isAged(sql, sql`c.claimed_at`)} and ${isUnused(sql, sql`c`)}`;

/** Content as the sweep of orphans knows it. */
export type LooseContent = { projectId: string; sha256: string };

/** Takes a portion of the content that has attachments, or is gone, out of the queue; answers how many rows. */
export const deleteSettledContents = (sql: Sql, limit: number): Promise<number> => {
  const l = sql`attachment_loose_content`;
  const isSettled = sql`
    ${isAged(sql, sql`${l}.since`)} and (not ${isUnused(sql, l)} or not exists (
      select from attachment_content c where c.owner_id = ${l}.owner_id and c.sha256 = ${l}.sha256 offset 0))`;
  return deletePortion(sql, "attachment_loose_content", isSettled, { limit });
};

/**
 * A portion of the queued content that no attachment has, and that no upload has claimed lately, in the order of its keys and
 * behind `after`: queued rows of content that is removed stay for the next sweep, and are not to be read for every portion. From
 * now on uploads store it again, so that it may be removed.
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
