/** The names in use that lists can be filtered by. */

import type { Fragment, Sql } from "../database/connect.ts";
import { readVariant } from "../rules/variants.ts";
import { indexedTask } from "./task_runs.ts";
import { isTrustedBuild } from "./predicates.ts";

/** Returns at most `limit` names in alphabetical order, with one look-up per name however many rows have it. */
async function selectDistinct(
  sql: Sql,
  next: (after: Fragment | undefined) => Fragment,
  limit: number,
): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    with recursive names as (
      select (${next(undefined)}) as name
      union all select (${next(sql`n.name`)}) from names n where n.name is not null)
    select name from names where name is not null limit ${limit}`;
  return rows.map(({ name }) => name);
}

/** The tasks that have had a run. */
export const selectTaskSlugs = (sql: Sql, projectId: string, limit: number) =>
  selectDistinct(
    sql,
    (after) => sql`
      select task_slug from test_run
      where project_id = ${projectId} and ${isTrustedBuild(sql, sql`test_run`)} ${after ? sql`and ${indexedTask(sql)} > ${after}` : sql``}
      order by ${indexedTask(sql)} limit 1`,
    limit,
  );

/** The maximum number of tasks that are searched for tags. */
const MAX_SEARCHED_TASKS = 5_000;

/** The names of the tasks that have all of these tags. */
export async function selectTasksWithTags(sql: Sql, projectId: string, tags: readonly string[]): Promise<string[]> {
  const slugs = await selectTaskSlugs(sql, projectId, MAX_SEARCHED_TASKS);
  return slugs.filter((slug) => {
    const variant = readVariant(slug);
    return tags.every((tag) => variant.tags.includes(tag));
  });
}

/** The owners of test cases. */
export const selectOwners = (sql: Sql, projectId: string, limit: number) =>
  selectDistinct(
    sql,
    (after) => sql`
      select owner from (
        (select owner from test_case where project_id = ${projectId} and owner is not null
          ${after ? sql`and owner > ${after}` : sql``}
        order by owner limit 1)
        union all
        select min(name) from owner_list, unnest(names) as name
        where project_id = ${projectId} ${after ? sql`and name > ${after}` : sql``}
      ) next where owner is not null order by owner limit 1`,
    limit,
  );
