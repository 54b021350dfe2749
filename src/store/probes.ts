/** Probes: executions that run a test case at a commit, or those of several searches for culprits; each search has a row with its result. */

import { toStoredBlock } from "../rules/untrusted.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { ProbeOutcome } from "../schema/executions.ts";
import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { caseRefOf } from "./case_ref.ts";
import { type HeldLease, selectCasesToRepeat } from "./leases.ts";
import { blockOfCase } from "./packing.ts";
import { isTrustedBuild } from "./predicates.ts";
import { isHeld, isPresent, isSeenWithinHour } from "./runner_presence.ts";
import { indexedTask } from "./task_runs.ts";

/** The verification or the search that a probe belongs to. */
export type ProbeOwner = { verificationId: string } | { culpritSearchId: string };

const isOf = (sql: Sql, owner: ProbeOwner): Fragment =>
  "verificationId" in owner
    ? sql`verification_id = ${owner.verificationId}`
    : sql`culprit_search_id = ${owner.culpritSearchId}`;

export type ProbeRow = {
  executionId: string;
  /** commits: it lists the commits of a range, and runs no test. */
  kind: "test" | "commits";
  commit: string | null;
  /** Null until it has ended. */
  result: ProbeOutcome | null;
  /** Whether it passed after it had failed in the same run. */
  flaky: boolean;
  /** The fingerprint of its failure, as `case_detail.cause`. */
  fingerprint: string | null;
  /** Whether its execution was created for this owner, and not joined. */
  isOwn: boolean;
  /** Whether its execution also ran the test cases of other searches. */
  isShared: boolean;
  isCancelled: boolean;
  createdAt: string;
  endedAt: string | null;
};

/** Returns probes in the order of creation. */
export const selectProbes = (sql: Sql, projectId: string, owner: ProbeOwner) => sql<ProbeRow[]>`
  select execution_id as "executionId", kind, commit, case when ended_at is not null then result end as result, flaky, fingerprint,
    number = 1 as "isOwn", number > 1 or exists (
      select from probe other
      where other.project_id = probe.project_id and other.execution_id = probe.execution_id and other.number > 1) as "isShared",
    exists (
      select from execution e
      where e.project_id = probe.project_id and e.id = probe.execution_id and e.status = 'cancelled') as "isCancelled",
    created_at as "createdAt", ended_at as "endedAt"
  from probe where project_id = ${projectId} and ${isOf(sql, owner)} order by execution_id`;

/** Returns the probes that are queued or running, in the order in which executions are locked. */
export const selectOpenProbeIds = async (sql: Sql, projectId: string, owner: ProbeOwner): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select execution_id as id from probe
    where project_id = ${projectId} and ${isOf(sql, owner)} and ended_at is null order by execution_id`;
  return rows.map(({ id }) => id);
};

/** Returns whether a probe whose execution is locked also runs for other owners, which still wait for it. */
export const selectIsWantedByOthers = async (
  sql: Tx,
  projectId: string,
  executionId: string,
  owner: ProbeOwner,
): Promise<boolean> =>
  (
    await sql`
      select from probe
      where project_id = ${projectId} and execution_id = ${executionId} and ended_at is null and (${isOf(sql, owner)}) is not true
      limit 1`
  ).length === 1;

/** Ends the row of one owner of a locked probe, which goes on for others. */
export const updateLeftProbe = (sql: Tx, projectId: string, executionId: string, owner: ProbeOwner) => sql`
  update probe set ended_at = now(), result = 'no_result'
  where project_id = ${projectId} and execution_id = ${executionId} and ${isOf(sql, owner)} and ended_at is null`;

/** The settings of the task without a probe: a probe needs the same machine, environment and time. */
export type ProbePlan = {
  labels: string[];
  timeoutSeconds: number | null;
  concurrencyGroup: string | null;
  /** Null if it has none, or if it was deleted since. */
  environment: string | null;
  /** Sealed. */
  variables: Buffer | null;
};

/** Maximum number of runs of a task that are searched for one that a runner ran. */
const MAX_RUNS = 50;

/** The plan of the newest run that a runner ran; undefined: there is none. */
export const selectProbePlan = async (
  sql: Sql,
  projectId: string,
  taskSlug: string,
): Promise<ProbePlan | undefined> => {
  const [plan] = await sql<ProbePlan[]>`
    select to_json(l.labels) as labels, l.timeout_seconds as "timeoutSeconds", l.concurrency_group as "concurrencyGroup",
      v.slug as environment, e.variables
    from (
      select id, execution_id, completed_at from test_run r
      where project_id = ${projectId} and ${indexedTask(sql)} = ${taskSlug} and ${isTrustedBuild(sql, sql`r`)}
      order by completed_at desc, id desc limit ${MAX_RUNS}) r
    cross join lateral (
      select * from lease l where l.project_id = ${projectId} and l.run_id = r.id order by l.id desc limit 1) l
    join execution e on e.project_id = ${projectId} and e.id = r.execution_id
    join project p on p.id = e.project_id
    left join environment v on v.team_id = p.team_id and v.slug = e.environment
    order by r.completed_at desc, r.id desc limit 1`;
  return plan;
};

export type NewProbe = {
  executionId: string;
  /** The number of the row: 1, and more for each further search that shares the probe. */
  number: number;
  taskSlug: string;
  /** null: it lists the commits of a range. */
  test: { testCaseId: string; commit: string } | null;
  owner: ProbeOwner;
  now: Date;
};

export const insertProbe = (sql: Tx, projectId: string, probe: NewProbe) => {
  const { executionId, number, taskSlug, test, owner, now } = probe;
  const ids = { verificationId: null, culpritSearchId: null, ...owner };
  return sql`
    insert into probe (project_id, execution_id, number, kind, test_case, task_slug, commit, verification_id, culprit_search_id,
      created_at)
    values (${projectId}, ${executionId}, ${number}, ${test ? "test" : "commits"}, ${test && numberOfTestCase(test.testCaseId)},
      ${taskSlug}, ${test && test.commit}, ${ids.verificationId}, ${ids.culpritSearchId}, ${now.toISOString()})`;
};

/** The number of the next row of a probe whose execution is locked. */
export const selectNextNumber = async (sql: Tx, projectId: string, executionId: string): Promise<number> => {
  const [row] = await sql<[{ number: number }]>`
    select max(number) + 1 as number from probe where project_id = ${projectId} and execution_id = ${executionId}`;
  return row.number;
};

/** Notes that a probe has listed the commits of its range. Its execution is about to end. */
export const updateListedProbe = (sql: Tx, projectId: string, executionId: string) => sql`
  update probe set result = 'passed'
  where project_id = ${projectId} and execution_id = ${executionId} and kind = 'commits' and ended_at is null`;

/** Notes that the commit of a probe cannot be checked out or built. Its execution is about to end. */
export const updateProbeWithoutBuild = (sql: Tx, projectId: string, executionId: string) => sql`
  update probe set result = 'no_build'
  where project_id = ${projectId} and execution_id = ${executionId} and ended_at is null`;

/** Stores the results of a probe, in the transaction that ends its execution and after its results were stored. */
export const updateEndedProbe = (sql: Tx, projectId: string, executionId: string) => sql`
  update probe set ended_at = now(), flaky = coalesce(found.letter = 'P', false), fingerprint = found.cause,
    result = coalesce(probe.result, case upper(found.letter) when 'P' then 'passed' when 'F' then 'failed' end, 'no_result')
  from probe asked left join lateral (
    select substr(b.statuses, array_position(b.test_cases, asked.test_case), 1) as letter, (
      select cause from case_detail d
      where d.project_id = ${projectId} and d.run_id = r.id and d.test_case = asked.test_case and d.cause is not null
      order by d.attempt desc limit 1) as cause
    from test_run r
    join case_result b on b.project_id = ${projectId} and b.run_id = r.id
      and b.block = ${blockOfCase(sql, sql`asked.test_case`)} + ${toStoredBlock(0, true)}::int
    where r.project_id = ${projectId} and r.execution_id = ${executionId} limit 1) found on true
  where asked.project_id = ${projectId} and asked.execution_id = ${executionId}
    and probe.project_id = asked.project_id and probe.execution_id = asked.execution_id and probe.number = asked.number
    and probe.ended_at is null`;

/** An expression: the subject of the execution `e`, an alias, as JSON if it is a probe. */
export const probeOf = (sql: Sql, e: Fragment): Fragment => sql`(
  select json_build_object('testCase', p.tests -> 0 -> 'testCase', 'result', p.tests -> 0 -> 'result',
    'verificationId', p.verification_id, 'culpritSearchId', p.tests -> 0 -> 'culpritSearchId',
    'tests', case when p.kind = 'test' then p.tests else '[]' end)
  from (
    select min(p.kind) as kind, min(p.verification_id::text) as verification_id, json_agg(json_build_object('testCase', (
        select ${caseRefOf(sql, sql`c`)}
        from test_case c where c.project_id = p.project_id and c.number = p.test_case),
      'result', case when p.ended_at is not null then p.result end, 'culpritSearchId', p.culprit_search_id) order by p.number) as tests
    from probe p where p.project_id = ${e}.project_id and p.execution_id = ${e}.id) p)`;

/**
 * Returns the test cases that a lease is limited to: those to repeat, or those of a probe that are still wanted; undefined: the whole task.
 * An ended probe has no wanted ones; then all of its test cases are returned, because it is never the whole task.
 */
export const selectOnly = async (
  sql: Sql,
  projectId: string,
  { probe, repeats, executionId, taskSlug }: Pick<HeldLease, "probe" | "repeats" | "executionId" | "taskSlug">,
): Promise<{ suite: string; name: string; file: string | null }[] | undefined> => {
  if (probe) {
    const cases = await sql<{ suite: string; name: string; file: string | null; isLeft: boolean }[]>`
      select c.suite, c.name, c.file, p.is_left as "isLeft" from (
        select test_case, min(number) as number, bool_and(ended_at is not null) as is_left from probe
        where project_id = ${projectId} and execution_id = ${executionId} group by test_case) p
      join test_case c on c.project_id = ${projectId} and c.number = p.test_case
      order by p.number`;
    const wanted = cases.filter(({ isLeft }) => !isLeft);
    const only = wanted.length === 0 ? cases : wanted;
    return only.length === 0 ? undefined : only.map(({ isLeft: _, ...test }) => test);
  }
  return repeats === null ? undefined : await selectCasesToRepeat(sql, projectId, repeats, taskSlug);
};

type ProbedTask = { taskSlug: string; labels: readonly string[] };

/** A condition: the runner `r`, an alias, can probe the task. */
const canProbe = (sql: Sql, { taskSlug, labels }: ProbedTask): Fragment => sql`
  (${taskSlug} = any(r.probe_slugs) and ${toTextArray(labels)}::text[] <@ r.labels)`;

/** Whether a runner that can probe the task was seen within the last hour. */
export const selectHasProbeRunner = async (sql: Sql, projectId: string, task: ProbedTask): Promise<boolean> =>
  (
    await sql`
      select from runner r
      where r.project_id = ${projectId} and ${isSeenWithinHour(sql, sql`r`)} and ${canProbe(sql, task)} limit 1`
  ).length === 1;

/**
 * Returns the number of tasks that runners could begin now, minus those that wait. Leases that a runner was offered since its last request
 * are subtracted from the number that it requested.
 */
export const countFreeSlots = async (sql: Sql, projectId: string, task: ProbedTask): Promise<number> => {
  const [row] = await sql<{ free: number }[]>`
    select greatest(0, coalesce(sum(greatest(0, free)), 0) - (
      select count(*) from lease where project_id = ${projectId} and status = 'queued'))::int as free
    from (
      select r.free - greatest(0, (
        select count(*) from lease l
        where l.project_id = r.project_id and l.runner = r.name and ${isHeld(sql, sql`l`)}) - r.held) as free
      from runner r
      where r.project_id = ${projectId} and ${isPresent(sql, sql`r`)} and ${canProbe(sql, task)}) r`;
  return row!.free;
};
