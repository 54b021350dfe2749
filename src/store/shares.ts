/** Links and badges for anyone who has their address, which are looked up by the digest of their token. */

import type { NewShare, Share, SharedTarget, ShareKind } from "../schema/shares.ts";
import { type Sql, toTextArray, type Tx } from "../database/connect.ts";

type NewShareRow = {
  id: string;
  /** Hexadecimal. */
  digest: string;
  createdBy: string;
};

/** False when there is no such execution. It is not deleted before the end of the transaction. */
export const insertShare = async (
  sql: Tx,
  projectId: string,
  { id, digest, createdBy }: NewShareRow,
  what: NewShare,
): Promise<boolean> => {
  const executionId = what.kind === "execution" ? what.executionId : null;
  const { branch = null, shows = null } = what.kind === "badge" ? what : {};
  const source =
    executionId === null
      ? sql`select id from project where id = ${projectId} for key share`
      : sql`select id from execution where project_id = ${projectId} and id = ${executionId} for key share`;
  const inserted = await sql`
    insert into share (project_id, id, kind, digest, execution_id, branch, shows, created_by)
    select ${projectId}, ${id}, ${what.kind}, decode(${digest}, 'hex'), ${executionId}, ${branch}, ${shows}, ${createdBy}
    from (${source}) there returning id`;
  return inserted.length === 1;
};

const columns = (sql: Sql) => sql`
  s.id, s.kind, s.branch, s.shows, a.name as "createdBy", s.created_at as "createdAt",
  e.id as "executionId", e.key as "executionKey", e.number as "executionNumber", e.branch as "executionBranch"`;

const joined = (sql: Sql) => sql`
  share s left join account a on a.id = s.created_by
  left join execution e on e.project_id = s.project_id and e.id = s.execution_id`;

/** Newest first, one row more than `limit`; `before`: the id of the last one of the page before. */
export const selectShares = (
  sql: Sql,
  projectId: string,
  { limit, before }: { limit: number; before?: string | undefined },
) => sql<Share[]>`
  select ${columns(sql)} from ${joined(sql)}
  where s.project_id = ${projectId} ${before === undefined ? sql`` : sql`and s.id < ${before}`}
  order by s.id desc limit ${limit + 1}`;

export const selectShare = async (sql: Sql, projectId: string, id: string): Promise<Share | undefined> => {
  const [share] = await sql<Share[]>`
    select ${columns(sql)} from ${joined(sql)} where s.project_id = ${projectId} and s.id = ${id}`;
  return share;
};

/** Returns false if it was deleted meanwhile. */
export const deleteShare = async (sql: Tx, projectId: string, id: string): Promise<boolean> =>
  (await sql`delete from share where project_id = ${projectId} and id = ${id} returning id`).length === 1;

/** Returns the target of a token by its digest (hexadecimal), if it is of one of these kinds. */
export const selectSharedTarget = async (
  sql: Sql,
  digest: string,
  kinds: readonly ShareKind[],
): Promise<SharedTarget | undefined> => {
  const [place] = await sql<SharedTarget[]>`
    select s.kind, s.project_id as "projectId", p.name as "projectName", p.default_branch as "defaultBranch",
      s.execution_id as "executionId", s.branch, s.shows
    from share s join project p on p.id = s.project_id
    where s.digest = decode(${digest}, 'hex') and s.kind = any(${toTextArray(kinds)}::text[])`;
  return place;
};
