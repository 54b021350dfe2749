/** The facts that gates decide by, and the decisions that uploads asked for. */

import type { Absence } from "../rules/absent_tests.ts";
import type { GatedBuild, GatedUpload } from "../rules/gate.ts";
import type { ExplanationKind } from "../rules/odds_facts.ts";
import type { Flaws } from "../rules/red_reason.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import type { TaskStatus } from "../schema/executions.ts";
import type { Blame, OddsEvidence } from "../schema/failures.ts";
import { type GateDecision, MAX_FORGIVEN, type StoredGate } from "../schema/gate.ts";
import {
  type Fragment,
  type Sql,
  toJson,
  toJsonTime,
  toNumberArray,
  toTextArray,
  type Tx,
} from "../database/connect.ts";
import { sharesOf } from "./causes.ts";
import { hasResult } from "./outcome.ts";
import { isOnDefault, isTrustedBuild } from "./predicates.ts";
import { flaws, namedShards } from "./shards.ts";

/** A run with its latest uploads and the blame of its failures. */
export type GatedRun = GatedBuild & {
  id: string;
  slug: string;
  status: TaskStatus;
  verdict: "passed" | "failed" | null;
  attempt: number;
  outage: boolean;
  failed: number;
  shards: number;
  namedShards: number[];
  completedAt: string | null;
  reason: string | null;
  flaws: Flaws | null;
  absence: Absence | null;
  /** The latest of each shard. `counted`: failures of a report without test cases. */
  uploads: (GatedUpload & { shard: number; counted: number })[];
  /** Without test cases that represent a test tool. */
  blames: Partial<Record<Blame, number>>;
  /** The number of judged failures, including those that represent a test tool. */
  judged: number;
};

/** The failures of one shard: those of these test cases, and of others that an earlier upload of the shard has reported. */
export type ShardFailures = { shard: number; testCases: readonly number[] };

const isOfShard = (sql: Sql, own: ShardFailures | undefined): Fragment =>
  own === undefined
    ? sql``
    : sql`and (f.test_case = any(${toNumberArray(own.testCases)}::int[]) or exists (
        select from case_detail d where d.project_id = f.project_id and d.run_id = f.run_id
          and d.test_case = f.test_case and d.shard = ${own.shard}))`;

/** A condition: the failure `f` does not represent a test tool that failed although no test did. */
const isTest = (sql: Sql): Fragment => sql`f.test_case <> all(array(
  select a.exit_case from attempt a
  where a.project_id = f.project_id and a.run_id = f.run_id and a.exit_case is not null))`;

/** A condition: the execution `e` of the project `p` is of the default branch or a long-lived branch. */
const isShared = (sql: Sql): Fragment => sql`(
  ${isOnDefault(sql, sql`e`, sql`p.default_branch`)}
  or (e.pull_request is null and ${isTrustedBuild(sql, sql`e`)} and is_long_lived(e.branch, p.long_lived_branches)))`;

/** The run `r` is of a shared branch. */
export const isOnSharedBranch = (sql: Sql): Fragment => sql`(
  select ${isShared(sql)} from execution e join project p on p.id = e.project_id
  where e.project_id = r.project_id and e.id = r.execution_id)`;

/** The baseline of the run `r` is of a shared branch or of the target branch, or there is none. */
export const isBaselineShared = (sql: Sql): Fragment => sql`coalesce((
  select ${isShared(sql)} or e.branch = own.base_branch and e.branch is distinct from own.branch and e.pull_request is null
  from execution own join execution e on e.project_id = own.project_id and e.id = own.baseline_id join project p on p.id = e.project_id
  where own.project_id = r.project_id and own.id = r.execution_id), true)`;

/**
 * The failures of the run `r`, and for a rerun also those of its build that it does not repeat, as they were judged last; a shard only has
 * its own.
 */
const failuresOf = (sql: Sql, own: ShardFailures | undefined): Fragment =>
  own !== undefined
    ? sql`(select * from failure where project_id = r.project_id and run_id = r.id)`
    : sql`(
        select * from failure where project_id = r.project_id and run_id = r.id
        union all
        select earlier.* from execution own cross join unnest(r.not_rerun) as n (number) cross join lateral (
          select f.* from execution e
          join test_run t on t.project_id = e.project_id and t.execution_id = e.id and t.task_slug = r.task_slug
          join failure f on f.project_id = t.project_id and f.run_id = t.id and f.test_case = n.number
          where e.project_id = own.project_id and e.id < own.id and (e.id = own.build_id or e.build_id = own.build_id)
          order by e.id desc limit 1) earlier
        where own.project_id = r.project_id and own.id = r.execution_id)`;

/** The numbers of these failures by blame. */
const countBlames = (sql: Sql, own: ShardFailures | undefined): Fragment => sql`(
  select coalesce(json_object_agg(blame, number), '{}') from (
    select f.blame, count(*) as number from ${failuresOf(sql, own)} f
    where ${isTest(sql)} ${isOfShard(sql, own)}
    group by 1) b)`;

/** `runs` is a statement that selects rows of test_run. */
const gatedRuns = (sql: Sql, runs: Fragment, own?: ShardFailures) => sql<GatedRun[]>`
  select r.id, r.task_slug as slug, r.status, r.verdict, ${isOnSharedBranch(sql)} as "isOnSharedBranch",
    ${isBaselineShared(sql)} as "isBaselineShared", r.attempt, r.outage,
    r.failed - r.shadowed + ${own === undefined ? sql`cardinality(r.not_rerun)` : sql`0`} as failed, r.shards,
    ${namedShards(sql, sql`r`)} as "namedShards", r.completed_at as "completedAt", r.reason, r.absence, ${flaws(sql, sql`r`)} as flaws,
    (select coalesce(json_agg(json_build_object('shard', a.shard, 'exitCode', a.exit_code, 'failedCases', a.failed_cases,
        'isStandIn', a.exit_case is not null, 'isPartial', a.partial, 'counted', case when a.failed < a.failed_cases then 0 else a.failed end) order by a.shard), '[]')
      from (
        select distinct on (a.shard) a.* from attempt a
        where a.project_id = r.project_id and a.run_id = r.id order by a.shard, a.number desc) a) as uploads,
    case when r.failed = 0 and r.not_rerun = '{}' then '{}' else ${countBlames(sql, own)} end as blames,
    case when r.failed = 0 and r.not_rerun = '{}' then 0 else (
      select count(*)::int from ${failuresOf(sql, own)} f) end as judged
  from (${runs}) r order by r.id`;

/** The run of a task, with the failures of the whole run or of one shard. */
export const selectGatedRun = async (sql: Sql, projectId: string, runId: string, own?: ShardFailures) => {
  const runs = sql`select * from test_run where project_id = ${projectId} and id = ${runId}`;
  return (await gatedRuns(sql, runs, own))[0];
};

/** The runs of an execution, each as its last rerun that has a result left it. */
export const selectGatedRuns = (sql: Sql, projectId: string, executionId: string, taskSlug: string | undefined) => {
  const ofTask = taskSlug === undefined ? sql`` : sql`and r.task_slug = ${taskSlug}`;
  return gatedRuns(
    sql,
    sql`
    select distinct on (task_slug) * from (
      select r.* from test_run r where r.project_id = ${projectId} and r.execution_id = ${executionId} ${ofTask}
      union all
      select r.* from execution e join test_run r on r.project_id = e.project_id and r.execution_id = e.id
      where e.project_id = ${projectId} and e.build_id = ${executionId} and ${hasResult(sql, sql`r`)} ${ofTask}
    ) r order by task_slug, execution_id desc`,
  );
};

export type GatedFailure = CaseRef & {
  blame: Blame;
  /** The infrastructure rule that it matches. */
  ruleName: string | null;
  change: number;
  shares: Record<ExplanationKind, number>;
  evidence: OddsEvidence;
};

/** The failures of runs with one of these blames, the first 100. */
export const selectGatedFailures = (
  sql: Sql,
  projectId: string,
  runIds: readonly string[],
  blames: readonly Blame[],
  own?: ShardFailures,
) => sql<GatedFailure[]>`
  select c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file, f.blame, f.rule_name as "ruleName",
    f.change::float8 as change, ${sharesOf(sql)} as shares, f.evidence
  from (
    select f.* from (
      select * from test_run where project_id = ${projectId} and id = any(${toTextArray(runIds)}::uuid[])) r
    cross join lateral ${failuresOf(sql, own)} f
    where f.blame = any(${toTextArray(blames)}::text[]) and ${isTest(sql)} ${isOfShard(sql, own)}
    order by f.run_id, f.test_case limit ${MAX_FORGIVEN}::int
  ) f cross join lateral (
    select * from test_case where project_id = ${projectId} and number = f.test_case offset 0) c
  order by f.run_id, f.test_case`;

/** An upload of a run; `digest` is hexadecimal. */
type UploadKey = { runId: string; shard: number; digest: string };

/** Names of test cases are looked up when a stored decision is read. Unclear failures are on the page of the execution. */
const toStored = ({ forgiven, unclear: _, ...decision }: GateDecision) => ({
  ...decision,
  forgiven: forgiven.map(({ testCaseId, list, reason }) => ({ testCaseId, list, reason })),
});

/** Stores the decision with its upload, and how many failures of the run the latest uploads' gates have forgiven. */
export async function updateGate(
  sql: Tx,
  projectId: string,
  { runId, shard, digest }: UploadKey,
  decision: GateDecision,
): Promise<void> {
  await sql`
    update attempt set gate = ${toJson(sql, toStored(decision))}
    where project_id = ${projectId} and run_id = ${runId} and shard = ${shard} and digest = decode(${digest}, 'hex')`;
  await sql`
    update test_run set forgiven = coalesce((
      select sum((gate->>'forgivenCount')::int) filter (where (gate->>'pass')::boolean) from (
        select distinct on (shard) gate from attempt where project_id = ${projectId} and run_id = ${runId}
        order by shard, number desc) a), 0)
    where project_id = ${projectId} and id = ${runId}`;
}

/** The maximum number of decisions of a run that are shown: a run can have thousands of shards. */
const MAX_SHOWN = 100;

/** The decisions that the latest uploads of runs asked for, by run id; of each run the first 100. */
export async function selectStoredGates(
  sql: Sql,
  projectId: string,
  runIds: readonly string[],
): Promise<Map<string, StoredGate[]>> {
  if (runIds.length === 0) return new Map();
  const rows = await sql<{ runId: string; gates: StoredGate[] }[]>`
    select run.id as "runId", json_agg(a.gate order by a.shard) as gates
    from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
      select a.shard, (a.gate::jsonb || jsonb_build_object('shard', nullif(a.shard, 0),
        'decidedAt', ${toJsonTime(sql, sql`a.received_at`)},
        'forgiven', (
          select coalesce(jsonb_agg(jsonb_build_object('testCaseId', c.id, 'taskSlug', c.task_slug, 'suite', c.suite,
            'name', c.name, 'file', c.file) || (f.value - 'testCaseId') order by f.place), '[]')
          from jsonb_array_elements(a.gate::jsonb->'forgiven') with ordinality as f (value, place)
          join test_case c on c.project_id = ${projectId} and c.id = (f.value->>'testCaseId')::uuid)))::json as gate
      from (
        select distinct on (shard) * from attempt where project_id = ${projectId} and run_id = run.id
        order by shard, number desc) a
      where a.gate is not null order by a.shard limit ${MAX_SHOWN}::int
    ) a group by run.id`;
  return new Map(rows.map(({ runId, gates }) => [runId, gates]));
}

export type ForgivenDay = { day: string; forgiven: number };

/** Counts failures that the gates of a project forgave, by day in UTC such as 2026-01-31, from the day `from` on. */
export const selectForgivenDays = (sql: Sql, projectId: string, from: string) => sql<ForgivenDay[]>`
  select to_char(completed_at at time zone 'UTC', 'YYYY-MM-DD') as day, sum(forgiven)::int as forgiven from test_run
  where project_id = ${projectId} and forgiven > 0 and completed_at >= ${from}::text::timestamptz
  group by 1 order by 1`;

export type TaskStoredGates = { taskSlug: string; gates: StoredGate[] };

/** The decisions for the tasks of an execution, at most `limit` tasks. */
export async function selectGatesOfExecution(
  sql: Sql,
  projectId: string,
  executionId: string,
  limit: number,
): Promise<TaskStoredGates[]> {
  const runs = await sql<{ id: string; taskSlug: string }[]>`
    select r.id, r.task_slug as "taskSlug" from test_run r
    where r.project_id = ${projectId} and r.execution_id = ${executionId} and exists (
      select from attempt a where a.project_id = r.project_id and a.run_id = r.id and a.gate is not null)
    order by r.forgiven desc, r.id limit ${limit}`;
  const gates = await selectStoredGates(
    sql,
    projectId,
    runs.map(({ id }) => id),
  );
  return runs.flatMap(({ id, taskSlug }) => (gates.has(id) ? { taskSlug, gates: gates.get(id)! } : []));
}
