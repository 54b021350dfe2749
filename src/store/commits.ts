/** Executions of a commit, by whichever length of its hash they name. */

import { type Fragment, type Sql, toTextArray } from "./connect.ts";

/** As `is_same_commit` has it, in words that the index of `lower(commit)` understands, whatever the plan is made for. */
export function isCommit(sql: Sql, given: string): Fragment {
  const commit = given.toLowerCase();
  if (!/^[0-9a-f]{7,64}$/.test(commit)) return sql`commit is not null and lower(commit) = ${commit}`;
  const shorter = Array.from({ length: commit.length - 6 }, (_, index) => commit.slice(0, 7 + index));
  // A hash has no g: between the two lies whatever begins with it.
  return sql`
    commit is not null
    and (lower(commit) = any(${toTextArray(shorter)}::text[]) or lower(commit) ~>=~ ${commit} and lower(commit) ~<~ ${`${commit}g`})
    and is_same_commit(commit, ${commit})`;
}

/**
 * The ids of the executions of a commit that another row names; `given` is an expression. A look-up for each length: told in
 * one condition, a plan that is made while there are few executions reads all of the project.
 */
export function executionsOfCommit(sql: Sql, projectId: string, given: Fragment): Fragment {
  const lookUp = (condition: Fragment) => sql`lateral (
    select id, commit from execution
    where project_id = ${projectId} and commit is not null and ${condition} offset 0) e`;
  return sql`
    select id from (
      select e.id, e.commit from generate_series(least(7, length(${given})), length(${given})) n,
        ${lookUp(sql`lower(commit) = left(lower(${given}), n)`)}
      union
      select e.id, e.commit from
        ${lookUp(sql`lower(commit) ~>=~ lower(${given}) and lower(commit) ~<~ (lower(${given}) || 'g')`)}
    ) alike where is_same_commit(commit, ${given})`;
}
