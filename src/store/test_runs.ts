/** Test runs and the uploads they are made of. */

import type { TimedAttempt } from "../rules/duration.ts";
import type { Slower } from "../rules/slower.ts";
import type { MachineNames } from "../rules/ran_on.ts";
import type { Verdict } from "../schema/fields.ts";
import type { RanOn, TestRun } from "../schema/test_runs.ts";
import type { TaskStatus } from "../schema/executions.ts";
import type { Given } from "../database/compose.ts";
import { type Sql, toTextArray, type Tx } from "../database/connect.ts";
import type { Flaws } from "../rules/red_reason.ts";
import type { Absence } from "../rules/absent_tests.ts";
import type { RunAttempt } from "../rules/run_outcome.ts";
import type { BuildResults } from "../rules/rerun_results.ts";
import { IS_LIVE } from "./keys.ts";
import { flaws, namedShards, ranOn } from "./shards.ts";
import { INDEXED_TASK } from "./task_runs.ts";

const FIRST_TIME = "infinity";
const FIRST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

type TestRunQuery = {
  limit: number;
  execution_id?: string | undefined;
  task_slug?: string | undefined;
  /** The cursor: `completedAt` and id of the last run on the previous page. */
  after?: string[] | undefined;
};

type TestRunPage = {
  /** The runs as JSON objects with seven fields, separated by commas. */
  elements: string;
  /** The cursor of the next page; undefined on the last page. */
  last: [completedAt: string, id: string] | undefined;
};

const BETWEEN = ",\n";
const UUID_LENGTH = 36;
const COMPLETED_AT = '"completedAt":"';

/**
 * A row comparison is one range of the index; an equivalent condition with "or" would filter all earlier rows. The page is returned as two
 * texts, because work for each row would cost more than the rest of the request.
 */
const pageStatement = (filters: string) => `
  select r.elements, r.ids from api_key k cross join lateral (
    select string_agg(element, E',\\n') as elements, string_agg(id::text, '') as ids
    from (
      select id, element from test_run
      where project_id = k.project_id ${filters} and (completed_at, id) < ($4, $5)
      order by completed_at desc, id desc limit $3
    ) page
  ) r
  where k.team_id = $1 and k.id = $2 and ${IS_LIVE}`;

// Without an execution, the list has only trusted runs.
const PAGE = pageStatement("and not untrusted");
const PAGE_OF_EXECUTION = pageStatement("and execution_id = $6");
const PAGE_OF_TASK = pageStatement(`and not untrusted and ${INDEXED_TASK} = $6`);
const PAGE_OF_BOTH = pageStatement("and execution_id = $6 and task_slug = $7");

/**
 * Returns runs, newest first. The statement that reads also checks the key, so that revocation is exact with one round trip: undefined if
 * it is not live.
 */
export async function selectTestRunPageWithKey(
  sql: Sql,
  key: { teamId: string; id: string },
  { limit, execution_id, task_slug, after }: TestRunQuery,
): Promise<TestRunPage | undefined> {
  const parameters = [key.teamId, key.id, String(limit + 1), after?.[0] ?? FIRST_TIME, after?.[1] ?? FIRST_ID];
  if (execution_id) parameters.push(execution_id);
  if (task_slug) parameters.push(task_slug);
  const text = execution_id ? (task_slug ? PAGE_OF_BOTH : PAGE_OF_EXECUTION) : task_slug ? PAGE_OF_TASK : PAGE;
  const [row] = await sql.unsafe<{ elements: string | null; ids: string }[]>(text, parameters, { prepare: true });
  if (!row) return undefined;
  const { elements: all, ids } = row;
  if (all === null) return { elements: "", last: undefined };
  if (ids.length <= limit * UUID_LENGTH) return { elements: all, last: undefined };
  // One more run than requested shows that there are more. Texts in JSON contain no line break, so this separator is the last one.
  const elements = all.slice(0, all.lastIndexOf(BETWEEN));
  const time = elements.lastIndexOf(COMPLETED_AT) + COMPLETED_AT.length;
  const id = ids.slice((limit - 1) * UUID_LENGTH, limit * UUID_LENGTH);
  return { elements, last: [elements.slice(time, elements.indexOf('"', time)), id] };
}

export type TestRunDetailRow = Omit<TestRun, "completedAt" | "total"> & {
  id: string;
  completedAt: string | null;
  status: TaskStatus;
  attempt: number;
  shards: number;
  /** Shards that uploads have named; empty if the run is not sharded. */
  namedShards: number[];
  flaky: number;
  /** Wall time. */
  durationMs: number;
  /** Sum over all shards and attempts. */
  machineTimeMs: number;
  /** When the tests of its first attempts began; null: unknown. */
  testsStartedAt: string | null;
  verdict: Verdict;
  format: string | null;
  exitCode: number | null;
  warnings: string[];
  /** Whether nearly all tests failed. */
  outage: boolean;
  /** Whether it was an outage after an earlier attempt. */
  wasOutage: boolean;
  /** Whether it comes from a fork, like its execution. */
  untrusted: boolean;
  /** Whether its results are counted in the health of their test cases; null while it is not complete, and if it is untrusted. */
  healthApplied: boolean | null;
  /** The usual durations, if it passed and took longer. */
  slower: Slower | null;
  /** The reason why it ended without a report, or without a complete one. */
  reason: string | null;
  flaws: Flaws | null;
  /** Only for reruns: test cases that failed in the build and have no result here. */
  notRerun: number[];
  /** Tests of the baseline that did not run; null: all have run, or it is not complete, or there is no baseline. */
  absence: Absence | null;
};

/** A run with the machines of its latest uploads. */
export type LocatedRun = TestRunDetailRow & { ranOn: RanOn[] };
/** `forgiven` is the number of its failures that the gates of its latest uploads have forgiven. */
export type StoredRun = LocatedRun & { forgiven: number };

const detailColumns = (sql: Sql) => sql`
  ${namedShards(sql, sql`test_run`)} as "namedShards", ${flaws(sql, sql`test_run`)} as flaws, reason,
  to_json(not_rerun) as "notRerun", absence, id, execution_id as "executionId", task_slug as "taskSlug", completed_at as "completedAt", status, passed, failed,
  skipped, attempt, shards, flaky, duration_ms as "durationMs",
  machine_ms as "machineTimeMs", tests_started_at as "testsStartedAt", verdict, format,
  exit_code as "exitCode", slower,
  to_json(warnings) as warnings, outage, untrusted, was_outage as "wasOutage", health_applied as "healthApplied"`;

/** Returns the run of a task; undefined if nothing was uploaded for it. */
export const selectTestRun = async (
  sql: Sql,
  projectId: string,
  executionId: string,
  taskSlug: string,
): Promise<StoredRun | undefined> => {
  const [run] = await sql<StoredRun[]>`
    select ${detailColumns(sql)}, forgiven, ${ranOn(sql, sql`test_run`)} as "ranOn" from test_run
    where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug} and attempt > 0`;
  return run;
};

/** Returns the id of the run of a task, whether anything was uploaded for it or not. */
export const selectRunId = async (
  sql: Sql,
  projectId: string,
  executionId: string,
  taskSlug: string,
): Promise<string | undefined> => {
  const [run] = await sql<{ id: string }[]>`
    select id from test_run
    where project_id = ${projectId} and execution_id = ${executionId} and task_slug = ${taskSlug}`;
  return run?.id;
};

/** A run with the fields that its execution depends on. */
export type RunRow = Omit<TestRunDetailRow, "verdict"> & {
  verdict: Verdict | null;
  declared: boolean;
  startedAt: string | null;
};

/** Returns a run that is not stored yet. Its id has the time `at`. */
export const newRun = (
  { id: executionId, untrusted }: { id: string; untrusted: boolean },
  taskSlug: string,
  at: Date,
): RunRow => ({
  id: Bun.randomUUIDv7("hex", at.getTime()),
  executionId,
  taskSlug,
  completedAt: null,
  status: "running",
  passed: 0,
  failed: 0,
  skipped: 0,
  attempt: 0,
  shards: 1,
  namedShards: [],
  flaky: 0,
  durationMs: 0,
  machineTimeMs: 0,
  testsStartedAt: null,
  verdict: null,
  format: null,
  exitCode: null,
  warnings: [],
  outage: false,
  untrusted,
  wasOutage: false,
  healthApplied: null,
  slower: null,
  declared: false,
  startedAt: null,
  reason: null,
  flaws: null,
  notRerun: [],
  absence: null,
});

/** A task of an execution. */
type TaskKey = { executionId: string; taskSlug: string };

type RunWithAttempts = RunRow & {
  /** The attempts in order; null for runs of other tasks. */
  attempts: Attempt[] | null;
};

/**
 * Returns all runs of the locked executions of these tasks, ordered by id. The runs of the tasks themselves have their attempts, and are
 * locked, because health is counted without the lock of the execution.
 */
export const selectRuns = (sql: Tx, projectId: string, tasks: readonly TaskKey[]) => {
  const given = sql`unnest(
    ${toTextArray(tasks.map(({ executionId }) => executionId))}::uuid[],
    ${toTextArray(tasks.map(({ taskSlug }) => taskSlug))}::text[]) as asked (execution_id, task_slug)`;
  const attempts = sql`(
    select coalesce(json_agg(json_build_object('shard', shard, 'number', number, 'digest', encode(digest, 'hex'),
      'format', format, 'partial', partial, 'exitCode', exit_code, 'exitCase', exit_case, 'passed', passed,
      'failed', failed, 'skipped', skipped, 'failedCases', failed_cases, 'warnings', to_json(warnings),
      'durationMs', duration_ms,
      'startedAt', started_at, 'host', host, 'system', system, 'image', image) order by number, shard), '[]')
    from attempt where project_id = ${projectId} and run_id = test_run.id)`;
  return sql<RunWithAttempts[]>`
    with own as materialized (
      select r.* from (select distinct * from ${given}) asked cross join lateral (
        select * from test_run
        where project_id = ${projectId} and execution_id = asked.execution_id and task_slug = asked.task_slug
        for no key update) r)
    select ${detailColumns(sql)}, declared, started_at as "startedAt", case when is_own then ${attempts} end as attempts
    from (
      select *, true as is_own from own
      union all
      select r.*, false from (select distinct execution_id from ${given}) asked cross join lateral (
        select * from test_run where project_id = ${projectId} and execution_id = asked.execution_id offset 0) r
      where not exists (select from own where own.id = r.id)
    ) test_run
    order by id`;
};

/** Whether a complete run is an outage, as the other tasks of its execution have shown. */
export const updateOutage = (sql: Tx, projectId: string, { id, outage, wasOutage }: RunRow) => sql`
  update test_run set outage = ${outage}, was_outage = ${wasOutage} where project_id = ${projectId} and id = ${id}`;

/** Releases the runs of an ended execution for counting, which could have become an outage until now. */
export const releaseForCounting = (sql: Tx, projectId: string, executionId: string) => sql`
  update test_run set health_applied = false
  where project_id = ${projectId} and execution_id = ${executionId} and health_applied is null and completed_at is not null`;

/** One upload to a run. `digest` is hexadecimal. */
export type Attempt = {
  digest: string;
  format: string;
  /** The tool that wrote the report, if its own format would keep retries; null: it is unknown, or would not. */
  tool: string | null;
  exitCode: number | null;
  exitCase: number | null;
  warnings: string[];
  /** One test case of each file whose total time differs from the sum of its test cases, for instance because of imports and hooks. */
  overheadCases: number[];
  /** The difference for each of these files, in milliseconds. */
  overheads: number[];
} & RunAttempt &
  TimedAttempt &
  MachineNames;

/** An upload of a run; the newest first. */
export type UploadRow = Pick<Attempt, "shard" | "number" | "format" | "partial" | "exitCode"> &
  MachineNames & { receivedAt: string };

export const selectUploadsOfRun = (sql: Sql, projectId: string, runId: string, limit: number) => sql<UploadRow[]>`
  select shard, number, format, partial, exit_code as "exitCode", received_at as "receivedAt", host, system,
    image
  from attempt where project_id = ${projectId} and run_id = ${runId} order by number desc, shard limit ${limit}`;

/** `rows`: attempts with their `runId`, see `toRows`. */
export const insertAttempts = (sql: Sql, projectId: Given, rows: Given) => sql`
  insert into attempt (project_id, run_id, shard, number, digest, format, tool, partial, exit_code, exit_case, passed, failed,
    skipped, failed_cases, warnings, duration_ms, started_at, host, system, image, overhead_cases, overheads, received_at)
  select ${projectId}, "runId", shard, number, decode(digest, 'hex'), format, tool, partial, "exitCode", "exitCase", passed,
    failed, skipped, "failedCases", warnings, "durationMs", "startedAt", host, system, image, nullif("overheadCases", '{}'), nullif(overheads, '{}'), now()
  from json_to_recordset(${rows}::text::json) as fresh ("runId" uuid, shard int, number int, digest text, format text, tool text,
    partial boolean, "exitCode" int, "exitCase" int, passed int, failed int, skipped int, "failedCases" int, warnings text[],
    "durationMs" bigint, "startedAt" timestamptz, host text, system text, image text, "overheadCases" int[], overheads int[])`;

export type TestRunChange = Pick<
  TestRunDetailRow,
  | "status"
  | "shards"
  | "attempt"
  | "passed"
  | "failed"
  | "skipped"
  | "flaky"
  | "durationMs"
  | "machineTimeMs"
  | "testsStartedAt"
  | "verdict"
  | "exitCode"
  | "outage"
  | "wasOutage"
  | "healthApplied"
  | "slower"
  | "absence"
> &
  BuildResults & {
    quarantined: number;
    shadowed: number;
    format: string;
    warnings: string[];
    startedAt: string;
    completedAt: string | null;
  };

export type NewTestRun = Pick<TestRunDetailRow, "id" | "executionId" | "taskSlug" | "untrusted"> & TestRunChange;

/** `rows`: see `toRows`. */
export const insertTestRuns = (sql: Sql, projectId: Given, rows: Given) => sql`
  insert into test_run (project_id, id, execution_id, task_slug, status, shards, attempt, passed, failed, skipped, flaky,
    duration_ms, machine_ms, tests_started_at, verdict, exit_code, format, warnings, started_at, completed_at,
    quarantined, outage, was_outage, health_applied, slower, untrusted, build_passed, build_failed, build_skipped, not_rerun, absence, shadowed)
  select ${projectId}, id, "executionId", "taskSlug", status, shards, attempt, passed, failed, skipped, flaky,
    "durationMs", "machineTimeMs", "testsStartedAt", verdict, "exitCode", format, warnings, "startedAt", "completedAt",
    quarantined, outage, "wasOutage", "healthApplied", slower, untrusted, "buildPassed", "buildFailed", "buildSkipped", "notRerun", absence, shadowed
  from json_to_recordset(${rows}::text::json) as fresh (id uuid, "executionId" uuid, "taskSlug" text, status text,
    shards int, attempt int, passed int, failed int, skipped int, flaky int, "durationMs" bigint,
    "machineTimeMs" bigint, "testsStartedAt" timestamptz, verdict text,
    "exitCode" int, format text, warnings text[], "startedAt" timestamptz, "completedAt" timestamptz, quarantined int,
    outage boolean, "wasOutage" boolean, "healthApplied" boolean, slower json, untrusted boolean, "buildPassed" int, "buildFailed" int,
    "buildSkipped" int, "notRerun" int[], absence json, shadowed int)`;

export type ChangedTestRun = Pick<TestRunDetailRow, "id"> & TestRunChange;

/** `rows`: see `toRows`. */
export const updateTestRuns = (sql: Sql, projectId: Given, rows: Given) => sql`
  update test_run r set
    status = c.status, shards = c.shards, attempt = c.attempt, passed = c.passed, failed = c.failed,
    skipped = c.skipped, flaky = c.flaky, duration_ms = c."durationMs", machine_ms = c."machineTimeMs",
    tests_started_at = c."testsStartedAt", verdict = c.verdict, exit_code = c."exitCode", format = c.format,
    warnings = c.warnings, started_at = coalesce(r.started_at, c."startedAt"), completed_at = c."completedAt",
    quarantined = c.quarantined, outage = c.outage, was_outage = c."wasOutage", reason = null,
    health_applied = c."healthApplied", slower = c.slower, build_passed = c."buildPassed", build_failed = c."buildFailed",
    build_skipped = c."buildSkipped", not_rerun = c."notRerun",
    absence = c.absence, shadowed = c.shadowed
  from json_to_recordset(${rows}::text::json) as c (id uuid, status text, shards int, attempt int, passed int,
    failed int, skipped int, flaky int, "durationMs" bigint, "machineTimeMs" bigint, "testsStartedAt" timestamptz,
    verdict text, "exitCode" int, format text, warnings text[], "startedAt" timestamptz, "completedAt" timestamptz,
    quarantined int, outage boolean, "wasOutage" boolean, "healthApplied" boolean, slower json, "buildPassed" int,
    "buildFailed" int, "buildSkipped" int, "notRerun" int[], absence json, shadowed int)
  where r.project_id = ${projectId} and r.id = c.id
    -- Looked up, as in updateExecutions.
    and r.id = any(array(select id from json_to_recordset(${rows}::text::json) as c (id uuid)))`;

/** Returns the number of test cases that passed on retry, by run id. */
export const selectFlakyCounts = async (
  sql: Tx,
  projectId: string,
  runIds: readonly string[],
): Promise<Map<string, number>> => {
  const rows = await sql<{ id: string; flaky: number }[]>`
    select id, flaky from test_run where project_id = ${projectId} and id = any(${toTextArray(runIds)}::uuid[])`;
  return new Map(rows.map(({ id, flaky }) => [id, flaky]));
};
