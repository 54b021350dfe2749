/** Makes bug reports of the failures of a run: opens them, finds them again, and resolves them when they are gone. */

import { FINGERPRINT_VERSION, fingerprint, type Fingerprint, outageFingerprint } from "../rules/fingerprint.ts";
import type { TouchedBug } from "../schema/bug_reports.ts";
import {
  countCleanCases,
  type FailureRow,
  insertBug,
  type InsertBug,
  insertFingerprint,
  insertOccurrences,
  type KnownBug,
  lockBugs,
  type Occurrence,
  selectBugsByFingerprint,
  selectHasLiveBugs,
  selectRunFailures,
  updateStatus,
} from "../store/bug_reports.ts";
import type { Sql } from "../store/connect.ts";
import { type BugEvent, insertBugEvents } from "../store/events.ts";

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
  /** When the execution began, or the run ended where that was before: what failed before a bug was resolved is no regression. */
  startedAt: string;
  /** It has just become complete; a further attempt would count as another clean run. */
  isFirst: boolean;
  /** Of the execution. */
  depth: number;
  /** Nothing is announced. */
  silent: boolean;
};

/** A run with more failures that is no outage is rare; the rest of them join their bugs the next time. */
const MAX_FAILURES = 5_000;
/** More new ones in one run have a common cause that has no name; those that stay open themselves the next time. */
const MAX_OPENED = 200;
const MAX_TOUCHED = 100;
export const MAX_TITLE = 300;

type Group = { fingerprint: Fingerprint; failures: FailureRow[] };

/** In the transaction of the upload. Answers the bugs that the run has touched, at most 100. */
export async function trackBugs(sql: Sql, projectId: string, run: TrackedRun, now: string): Promise<TouchedBug[]> {
  const failures =
    run.failed === 0 ? [] : await selectRunFailures(sql, projectId, run.id, run.outage ? 1 : MAX_FAILURES);
  const mayResolve = run.isFirst && run.onDefaultBranch && !run.outage && (await selectHasLiveBugs(sql, projectId));
  if (failures.length === 0 && !mayResolve) return [];
  await lockBugs(sql, projectId);
  const touched = failures.length === 0 ? [] : await trackFailures(sql, projectId, run, failures, now);
  const events = touched.flatMap(({ id, change }): BugEvent[] =>
    change === "occurred" ? [] : [{ type: `bug_report.${change}`, bugReportId: id }],
  );
  if (mayResolve) {
    for (const { id, status } of await countCleanCases(sql, projectId, run.id)) {
      await updateStatus(sql, projectId, id, status, "resolved", "clean_runs", now);
      events.push({ type: "bug_report.resolved", bugReportId: id });
    }
  }
  if (!run.silent) await insertBugEvents(sql, projectId, events, run.depth);
  return touched.slice(0, MAX_TOUCHED);
}

async function trackFailures(
  sql: Sql,
  projectId: string,
  run: TrackedRun,
  failures: readonly FailureRow[],
  now: string,
): Promise<TouchedBug[]> {
  const groups = new Map<string, Group>();
  for (const failure of failures) {
    const mark = run.outage ? outageFingerprint(run.taskSlug) : fingerprint(failure);
    const group = groups.get(mark.digest);
    if (group) group.failures.push(failure);
    else groups.set(mark.digest, { fingerprint: mark, failures: [failure] });
  }
  const found = await selectBugsByFingerprint(sql, projectId, [...groups.keys()]);
  const known = new Map<string, KnownBug>(found.map((bug) => [bug.digest, bug]));
  const touched = new Map<string, TouchedBug>();
  const occurrences: Occurrence[] = [];
  let opened = 0;
  for (const [digest, group] of groups) {
    const bug = known.get(digest);
    // Only the default branch opens bugs: what fails on others is work in progress.
    if (!bug && (!run.onDefaultBranch || ++opened > MAX_OPENED)) continue;
    const change = bug ? await find(sql, projectId, run, bug, now) : await open(sql, projectId, run, group, now);
    if (touched.get(change.id)?.change !== "regressed") touched.set(change.id, change);
    for (const { testCase, message } of group.failures)
      occurrences.push({ bugId: change.id, testCase, message: message?.slice(0, 1_000).toWellFormed() ?? null });
    // Two fingerprints of one bug may both be here: the second one finds it as the first has left it.
    if (change.change === "regressed")
      for (const other of found) if (other.id === change.id) other.status = change.status;
  }
  if (occurrences.length > 0) await insertOccurrences(sql, projectId, { ...run, seenAt: now }, occurrences);
  return [...touched.values()];
}

async function find(sql: Sql, projectId: string, run: TrackedRun, bug: KnownBug, now: string): Promise<TouchedBug> {
  const { id, number, title } = bug;
  const isBack = bug.status === "resolved" && bug.resolvedAt !== null && run.startedAt > bug.resolvedAt;
  if (!isBack) return { id, number, title, status: bug.status, change: "occurred" };
  await updateStatus(sql, projectId, id, "resolved", "open", "regression", now);
  return { id, number, title, status: "open", change: "regressed" };
}

async function open(
  sql: Sql,
  projectId: string,
  run: TrackedRun,
  { fingerprint, failures }: Group,
  now: string,
): Promise<TouchedBug> {
  const title = run.outage ? fingerprint.message : toTitle(failures[0]!, fingerprint);
  const severity = run.outage ? "critical" : "major";
  const { id, number } = await openBug(sql, projectId, { title, severity, source: "automatic", now }, fingerprint);
  return { id, number, title, status: "open", change: "opened" };
}

/** In a transaction that holds the lock: a bug report that what has this fingerprint will join. */
export async function openBug(
  sql: Sql,
  projectId: string,
  bug: InsertBug,
  fingerprint: Fingerprint,
): Promise<{ id: string; number: number }> {
  const opened = await insertBug(sql, projectId, bug);
  await insertFingerprint(sql, projectId, opened.id, FINGERPRINT_VERSION, fingerprint, bug.now);
  return opened;
}

function toTitle({ message, stack, suite, name }: FailureRow, { exceptionType }: Fingerprint): string {
  const line = /\S.*/.exec(message ?? stack ?? "")?.[0].trim() ?? "";
  const typed = exceptionType && !line.includes(exceptionType) ? `${exceptionType}: ${line}` : line;
  const title = line === "" ? [suite, name].filter(Boolean).join(" > ") : typed;
  return title.slice(0, MAX_TITLE).toWellFormed();
}
