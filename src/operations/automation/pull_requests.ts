/** Reads the current state of an execution that code hosts show at its pull request. */

import { hasEnded, sumTasks } from "../../rules/execution.ts";
import { normalizeFile } from "../../rules/identity.ts";
import type { AbsentTests } from "../../schema/absent_tests.ts";
import type { JoinedBug, CountedBug } from "../../schema/known_bugs.ts";
import type { Annotation, FailedCause, FailedTest, NamedTest, PullRequestState } from "../../schema/pull_requests.ts";
import { bugReportUrl, executionUrl, taskUrl, testCaseUrl } from "../../schema/urls.ts";
import { selectCaseResults } from "../../store/case_results.ts";
import type { CauseMember } from "../../store/causes.ts";
import { type ComparedRow, selectComparison } from "../../store/comparisons.ts";
import { selectExecution, selectExecutionNames, type TimedExecutionRow } from "../../store/execution_list.ts";
import { countFailures, selectFailures } from "../../store/failures.ts";
import { selectKnownBugs } from "../../store/known_bugs.ts";
import { selectProject } from "../../store/projects.ts";
import { selectRunId } from "../../store/test_runs.ts";
import { selectSlowerTests } from "../../store/slower.ts";
import type { Tx } from "../../database/connect.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { executionHeadline } from "../../wording/execution.ts";
import { failureReason } from "../../wording/failure_reason.ts";
import { messageLineOf } from "../../wording/first_line.ts";
import { forgivenWords } from "../../wording/gate.ts";
import { joinedBugTitle, knownBugMention } from "../../wording/known_bug.ts";
import { toCount } from "../../wording/numbers.ts";
import { taskHeadline } from "../../wording/task.ts";
import { newTestWords } from "../../wording/verification.ts";
import { readAbsentOfExecution } from "../executions/absent_tests.ts";
import { type CauseFailures, readCauses } from "../executions/failures.ts";

/** Maximum number of new failures that a comment names. */
const MAX_FAILURES = 10;
/** Maximum number of tests of every other kind. */
const MAX_NAMED = 5;
const MAX_TASKS = 30;
/** Maximum number of results of an execution that is compared; fixed tests of larger ones are on their page. */
const MAX_COMPARED_RESULTS = 20_000;
/** Maximum number of failures that are shown at their lines. */
const MAX_ANNOTATIONS = 200;

export type Site = { publicUrl: string; projectId: string };
const toBugUrl = ({ publicUrl, projectId }: Site, { id }: JoinedBug): string => bugReportUrl(publicUrl, projectId, id);

type Case = { testCaseId: string; suite: string; name: string };

const toNamed = ({ publicUrl, projectId }: Site, one: Case): NamedTest => ({
  title: shownCaseTitle(one),
  url: testCaseUrl(publicUrl, projectId, one.testCaseId),
});

const toFailed = (site: Site, failure: CauseMember): FailedTest => {
  const { file, line, owners } = failure;
  const location = file === null ? null : line === null ? file : `${file}:${line}`;
  return { ...toNamed(site, failure), owners, location };
};

/** The new failures of a cause; undefined: none of the selected ones is new. */
function toNewCause(site: Site, { failures, bug }: CauseFailures): FailedCause | undefined {
  const fresh = failures.filter(({ blame }) => blame === "new");
  if (fresh.length === 0) return undefined;
  const known = bug?.known ? { title: knownBugMention(bug.number), url: toBugUrl(site, bug) } : null;
  const first = fresh.map((one) => toFailed(site, one));
  return { message: messageLineOf(failures[0].message), bug: known, tests: { first, total: failures[0].newlyFailed } };
}

/** The unclear failures of a cause among the selected ones. */
const toUnclear = (site: Site, { failures }: CauseFailures) =>
  failures
    .filter(({ blame }) => blame === "unclear")
    .map((one) => ({ ...toNamed(site, one), reason: failureReason(one) ?? "" }));

const toKnownBug = (site: Site, bug: CountedBug): PullRequestState["knownBugs"]["first"][number] => {
  const url = toBugUrl(site, bug);
  const culprit = bug.culprit && { title: bug.culprit.summary, url: `${url}#culprit` };
  return { title: joinedBugTitle(bug), url, failed: bug.failed, culprit };
};

/** The causes of an execution's failures, new ones first, with at most `limit` tests, and the bug reports of all. */
const readFirstCauses = (sql: Tx, projectId: string, executionId: string, limit: number) =>
  readCauses(sql, projectId, executionId, { limit: Math.min(limit, 100), members: limit, total: limit });

/** The first failures of tests that are known to be flaky. */
async function selectFlakyFailures(sql: Tx, site: Site, { id, tasks }: TimedExecutionRow): Promise<NamedTest[]> {
  const named: NamedTest[] = [];
  for (const { slug } of tasks.filter(({ failed }) => failed > 0)) {
    if (named.length >= MAX_NAMED) break;
    const runId = await selectRunId(sql, site.projectId, id, slug);
    const failures = runId === undefined ? [] : ((await selectFailures(sql, site.projectId, [runId])).get(runId) ?? []);
    named.push(...failures.filter(({ blame }) => blame === "flaky").map((one) => toNamed(site, one)));
  }
  return named.slice(0, MAX_NAMED);
}

/** Returns fixed and flaky tests of an execution that has ended. */
async function selectChanges(sql: Tx, site: Site, { id, tasks, baselineId, untrusted }: TimedExecutionRow) {
  const { projectId } = site;
  const isSmall =
    sumTasks(tasks, "passed") + sumTasks(tasks, "failed") + sumTasks(tasks, "skipped") <= MAX_COMPARED_RESULTS;
  const compared = baselineId === null || !isSmall ? [] : await selectComparison(sql, projectId, id, undefined);
  const fixed = compared.filter(({ kind }: ComparedRow) => kind === "fixed");
  const flaky: NamedTest[] = [];
  for (const task of tasks.filter((task) => task.flaky > 0)) {
    if (flaky.length >= MAX_NAMED) break;
    const runId = await selectRunId(sql, projectId, id, task.slug);
    const left = MAX_NAMED - flaky.length;
    const rows =
      runId === undefined
        ? []
        : await selectCaseResults(sql, projectId, { id: runId, untrusted }, { limit: left, flaky: true });
    flaky.push(...rows.slice(0, left).map((row) => toNamed(site, row)));
  }
  return {
    fixed: { first: fixed.slice(0, MAX_NAMED).map((row) => toNamed(site, row)), total: fixed[0]?.total ?? 0 },
    flaky: { first: flaky, total: sumTasks(tasks, "flaky") },
  };
}

const nameOf = ({ key, number, branch }: { key: string | null; number: number; branch: string | null }): string =>
  [branch, `#${key !== null && key.length <= 24 ? key : number}`].filter(Boolean).join(" ");

/** The execution that a comment is about: of a rerun the build that it repeats. Undefined: it was deleted. */
export async function findBuild(sql: Tx, projectId: string, id: string): Promise<TimedExecutionRow | undefined> {
  const execution = await selectExecution(sql, projectId, id);
  return execution?.buildId ? await selectExecution(sql, projectId, execution.buildId) : execution;
}

/** Reads the current state, not that at the time of an event, so that a comment never returns to an earlier state. */
export async function readPullRequestState(
  sql: Tx,
  site: Site,
  execution: TimedExecutionRow,
): Promise<PullRequestState> {
  const { publicUrl, projectId } = site;
  const { id, status, tasks, baselineId, repeatedStatus } = execution;
  const isOver = hasEnded(status);
  const project = await selectProject(sql, projectId);
  const counts = await countFailures(sql, projectId, id);
  const { causes, bugCounts } =
    sumTasks(tasks, "failed") === 0
      ? { causes: [], bugCounts: {} }
      : await readFirstCauses(sql, projectId, id, MAX_FAILURES);
  const known = await selectKnownBugs(sql, projectId, id, bugCounts);
  const names = await selectExecutionNames(sql, projectId, [baselineId]);
  const baseline = baselineId === null ? undefined : names.get(baselineId);
  const slower = isOver ? await selectSlowerTests(sql, projectId, id, MAX_NAMED) : [];
  const none = { first: [], total: 0 };
  const unreliable = execution.newTests.filter(({ failed }) => failed > 0);
  const changes = isOver ? await selectChanges(sql, site, execution) : { fixed: none, flaky: none };
  const absent = await readAbsentOfExecution(sql, projectId, id);
  const toAbsent = ({ count, testCases }: AbsentTests["missing"]) => ({
    first: testCases.map((one) => toNamed(site, one)),
    total: count,
  });
  const headline = executionHeadline({
    ...{ execution, counts, defaultBranch: project?.defaultBranch ?? "the default branch" },
    baseline: baseline ? nameOf(baseline) : null,
    flaky: `${toCount(sumTasks(tasks, "flaky"))} flaky`,
  });
  return {
    projectName: project?.name ?? "",
    headline: headline.map((word) => (typeof word === "string" ? word : word.text)).join(""),
    isOver,
    isGood:
      (repeatedStatus ?? status) === "passed" &&
      unreliable.length === 0 &&
      absent.missing.count + absent.newlySkipped.count === 0,
    rerun: repeatedStatus === null ? null : `${repeatedStatus.replace("_", " ")} in a rerun`,
    url: executionUrl(publicUrl, projectId, id),
    buildUrl: execution.buildUrl,
    commit: execution.commit,
    queue: execution.queueRef,
    durationMs: execution.durationMs,
    baseline: baseline ? { title: nameOf(baseline), url: executionUrl(publicUrl, projectId, baseline.id) } : null,
    tasks: {
      first: tasks.slice(0, MAX_TASKS).map((task) => ({
        title: task.slug,
        url: taskUrl(publicUrl, projectId, id, task.slug),
        outcome: `${taskHeadline({ ...task, durationMs: 0 })}${task.forgiven ? `; gate passed, ${forgivenWords(task.forgiven)}` : ""}`,
        durationMs: task.durationMs,
        slower: task.slower,
      })),
      total: tasks.length,
    },
    newFailures: {
      first: causes.flatMap((cause) => toNewCause(site, cause) ?? []),
      total: counts.new ?? 0,
    },
    unclearFailures: {
      first: causes.flatMap((cause) => toUnclear(site, cause)).slice(0, MAX_NAMED),
      total: counts.unclear ?? 0,
    },
    flakyFailures: {
      first: counts.flaky ? await selectFlakyFailures(sql, site, execution) : [],
      total: counts.flaky ?? 0,
    },
    knownBugs: { first: known.bugs.map((bug) => toKnownBug(site, bug)), total: known.total },
    ...changes,
    missing: toAbsent(absent.missing),
    newlySkipped: toAbsent(absent.newlySkipped),
    slower: {
      first: slower
        .slice(0, MAX_NAMED)
        .map(({ durationMs, usualMs, ...test }) => ({ ...toNamed(site, test), durationMs, usualMs })),
      total: slower[0]?.total ?? 0,
    },
    unreliableNewTests: {
      first: unreliable
        .slice(0, MAX_NAMED)
        .map((test) => ({ ...toNamed(site, test.testCase), statement: newTestWords(test) })),
      total: unreliable.length,
    },
  };
}

/** Failures of an execution, or of one of its tasks, that name a file of the repository. */
export async function selectAnnotations(
  sql: Tx,
  projectId: string,
  executionId: string,
  taskSlug: string | undefined,
): Promise<Annotation[]> {
  const { causes } = await readFirstCauses(sql, projectId, executionId, MAX_ANNOTATIONS);
  const all = causes.flatMap(({ failures, bug }) =>
    failures.map((one) => ({ ...one, message: failures[0].message, knownBug: bug?.known ? bug : null })),
  );
  return all.flatMap((failure): Annotation[] => {
    const path = failure.file === null ? "" : normalizeFile(failure.file);
    const isInRepository = path !== "" && !/^(?:\/|[a-z]:|\.\.(?:\/|$))/i.test(path);
    if (!isInRepository || (taskSlug !== undefined && failure.taskSlug !== taskSlug)) return [];
    const bug = failure.knownBug === null ? [] : [knownBugMention(failure.knownBug.number)];
    const about = [...bug, ...failure.owners.slice(0, 3)].join(", ");
    const title = `${shownCaseTitle(failure)}${about === "" ? "" : ` (${about})`}`;
    return [{ path, line: Math.max(failure.line ?? 1, 1), title, message: failure.message ?? "It failed" }];
  });
}
