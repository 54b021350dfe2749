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

/** The same of a commit that another row names; both are expressions. */
export const isCommitOf = (sql: Sql, commit: Fragment, given: Fragment): Fragment => sql`
  ${commit} is not null
  and (lower(${commit}) = any(array(
      select left(lower(${given}), n) from generate_series(least(7, length(${given})), length(${given})) n))
    or lower(${commit}) ~>=~ lower(${given}) and lower(${commit}) ~<~ (lower(${given}) || 'g'))
  and is_same_commit(${commit}, ${given})`;
