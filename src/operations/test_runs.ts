/** Takes a report into its run: names its test cases, merges it case by case, and decides what that makes of the run. */

import * as v from "valibot";
import { type TrackedRun, trackBugs } from "./bug_reports.ts";
import { nameCases } from "./test_cases.ts";
import type { ReportedCase, Report } from "../reports/report.ts";
import { MAX_COUNT } from "../reports/text.ts";
import {
  blockOf,
  type ChangedResult,
  changesOf,
  mergeBlock,
  removeFromBlock,
  type Result,
  toLetter,
} from "../rules/merge.ts";
import { hasEnded } from "../rules/execution.ts";
import { isOutageRun } from "../rules/outage.ts";
import type { TouchedBug } from "../schema/bug_reports.ts";
import type { ExecutionData, NewEvent } from "../schema/events.ts";
import { buildUrl } from "../schema/fields.ts";
import { refuse, refuseAbsent } from "../schema/refusal.ts";
import type { Shard, UploadParameters } from "../schema/test_runs.ts";
import { selectBugsOfRun } from "../store/bug_reports.ts";
import { countChanges, lockHealth } from "../store/case_health.ts";
import {
  type CaseDetail,
  deleteBlock,
  insertDetails,
  selectBlocks,
  selectCounts,
  upsertBlocks,
} from "../store/case_results.ts";
import type { Sql, Tx } from "../store/connect.ts";
import { insertTurns } from "../store/events.ts";
import {
  type ExecutionOrigin,
  insertExecution,
  type LockedExecution,
  lockExecution,
  lockExecutionByKey,
} from "../store/executions.ts";
import { type ExecutionAdvance, advanceExecution, toOrigin } from "./executions.ts";
import {
  type Attempt,
  insertAttempt,
  selectAttempts,
  selectOrInsertTestRun,
  selectTestRun,
  type TestRunDetailRow,
  updateTestRun,
} from "../store/test_runs.ts";

/** The shard number of an upload that is not one of several. */
const WHOLE = 0;
/** Who comes near it gives every build the same execution_key. */
const MAX_ATTEMPTS = 1_000;

/** A report whose test cases have been named. */
export type NamedReport = {
  report: Report;
  taskSlug: string;
  /** Ascending by test case. */
  results: Result[];
  details: CaseDetail[];
  /** The test case that stands for the exit code, when no other failed. */
  exitCase: number | null;
  /** Hexadecimal; of everything that decides the results. */
  digest: string;
};

/** A failed case for a runner that failed while all its tests passed: no silent green. */
const exitCaseOf = (exitCode: number, shard: Shard | undefined): ReportedCase => ({
  suite: "",
  name: `runner exited ${exitCode}${shard ? ` (shard ${shard.index}/${shard.of})` : ""}`,
  file: null,
  line: null,
  status: "failed",
  kind: "error",
  flaky: false,
  attempts: 1,
  durationMs: null,
  message: `The test runner exited with code ${exitCode} although no test case failed`,
  stack: null,
  output: null,
  properties: null,
});

/** The line alone would be a row for every case of some producers, and says little where nothing went wrong. */
const tellsMore = (result: ReportedCase) =>
  result.message !== null ||
  result.stack !== null ||
  result.output !== null ||
  result.kind !== null ||
  result.properties !== null ||
  result.attempts > 1;

type Transact = <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;

/** Before the transaction of the upload. */
export async function nameReport(
  sql: Sql,
  transact: Transact,
  projectId: string,
  report: Report,
  parameters: UploadParameters,
  uploadDigest: string,
): Promise<NamedReport> {
  const taskSlug = parameters.task_slug ?? (report.suite?.slice(0, 200).toWellFormed() || "default");
  const exitCode = parameters.exit_code ?? 0;
  const failed = report.countsOnly?.failed ?? report.cases.filter(({ status }) => status === "failed").length;
  const addsExitCase = exitCode !== 0 && failed === 0;
  const cases = addsExitCase ? [...report.cases, exitCaseOf(exitCode, parameters.shard)] : report.cases;
  const execution = { id: parameters.execution_id ?? null, key: parameters.execution_key ?? null };
  const isWhole = parameters.shard === undefined && !report.partial;
  const numbers = await nameCases(sql, transact, { projectId, taskSlug, execution, isWhole }, cases);

  const results = cases.map(({ status, flaky, durationMs }, index): Result => ({
    testCase: numbers[index]!,
    letter: toLetter(status, flaky),
    durationMs,
  }));
  const details = cases.flatMap((result, index): CaseDetail[] => {
    if (!tellsMore(result)) return [];
    const { kind, line, attempts, message, stack, output, properties } = result;
    return [{ testCase: numbers[index]!, kind, line, runs: attempts, message, stack, output, properties }];
  });
  return {
    report,
    taskSlug,
    results: results.sort((a, b) => a.testCase - b.testCase),
    details,
    exitCase: addsExitCase ? numbers.at(-1)! : null,
    digest: Bun.SHA256.hash(`${uploadDigest} ${exitCode} ${parameters.format ?? ""}`, "hex"),
  };
}

export type Ingested = { run: TestRunDetailRow; added: boolean; bugReports: TouchedBug[] };

/** In a transaction. `added` is false when these very bytes were there before. */
export async function ingest(
  sql: Tx,
  projectId: string,
  named: NamedReport,
  parameters: UploadParameters,
  { now = new Date(), silent = false }: { now?: Date; silent?: boolean } = {},
): Promise<Ingested> {
  const { report, taskSlug, results, details, exitCase, digest } = named;
  const origin = originOf(parameters, report);
  const execution = await findExecution(sql, projectId, parameters, origin, now);
  const run = await selectOrInsertTestRun(sql, projectId, execution.id, taskSlug);
  const attempts = run.attempt === 0 ? [] : await selectAttempts(sql, projectId, run.id);

  const shard = parameters.shard?.index ?? WHOLE;
  const shards = parameters.shard?.of ?? run.shards;
  const sharded = attempts.some((attempt) => attempt.shard !== WHOLE);
  if (sharded && shards !== run.shards)
    refuse(`Cannot read "shard": expected a shard of ${run.shards}, as announced before, got one of ${shards}`);

  const known = attempts.some((attempt) => attempt.shard === shard && attempt.digest === digest);
  if (known) {
    await settle(sql, projectId, execution, parameters, { ...origin, arrived: true, now, silent });
    const touched = run.failed === 0 ? [] : await selectBugsOfRun(sql, projectId, run.id);
    return {
      run: (await selectTestRun(sql, projectId, execution.id, taskSlug)) ?? refuseAbsent(),
      added: false,
      bugReports: touched.map((bug) => ({ ...bug, change: "occurred" })),
    };
  }

  // A whole run posted again is an attempt after every shard's; a shard's comes after its own and after those.
  const before = attempts.filter((attempt) => shard === WHOLE || attempt.shard === shard || attempt.shard === WHOLE);
  const number = Math.max(0, ...before.map((attempt) => attempt.number)) + 1;
  if (attempts.length >= MAX_ATTEMPTS)
    refuse(`This run has ${MAX_ATTEMPTS} attempts: use another execution_key for another build`);
  const counted = report.countsOnly ?? { passed: 0, failed: 0, skipped: 0 };
  const attempt: Attempt = {
    shard,
    number,
    digest,
    format: report.format,
    partial: report.partial,
    exitCode: parameters.exit_code ?? null,
    exitCase,
    passed: counted.passed,
    failed: counted.failed,
    skipped: counted.skipped,
    warnings: report.warnings,
  };
  if (report.countsOnly) await requireMergeable(sql, projectId, run.id, shard, attempts);
  await insertAttempt(sql, projectId, run.id, attempt);
  const changes = await mergeResults(sql, projectId, run.id, results, attempt, attempts);
  await insertDetails(sql, projectId, run.id, number, details);

  const all = [...attempts, attempt];
  const latest = latestByShard(all);
  const counts = await selectCounts(sql, projectId, run.id);
  for (const { passed, failed, skipped } of latest) {
    counts.passed += passed;
    counts.failed += failed;
    counts.skipped += skipped;
  }
  if (counts.passed + counts.failed + counts.skipped > MAX_COUNT)
    refuse(`Cannot count more than ${MAX_COUNT} test cases in a run`);
  const whole = shards === 1 || all.some((one) => one.shard === WHOLE && !sharded);
  const isIn = run.completedAt !== null || whole || allShardsIn(all, shards);
  const verdict = counts.failed > counts.quarantined || latest.some(({ partial }) => partial) ? "failed" : "passed";
  const completedAt = parameters.completed_at ?? now.toISOString();
  // Once its results are counted it stays what it was, unless a retry shows that the outage is over.
  const outage = run.remembered === true ? run.outage && isOutageRun(counts) : isOutageRun(counts);
  const staysRemembered = run.remembered === true && !(run.outage && !outage);
  const from = toOrigin(execution, origin);
  // What names no branch counts as well: who has only one need not name it.
  const onDefaultBranch = from.branch === null || from.branch === execution.defaultBranch;
  if (staysRemembered && changes.length > 0) {
    await lockHealth(sql, projectId);
    const counted = { id: run.id, outage: run.outage, completedAt: run.completedAt!, onDefaultBranch };
    const turned = await countChanges(sql, projectId, counted, changes);
    if (!silent) await insertTurns(sql, projectId, run.id, turned);
  }
  const updated = await updateTestRun(sql, projectId, run.id, {
    ...counts,
    status: isIn ? verdict : run.status === "cancelled" || run.status === "timed_out" ? run.status : "running",
    shards,
    attempt: Math.max(run.attempt, number),
    durationMs: run.durationMs + durationOf(report),
    verdict,
    exitCode: parameters.exit_code ?? run.exitCode,
    format: report.format,
    warnings: latest.flatMap(({ warnings }) => warnings).slice(0, 100),
    startedAt: now.toISOString(),
    completedAt: isIn ? completedAt : null,
    outage,
    remembered: isIn ? staysRemembered : null,
  });
  const tracked: TrackedRun = {
    ...updated,
    branch: from.branch,
    commit: from.commit,
    onDefaultBranch,
    startedAt: completedAt < execution.createdAt ? completedAt : execution.createdAt,
    isFirst: run.completedAt === null,
    depth: execution.depth,
    silent,
  };
  const bugReports = isIn ? await trackBugs(sql, projectId, tracked, now.toISOString()) : [];
  // What comes after the end changes the figures, and is not announced.
  const events = isIn && !hasEnded(execution.status) ? [completedEvent(execution.depth, from, updated)] : [];
  await settle(sql, projectId, execution, parameters, { ...origin, arrived: true, now, silent, events });
  return { run: updated, added: true, bugReports };
}

/** Counts name no cases: what is there already would be counted twice. */
async function requireMergeable(
  sql: Sql,
  projectId: string,
  runId: string,
  shard: number,
  attempts: readonly Attempt[],
): Promise<void> {
  if (attempts.length === 0) return;
  if (shard === WHOLE && attempts.some((attempt) => attempt.shard !== WHOLE))
    refuse(`Cannot merge counts without "cases" into a run of several shards: name the "shard"`);
  if (shard !== WHOLE && !attempts.some((attempt) => attempt.shard === shard)) return;
  const { passed, failed, skipped } = await selectCounts(sql, projectId, runId);
  if (passed + failed + skipped > 0) refuse(`Cannot merge counts without "cases" into a run whose cases are known`);
}

const originOf = (parameters: UploadParameters, { context }: Report): ExecutionOrigin => ({
  branch: parameters.branch ?? context.branch?.slice(0, 500),
  commit: parameters.commit ?? context.commit?.slice(0, 200),
  pullRequest: parameters.pull_request,
  buildUrl: parameters.build_url ?? toBuildUrl(context.buildUrl),
  environment: parameters.environment ?? context.environment?.slice(0, 200),
});

/** A report may say anything: what is no address is left out. */
function toBuildUrl(given: string | undefined): string | undefined {
  const { success, output } = v.safeParse(buildUrl, given);
  return success ? output : undefined;
}

/** Whole milliseconds; the report's own word, else the sum of its cases. */
const durationOf = (report: Report): number =>
  Math.round(report.durationMs ?? report.cases.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0));

async function findExecution(
  sql: Tx,
  projectId: string,
  { execution_id, execution_key }: UploadParameters,
  origin: ExecutionOrigin,
  now: Date,
): Promise<LockedExecution> {
  if (execution_id !== undefined) {
    const found = (await lockExecution(sql, projectId, execution_id)) ?? refuseAbsent();
    if (execution_key !== undefined && found.key !== execution_key)
      refuse(`Cannot read "execution_key": the execution of "execution_id" has another key`);
    return found;
  }
  const fresh = {
    ...origin,
    key: execution_key ?? null,
    status: "running" as const,
    trigger: "upload" as const,
    timeoutMinutes: null,
    now,
  };
  const find = () => (execution_key === undefined ? undefined : lockExecutionByKey(sql, projectId, execution_key));
  return (
    (await find()) ??
    (await insertExecution(sql, projectId, fresh)) ??
    // Somebody else has just created it.
    (await find()) ??
    refuseAbsent()
  );
}

/** What counts beside the cases: the last attempt of every shard, and of the whole run where that came later. */
function latestByShard(attempts: readonly Attempt[]): Attempt[] {
  const latest = new Map<number, Attempt>();
  for (const attempt of attempts.toSorted((a, b) => a.number - b.number)) latest.set(attempt.shard, attempt);
  return [...latest.values()].sort((a, b) => a.shard - b.shard);
}

function allShardsIn(attempts: readonly Attempt[], shards: number): boolean {
  return new Set(attempts.filter(({ shard }) => shard !== WHOLE).map(({ shard }) => shard)).size === shards;
}

async function mergeResults(
  sql: Sql,
  projectId: string,
  runId: string,
  results: readonly Result[],
  attempt: Attempt,
  before: readonly Attempt[],
): Promise<ChangedResult[]> {
  const fresh = Map.groupBy(results, ({ testCase }) => blockOf(testCase));
  // A failure that only stood for an exit code is over with the next attempt, which has an exit code of its own.
  const outdated = before
    .filter(({ shard, exitCase }) => exitCase !== null && (attempt.shard === WHOLE || shard === attempt.shard))
    .map(({ exitCase }) => exitCase!)
    .filter((exitCase) => exitCase !== attempt.exitCase);
  const touched = [...new Set([...fresh.keys(), ...outdated.map(blockOf)])];
  const stored = before.length === 0 ? [] : await selectBlocks(sql, projectId, runId, touched);
  const old = new Map(stored.map((block) => [block.block, block]));
  const changes: ChangedResult[] = [];
  for (const testCase of outdated) {
    const block = blockOf(testCase);
    const rest = old.get(block) && removeFromBlock(old.get(block)!, testCase);
    if (rest) old.set(block, rest);
    else if (old.delete(block)) await deleteBlock(sql, projectId, runId, block);
  }
  const merged = touched.flatMap((block) => {
    const incoming = fresh.get(block);
    if (!incoming) return old.get(block) ?? [];
    const joined = mergeBlock(block, old.get(block), incoming, attempt.number);
    if (before.length > 0) changes.push(...changesOf(old.get(block), joined));
    return [joined];
  });
  if (merged.length > 0) await upsertBlocks(sql, projectId, runId, merged);
  return changes;
}

function completedEvent(depth: number, execution: ExecutionData, run: TestRunDetailRow): NewEvent {
  const { taskSlug, attempt, verdict, durationMs, passed, failed, skipped, flaky } = run;
  const total = passed + failed + skipped;
  return {
    type: "test_run.completed",
    depth,
    data: {
      execution,
      testRun: { taskSlug, attempt, verdict, passed, failed, skipped, total, flaky, durationMs },
    },
  };
}

/** A report that names no execution is one of its own, complete at once. */
async function settle(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  { execution_id, execution_key, complete }: UploadParameters,
  change: ExecutionAdvance,
): Promise<void> {
  const alone = execution_id === undefined && execution_key === undefined;
  await advanceExecution(sql, projectId, execution, alone || complete ? "completed" : "arrived", change);
}
