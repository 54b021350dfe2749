/** Executions: found or created for an upload, advanced by what happens, announced at their end, asked for again. */

import { isSameCommit } from "../../rules/commit.ts";
import { lineOf } from "../../rules/branch.ts";
import { isGreen } from "../../rules/branch_state.ts";
import { mayBeOutage } from "../../rules/run_outcome.ts";
import { END_REASONS, executionReason } from "../../wording/reasons.ts";
import {
  byResults,
  endOfTask,
  endWithoutLease,
  type ExecutionEvent,
  hasEnded,
  nextStatus,
  verdictAtEnd,
} from "../../rules/execution.ts";
import type { EventData, ExecutionData, NewEvent } from "../../schema/events.ts";
import { countBlames } from "./failures.ts";
import type { BlameCounts } from "../../schema/failures.ts";
import type { ExecutionStatus, QueuedTask } from "../../schema/executions.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { type Fragment, type Tx, writeTogether } from "../../database/connect.ts";
import { selectHasEnvironment } from "../../store/environments.ts";
import { insertEvents, updateRedTasks } from "../../store/events.ts";
import { type BuildName, lockExecutionKey, lockExecutionOfBuild } from "../../store/execution_of_build.ts";
import {
  countUnquarantined,
  insertDeclaredTasks,
  selectTasks,
  selectTasksWithReruns,
  type TaskRow,
  updateOpenTasks,
} from "../../store/execution_tasks.ts";
import {
  deleteExecution,
  type ExecutionChange,
  type ExecutionOrigin,
  type LockedExecution,
  lockExecution,
  updateExecution,
  updateRepeatedStatus,
} from "../../store/executions.ts";
import { insertExecution, type InsertExecution } from "../../store/new_executions.ts";
import {
  insertLeases,
  lockOpenLeases,
  selectSupersededIds,
  selectTasksWithoutLease,
  selectWaitingLabels,
  stopLeases,
} from "../../store/leases.ts";
import { insertNewTestChecks } from "../../store/new_tests.ts";
import { updateEndedProbe } from "../../store/probes.ts";
import { selectBranchState } from "../../store/state.ts";
import { releaseForCounting } from "../../store/test_runs.ts";
import { notifyExecutionEnded, notifyLeases } from "../../database/signals.ts";

/** What has happened to an execution. */
export type ExecutionAdvance = Omit<ExecutionChange, "status"> & {
  /** Further events to store. */
  events?: readonly NewEvent[];
  /** Its end is announced once more: a task that failed has joined it since. */
  isAnnouncedAgain?: boolean;
  /** No event is stored: sample data announces nothing that has happened. */
  isMuted?: boolean;
  /** A report has changed its results. */
  bringsResults?: boolean;
  /** Why tasks end of which nothing, or not all, has come, where more is known than the event says. */
  reason?: string | undefined;
};

/** In a transaction that holds the execution's lock; answers its status by now. */
export async function advanceExecution(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  event: ExecutionEvent,
  {
    events = [],
    isAnnouncedAgain = false,
    isMuted = false,
    bringsResults = false,
    reason: given,
    ...change
  }: ExecutionAdvance,
): Promise<ExecutionStatus> {
  if (execution.mode === "run") await settleLeases(sql, projectId, execution);
  const isUntaken = event === "expired" && execution.mode === "run";
  const reason = given ?? (isUntaken ? await whyNobodyTookIt(sql, projectId, execution.id) : END_REASONS[event]);
  const tasks = await selectTasks(sql, projectId, execution.id);
  const next = decideNext(execution, tasks, event, reason);
  const origin = toOrigin({ ...execution, status: next.status }, change);
  const advanced = { ...next, execution, isNew: false, origin, events, isAnnouncedAgain, isMuted, bringsResults };
  const write = updateExecution(sql, projectId, execution.id, { ...change, status: next.status });
  await storeAdvance(sql, projectId, advanced, [write]);
  return next.status;
}

/** What becomes of an execution and its tasks. */
export type NextState = {
  status: ExecutionStatus;
  /** All of them, as they are by now. */
  tasks: readonly TaskRow[];
  /** Those of them that were open, and end with the execution. */
  unreported: readonly TaskRow[];
  /** Why these have ended. */
  reason: string;
};

/** Decides what an event makes of an execution. */
export function decideNext(
  { status: current, rerunOf }: Pick<LockedExecution, "status" | "rerunOf">,
  tasks: readonly TaskRow[],
  event: ExecutionEvent,
  reason: string = END_REASONS[event],
): NextState {
  const isRerun = rerunOf !== null;
  const status = nextStatus(current, tasks, event, isRerun);
  if (!hasEnded(status)) return { status, tasks, unreported: [], reason };
  const all = tasks.map((task): TaskRow => {
    if (hasEnded(task.status)) return task;
    const end = endOfTask(task, status, isRerun);
    return { ...task, status: end, reason, verdict: verdictAtEnd(end, task.verdict) };
  });
  return { status, tasks: all, unreported: all.filter((task, index) => task !== tasks[index]), reason };
}

/** A decided change of an execution, with what there is to announce. */
export type Advanced = NextState & {
  /** As it was before. */
  execution: LockedExecution;
  /** The transaction has begun it: nobody can wait for its end yet. */
  isNew: boolean;
  /** Where it comes from by now. */
  origin: ExecutionData;
  events: readonly NewEvent[];
  isAnnouncedAgain: boolean;
  isMuted: boolean;
  /** Reports have changed its results. */
  bringsResults: boolean;
};

const endsNow = ({ status, execution }: Advanced) => hasEnded(status) && !hasEnded(execution.status);

/**
 * The events of a change for which nothing is to be read, and nothing else written: the execution goes on, or it is new, ends
 * green, and nothing was red on its branch. Undefined for others.
 */
export function quietEvents(advanced: Advanced, mayHaveRedTasks: boolean): readonly NewEvent[] | undefined {
  const { status, execution, tasks, unreported, events, isMuted, isAnnouncedAgain, origin } = advanced;
  if (hasEnded(execution.status) || isAnnouncedAgain || execution.mode === "run") return undefined;
  if (!hasEnded(status)) return isMuted ? [] : events;
  const isGreenEnd = status === "passed" && unreported.length === 0 && sum(tasks, "failed") === 0;
  if (!advanced.isNew || !isGreenEnd || (mayHaveRedTasks && !isMuted)) return undefined;
  return isMuted ? [] : [...events, ...toEndEvents(execution, { origin, tasks, recovery: null, blames: {} })];
}

/**
 * In a transaction: stores what else a change means, beside the execution itself: its open tasks, its leases, its events, and
 * what it makes of the build that it repeats. `writes` are stored before anything is read.
 */
export async function storeAdvance(
  sql: Tx,
  projectId: string,
  advanced: Advanced,
  writes: Fragment[] = [],
): Promise<void> {
  const { execution, status, tasks, unreported, reason, origin, events, isAnnouncedAgain } = advanced;
  const { id, buildId, mode, untrusted } = execution;
  const isMuted = advanced.isMuted || untrusted;
  if (unreported.length > 0) writes.push(updateOpenTasks(sql, projectId, id, unreported));
  const ends = endsNow(advanced);
  if (ends && !untrusted && tasks.some(mayBeOutage)) writes.push(releaseForCounting(sql, projectId, id));
  if (ends && execution.probe) writes.push(updateEndedProbe(sql, projectId, id));
  if (ends && !advanced.isNew) {
    if (mode === "run" && (await stopLeases(sql, projectId, id, reason))) await notifyLeases(sql, projectId);
    await notifyExecutionEnded(sql, id);
  }
  if (!isMuted) {
    const isAnnounced = (ends || isAnnouncedAgain) && status !== "cancelled";
    const isChanged = advanced.bringsResults && hasEnded(execution.status) && !isAnnounced && status !== "cancelled";
    const announced = isAnnounced
      ? await announceEnd(sql, projectId, execution, { origin, tasks, writes })
      : isChanged
        ? await toChangedEvents(sql, projectId, execution, { origin, tasks })
        : [];
    const all = [...events, ...announced];
    if (all.length > 0) writes.push(insertEvents(sql, projectId, all));
  }
  await writeTogether(sql, writes);
  // A late report changes what a build and its reruns come to together, as the end of a rerun does.
  if (hasEnded(status) && (buildId !== null || hasEnded(execution.status)))
    await updateRepeated(sql, projectId, buildId ?? id);
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
  return `No runner took the task in time${labels.length === 0 ? "" : `: none with the labels ${labels.join(", ")} was there`}`;
}

/** Before the tasks of an execution of mode run are looked at: the brake of `failFast`, and what nobody is at any more. */
async function settleLeases(sql: Tx, projectId: string, { id, status, failFast }: LockedExecution): Promise<void> {
  if (failFast !== null && !hasEnded(status)) {
    const failures = await countUnquarantined(sql, projectId, id);
    const many = failures === 1 ? "1 failure" : `${failures} failures`;
    const reason = `Stopped early: ${many}, and failFast is ${failFast}`;
    if (failures >= failFast && (await stopLeases(sql, projectId, id, reason))) await notifyLeases(sql, projectId);
  }
  const ended = (await selectTasksWithoutLease(sql, projectId, id)).map((task) => {
    const end = endWithoutLease(task);
    return { ...task, status: end, verdict: verdictAtEnd(end, task.verdict) };
  });
  if (ended.length > 0) await updateOpenTasks(sql, projectId, id, ended);
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
  execution: Pick<LockedExecution, "id" | "mode" | "environment" | "branch" | "commit" | "pullRequest" | "untrusted">,
  tasks: readonly QueuedTask[],
  now: Date,
): Promise<void> {
  if (tasks.length === 0) return;
  const { id, mode, environment } = execution;
  await insertDeclaredTasks(sql, projectId, execution, tasks);
  if (tasks.some(({ newTests }) => newTests)) await insertNewTestChecks(sql, projectId, id, tasks);
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
  const queueRef = execution.queueRef ?? (execution.branch === null ? (change.queueRef ?? null) : null);
  return {
    id,
    key,
    status,
    branch: execution.branch ?? (execution.queueRef === null ? (change.branch ?? null) : null),
    commit: execution.commit ?? change.commit ?? null,
    pullRequest: execution.pullRequest ?? change.pullRequest ?? null,
    baseBranch: execution.baseBranch ?? (queueRef === null ? null : (change.baseBranch ?? execution.defaultBranch)),
    queueRef,
    buildUrl: execution.buildUrl ?? change.buildUrl ?? null,
    environment: execution.environment ?? change.environment ?? null,
  };
}

/** As `isOnDefault` (store/predicates.ts) has it. What names no branch counts as well: who has only one need not name it. */
export const isOnDefaultBranch = (
  { branch, pullRequest }: Pick<ExecutionData, "branch" | "pullRequest">,
  { defaultBranch, untrusted }: Pick<LockedExecution, "defaultBranch" | "untrusted">,
): boolean => !untrusted && lineOf({ branch, pullRequest }, defaultBranch) === defaultBranch;

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

/** A report has changed the results of an execution that had ended. */
async function toChangedEvents(
  sql: Tx,
  projectId: string,
  { depth }: LockedExecution,
  { origin, tasks }: Ending,
): Promise<NewEvent[]> {
  const blames = sum(tasks, "failed") > 0 ? await countBlames(sql, projectId, origin.id) : {};
  return [{ type: "execution.changed", depth, data: { execution: toEndData({ origin, tasks, blames }) } }];
}

/** Announces a change of a locked execution that has ended, such as the results of its new tests. */
export async function announceChange(sql: Tx, projectId: string, execution: LockedExecution): Promise<void> {
  const tasks = await selectTasks(sql, projectId, execution.id);
  const events = await toChangedEvents(sql, projectId, execution, { origin: toOrigin(execution), tasks });
  await insertEvents(sql, projectId, events);
}

type Outcome = Ending & { blames: Partial<BlameCounts> };

function toEndData({ origin, tasks, blames }: Outcome): EventData["execution"] & object {
  const [passed, failed, skipped] = [sum(tasks, "passed"), sum(tasks, "failed"), sum(tasks, "skipped")];
  const reason = executionReason(origin.status, tasks);
  const worstFirst = tasks.toSorted((a, b) => Number(isRed(b)) - Number(isRed(a)));
  return {
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
}

function toEndEvents(
  { depth, trigger }: LockedExecution,
  { recovery, ...outcome }: Outcome & { recovery: { stillRed: string[] } | null },
): NewEvent[] {
  const { origin, tasks } = outcome;
  const execution = toEndData(outcome);
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
  const { key, queueRef, commit, untrusted = false } = fresh;
  const branch = queueRef ?? fresh.branch;
  if (key === null) return { execution: await insertExecution(sql, projectId, fresh), isNew: true, warnings: [] };
  const build = { key, branch, commit, untrusted };
  // Before any execution with the key, as uploads do: a row that was waited for stays locked even when it does not match any
  // more, and whoever held it and then waited for the key would deadlock with an upload.
  await lockExecutionKey(sql, projectId, key);
  const known = await lockExecutionOfBuild(sql, projectId, build, fresh.now);
  if (known) return toFound(build, known);
  const { namesake, ...execution } = await insertExecution(sql, projectId, fresh);
  return { execution, isNew: true, warnings: namesake ? [otherBuild(build, namesake)] : [] };
}

/** As an upload or a client names it; neither key: it is one of its own. */
type NamedBuild = { key: string | null; branch?: string | null | undefined; commit?: string | null | undefined };

const toFound = (
  build: BuildName,
  { isUnclear, ...execution }: LockedExecution & { isUnclear: boolean },
): FoundExecution => ({ execution, isNew: false, warnings: warningsOf(build, { isUnclear }) });

export function warningsOf({ key, branch }: NamedBuild, { isUnclear }: { isUnclear: boolean }): string[] {
  if (!isUnclear) return [];
  const unnamed = branch == null ? "neither commit nor branch" : "no commit";
  return [
    `Several builds have the execution_key "${key}", and this upload names ${unnamed}: it was taken for the newest`,
  ];
}

/** Usually jobs of one build that name a merge commit and a head commit. */
export function otherBuild(
  { key, branch, commit }: NamedBuild,
  namesake: Pick<LockedExecution, "branch" | "commit">,
): string {
  const isCommit = commit != null && namesake.commit !== null && !isSameCommit(namesake.commit, commit);
  const [what, theirs, ours] = isCommit ? ["commit", namesake.commit, commit] : ["branch", namesake.branch, branch];
  return (
    `The execution_key "${key}" is known with ${what} "${theirs}", and this is ${what} "${ours}": ` +
    `it began another execution. The jobs of one build name the same ${what}${isCommit ? ", the head's" : ""}`
  );
}

/** In a transaction: an execution that goes on ends with what has come. Refuses one that was cancelled. */
export async function completeExecution(sql: Tx, projectId: string, id: string, now: Date): Promise<LockedExecution> {
  const locked = (await lockExecution(sql, projectId, id)) ?? refuseAbsent();
  if (locked.status === "cancelled") refuse("Cannot complete the execution: it was cancelled");
  if (!hasEnded(locked.status)) await advanceExecution(sql, projectId, locked, "completed", { arrived: false, now });
  return locked;
}

/** In a transaction. Refuses one that has ended otherwise. */
export async function cancelExecution(sql: Tx, projectId: string, id: string, now: Date): Promise<LockedExecution> {
  const locked = (await lockExecution(sql, projectId, id)) ?? refuseAbsent();
  if (hasEnded(locked.status) && locked.status !== "cancelled")
    refuse(`Cannot cancel the execution: it has ended as "${locked.status}"`);
  await advanceExecution(sql, projectId, locked, "cancelled", { arrived: false, now });
  return locked;
}

/** In a transaction that has made `execution`, of mode run: older ones of its branch that are not over are not needed any more. */
export async function supersede(
  sql: Tx,
  projectId: string,
  {
    id,
    key,
    branch,
    queueRef,
    pullRequest,
  }: Pick<LockedExecution, "id" | "key" | "branch" | "queueRef" | "pullRequest">,
  now: Date,
): Promise<void> {
  if (branch === null && queueRef === null) refuse(`Cannot supersede other executions: the execution has no "branch"`);
  const reason = `Superseded by ${key === null ? "a newer execution" : `the execution ${JSON.stringify(key)}`} of the ${branch === null ? "pull request" : "branch"}`;
  for (const older of await selectSupersededIds(sql, projectId, { id, branch, pullRequest })) {
    const locked = await lockExecution(sql, projectId, older);
    if (locked && !hasEnded(locked.status))
      await advanceExecution(sql, projectId, locked, "cancelled", { arrived: false, now, reason });
  }
}

/** In a transaction: with all that belongs to it; runners that are at its tasks hear of it. False: there is none. */
export async function removeExecution(sql: Tx, projectId: string, id: string): Promise<LockedExecution | false> {
  const locked = await lockExecution(sql, projectId, id);
  if (!locked) return false;
  if (locked.mode === "run") {
    await lockOpenLeases(sql, projectId, id);
    await notifyLeases(sql, projectId);
  }
  await notifyExecutionEnded(sql, id);
  const isDeleted = await deleteExecution(sql, projectId, id);
  if (locked.buildId !== null) await updateRepeated(sql, projectId, locked.buildId);
  return isDeleted && locked;
}
