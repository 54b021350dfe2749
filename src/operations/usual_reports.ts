/** Takes what most reports are, the first of their task with nothing that failed: many of them in a few statements. */

import {
  advanceByGreen,
  type ArrivalAmongRuns,
  isOnDefaultBranch,
  meetExecutions,
  toOrigin,
  toUploaded,
} from "./executions.ts";
import { type TrackedRun, trackBugs } from "./bug_reports.ts";
import { originOf, type PreparedReport, toNamed, toRunDetails } from "./ingest/prepare.ts";
import { lookUpNumbers } from "./ingest/test_case_cache.ts";
import {
  byId,
  completedEvent,
  type TakenReport,
  timeOf,
  toAttempt,
  toChange,
  toEvent,
  toTask,
  toTracked,
} from "./ingest/ingest.ts";
import { toCounts } from "../rules/blame.ts";
import { countStatuses, packResults } from "../rules/merge.ts";
import { mayBeOutage, outcomeOf, WHOLE } from "../rules/run_outcome.ts";
import { toRanOn } from "../rules/ran_on.ts";
import type { NewEvent } from "../schema/events.ts";
import type { UploadParameters } from "../schema/test_runs.ts";
import { type BugsOfCases, tryBugsOfCases } from "../store/bug_reports.ts";
import {
  type BlockColumns,
  insertDetails,
  type RunBlock,
  type RunDetail,
  toBlockColumns,
  upsertBlocks,
} from "../store/case_results.ts";
import { compose, type Given } from "../database/compose.ts";
import { type Fragment, joinWrites, type Sql, toRows, type Tx, writeTogether } from "../database/connect.ts";
import { insertEventRows, toEventRows } from "../store/events.ts";
import {
  type ExecutionChange,
  type ExecutionOrigin,
  insertUploadedExecutions,
  toExecutionRows,
  updateExecution,
  type UploadedExecution,
} from "../store/executions.ts";
import { type Attempt, insertAttempts, insertTestRuns, newRun, type NewTestRun } from "../store/test_runs.ts";

export type UsualReport = { prepared: PreparedReport; parameters: UploadParameters };

/** Large ones would keep the others waiting. */
const MAX_CASES = 1_000;
/** Characters of messages and output. */
const MAX_TEXT = 100_000;

/** Whether it may be one: a report of all of its task, in which nothing failed. */
export const mayBeUsual = ({ prepared, parameters }: UsualReport): boolean =>
  parameters.execution_id === undefined &&
  parameters.lease_id === undefined &&
  parameters.base_commit === undefined &&
  parameters.shard === undefined &&
  !prepared.report.partial &&
  prepared.report.countsOnly === null &&
  prepared.cases.length <= MAX_CASES &&
  prepared.cases.every(({ status }) => status !== "failed") &&
  prepared.cases.reduce(
    (sum, { message, stack, output }) => sum + (message?.length ?? 0) + (stack?.length ?? 0) + (output?.length ?? 0),
    0,
  ) <= MAX_TEXT;

type PlacedReport = UsualReport & {
  /** Among those that are taken together. */
  place: number;
  origin: ExecutionOrigin;
  completedAt: string;
  at: Date;
  isOld: boolean;
};

/** Reports that name one build with the same words: they have one execution. */
type ReportedBuild = { key: string | null; origin: ExecutionOrigin; now: Date; reports: PlacedReport[] };

/** What is to be stored. */
type ReportRows = {
  begun: UploadedExecution[];
  /** Of executions that were there before, and are locked. */
  changes: (ExecutionChange & { id: string })[];
  runs: NewTestRun[];
  attempts: (Attempt & { runId: string })[];
  blocks: RunBlock[];
  details: RunDetail[];
  events: NewEvent[];
  /** Those that may resolve a bug, once they are there. */
  resolving: { run: TrackedRun; at: Date }[];
};

const NO_BUGS: BugsOfCases = { testCases: new Set(), areHeld: true };

type Parameters<Value> = Record<"project" | "begun" | "runs" | "attemptRows" | "events", Value> & BlockColumns<Value>;

const insertsOf = (sql: Sql, given: Parameters<Given>): Fragment[] => [
  insertUploadedExecutions(sql, given.project, given.begun),
  insertTestRuns(sql, given.project, given.runs),
  insertAttempts(sql, given.project, given.attemptRows),
  upsertBlocks(sql, given.project, given),
  insertEventRows(sql, given.project, given.events),
];

const INSERT = compose<keyof Parameters<string>, never>((sql, given) =>
  joinWrites(
    sql,
    insertsOf(sql, {
      project: given("project"),
      begun: given("begun"),
      runs: given("runs"),
      attemptRows: given("attemptRows"),
      events: given("events"),
      runIds: given("runIds"),
      blocks: given("blocks"),
      testCases: given("testCases"),
      statuses: given("statuses"),
      attempts: given("attempts"),
      durations: given("durations"),
    }),
  ),
);

/**
 * In a transaction: what comes of the reports that are admitted, whose turns it holds; undefined where one is not as usual
 * after all, of which nothing is stored then. Nobody is waited for.
 */
export async function takeUsualReports(
  sql: Tx,
  projectId: string,
  reports: readonly UsualReport[],
  admitted: Promise<readonly boolean[]>,
  now = new Date(),
): Promise<{ outputs: readonly (TakenReport | undefined)[]; written: Promise<unknown> }> {
  const builds = toBuilds(reports, now);
  const digests = reports.map(({ prepared }) => prepared.identified.digests);
  const numbersBy = lookUpNumbers(sql, projectId, digests);
  const [isAdmitted, arrivals] = await Promise.all([admitted, meetExecutions(sql, projectId, builds)]);
  const any = arrivals.find((arrival) => arrival !== undefined);
  if (!any) return { outputs: reports.map(() => undefined), written: Promise.resolve() };
  const numbers = await numbersBy(any.namesVersion);
  const passing = builds.flatMap(({ origin, reports }, index) => {
    const met = arrivals[index];
    if (!met?.hasLiveBugs || !isOnDefaultBranch(toOrigin(met.execution, origin), met.execution)) return [];
    return reports.flatMap(({ place }) => (isAdmitted[place] ? (numbers[place] ?? []) : []));
  });
  const bugs = passing.length > 0 ? await tryBugsOfCases(sql, projectId, [...new Set(passing)]) : NO_BUGS;
  const rows: ReportRows = {
    begun: [],
    changes: [],
    runs: [],
    attempts: [],
    blocks: [],
    details: [],
    events: [],
    resolving: [],
  };
  const taken: (TakenReport | undefined)[] = reports.map(() => undefined);
  for (const [index, build] of builds.entries()) {
    const met = arrivals[index];
    if (!met) continue;
    let state: State = { ...met, at: build.now, completedAt: null, told: {} };
    for (const report of build.reports) {
      const next = isAdmitted[report.place]
        ? take(report, { numbers: numbers[report.place], bugs }, state, rows)
        : undefined;
      if (next) {
        taken[report.place] = next.taken;
        state = next.state;
        // What is new begins when its first report says, with what that says.
      } else if (met.isNew && report === build.reports[0]) break;
    }
    if (state.runs !== met.runs) addExecution(state, rows);
  }
  const written = insertReports(sql, projectId, rows);
  if (rows.resolving.length > 0) await written;
  // One after the other: what the first resolves the next one does not count for.
  for (const { run, at } of rows.resolving) await trackBugs(sql, projectId, run, at.toISOString());
  return { outputs: taken, written };
}

/** Of several builds with one key the first: the others are to be told of it. */
function toBuilds(reports: readonly UsualReport[], now: Date): ReportedBuild[] {
  const builds: ReportedBuild[] = [];
  const byKey = new Map<string, ReportedBuild>();
  for (const [place, { prepared, parameters }] of reports.entries()) {
    const origin = originOf(parameters, prepared.report);
    const report = { prepared, parameters, place, origin, ...timeOf(parameters, now) };
    const key = parameters.execution_key ?? null;
    const known = key === null ? undefined : byKey.get(key);
    if (known) {
      if (known.origin.branch === origin.branch && known.origin.commit === origin.commit) known.reports.push(report);
      continue;
    }
    const build = { key, origin, now: report.at, reports: [report] };
    builds.push(build);
    if (key !== null) byKey.set(key, build);
  }
  return builds;
}

/** What an execution has become by the reports of it so far. */
type State = ArrivalAmongRuns & {
  /** When the earliest of them was completed, and the latest of those that are complete. */
  at: Date;
  completedAt: string | null;
  /** Where they say that they come from. */
  told: ExecutionOrigin;
};

type Cases = {
  /** In the order of the report; undefined: not all of them are known. */
  numbers: readonly number[] | undefined;
  bugs: BugsOfCases;
};

/** Adds to `rows` what is to be stored of the report. */
function take(
  { prepared, parameters, origin, completedAt, at, isOld }: PlacedReport,
  { numbers, bugs }: Cases,
  state: State,
  rows: ReportRows,
): { taken: TakenReport; state: State } | undefined {
  const { execution, runs, warnings } = state;
  const { taskSlug } = prepared;
  // What has come or been declared of the task is joined with it.
  if (!numbers || runs.some((run) => run.taskSlug === taskSlug)) return undefined;
  // A green task may show that others were no outage.
  if (runs.some((run) => run.outage && mayBeOutage(run))) return undefined;
  const from = toOrigin(execution, origin);
  const onDefaultBranch = isOnDefaultBranch(from, execution);
  // Red tasks are noted by the name of the line, which is not that of the branch here.
  if (!onDefaultBranch && (from.branch ?? execution.defaultBranch) === execution.defaultBranch) return undefined;
  const mayResolve = onDefaultBranch && numbers.some((number) => bugs.testCases.has(number));
  if (mayResolve && !bugs.areHeld) return undefined;
  const named = toNamed(prepared, numbers);
  const attempt = toAttempt(named, { parameters, shard: WHOLE, before: [], at }, warnings);
  const attempts = [attempt];
  const blocks = packResults(named.results, attempt.number);
  const counts = { ...countStatuses(blocks.map(({ statuses }) => statuses).join("")), quarantined: 0 };
  const run = newRun(execution.id, taskSlug, at);
  const outcome = outcomeOf(run, attempts, 1, counts);
  const change = toChange(run, {
    named,
    parameters,
    attempts,
    shards: 1,
    counts,
    outcome,
    at,
    completedAt,
    isFinal: true,
  });
  const updated = { ...run, ...change };
  const all = [...runs, updated].sort(byId);
  const advanced = advanceByGreen(state, toEvent(parameters), {
    tasks: all.map(toTask),
    origin: from,
    events: [completedEvent(execution.depth, from, { ...updated, blames: toCounts({}) })],
    silent: isOld,
  });
  if (advanced === undefined) return undefined;
  rows.runs.push({ ...change, id: run.id, executionId: execution.id, taskSlug });
  rows.attempts.push({ ...attempt, runId: run.id });
  rows.blocks.push(...blocks.map((block) => ({ ...block, runId: run.id })));
  rows.details.push(...toRunDetails(named.details, run.id, attempt));
  rows.events.push(...advanced.events);
  if (mayResolve) {
    const tracked = toTracked(execution, from, updated, { completedAt, onDefaultBranch, mayResolve, silent: isOld });
    rows.resolving.push({ run: tracked, at });
  }
  const { status } = advanced;
  return {
    taken: {
      run: { ...updated, ranOn: toRanOn(attempts) },
      added: true,
      bugReports: [],
      blames: toCounts({}),
      warnings: attempt.warnings,
    },
    state: {
      ...state,
      execution: { ...execution, ...from, status },
      runs: all,
      at: at < state.at ? at : state.at,
      completedAt: state.completedAt === null || completedAt > state.completedAt ? completedAt : state.completedAt,
      told: firstOf(state.told, origin),
    },
  };
}

const firstOf = (told: ExecutionOrigin, next: ExecutionOrigin): ExecutionOrigin => ({
  branch: told.branch ?? next.branch,
  commit: told.commit ?? next.commit,
  pullRequest: told.pullRequest ?? next.pullRequest,
  buildUrl: told.buildUrl ?? next.buildUrl,
  environment: told.environment ?? next.environment,
});

/** Adds to `rows` what the reports have made of their execution. */
function addExecution({ execution, isNew, timeoutMinutes, at, completedAt, told }: State, rows: ReportRows): void {
  const { id, status } = execution;
  if (isNew) rows.begun.push(toUploaded(execution, { status, timeoutMinutes, at, runCompletedAt: completedAt }));
  else rows.changes.push({ ...told, id, status, arrived: true, now: at });
}

/** In a transaction. What comes after it comes after all of it: it is one statement, or none. */
async function insertReports(sql: Tx, projectId: string, rows: ReportRows): Promise<void> {
  if (rows.runs.length === 0) return;
  const parameters: Parameters<string> = {
    project: projectId,
    begun: toExecutionRows(rows.begun),
    runs: toRows(rows.runs),
    attemptRows: toRows(rows.attempts),
    events: toEventRows(rows.events),
    ...toBlockColumns(rows.blocks),
  };
  if (rows.changes.length === 0 && rows.details.length === 0) return void (await INSERT(sql, parameters));
  await writeTogether(sql, [
    ...insertsOf(sql, parameters),
    ...rows.changes.map((change) => updateExecution(sql, projectId, change.id, change)),
    ...(rows.details.length === 0 ? [] : [insertDetails(sql, projectId, rows.details)]),
  ]);
}
