/** The ownership file of a project, and the owners that it gives to test cases. */

import type { OwnerSyntax } from "../rules/owner_patterns.ts";
import { type Fragment, type Sql, type Tx, toTextArray } from "../database/connect.ts";
import { isInCatalogue } from "./predicates.ts";

export type OwnersFileRow = {
  content: string;
  digest: string;
  syntax: OwnerSyntax;
  path: string | null;
  branch: string | null;
  commit: string | null;
  storedAt: string;
};

/** Undefined: the project has none. */
export const selectOwnersFile = async (sql: Sql, projectId: string): Promise<OwnersFileRow | undefined> => {
  const [row] = await sql<OwnersFileRow[]>`
    select content, digest, syntax, path, branch, commit, stored_at as "storedAt"
    from owners_file where project_id = ${projectId}`;
  return row;
};

export const upsertOwnersFile = (
  sql: Tx,
  projectId: string,
  { content, digest, syntax, path, branch, commit }: Omit<OwnersFileRow, "storedAt">,
) => sql`
  insert into owners_file (project_id, content, digest, syntax, path, branch, commit)
  values (${projectId}, ${content}, ${digest}, ${syntax}, ${path}, ${branch}, ${commit})
  on conflict (project_id) do update set content = excluded.content, digest = excluded.digest, syntax = excluded.syntax,
    path = excluded.path, branch = excluded.branch, commit = excluded.commit, stored_at = excluded.stored_at`;

export const deleteOwnersFile = (sql: Tx, projectId: string) => sql`
  delete from owners_file where project_id = ${projectId}`;

/** An expression: the owners of the test case `c`, an alias, as an array; owners set by hand come first. */
export const ownersOf = (sql: Sql, c: Fragment): Fragment => sql`
  coalesce(
    case when ${c}.owner is not null then array[${c}.owner] end,
    (select names from owner_list where project_id = ${c}.project_id and id = ${c}.owner_list), '{}')`;

/** The same as JSON, as postgres.js reads it. */
export const ownersJson = (sql: Sql, c: Fragment): Fragment => sql`to_json(${ownersOf(sql, c)})`;

/** An expression: the owners of the test cases of the bug report `b`, an alias, as JSON. */
export const ownersOfBug = (sql: Sql, b: Fragment): Fragment => sql`(
  select coalesce(json_agg(distinct owner), '[]') from bug_case k
  cross join lateral (
    select ${ownersOf(sql, sql`c`)} as names from test_case c
    where c.project_id = k.project_id and c.number = k.test_case offset 0) o
  cross join lateral unnest(o.names) as owner
  where k.project_id = ${b}.project_id and k.bug_report_id = ${b}.id)`;

/** An expression: the first of the owners of `c`, or null. */
export const firstOwnerOf = (sql: Sql, c: Fragment): Fragment => sql`
  coalesce(${c}.owner,
    (select names[1] from owner_list where project_id = ${c}.project_id and id = ${c}.owner_list))`;

/** An expression: the ids of the lists that one of these owners is on, an array. It is evaluated once per statement. */
const listsWith = (sql: Sql, projectId: string, names: Fragment): Fragment => sql`
  array(select id from owner_list where project_id = ${projectId} and names && ${names})`;

/** A condition: one of these is an owner of the test case `c`, an alias. */
export const isOwnedBy = (sql: Sql, projectId: string, c: Fragment, names: readonly string[]): Fragment => {
  const wanted = sql`${toTextArray(names)}::text[]`;
  return sql`(${c}.owner = any(${wanted})
    or ${c}.owner is null and ${c}.owner_list = any(${listsWith(sql, projectId, wanted)}))`;
};

/** A condition: the test case `c`, an alias, has an owner. Lists are never empty. */
export const isOwned = (sql: Sql, c: Fragment): Fragment =>
  sql`(${c}.owner is not null or ${c}.owner_list is not null)`;

/** A statement: the numbers of the test cases of an owner, at most `limit` of each way to be one; each way has an index. */
export const numbersOfOwner = (sql: Sql, projectId: string, owner: string, limit: number): Fragment => sql`
  (select number from test_case where project_id = ${projectId} and owner = ${owner} limit ${limit})
  union all
  (select number from test_case
    where project_id = ${projectId} and owner is null
      and owner_list = any(${listsWith(sql, projectId, sql`array[${owner}]`)}) limit ${limit})`;

type OwnerCounts = { testCases: number; unowned: number };

export const countOwned = async (sql: Sql, projectId: string): Promise<OwnerCounts> => {
  const [row] = await sql<OwnerCounts[]>`
    select count(*)::int as "testCases", (count(*) filter (where not ${isOwned(sql, sql`c`)}))::int as unowned
    from test_case c where project_id = ${projectId} and ${isInCatalogue(sql, sql`c`)}`;
  return row!;
};

type OwnerList = { id: string; names: readonly string[] };

/** Existing lists stay as they are, because the id is derived from the names. */
export const insertOwnerLists = (sql: Sql, projectId: string, lists: readonly OwnerList[]) => sql`
  insert into owner_list (project_id, id, names)
  select ${projectId}, l.id, array(select json_array_elements_text(l.names))
  from json_to_recordset(${JSON.stringify(lists)}::text::json) as l (id uuid, names json) order by l.id
  on conflict do nothing`;

/** Test cases that no rule can distinguish, and their list of owners. */
export type OwnedGroup = { suite: string; file: string | null; ownerList: string | null };

export const selectOwnedGroups = async (sql: Sql, projectId: string): Promise<OwnedGroup[]> => {
  const rows = await sql<OwnedGroup[]>`
    select distinct suite, file, owner_list as "ownerList" from test_case
    where project_id = ${projectId} and ${isInCatalogue(sql, sql`test_case`)}`;
  return [...rows];
};

/** Sets the list of the test cases of each group, in a transaction that holds the lock for naming. */
export async function updateOwnerLists(sql: Tx, projectId: string, groups: readonly OwnedGroup[]): Promise<number> {
  if (groups.length === 0) return 0;
  // Without statistics, the planner would scan all cases for each group.
  await sql`set local enable_nestloop = off`;
  const updated = await sql`
    update test_case c set owner_list = g.owner_list
    from unnest(
      ${toTextArray(groups.map(({ suite }) => suite))}::text[], ${toTextArray(groups.map(({ file }) => file))}::text[],
      ${toTextArray(groups.map(({ ownerList }) => ownerList))}::uuid[]
    ) as g (suite, file, owner_list)
    where c.project_id = ${projectId} and ${isInCatalogue(sql, sql`c`)} and c.suite = g.suite and coalesce(c.file, '') = coalesce(g.file, '')
      and (c.file is null) = (g.file is null) and c.owner_list is distinct from g.owner_list`;
  await sql`set local enable_nestloop = on`;
  return updated.count;
}

/** Deletes lists that no test case has, in the same transaction. */
export const deleteUnusedOwnerLists = (sql: Tx, projectId: string) => sql`
  delete from owner_list l
  where project_id = ${projectId} and not exists (
    select from test_case where project_id = ${projectId} and owner_list = l.id)`;
