/** Commits as uploads describe them, and the executions of a commit, by whichever length of its hash they name. */

import type { Given } from "../database/compose.ts";
import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import type { DescribedCommit } from "../schema/commits.ts";
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

/**
 * Inserts commits that are not known yet, and parents that earlier clones did not have. `rows` is JSON, in the order of hashes, so that
 * servers do not wait for each other in a circle.
 */
export const insertCommits = (sql: Sql, projectId: Given, rows: Given): Fragment => sql`
  insert into commit (project_id, hash, parent, author, committed_at, subject)
  select ${projectId}, c.hash, c.parent, c.author, c."committedAt", c.subject
  from json_to_recordset(${rows}::text::json) as c (hash text, parent text, author text, "committedAt" timestamptz, subject text)
  on conflict (project_id, hash) do update set parent = excluded.parent
    where commit.parent is null and excluded.parent is not null`;

/** Reports of one statement may describe the same commit, some from a clone that does not have its parent. */
export function toCommitRows(commits: readonly DescribedCommit[]): string {
  const byHash = new Map<string, DescribedCommit>();
  for (const one of commits) if (one.parent !== null || !byHash.has(one.hash)) byHash.set(one.hash, one);
  return JSON.stringify([...byHash.values()].toSorted((a, b) => (a.hash < b.hash ? -1 : 1)));
}

/** The words that people know a commit by; null: no upload has described it. */
export type CommitWords = { commitAuthor: string | null; commitSubject: string | null };

/** A condition on a described commit: `name`, an expression, is its hash or the beginning of it. */
const isNamedBy = (sql: Sql, name: Fragment): Fragment =>
  sql`length(${name}) >= 7 and hash >= lower(${name}) and hash < lower(${name}) || 'g'`;

/** A table of one row: "commitAuthor" and "commitSubject" of the commit that `hash`, an expression, names in full or by its beginning. */
export const wordsOfCommit = (sql: Sql, projectId: Given, hash: Fragment): Fragment => sql`
  lateral (
    select max(author) as "commitAuthor", max(subject) as "commitSubject" from (
      select author, subject from commit
      where project_id = ${projectId} and ${isNamedBy(sql, hash)} limit 1) c)`;

export type ListedCommit = { hash: string; author: string; subject: string };

/** Maximum number of commits between two builds that are listed. */
const MAX_RANGE = 100;

/**
 * Returns the commits after `good` up to `bad` along first parents, the newest first; both are hashes or their beginnings. Empty: a commit
 * between them is not known, or there are more than 100.
 */
export const selectCommitsBetween = (sql: Sql, projectId: string, { good, bad }: { good: string; bad: string }) => sql<
  ListedCommit[]
>`
  with recursive chain as (
    select c.*, 1 as length from lateral (
      select hash, parent, author, subject from commit
      where project_id = ${projectId} and ${isNamedBy(sql, sql`${bad}::text`)} limit 1) c
    union all
    select c.hash, c.parent, c.author, c.subject, chain.length + 1 from chain join commit c
      on c.project_id = ${projectId} and c.hash = chain.parent
    where chain.length < ${MAX_RANGE}::int and length(${good}) >= 7 and not starts_with(chain.parent, lower(${good}))
  )
  select hash, author, subject from chain
  where exists (select from chain where length(${good}) >= 7 and starts_with(parent, lower(${good})))
  order by length`;

export const deleteOldCommits = (sql: Sql, days: number) => sql`
  delete from commit where seen_at < now() - ${days}::int * interval '1 day'`;
