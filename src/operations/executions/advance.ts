/** Advances executions by what happens to them, and stores what follows from it. */

import { mayBeOutage } from "../../rules/run_outcome.ts";
import { END_REASONS, timeLimitReason } from "../../wording/reasons.ts";
import {
  byResults,
  endOfTask,
  endWithoutLease,
  type ExecutionEvent,
  hasEnded,
  nextStatus,
  sumTasks,
  verdictAtEnd,
} from "../../rules/execution.ts";
import type { ExecutionData, NewEvent } from "../../schema/events.ts";
import type { ExecutionStatus } from "../../schema/executions.ts";
import type { BlameCounts } from "../../schema/failures.ts";
import { type Fragment, type Tx, writeTogether } from "../../database/connect.ts";
import { insertEvents } from "../../store/events.ts";
import {
  countUnquarantined,
  selectTasks,
  selectTasksWithReruns,
  type TaskRow,
  updateOpenTasks,
} from "../../store/execution_tasks.ts";
import {
  type ExecutionChange,
  type LockedExecution,
  toChangeRows,
  updateExecutions,
  updateRepeatedStatus,
} from "../../store/executions.ts";
import { selectTasksWithoutLease, selectWaitingLabels, stopLeases } from "../../store/leases.ts";
import { discardDays, mayBePastDay } from "../../store/past_days.ts";
import { updateEndedProbe } from "../../store/probes.ts";
import { releaseForCounting } from "../../store/test_runs.ts";
import { notifyExecutionEnded, notifyLeases } from "../../database/signals.ts";
import { toOrigin } from "./origin.ts";
import { refreshReruns } from "./rerun_results.ts";
import { announceEnd, announceResults, type BranchStates, toChangedEvents, toEndEvents } from "./end_events.ts";

/** Describes what has happened to an execution. */
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
  /** The time limit that is over. */
  timeoutMinutes?: number;
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
    timeoutMinutes,
    ...change
  }: ExecutionAdvance,
): Promise<ExecutionStatus> {
  if (execution.mode === "run") await settleLeases(sql, projectId, execution);
  const isUntaken = event === "expired" && execution.mode === "run";
  const known = timeoutMinutes === undefined ? END_REASONS[event] : timeLimitReason(timeoutMinutes);
  const reason = given ?? (isUntaken ? await whyNobodyTookIt(sql, projectId, execution.id) : known);
  const tasks = await selectTasks(sql, projectId, execution.id);
  const next = decideNext(execution, tasks, event, reason);
  const origin = toOrigin({ ...execution, status: next.status }, change);
  const advanced = { ...next, execution, isNew: false, origin, events, isAnnouncedAgain, isMuted, bringsResults };
  const rows = toChangeRows([{ ...change, id: execution.id, status: next.status }]);
  await storeAdvance(sql, projectId, advanced, { writes: [updateExecutions(sql, projectId, rows)] });
  if (mayBePastDay(execution.completedAt ?? change.now)) await discardDays(sql, projectId, [execution.id]);
  return next.status;
}

/** Holds the next status of an execution and of its tasks. */
export type NextState = {
  status: ExecutionStatus;
  /** All of them, as they are by now. */
  tasks: readonly TaskRow[];
  /** These tasks were open, and end with the execution. */
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
  /** How many of its failures have which blame; undefined: that is to be read. */
  blames?: BlameCounts | undefined;
};

/** Holds the facts that executions share which advance one after the other in a transaction, after all its results were stored. */
export type AdvancedTogether = {
  /** The caller stores them. */
  events: NewEvent[];
  /** By branch, as long as nothing else is written. */
  states: BranchStates;
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
  const isGreenEnd = status === "passed" && unreported.length === 0 && sumTasks(tasks, "failed") === 0;
  if (!advanced.isNew || !isGreenEnd || (mayHaveRedTasks && !isMuted)) return undefined;
  return isMuted ? [] : [...events, ...toEndEvents(execution, { origin, tasks, red: [], recovery: null, blames: {} })];
}

/**
 * In a transaction: stores what else a change means, beside the execution itself: its open tasks, its leases, its events, and
 * what it makes of the build that it repeats. `writes` are stored before anything is read. `together` is that of executions that advance one after the other.
 */
export async function storeAdvance(
  sql: Tx,
  projectId: string,
  advanced: Advanced,
  { writes = [], together }: { writes?: Fragment[]; together?: AdvancedTogether } = {},
): Promise<void> {
  const { execution, status, blames, tasks, unreported, reason, origin, events, isAnnouncedAgain } = advanced;
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
    const isCancelled = ends && status === "cancelled";
    const announced = isAnnounced
      ? await announceEnd(sql, projectId, execution, { origin, tasks, writes, blames, states: together?.states })
      : isChanged
        ? await announceResults(sql, projectId, execution, { origin, tasks, writes })
        : isCancelled
          ? await toChangedEvents(sql, projectId, execution, { origin, tasks })
          : [];
    const all = [...events, ...announced];
    if (together) together.events.push(...all);
    else if (all.length > 0) writes.push(insertEvents(sql, projectId, all));
  }
  const isRepeated = hasEnded(status) && (buildId !== null || hasEnded(execution.status));
  if (writes.length > 0 || isRepeated) together?.states.clear();
  await writeTogether(sql, writes);
  // A late report changes what a build and its reruns come to together, as the end of a rerun does.
  if (isRepeated) await updateRepeated(sql, projectId, buildId ?? id);
}

/** In a transaction that holds the lock of the build or of one of its reruns: what the reruns make of the build's outcome. */
export async function updateRepeated(sql: Tx, projectId: string, buildId: string): Promise<void> {
  await refreshReruns(sql, projectId, buildId);
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
