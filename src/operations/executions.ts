/** Executions: found or created for an upload, advanced by what happens, announced at their end, asked for again. */

import { isSameCommit } from "../rules/commit.ts";
import { lineOf } from "../rules/branch.ts";
import { isGreen } from "../rules/branch_state.ts";
import { mayBeOutage } from "../rules/run_outcome.ts";
import { END_REASONS, executionReason } from "../wording/reasons.ts";
import { byResults, endOfTask, type ExecutionEvent, nextStatus, hasEnded } from "../rules/execution.ts";
import type { EventData, ExecutionData, NewEvent } from "../schema/events.ts";
import { countBlames } from "./failures.ts";
import type { BlameCounts } from "../schema/failures.ts";
import type { ExecutionStatus, QueuedTask } from "../schema/executions.ts";
import { refuse, refuseAbsent } from "../schema/refusal.ts";
import type { UploadParameters } from "../schema/test_runs.ts";
import { type Fragment, type Tx, writeTogether } from "../database/connect.ts";
import { selectHasEnvironment } from "../store/environments.ts";
import { insertEvents, updateRedTasks } from "../store/events.ts";
import {
  type Build,
  countUnquarantined,
  deleteExecution,
  type ExecutionChange,
  type ExecutionOrigin,
  type FoundBuild,
  insertDeclaredTasks,
  insertExecution,
  type InsertExecution,
  lockBuild,
  lockBuilds,
  type LockedExecution,
  lockExecution,
  lockExecutionKey,
  lockExecutionOfBuild,
  type MetBuild,
  selectOrigin,
  selectTasks,
  selectTasksWithReruns,
  type TaskRow,
  updateExecution,
  updateOpenTasks,
  updateRepeatedStatus,
  type UploadedExecution,
  type UploadedBuild,
} from "../store/executions.ts";
import {
  endTasksWithoutLease,
  insertLeases,
  lockOpenLeases,
  selectSupersededIds,
  selectWaitingLabels,
  stopLeases,
} from "../store/leases.ts";
import { selectBranchState } from "../store/state.ts";
import { releaseForCounting, type RunRow, selectRunsOf } from "../store/test_runs.ts";
import { notifyExecutionEnded, notifyLeases } from "../database/signals.ts";

export type ExecutionAdvance = Omit<ExecutionChange, "status"> & {
  /** Its tasks, where they are known already: as they are when what is yet to be written is written. */
  tasks?: readonly TaskRow[];
  /** To be written in the same round trip; they leave open tasks alone. */
  writes?: readonly Fragment[];
  /** The transaction has begun it: nobody can wait for its end yet. */
  isNew?: boolean;
  /** What else there is to announce. */
  events?: readonly NewEvent[];
  /** Its end is announced once more: a task that failed has joined it since. */
  isToldAgain?: boolean;
  /** Nothing is announced: sample data tells of nothing that has happened. */
  silent?: boolean;
  /** Why tasks end of which nothing, or not all, has come, where more is known than the event says. */
  reason?: string | undefined;
};

/** In a transaction that holds the execution's lock; answers its status by now. */
export async function advanceExecution(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  event: ExecutionEvent,
  advance: ExecutionAdvance,
): Promise<ExecutionStatus> {
  const { tasks: known, writes: others = [], isNew = false, ...rest } = advance;
  const { events = [], isToldAgain = false, silent = false, reason: given, ...change } = rest;
  if (execution.mode === "run") await settleLeases(sql, projectId, execution);
  const tasks = known?.map((task) => ({ ...task })) ?? (await selectTasks(sql, projectId, execution.id));
  const isRerun = execution.rerunOf !== null;
  const status = nextStatus(execution.status, tasks, event, isRerun);
  const isUntaken = event === "expired" && execution.mode === "run";
  const reason = given ?? (isUntaken ? await whyNobodyTookIt(sql, projectId, execution.id) : END_REASONS[event]);
  const writes = [...others];
  const silentTasks = tasks.filter((task) => !hasEnded(task.status));
  if (hasEnded(status) && silentTasks.length > 0) {
    for (const task of silentTasks) {
      task.status = endOfTask(task, status, isRerun);
      task.reason = reason;
      if (task.status === "incomplete") task.verdict = "failed";
    }
    writes.push(updateOpenTasks(sql, projectId, execution.id, silentTasks, reason));
  }
  writes.push(updateExecution(sql, projectId, execution.id, { ...change, status }));
  const ends = hasEnded(status) && !hasEnded(execution.status);
  if (ends && tasks.some(mayBeOutage)) writes.push(releaseForCounting(sql, projectId, execution.id));
  if (ends && !isNew) {
    if (execution.mode === "run" && (await stopLeases(sql, projectId, execution.id, reason)))
      await notifyLeases(sql, projectId);
    await notifyExecutionEnded(sql, execution.id);
  }
  if (!silent) {
    const ended = (ends || isToldAgain) && status !== "cancelled";
    const origin = toOrigin({ ...execution, status }, change);
    const announced = ended ? await announceEnd(sql, projectId, execution, { origin, tasks, writes }) : [];
    const all = [...events, ...announced];
    if (all.length > 0) writes.push(insertEvents(sql, projectId, all));
  }
  await writeTogether(sql, writes);
  const { buildId } = execution;
  // A late report changes what a build and its reruns come to together, as the end of a rerun does.
  if (hasEnded(status) && (buildId !== null || hasEnded(execution.status)))
    await updateRepeated(sql, projectId, buildId ?? execution.id);
  return status;
}

/** In a transaction that holds the lock of the build or of one of its reruns: what the reruns make of the build's outcome. */
async function updateRepeated(sql: Tx, projectId: string, buildId: string): Promise<void> {
  const tasks = await selectTasksWithReruns(sql, projectId, buildId);
  const isRepeated = tasks.some((task) => task.isRepeated);
  await updateRepeatedStatus(sql, projectId, buildId, isRepeated ? byResults(tasks) : null);
}

/** The reason of a task of mode run whose time is over, while no runner is at it. */
async function whyNobodyTookIt(sql: Tx, projectId: string, id: string): Promise<string> {
  const labels = await selectWaitingLabels(sql, projectId, id);
  return `No runner took it in time${labels.length === 0 ? "" : `: none with the labels ${labels.join(", ")} was there`}`;
}

/** Before the tasks of an execution of mode run are looked at: the brake of `failFast`, and what nobody is at any more. */
async function settleLeases(sql: Tx, projectId: string, { id, status, failFast }: LockedExecution): Promise<void> {
  if (failFast !== null && !hasEnded(status)) {
    const failures = await countUnquarantined(sql, projectId, id);
    const many = failures === 1 ? "1 failure" : `${failures} failures`;
    const reason = `Not needed any more: ${many}, and failFast is ${failFast}`;
    if (failures >= failFast && (await stopLeases(sql, projectId, id, reason))) await notifyLeases(sql, projectId);
  }
  await endTasksWithoutLease(sql, projectId, id);
}

/** Of an execution of mode run: a runner hands these to git, for which what begins so would be an option. */
export function requireNoOption({ branch, commit, pullRequest }: ExecutionOrigin): void {
  for (const [name, value] of Object.entries({ branch, commit, pullRequest }))
    if (value?.startsWith("-"))
      refuse(`Cannot read "${name}": expected no "-" at the beginning, got ${JSON.stringify(value.slice(0, 60))}`);
}

/** Of a locked execution that has just begun: its tasks, waiting for their reports or, of mode run, for runners. */
export async function planTasks(
  sql: Tx,
  projectId: string,
  execution: Pick<LockedExecution, "id" | "mode" | "environment" | "branch" | "commit" | "pullRequest">,
  tasks: readonly QueuedTask[],
  now: Date,
): Promise<void> {
  if (tasks.length === 0) return;
  const { id, mode, environment } = execution;
  await insertDeclaredTasks(sql, projectId, id, tasks);
  if (mode !== "run") return;
  requireNoOption(execution);
  // Without its variables the tests would fail for reasons that are nobody's.
  if (environment !== null && !(await selectHasEnvironment(sql, projectId, environment)))
    refuse(
      `Cannot read "environment": the team has no environment "${environment}", whose variables the tasks would get`,
    );
  await insertLeases(sql, projectId, id, tasks, now);
  await notifyLeases(sql, projectId);
}

/** Where an execution comes from, with what a report has just added. */
export function toOrigin(
  execution: LockedExecution,
  change: Partial<Omit<ExecutionChange, "status">> = {},
): ExecutionData {
  const { id, key, status } = execution;
  return {
    id,
    key,
    status,
    branch: execution.branch ?? change.branch ?? null,
    commit: execution.commit ?? change.commit ?? null,
    pullRequest: execution.pullRequest ?? change.pullRequest ?? null,
    buildUrl: execution.buildUrl ?? change.buildUrl ?? null,
    environment: execution.environment ?? change.environment ?? null,
  };
}

/** As `isOnDefault` (store/default_branch.ts) has it. What names no branch counts as well: who has only one need not name it. */
export const isOnDefaultBranch = (
  { branch, pullRequest }: Pick<ExecutionData, "branch" | "pullRequest">,
  { defaultBranch }: Pick<LockedExecution, "defaultBranch">,
): boolean => lineOf({ branch, pullRequest }, defaultBranch) === defaultBranch;

/** An execution may have hundreds of tasks; who is told of it wants to read the worst ones. */
const MAX_TASKS = 20;
const sum = (tasks: readonly TaskRow[], name: "passed" | "failed" | "skipped" | "flaky") =>
  tasks.reduce((total, task) => total + task[name], 0);

const isRed = ({ verdict, status }: TaskRow) => verdict === "failed" || status === "timed_out";

/** Also one whose runners were lost, which was over before its execution. */
const isMissed = ({ declared, attempt, status }: TaskRow) => declared && attempt === 0 && status === "timed_out";

type Ending = { origin: ExecutionData; tasks: readonly TaskRow[] };

/** `writes` are made before the state of the branch is asked for, if it is. */
async function announceEnd(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  { origin, tasks, writes }: Ending & { writes: Fragment[] },
): Promise<NewEvent[]> {
  const branch = lineOf(origin, execution.defaultBranch);
  const blames = sum(tasks, "failed") > 0 ? await countBlames(sql, projectId, origin.id) : {};
  const selectStillRed = async () => {
    await writeTogether(sql, writes.splice(0));
    const of = { branch, isDefault: branch === execution.defaultBranch, sample: execution.sample };
    const { tasks } = await selectBranchState(sql, projectId, of);
    return tasks.filter((task) => !isGreen(task)).map(({ slug }) => slug);
  };
  let own = tasks.map((task) => ({ slug: task.slug, failed: isRed(task) }));
  if (own.length === 0) own = [{ slug: "", failed: origin.status !== "passed" }];
  // A rerun of an older build is not the newest result of the branch.
  if (execution.buildId !== null) {
    const red = await selectStillRed();
    own = own.map(({ slug }) => ({ slug, failed: red.includes(slug) }));
  }
  const ended = await updateRedTasks(sql, projectId, branch, own);
  if (ended.length === 0 || origin.status !== "passed")
    return toEndEvents(execution, { origin, tasks, blames, recovery: null });
  const stillRed = await selectStillRed();
  return toEndEvents(execution, { origin, tasks, blames, recovery: { stillRed: stillRed.slice(0, MAX_TASKS) } });
}

function toEndEvents(
  { depth, trigger }: LockedExecution,
  {
    origin,
    tasks,
    recovery,
    blames,
  }: Ending & { recovery: { stillRed: string[] } | null; blames: Partial<BlameCounts> },
): NewEvent[] {
  const [passed, failed, skipped] = [sum(tasks, "passed"), sum(tasks, "failed"), sum(tasks, "skipped")];
  const reason = executionReason(origin.status, tasks);
  const worstFirst = tasks.toSorted((a, b) => Number(isRed(b)) - Number(isRed(a)));
  const execution: EventData["execution"] = {
    ...origin,
    passed,
    failed,
    skipped,
    total: passed + failed + skipped,
    flaky: sum(tasks, "flaky"),
    ...blames,
    ...(tasks.some(({ outage }) => outage) ? { outage: true } : {}),
    ...(reason === null ? {} : { reason }),
    redTaskCount: tasks.filter(isRed).length,
    taskCount: tasks.length,
    tasks: worstFirst.slice(0, MAX_TASKS).map(({ slug, status, passed, failed, skipped, verdict }) => {
      return { slug, status, passed, failed, skipped, verdict };
    }),
  };
  const toEvent = (type: NewEvent["type"], more: EventData = {}): NewEvent => ({
    type,
    depth,
    data: { execution, ...more },
  });
  const recovered = recovery ? [toEvent("execution.recovered", { execution: { ...execution, ...recovery } })] : [];
  return [
    toEvent("execution.completed"),
    ...(origin.status !== "passed" ? [toEvent("execution.failed")] : recovered),
    // Only what a schedule has asked for was expected.
    ...(trigger === "schedule" ? tasks.filter(isMissed) : []).map(({ slug, reason }) =>
      toEvent("task.missed", { taskSlug: slug, ...(reason === null ? {} : { reason }) }),
    ),
  ];
}

/** An execution that an upload begins, as it is to be stored. */
export function toUploaded(
  execution: LockedExecution,
  { at, ...rest }: Pick<UploadedExecution, "status" | "timeoutMinutes" | "runCompletedAt"> & { at: Date },
): UploadedExecution {
  const { id, key, trigger, branch, commit, pullRequest, buildUrl, environment, createdAt, baselineId } = execution;
  const origin = { branch, commit, pullRequest, buildUrl, environment };
  return { id, key, trigger, ...origin, createdAt, baselineId, startedAt: at.toISOString(), ...rest };
}

export type GreenReport = {
  /** All tasks of the execution, ordered by id. */
  tasks: readonly TaskRow[];
  /** Where the execution comes from, by now. */
  origin: ExecutionData;
  events: readonly NewEvent[];
  silent: boolean;
};

/**
 * What becomes of an execution by a report in which nothing failed, and what is to be told. Undefined where more is to be
 * known for that: it is over, or was known before and ends now, or something was red on its branch.
 */
export function advanceByGreen(
  { execution, isNew, mayHaveRedTasks }: ArrivalAmongRuns,
  event: ExecutionEvent,
  { tasks, origin, events, silent }: GreenReport,
): { status: ExecutionStatus; events: readonly NewEvent[] } | undefined {
  const status = nextStatus(execution.status, tasks, event);
  if (hasEnded(execution.status) || execution.mode === "run") return undefined;
  if (!hasEnded(status)) return { status, events: silent ? [] : events };
  if (!isNew || (mayHaveRedTasks && !silent)) return undefined;
  const end = { origin: { ...origin, status }, tasks, recovery: null, blames: {} };
  return { status, events: silent ? [] : [...events, ...toEndEvents(execution, end)] };
}

/** An execution, locked; what its caller should know of how it was found. */
export type FoundExecution = { execution: LockedExecution; isNew: boolean; warnings: string[] };

/**
 * In a transaction: the execution of a build, inserted when it is not there. A number is not a build: what names the same
 * key with another commit or branch is another one.
 */
export async function findOrInsertExecution(
  sql: Tx,
  projectId: string,
  fresh: InsertExecution,
): Promise<FoundExecution> {
  const { key, branch, commit } = fresh;
  if (key === null) return { execution: await insertExecution(sql, projectId, fresh), isNew: true, warnings: [] };
  const build = { key, branch, commit };
  // Before any execution with the key, as uploads do: a row that was waited for stays locked even when it does not match any
  // more, and whoever held it and then waited for the key would deadlock with an upload.
  await lockExecutionKey(sql, projectId, key);
  const known = await lockExecutionOfBuild(sql, projectId, build, fresh.now);
  if (known) return toFound(build, known);
  const { namesake, ...execution } = await insertExecution(sql, projectId, fresh);
  return { execution, isNew: true, warnings: namesake ? [otherBuild(build, namesake)] : [] };
}

const toFound = (
  build: Build,
  { isUnclear, ...execution }: LockedExecution & { isUnclear: boolean },
): FoundExecution => ({ execution, isNew: false, warnings: warningsOf(build, { isUnclear }) });

function warningsOf({ key, branch }: UploadedBuild, { isUnclear }: { isUnclear: boolean }): string[] {
  if (!isUnclear) return [];
  const unnamed = branch == null ? "neither commit nor branch" : "no commit";
  return [
    `Several builds have the execution_key "${key}", and this upload names ${unnamed}: it was taken for the newest`,
  ];
}

/** Usually jobs of one build that name a merge commit and a head commit. */
function otherBuild(
  { key, branch, commit }: UploadedBuild,
  namesake: Pick<LockedExecution, "branch" | "commit">,
): string {
  const isCommit = commit != null && namesake.commit !== null && !isSameCommit(namesake.commit, commit);
  const [what, theirs, ours] = isCommit ? ["commit", namesake.commit, commit] : ["branch", namesake.branch, branch];
  return (
    `The execution_key "${key}" is known with ${what} "${theirs}", and this is ${what} "${ours}": ` +
    `it began another execution. The jobs of one build name the same ${what}${isCommit ? ", the head's" : ""}`
  );
}

/** What an upload meets: where its execution is new it is yet to be stored. */
export type Arrival = FoundExecution & Pick<MetBuild, "timeoutMinutes" | "hasLiveBugs">;

/** In a transaction that holds the turn of the execution_key, if there is one: the execution that an upload belongs to. */
export async function meetExecution(
  sql: Tx,
  projectId: string,
  { execution_id, execution_key, branch: toldBranch, commit: toldCommit, base_commit }: UploadParameters,
  origin: ExecutionOrigin,
  now: Date,
): Promise<Arrival> {
  const { branch, commit } = origin;
  const build = { key: execution_key ?? null, branch, commit };
  const freshId = Bun.randomUUIDv7("hex", now.getTime());
  const asked = { ...build, id: execution_id, baseCommit: base_commit };
  const look = () => lockBuild(sql, projectId, asked, freshId, now);
  const first = await look();
  // Its execution may have been deleted while it waited for that: what it was told beside is older than the wait.
  const { execution: known, ...met } = first.execution || !first.namesake ? first : await look();
  if (execution_id !== undefined) requireSame(known ?? refuseAbsent(), execution_key, toldBranch, toldCommit);
  const execution = known ?? beginAt(now, { id: freshId, key: build.key, origin, ...met });
  const warnings = known ? warningsOf(build, met) : met.namesake ? [otherBuild(build, met.namesake)] : [];
  const found = await withBase(sql, projectId, { execution, isNew: known === undefined, warnings }, base_commit);
  const { timeoutMinutes, hasLiveBugs } = met;
  return { ...found, timeoutMinutes, hasLiveBugs };
}

/** What begins with an upload, and is not stored yet. */
const beginAt = (
  now: Date,
  {
    id,
    key,
    origin,
    baselineId,
    defaultBranch,
  }: Pick<LockedExecution, "id" | "key" | "baselineId" | "defaultBranch"> & { origin: ExecutionOrigin },
): LockedExecution => ({
  id,
  key,
  status: "running",
  mode: "report",
  trigger: "upload",
  branch: origin.branch ?? null,
  commit: origin.commit ?? null,
  pullRequest: origin.pullRequest ?? null,
  buildUrl: origin.buildUrl ?? null,
  environment: origin.environment ?? null,
  createdAt: now.toISOString(),
  startedAt: null,
  completedAt: null,
  sample: false,
  rerunOf: null,
  buildId: null,
  repeatedStatus: null,
  baselineId,
  depth: 0,
  reruns: 0,
  failFast: null,
  defaultBranch,
});

type NamedBuild = { key: string | null; origin: ExecutionOrigin; now: Date };

/** With the runs that the execution has by now. */
export type ArrivalAmongRuns = Arrival &
  Pick<FoundBuild, "mayHaveRedTasks" | "namesVersion"> & { runs: readonly RunRow[] };

/**
 * What several uploads meet, in a transaction that holds the turns of their keys; nobody is waited for. Undefined for one
 * that would have to wait, or of which there is more to say.
 */
export async function meetExecutions(
  sql: Tx,
  projectId: string,
  builds: readonly NamedBuild[],
): Promise<(ArrivalAmongRuns | undefined)[]> {
  const asked = builds.map(({ key, origin: { branch = null, commit = null }, now }) => {
    return { freshId: Bun.randomUUIDv7("hex", now.getTime()), key, branch, commit, now };
  });
  const found = new Map((await lockBuilds(sql, projectId, asked)).map((met) => [met.freshId, met]));
  const knownIds = [...found.values()].flatMap(({ execution }) => (execution ? [execution.id] : []));
  const runs = Map.groupBy(
    knownIds.length === 0 ? [] : await selectRunsOf(sql, projectId, knownIds),
    ({ executionId }) => executionId,
  );
  return builds.map(({ origin, now }, index) => {
    const { freshId, key, branch, commit } = asked[index]!;
    const met = found.get(freshId);
    if (met === undefined) return undefined;
    const { execution: known } = met;
    const isNew = known === undefined;
    // While it was looked for somebody may have told more of it.
    if (known && !agrees(known, { branch, commit })) return undefined;
    const execution = known ?? beginAt(now, { id: freshId, key, origin, ...met });
    const warnings = known ? warningsOf({ key, branch, commit }, met) : [];
    return { ...met, execution, isNew, warnings, runs: runs.get(execution.id) ?? [] };
  });
}

const agrees = (
  execution: Pick<LockedExecution, "branch" | "commit">,
  { branch, commit }: { branch: string | null; commit: string | null },
): boolean =>
  (execution.branch === null || branch === null || execution.branch === branch) &&
  (execution.commit === null || commit === null || isSameCommit(execution.commit, commit));

/** Of an upload that names its execution. */
function requireSame(
  execution: LockedExecution,
  key: string | undefined,
  branch: string | undefined,
  commit: string | undefined,
): void {
  if (key !== undefined && execution.key !== key)
    refuse(`Cannot read "execution_key": the execution of "execution_id" has another key`);
  if (branch !== undefined && execution.branch !== null && branch !== execution.branch)
    refuse(`Cannot read "branch": the execution of "execution_id" is of branch "${execution.branch}", got "${branch}"`);
  if (commit !== undefined && execution.commit !== null && !isSameCommit(commit, execution.commit))
    refuse(`Cannot read "commit": the execution of "execution_id" is of commit "${execution.commit}", got "${commit}"`);
}

/** Warns where the baseline is not that of the commit that the upload names. */
async function withBase(
  sql: Tx,
  projectId: string,
  found: FoundExecution,
  baseCommit: string | undefined,
): Promise<FoundExecution> {
  if (baseCommit === undefined) return found;
  const { baselineId } = found.execution;
  const baseline = baselineId === null ? undefined : await selectOrigin(sql, projectId, baselineId);
  if (baseline?.commit && isSameCommit(baseline.commit, baseCommit)) return found;
  const why = found.isNew
    ? `no execution of that commit is over${baselineId === null ? "" : ": it is the last one of the default branch"}`
    : "it was fixed when the execution began";
  return { ...found, warnings: [...found.warnings, `The baseline is not of base_commit "${baseCommit}": ${why}`] };
}

/** In a transaction: an execution that goes on ends with what has come. Refuses one that was cancelled. */
export async function completeExecution(sql: Tx, projectId: string, id: string, now: Date): Promise<void> {
  const locked = (await lockExecution(sql, projectId, id)) ?? refuseAbsent();
  if (locked.status === "cancelled") refuse("Cannot complete the execution: it was cancelled");
  if (!hasEnded(locked.status)) await advanceExecution(sql, projectId, locked, "completed", { arrived: false, now });
}

/** In a transaction. Refuses one that has ended otherwise. */
export async function cancelExecution(sql: Tx, projectId: string, id: string, now: Date): Promise<void> {
  const locked = (await lockExecution(sql, projectId, id)) ?? refuseAbsent();
  if (hasEnded(locked.status) && locked.status !== "cancelled")
    refuse(`Cannot cancel the execution: it has ended as "${locked.status}"`);
  await advanceExecution(sql, projectId, locked, "cancelled", { arrived: false, now });
}

/** In a transaction that has made `execution`, of mode run: older ones of its branch that are not over are not needed any more. */
export async function supersede(
  sql: Tx,
  projectId: string,
  { id, key, branch, pullRequest }: Pick<LockedExecution, "id" | "key" | "branch" | "pullRequest">,
  now: Date,
): Promise<void> {
  if (branch === null) refuse(`Cannot supersede others: the execution names no "branch"`);
  const reason = `Superseded by ${key === null ? "a newer execution" : `the execution ${JSON.stringify(key)}`} of the branch`;
  for (const older of await selectSupersededIds(sql, projectId, { id, branch, pullRequest })) {
    const locked = await lockExecution(sql, projectId, older);
    if (locked && !hasEnded(locked.status))
      await advanceExecution(sql, projectId, locked, "cancelled", { arrived: false, now, reason });
  }
}

/** In a transaction: with all that belongs to it; runners that are at its tasks hear of it. False: there is none. */
export async function removeExecution(sql: Tx, projectId: string, id: string): Promise<boolean> {
  const locked = await lockExecution(sql, projectId, id);
  if (!locked) return false;
  if (locked.mode === "run") {
    await lockOpenLeases(sql, projectId, id);
    await notifyLeases(sql, projectId);
  }
  await notifyExecutionEnded(sql, id);
  const isDeleted = await deleteExecution(sql, projectId, id);
  if (locked.buildId !== null) await updateRepeated(sql, projectId, locked.buildId);
  return isDeleted;
}
