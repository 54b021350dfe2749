/** Executions of a commit, by whichever length of its hash they name. */

import type { Given } from "../database/compose.ts";
import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import { isTrustedBuild } from "./predicates.ts";

/** A condition: the commit begins with `start`. It is written so that the index of `lower(commit)` serves it; a hash has no "g". */
export const beginsWith = (sql: Sql, start: Fragment): Fragment =>
  sql`lower(commit) ~>=~ ${start} and lower(commit) ~<~ (${start} || 'g')`;

/** A condition equal to `is_same_commit`, written so that the index of `lower(commit)` serves it in every plan. */
export function isCommit(sql: Sql, given: string): Fragment {
  const commit = given.toLowerCase();
  if (!/^[0-9a-f]{7,64}$/.test(commit)) return sql`commit is not null and lower(commit) = ${commit}`;
  const shorter = Array.from({ length: commit.length - 6 }, (_, index) => commit.slice(0, 7 + index));
  return sql`
    commit is not null
    and (lower(commit) = any(${toTextArray(shorter)}::text[]) or ${beginsWith(sql, sql`${commit}::text`)})
    and is_same_commit(commit, ${commit})`;
}

/** Commits that begin with the same seven digits are mostly one; more than this number are build numbers or dates. */
const MAX_SAME_START = 33;

/**
 * Returns the ids of the trusted executions of a commit; `given` is an expression. If few commits begin alike they are compared, else each
 * length of the name is looked up separately: as one condition, a plan made while there are few executions would read all of the project.
 */
export function executionsOfCommit(sql: Sql, projectId: Given, given: Fragment): Fragment {
  const lookUp = (condition: Fragment) => sql`
    select id, commit from execution
    where project_id = ${projectId} and commit is not null and ${isTrustedBuild(sql, sql`execution`)} and ${condition}`;
  // As a pattern, in every row of another table, it would cost more than the look-up.
  const isHash = sql`(length(${given}) between 7 and 64 and translate(lower(${given}), '0123456789abcdef', '') = '')`;
  const areFew = sql`${isHash} and (select count(*) from alike) < ${MAX_SAME_START}::int`;
  // In an order that the index has: before the first statistics any other one looks as good.
  return sql`
    with alike as materialized (
      ${lookUp(sql`${isHash} and ${beginsWith(sql, sql`left(lower(${given}), 7)`)}`)}
      order by lower(commit) using ~<~ limit ${MAX_SAME_START}::int)
    select id from alike where ${areFew} and is_same_commit(commit, ${given})
    union all
    select id from (
      select e.id, e.commit from generate_series(least(7, length(${given})), length(${given})) n,
        lateral (${lookUp(sql`lower(commit) = left(lower(${given}), n)`)} offset 0) e
      union
      select e.id, e.commit from lateral (${lookUp(beginsWith(sql, sql`lower(${given})`))} offset 0) e
    ) each_length where not (${areFew}) and is_same_commit(commit, ${given})`;
}
