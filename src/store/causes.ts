/** The failures of an execution, grouped by cause: by the bug report that they have joined, else by their fingerprint. */

import type { Fragment, Sql } from "../database/connect.ts";
import { type FailureRow, rank } from "./failures.ts";
import { isOwnedBy, ownersJson } from "./owners.ts";
import { failedResultsOf } from "./packing.ts";

/** The position of a failure in the order of its execution; `rank` 9: the failure was not judged. */
export type FailurePosition = { rank: number; runId: string; number: number };

/** A failure of a cause. Message and stack are null for every member of a cause but the first one. */
export type CauseMember = FailureRow &
  FailurePosition & {
    /** The index of its cause in the order of causes, from 1 for the first cause of the page. */
    place: number;
    /** The number of failures of its cause, and of those of them that are new. */
    failed: number;
    newlyFailed: number;
    /** The test case stands for the exit code of a runner, whose own words are its message. */
    isStandIn: boolean;
  };

export type CauseQuery = {
  /** Maximum number of causes; those of one more are selected. */
  limit: number;
  /** Maximum number of failures of each cause. */
  members: number;
  /** Maximum number of failures in total, the same share for each cause; the first failure of a cause is always selected. */
  total: number;
  /** Only failures of test cases of this owner; `causes` and `failed` count only these. */
  owner?: string | undefined;
  /** The first failure of the last cause of the page before. */
  after?: FailurePosition | undefined;
};

/** The shares of the explanations of the failure `f`. */
export const sharesOf = (sql: Sql): Fragment => sql`json_build_object(
  'change', f.change, 'flaky', f.flaky, 'inherited', f.inherited, 'outside', f.outside)`;

/** A failure without details has a cause of its own. */
const causeOf = (sql: Sql): Fragment => sql`coalesce(d.cause, md5(f.run_id::text || f.number)::uuid)`;

/**
 * A statement: every failed result of an execution, `f`, with the id of the bug report that it has joined. The parts are
 * combined by aggregation: a join would be left to a planner that may know nothing about the tables yet.
 */
const failedOf = (sql: Sql, projectId: string, executionId: string): Fragment => {
  const runs = sql`
    select id from test_run where project_id = ${projectId} and execution_id = ${executionId} and failed > 0`;
  return sql`
    select run_id, number, max(attempt) as attempt, coalesce(min(rank), 9) as rank, min(blame) as blame,
      max(change) as change, max(shares) as shares, max(evidence) as evidence, max(flake_rate) as flake_rate, max(flaky_at) as flaky_at, min(bug) as bug,
      max(rule_id) as rule_id, max(rule_name) as rule_name, max(rule_url) as rule_url
    from (
      select x.run_id, x.number, x.attempt, null::int as rank, null as blame, null::real as change,
        null as shares, null as evidence, null::real as flake_rate, null::timestamptz as flaky_at, null as bug,
        null as rule_id, null as rule_name, null as rule_url
      from ${failedResultsOf(sql, projectId, runs)} x
      union all
      select f.run_id, f.test_case, null, ${rank(sql)}, f.blame, f.change, ${sharesOf(sql)}::text, f.evidence::text, f.flake_rate,
        f.flaky_at, null, f.rule_id::text, f.rule_name, f.rule_url
      from (${runs}) run, lateral (select * from failure where project_id = ${projectId} and run_id = run.id offset 0) f
      union all
      select o.run_id, o.test_case, null, null, null, null, null, null, null, null, o.bug_report_id::text collate "C",
        null, null, null
      from (${runs}) run, lateral (
        select run_id, test_case, bug_report_id from bug_occurrence
        where project_id = ${projectId} and run_id = run.id offset 0) o
    ) part
    group by run_id, number having max(attempt) is not null`;
};

/**
 * A statement: every failed result of an execution with its `cause`, and as `bug_id` the bug report that it belongs to.
 * Not every failure of a large run is matched with bug reports: the others belong to the bug report of the same cause.
 * All failures are grouped by narrow rows, also where only some of them are wanted: a bug report may have been matched
 * with others of its cause.
 */
export const failuresWithBugs = (sql: Sql, projectId: string, executionId: string): Fragment => sql`
  with failed as materialized (${failedOf(sql, projectId, executionId)}),
  marked as materialized (
    select f.*, ${causeOf(sql)} as cause
    from failed f left join lateral (
      select cause from case_detail
      where project_id = ${projectId} and run_id = f.run_id and test_case = f.number and attempt = f.attempt offset 0) d on true
  )
  select *, coalesce(bug, case when min(bug) over w = max(bug) over w then min(bug) over w end)::uuid as bug_id
  from marked window w as (partition by cause)`;

/** Failures of one task, and of test cases of these owners; null and undefined: all. */
export type WantedFailures = { taskSlug?: string | null | undefined; owners?: readonly string[] | undefined };

/** A condition: the failure `f` of the execution is wanted. */
export const isWanted = (
  sql: Sql,
  projectId: string,
  executionId: string,
  { taskSlug = null, owners }: WantedFailures,
): Fragment => sql`(
  ${
    taskSlug === null
      ? sql`true`
      : sql`f.run_id = any(array(
          select id from test_run
          where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug}))`
  }
  ${
    owners === undefined
      ? sql``
      : sql`and (
          select ${isOwnedBy(sql, projectId, sql`c`, owners)} from test_case c
          where c.project_id = ${projectId} and c.number = f.number)`
  })`;

/** The numbers of failures by the ids of the bug reports that they belong to. */
export type BugCounts = Record<string, number>;

/** An expression: the `BugCounts` of `failures`, a table of failures with bugs. */
export const bugCountsOf = (sql: Sql, failures: Fragment): Fragment => sql`(
  select coalesce(json_object_agg(bug_id, failed), '{}') from (
    select bug_id, count(*) as failed from ${failures} where bug_id is not null group by 1) r)`;

/**
 * Causes in the order of their first failures, new failures first; each cause with its first failures. `causes` are the
 * numbers of causes by the rank of their first failure, `bugCounts` are in the first row; both are of the whole execution. What failures say is read only for the page.
 */
export const selectCauses = (
  sql: Sql,
  projectId: string,
  executionId: string,
  { limit, members, total, owner, after }: CauseQuery,
) => sql<(CauseMember & { causes: Record<string, number>; bugCounts: BugCounts | null })[]>`
  with keyed as materialized (
    select * from (${failuresWithBugs(sql, projectId, executionId)}) f
    where ${isWanted(sql, projectId, executionId, { owners: owner === undefined ? undefined : [owner] })}
  ),
  grouped as materialized (
    select *, first_value(rank) over w as head_rank, first_value(run_id) over w as head_run,
      first_value(number) over w as head_number, row_number() over w as member,
      count(*) over (partition by coalesce(bug_id, cause)) as in_cause,
      count(*) filter (where blame = 'new') over (partition by coalesce(bug_id, cause)) as new_in_cause
    from keyed window w as (partition by coalesce(bug_id, cause) order by rank, run_id, number)
  ),
  paged as (
    select *, dense_rank() over (order by head_rank, head_run, head_number) as place from grouped
    ${after ? sql`where (head_rank, head_run, head_number) > (${after.rank}::int, ${after.runId}::uuid, ${after.number}::int)` : sql``}
  ),
  shown as materialized (
    select * from (
      select *, row_number() over (order by member, place) as index from paged
      where place <= ${limit} and member <= ${members} or place = ${limit + 1} and member = 1
    ) chosen where index <= ${total} or member = 1
  )
  select f.place::int, f.in_cause::int as failed, f.new_in_cause::int as "newlyFailed", f.rank, f.run_id as "runId", f.number,
    c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file, ${ownersJson(sql, sql`c`)} as owners, f.blame,
    f.change::float8 as change, f.shares::json as shares, f.evidence::json as evidence, f.rule_id as "ruleId", f.rule_name as "ruleName", f.rule_url as "ruleUrl",
    round(f.flake_rate::numeric, 4)::float8 as "flakeRate", f.flaky_at as "lastFlakyAt", d.line, f.attempt, a.host, d.kind,
    coalesce(a.exit_case = f.number, false) as "isStandIn",
    case when f.member = 1 then d.message end as message, case when f.member = 1 then left(d.stack, 20000) end as stack,
    f.bug_id as "bugId",
    (select json_object_agg(head_rank, causes) from (
      select head_rank, count(*) as causes from grouped where member = 1 group by 1) r) as causes,
    case when f.place = 1 and f.member = 1 then ${bugCountsOf(sql, sql`keyed`)} end as "bugCounts"
  from shown f
  cross join lateral (select * from test_case where project_id = ${projectId} and number = f.number offset 0) c
  left join lateral (
    select * from case_detail
    where project_id = ${projectId} and run_id = f.run_id and test_case = f.number and attempt = f.attempt offset 0) d on true
  left join lateral (
    select host, exit_case from attempt
    where project_id = ${projectId} and run_id = f.run_id and shard = coalesce(d.shard, 0) and number = f.attempt offset 0) a
    on true
  order by f.place, f.member`;
