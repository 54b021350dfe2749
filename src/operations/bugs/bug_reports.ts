/** Bug reports: opened by people or by failures, matched again, resolved and merged, and the events of each change. */

import {
  type FailureGroup,
  findBugsByFingerprint,
  groupByRule,
  groupFailures,
  groupIncidents,
  groupOutage,
  type BugsByFingerprint,
} from "./bug_grouping.ts";
import { FINGERPRINT_VERSION, type Fingerprint } from "../../rules/fingerprint.ts";
import { eventOf, type Transition } from "../../rules/bug_transition.ts";
import type { BugReportPatch, NewBugReport, TouchedBug } from "../../schema/bug_reports.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { type BugMark, insertFingerprints, type MatchedBug } from "../../store/bug_fingerprints.ts";
import {
  type BugState,
  insertBug,
  type InsertBug,
  lockBugs,
  moveBug,
  selectBugState,
  type StatusChange,
  updateBugReport,
  updateStatus,
} from "../../store/bug_reports.ts";
import {
  countCleanCases,
  insertBugCases,
  resetCleanCases,
  selectCasesOfBugsIn,
  selectTestCasesById,
} from "../../store/bug_cases.ts";
import {
  type TrackedFailure,
  insertOccurrences,
  type Occurrence,
  selectIsOvertaken,
  selectRunFailures,
} from "../../store/bug_occurrences.ts";
import { moveSearches } from "../../store/culprit_searches.ts";
import { selectBugsOnlyOf } from "../../store/outside_failures.ts";
import { selectBugsOfRemoved } from "../../store/removed_cases.ts";
import type { Tx } from "../../database/connect.ts";
import { type BugEvent, insertBugEvents } from "../../store/events.ts";
import { caseTitle } from "../../wording/case_title.ts";
import { messageLineOf } from "../../wording/first_line.ts";

/** A run that is complete. */
export type TrackedRun = {
  id: string;
  executionId: string;
  taskSlug: string;
  failed: number;
  outage: boolean;
  branch: string | null;
  commit: string | null;
  onDefaultBranch: boolean;
  /** When the execution began, or the run ended if that was earlier: a failure before a bug was resolved is no regression. */
  startedAt: string;
  /** The test cases whose passes may resolve a bug; null: any; undefined: none. */
  resolving: readonly number[] | null | undefined;
  /** The `depth` of the execution, for events. */
  depth: number;
  /** When its bugs occurred; ISO 8601. */
  seenAt: string;
  /** No event is stored. */
  isMuted: boolean;
};

/** A run with more failures that is no outage is rare; the rest of them join their bugs the next time. */
const MAX_FAILURES = 5_000;
/** Maximum number of failures of an outage that its cause is derived from. */
const MAX_OUTAGE_FAILURES = 200;
/** Maximum number of bugs that one run opens. More have an unknown common cause; those that remain are opened by the next run. */
const MAX_OPENED = 200;
const MAX_TOUCHED = 100;
export const MAX_TITLE_CHARACTERS = 300;

/** Tracks the bugs of runs, in the transaction of their uploads. Returns the bugs that each run has touched, at most 100, by run id. */
export async function trackBugs(
  sql: Tx,
  projectId: string,
  runs: readonly TrackedRun[],
): Promise<Map<string, TouchedBug[]>> {
  const found = new Map<string, TouchedBug[]>(runs.map(({ id }) => [id, []]));
  const limits = runs
    .filter(({ failed }) => failed > 0)
    .map(({ id, outage }) => {
      return { id, limit: outage ? MAX_OUTAGE_FAILURES : MAX_FAILURES };
    });
  const failures = Map.groupBy(
    limits.length === 0 ? [] : await selectRunFailures(sql, projectId, limits),
    (row) => row.runId,
  );
  const concerned = runs.filter(({ id, resolving }) => resolving !== undefined || failures.has(id));
  if (concerned.length === 0) return found;
  await lockBugs(sql, projectId);
  const known = await findBugsByFingerprint(sql, projectId, [...failures.values()].flat());
  const tracked: Tracked = { occurrences: [], marks: [], events: [] };
  // One after the other: a bug that the first one opens is known to the next one.
  for (const run of concerned) {
    const own = failures.get(run.id) ?? [];
    const touched = own.length === 0 ? [] : await trackFailures(sql, projectId, run, own, { known, tracked });
    found.set(run.id, touched.slice(0, MAX_TOUCHED));
  }
  await insertFingerprints(sql, projectId, tracked.marks, FINGERPRINT_VERSION);
  if (tracked.occurrences.length > 0) await insertOccurrences(sql, projectId, tracked.occurrences);
  await resolveClean(sql, projectId, concerned, tracked);
  for (const [depth, own] of Map.groupBy(tracked.events, ({ run }) => run.depth))
    await insertBugEvents(
      sql,
      projectId,
      own.flatMap(({ run, event }) => (run.isMuted ? [] : event)),
      depth,
    );
  return found;
}

/** Rows that are collected from all runs and stored together. */
type Tracked = {
  occurrences: Occurrence[];
  marks: BugMark[];
  events: { run: TrackedRun; event: BugEvent }[];
};

/** After the occurrences were stored: counts what has passed, and resolves the bugs whose test cases passed often enough in a row. */
async function resolveClean(
  sql: Tx,
  projectId: string,
  runs: readonly TrackedRun[],
  { events }: Tracked,
): Promise<void> {
  const resolving = runs.filter((run) => run.resolving !== undefined);
  if (resolving.length === 0) return;
  const unknown = resolving.flatMap(({ id, resolving }) => (resolving === null ? id : []));
  const testCases = new Set([
    ...resolving.flatMap(({ resolving }) => resolving ?? []),
    ...(unknown.length === 0 ? [] : await selectCasesOfBugsIn(sql, projectId, unknown)),
  ]);
  const run = resolving.at(-1)!;
  for (const { id, status } of await countCleanCases(sql, projectId, resolving, [...testCases])) {
    const change: StatusChange = { id, from: status, to: "resolved", cause: "clean_runs", now: run.seenAt };
    events.push(...(await changeStatus(sql, projectId, change)).map((event) => ({ run, event })));
  }
}

async function trackFailures(
  sql: Tx,
  projectId: string,
  run: TrackedRun,
  failures: readonly TrackedFailure[],
  { known, tracked }: { known: BugsByFingerprint; tracked: Tracked },
): Promise<TouchedBug[]> {
  const now = run.seenAt;
  const {
    rule: ofRules = [],
    incident: ofIncident = [],
    none: others = [],
  } = Object.groupBy(failures, ({ ruleId, isIncident }) =>
    ruleId !== null ? "rule" : isIncident ? "incident" : "none",
  );
  const groups = run.outage
    ? await groupOutage(sql, projectId, run, failures, known)
    : [
        ...(await groupFailures(sql, projectId, run, others, known)),
        ...groupIncidents(run, ofIncident, known),
        ...(await groupByRule(sql, projectId, run, ofRules, known)),
      ];
  const touched = new Map<string, TouchedBug>();
  let opened = 0;
  for (const group of groups) {
    if (!group.bug && (group.failures.every(({ isUnclear }) => isUnclear) || ++opened > MAX_OPENED)) continue;
    const [change, changeEvents] = group.bug
      ? await find(sql, projectId, run, group.bug, now)
      : await open(sql, projectId, run, group, now);
    const isQuarantined = group.failures.every((failure) => failure.isQuarantined);
    tracked.events.push(...changeEvents.map((event) => ({ run, event: { ...event, isQuarantined } })));
    if (touched.get(change.id)?.change !== "regressed") touched.set(change.id, change);
    tracked.marks.push(...group.marks.map((fingerprint) => ({ bugId: change.id, fingerprint, now })));
    known.add(group.bug ?? toMatchedBug(change), group.marks);
    for (const { testCase, message } of group.failures)
      tracked.occurrences.push({
        ...{ run, bugId: change.id, testCase },
        message: message?.slice(0, 1_000).toWellFormed() ?? null,
      });
    // Several groups may be of one bug: the next one finds it as this one has left it.
    if (group.bug) group.bug.status = change.status;
  }
  return [...touched.values()];
}

const toMatchedBug = ({ id, number, title, status }: TouchedBug): MatchedBug => {
  return { id, number, title, status, resolvedAt: null };
};

/** The resulting state of a bug, and its events. */
type Change = [TouchedBug, BugEvent[]];

async function find(sql: Tx, projectId: string, run: TrackedRun, bug: MatchedBug, now: string): Promise<Change> {
  const { id, number, title } = bug;
  // A branch may not have the fix yet, or break the same place by itself.
  const isBack =
    run.onDefaultBranch && bug.status === "resolved" && bug.resolvedAt !== null && run.startedAt > bug.resolvedAt;
  // A commit from before the fix, built again, shows nothing of the fix.
  if (!isBack || (await selectIsOvertaken(sql, projectId, run.id)))
    return [{ id, number, title, status: bug.status, change: "occurred" }, []];
  const change: StatusChange = { id, from: "resolved", to: "open", cause: "regression", now };
  const events = await changeStatus(sql, projectId, change);
  return [{ id, number, title, status: "open", change: "regressed" }, events];
}

async function open(
  sql: Tx,
  projectId: string,
  run: TrackedRun,
  { failures, marks }: FailureGroup,
  now: string,
): Promise<Change> {
  const title = toTitle(run, failures[0]!, marks[0]!);
  const severity = run.outage ? "critical" : "major";
  const { id, number } = await insertBug(sql, projectId, { title, severity, source: "automatic", now });
  const events = eventsOf(id, { from: null, to: "open", cause: "opened" });
  return [{ id, number, title, status: "open", change: "opened" }, events];
}

/** Changes a status, and returns the events of the change. No other code changes a status. */
async function changeStatus(sql: Tx, projectId: string, change: StatusChange): Promise<BugEvent[]> {
  await updateStatus(sql, projectId, change);
  return eventsOf(change.id, change);
}

function eventsOf(bugReportId: string, transition: Transition): BugEvent[] {
  const type = eventOf(transition);
  return type === undefined ? [] : [{ type, bugReportId }];
}

/** Resolves bugs of removed test cases. `numbers` are the test cases that have just been found to be removed. */
export async function resolveRemoved(sql: Tx, projectId: string, numbers: readonly number[]): Promise<void> {
  await lockBugs(sql, projectId);
  const now = new Date().toISOString();
  const events: BugEvent[] = [];
  for (const { id, status } of await selectBugsOfRemoved(sql, projectId, numbers))
    events.push(...(await changeStatus(sql, projectId, { id, from: status, to: "resolved", cause: "removed", now })));
  await insertBugEvents(sql, projectId, events, 0);
}

/** Ends failures outside of tests, and resolves bugs that have no others. */
export async function resolveBugsOf(sql: Tx, projectId: string, testCases: readonly number[]): Promise<void> {
  await lockBugs(sql, projectId);
  const now = new Date().toISOString();
  const events: BugEvent[] = [];
  for (const { id, status } of await selectBugsOnlyOf(sql, projectId, testCases))
    events.push(
      ...(await changeStatus(sql, projectId, { id, from: status, to: "resolved", cause: "clean_runs", now })),
    );
  await insertBugEvents(sql, projectId, events, 0);
}

export type Opening = {
  /** Failures with this fingerprint will join the bug. */
  fingerprint?: Fingerprint;
  /** Numbers of test cases that it is about. */
  testCases?: readonly number[];
  /** Number of automations that led to it. */
  depth: number;
};

/** Opens a bug report that no failure has found, in a transaction that holds the lock. */
export async function openBug(
  sql: Tx,
  projectId: string,
  bug: InsertBug,
  { fingerprint, testCases = [], depth }: Opening,
): Promise<{ id: string; number: number }> {
  const opened = await insertBug(sql, projectId, bug);
  const marks = fingerprint ? [{ bugId: opened.id, fingerprint, now: bug.now }] : [];
  await insertFingerprints(sql, projectId, marks, FINGERPRINT_VERSION);
  const cases = testCases.map((testCase) => ({ bugId: opened.id, testCase }));
  await insertBugCases(sql, projectId, cases);
  const events = eventsOf(opened.id, { from: null, to: "open", cause: "opened" });
  await insertBugEvents(sql, projectId, events, depth);
  return opened;
}

/** Opens a bug report written by a person, in a transaction. Refuses test cases of other projects. */
export async function openBugByHand(
  sql: Tx,
  projectId: string,
  { testCaseIds, severity, ...bug }: NewBugReport,
): Promise<{ id: string; number: number }> {
  const testCases = await selectTestCasesById(sql, projectId, testCaseIds);
  if (testCases.length < new Set(testCaseIds).size)
    refuse(`Cannot read "testCaseIds": expected only test cases of this project`);
  await lockBugs(sql, projectId);
  const now = new Date().toISOString();
  const opened = { ...bug, severity: severity ?? "major", source: "manual" as const, now };
  return await openBug(sql, projectId, opened, { testCases, depth: 0 });
}

/** Reopens a resolved bug, in a transaction that holds the lock. */
export async function reopenBug(
  sql: Tx,
  projectId: string,
  { id, now, depth }: { id: string; now: string; depth: number },
): Promise<void> {
  const change: StatusChange = { id, from: "resolved", to: "open", cause: "regression", now };
  await insertBugEvents(sql, projectId, await changeStatus(sql, projectId, change), depth);
}

/** Locks the bugs of the project until the commit. */
async function lockBug(sql: Tx, projectId: string, id: string): Promise<BugState> {
  await lockBugs(sql, projectId);
  return (await selectBugState(sql, projectId, id)) ?? refuseAbsent();
}

/** Applies changes of a person, in a transaction. Refuses a new status for a merged bug. */
export async function editBug(sql: Tx, projectId: string, id: string, patch: BugReportPatch): Promise<BugState> {
  const bug = await lockBug(sql, projectId, id);
  if (bug.mergedInto !== null && patch.status !== undefined)
    refuse(`Cannot change "status": the bug report was merged into ${bug.mergedInto}`);
  await edit(sql, projectId, bug, patch, new Date().toISOString());
  return bug;
}

async function edit(
  sql: Tx,
  projectId: string,
  { id, status }: Pick<BugState, "id" | "status">,
  { status: to, ...patch }: BugReportPatch,
  now: string,
): Promise<void> {
  await updateBugReport(sql, projectId, id, patch, now);
  if (to === undefined || to === status) return;
  const events = await changeStatus(sql, projectId, { id, from: status, to, cause: "api", now });
  // Only runs after the reported fix count.
  await resetCleanCases(sql, projectId, id);
  await insertBugEvents(sql, projectId, events, 0);
}

/** Merges a bug into `intoId`, which gets all its fingerprints. Refuses a merged bug. */
export async function mergeBugs(
  sql: Tx,
  projectId: string,
  id: string,
  intoId: string,
): Promise<{ from: BugState; into: BugState }> {
  const from = await lockBug(sql, projectId, id);
  const into =
    (await selectBugState(sql, projectId, intoId)) ??
    refuse(`Cannot read "into": there is no bug report "${intoId}" in this project`);
  if (into.id === from.id) refuse(`Cannot read "into": expected another bug report`);
  for (const bug of [from, into])
    if (bug.mergedInto !== null) refuse(`Cannot merge: bug report ${bug.number} was merged into ${bug.mergedInto}`);
  await merge(sql, projectId, { from, into, now: new Date().toISOString() });
  return { from, into };
}

async function merge(
  sql: Tx,
  projectId: string,
  { from, into, now }: { from: BugState; into: BugState; now: string },
): Promise<void> {
  await moveBug(sql, projectId, { from, into, now });
  await moveSearches(sql, projectId, { from: from.id, into: into.id });
  const events: BugEvent[] = [];
  const change = async ({ id, status }: BugState, to: BugState["status"]) =>
    void events.push(...(await changeStatus(sql, projectId, { id, from: status, to, cause: "merge", now })));
  if (from.status !== "resolved") await change(from, "resolved");
  // If the merged bug was open, the bug that it becomes part of is open as well.
  const isOpen = from.status === "open" || from.status === "in_progress";
  if (isOpen && into.status === "resolved") await change(into, from.status);
  await insertBugEvents(sql, projectId, events, 0);
}

function toTitle(
  { outage, taskSlug }: TrackedRun,
  failure: TrackedFailure,
  { kind, exceptionType, message: marked }: Fingerprint,
): string {
  if (kind === "infrastructure") return marked.slice(0, MAX_TITLE_CHARACTERS).toWellFormed();
  const { message, stack, suite, name } = failure;
  const line = messageLineOf(message ?? stack);
  const typed = exceptionType && !line.includes(exceptionType) ? `${exceptionType}: ${line}` : line;
  const summary = line === "" ? caseTitle({ suite, name }) : typed;
  const everything = `Nearly all test cases of "${taskSlug}" failed`;
  const title = kind === "outage" ? everything : outage ? `${everything}: ${summary}` : summary;
  return title.slice(0, MAX_TITLE_CHARACTERS).toWellFormed();
}
