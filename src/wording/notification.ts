/** Writes the notification about an event: words for people and data for programs. */

import { lineName } from "./execution_name.ts";
import { WORD_OF } from "../rules/blame.ts";
import type { EventData, EventType, ExecutionData } from "../schema/events.ts";
import type { BlameCounts, FailureSummary } from "../schema/failures.ts";
import type { CountedBug } from "../schema/known_bugs.ts";
import type { ProjectSummary } from "../schema/integrations.ts";
import { bugReportUrl, executionUrl, projectUrl, teamSettingsUrl, testCaseUrl } from "../schema/urls.ts";
import { BLAME_PHRASES, blameCountWords } from "./blame.ts";
import { caseTitle } from "./case_title.ts";
import { messageLineOf } from "./first_line.ts";
import { joinedBugLine, knownBugMention } from "./known_bug.ts";
import { flakeWords } from "./flake_rate.ts";
import { counted } from "./numbers.ts";
import type { Notification } from "../schema/notifications.ts";

/** An event, and the project and the failures that its notification mentions. */
export type EventContext = {
  type: EventType;
  teamId: string;
  project: { id: string; name: string; defaultBranch: string } | null;
  data: EventData;
  occurredAt: string;
  commitAuthor: string | null;
  commitSubject: string | null;
  /** The first failed test cases of the execution. */
  failures: readonly FailureSummary[];
  /** The first known bugs that they belong to. */
  knownBugs: readonly CountedBug[];
};

type Counts = {
  [Name in "passed" | "failed" | "skipped" | "total" | "flaky" | keyof BlameCounts]?: number | undefined;
} & { outage?: true };
type Fact = Notification["facts"][number];

const WORDS: Record<string, string> = { passed: "passed", failed: "failed", timed_out: "timed out" };

/** The counts that are mentioned: failures first, and no zeros. */
function resultWords({ passed = 0, failed = 0, skipped = 0, flaky = 0, outage, ...blames }: Counts): string {
  const details = [...(outage ? ["an outage"] : []), blameCountWords(blames)].filter(Boolean).join(", ");
  const parts: [number, string][] = [
    [failed, details === "" ? "failed" : `failed (${details})`],
    [passed, "passed"],
    [skipped, "skipped"],
    [flaky, "flaky"],
  ];
  const worth = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return worth.length === 0 ? "No test cases" : worth.join(", ");
}

/** Returns "Incomplete: e2e: shard 2 of 3 missing; 54 passed": the reason comes before the counts. */
function withReason({ reason, ...counts }: Counts & { reason?: string }): string {
  if (reason === undefined) return resultWords(counts);
  return counts.total === 0 ? reason : `${reason}; ${resultWords(counts)}`;
}

/** Maximum number of owners that a line names. */
const MAX_OWNERS = 3;

const lineOf = (failure: FailureSummary): string => {
  const { message, blame, owners, knownBug } = failure;
  const reason = messageLineOf(message).slice(0, 200);
  const title = caseTitle(failure);
  // A new failure needs no explanation.
  const about = [
    ...(blame === null || blame === "new" ? [] : [blame === "unclear" ? unclearWords(failure) : BLAME_PHRASES[blame]]),
    ...(knownBug === null ? [] : [knownBugMention(knownBug)]),
    ...owners.slice(0, MAX_OWNERS),
  ];
  const text = about.length === 0 ? title : `${title} (${about.join(", ")})`;
  return reason === "" ? text : `${text}: ${reason}`;
};

/** Nobody knows what an unclear failure comes from, so it is named with what speaks for and against it. */
const unclearWords = ({ reason }: FailureSummary): string =>
  reason === null ? BLAME_PHRASES.unclear : `${BLAME_PHRASES.unclear}: ${reason}`;

const factsOf = (facts: Record<string, string | null | undefined>): Fact[] =>
  Object.entries(facts).flatMap(([name, value]) => (value ? [{ name, value: value.slice(0, 500) }] : []));

type CommitContext = Pick<EventContext, "commitAuthor" | "commitSubject">;

/** Returns "1a2b3c4d5e6f Round prices, by Ada", as far as it is known. */
const commitFact = (hash: string | null | undefined, { commitAuthor, commitSubject }: CommitContext) =>
  hash && [hash.slice(0, 12), commitSubject, commitAuthor && `by ${commitAuthor}`].filter(Boolean).join(" ");

const originFacts = (context: EventContext): Record<string, string | null | undefined> => {
  const { execution } = context.data;
  return {
    Branch: execution?.branch,
    "Merge queue": execution?.branch === null ? execution.baseBranch : null,
    Commit: commitFact(execution?.commit, context),
    "Pull request": execution?.pullRequest,
    Environment: execution?.environment,
  };
};

type Words = Pick<Notification, "tone" | "title" | "text"> & Partial<Notification>;

/** `publicUrl` is without a slash at the end. */
export function toNotice(context: EventContext, publicUrl: string): Notification {
  const { type, project, data, occurredAt, failures } = context;
  const { execution } = data;
  const knownBugs = project
    ? context.knownBugs.map((bug) => ({ ...bug, url: bugReportUrl(publicUrl, project.id, bug.id) }))
    : [];
  const words = toWords(context, publicUrl);
  const branch = execution?.branch ?? data.bugReport?.branch ?? null;
  const onProject = project && { id: project.id, name: project.name, url: projectUrl(publicUrl, project.id) };
  return {
    type,
    occurredAt,
    subject: words.title,
    facts: factsOf(originFacts(context)),
    lines: [],
    ...(knownBugs.length > 0
      ? { knownBugs: knownBugs.map((bug) => ({ number: bug.number, text: joinedBugLine(bug), url: bug.url })) }
      : {}),
    url: execution && project ? executionUrl(publicUrl, project.id, execution.id) : null,
    buildUrl: execution?.buildUrl ?? null,
    branch,
    commit: execution?.commit ?? data.bugReport?.commit ?? null,
    pullRequest: execution?.pullRequest ?? null,
    topic: `${project?.id ?? context.teamId} ${branch ?? branchOf(context)}`,
    state: null,
    data: {
      ...(onProject ? { project: onProject } : {}),
      ...data,
      ...(execution && project
        ? {
            execution: {
              ...execution,
              commitAuthor: context.commitAuthor,
              commitSubject: context.commitSubject,
              url: executionUrl(publicUrl, project.id, execution.id),
            },
          }
        : {}),
      ...(data.bugReport && project
        ? { bugReport: { ...data.bugReport, url: bugReportUrl(publicUrl, project.id, data.bugReport.id) } }
        : {}),
      ...(data.testCase && project
        ? { testCase: { ...data.testCase, url: testCaseUrl(publicUrl, project.id, data.testCase.id) } }
        : {}),
      ...(failures.length > 0
        ? { failures: failures.map((failure) => ({ ...failure, blame: failure.blame && WORD_OF[failure.blame] })) }
        : {}),
      ...(knownBugs.length > 0 ? { knownBugs: knownBugs.map(({ known: _, ...bug }) => bug) } : {}),
    },
    ...words,
  };
}

/** Returns the notification of an event. */
function toWords(context: EventContext, publicUrl: string): Words {
  const { type, teamId, project, data } = context;
  const { execution, testRun, bugReport, testCase, integration } = data;
  if (testRun && execution) return ofTestRun(context, testRun);
  if (bugReport && project) return ofBugReport(context, bugReport, bugReportUrl(publicUrl, project.id, bugReport.id));
  if (testCase && project) return ofTestCase(context, testCase, testCaseUrl(publicUrl, project.id, testCase.id));
  if (type === "task.missed") return ofMissedTask(context);
  if (integration) return ofIntegration(teamId, integration, teamSettingsUrl(publicUrl, teamId));
  return ofExecution(context);
}

type About<Name extends keyof EventData> = NonNullable<EventData[Name]>;

const branchOf = ({ data: { execution }, project }: EventContext): string =>
  (execution && lineName(execution)) ?? project?.defaultBranch ?? "";
const projectName = ({ project }: EventContext) => project?.name ?? "";

function ofTestRun(context: EventContext, testRun: About<"testRun">): Words {
  const isGood = testRun.verdict === "passed";
  return {
    tone: isGood ? "good" : "bad",
    title: `${projectName(context)}: ${testRun.taskSlug} ${isGood ? "passed" : "failed"} on ${branchOf(context)}`,
    text: withReason(testRun),
    topic: `${context.project?.id} ${branchOf(context)} ${testRun.taskSlug}`,
    lines: context.failures.map(lineOf),
    state: isGood ? "success" : "failure",
  };
}

const HAPPENED: Record<string, string> = { "bug_report.opened": "opened", "bug_report.regressed": "is back" };

function ofCulprit(context: EventContext, culprit: About<"culprit">, url: string): Words {
  const { bugReport } = context.data;
  const { commit, author, subject, files, summary } = culprit;
  const named = `${commit.slice(0, 10)} by ${author} broke it`;
  return {
    tone: "bad",
    title: `${projectName(context)}: ${named}: bug #${bugReport?.number}: ${bugReport?.title}`,
    subject: `${named}: ${bugReport?.title}`,
    text: `${subject}. ${summary}`,
    facts: factsOf({
      Commit: commit.slice(0, 12),
      Author: author,
      Files: files.slice(0, 5).join(", "),
      Tasks: bugReport?.taskSlugs.slice(0, 5).join(", "),
      Owners: bugReport?.owners?.join(", "),
    }),
    url,
    commit,
    topic: `${context.project?.id} bug ${bugReport?.number}`,
  };
}

function ofBugReport(context: EventContext, bug: About<"bugReport">, url: string): Words {
  if (context.data.culprit) return ofCulprit(context, context.data.culprit, url);
  const happened = HAPPENED[context.type] ?? "resolved";
  return {
    tone: happened === "resolved" ? "good" : "bad",
    title: `${projectName(context)}: bug #${bug.number} ${happened}: ${bug.title}`,
    subject: bug.title,
    text: `${bug.severity}, ${counted(bug.occurrences, "occurrence")}`,
    facts: factsOf({
      Severity: bug.severity,
      Tasks: bug.taskSlugs.slice(0, 5).join(", "),
      Branch: bug.branch,
      Commit: commitFact(bug.commit, context),
      Assignee: bug.assignee,
      Owners: bug.owners?.join(", "),
    }),
    lines: context.failures.map(lineOf),
    url,
    topic: `${context.project?.id} bug ${bug.number}`,
  };
}

const VERIFIED_WORDS: Record<About<"verification">["status"], string> = {
  passed: "Verified",
  flaky: "Still flaky",
  failed: "Still failing",
  inconclusive: "Cannot verify",
};

function ofVerification(context: EventContext, verification: About<"verification">): Partial<Words> {
  const { testCase } = context.data;
  const { status, statement, released, commit } = verification;
  const subject = `${VERIFIED_WORDS[status]}: ${testCase ? caseTitle(testCase) : ""}`;
  return {
    tone: status === "passed" ? "good" : "bad",
    title: `${projectName(context)}: ${subject[0]!.toLowerCase()}${subject.slice(1)}`,
    subject,
    text: `${statement}${released ? ". Its quarantine has ended" : ""}`,
    commit,
  };
}

function ofTestCase(context: EventContext, testCase: About<"testCase">, url: string): Words {
  const isFlaky = context.type === "test_case.became_flaky";
  const name = caseTitle(testCase);
  const { taskSlug, file, owner, owners = owner === null ? [] : [owner] } = testCase;
  return {
    tone: isFlaky ? "bad" : "good",
    title: `${projectName(context)}: ${isFlaky ? "flaky test" : "no longer flaky"}: ${name}`,
    subject: `${isFlaky ? "Flaky test" : "No longer flaky"}: ${name}`,
    text: `It ${flakeWords(testCase)} by itself`,
    facts: factsOf({ Task: taskSlug, File: file, Owner: owners.join(", "), ...originFacts(context) }),
    url,
    topic: `${context.project?.id} test ${testCase.id}`,
    ...(context.data.verification ? ofVerification(context, context.data.verification) : {}),
  };
}

const ofMissedTask = (context: EventContext): Words => ({
  tone: "bad",
  title: `${projectName(context)}: ${context.data.taskSlug} did not report`,
  text: `Expected by a schedule: ${context.data.reason ?? "no report arrived in time"}`,
  topic: `${context.project?.id} ${branchOf(context)} missed ${context.data.taskSlug}`,
});

const ofIntegration = (teamId: string, { id, kind, name, reason }: About<"integration">, url: string): Words => ({
  tone: "bad",
  title: `The integration "${name}" was disabled`,
  text: reason,
  facts: factsOf({ Kind: kind }),
  url,
  topic: `${teamId} integration ${id}`,
});

function ofExecution(context: EventContext): Words {
  const { type, data, failures } = context;
  const status = data.execution?.status ?? "passed";
  const became = type === "execution.recovered" ? toRecovery(data) : (WORDS[status] ?? status);
  return {
    tone: status === "passed" ? "good" : "bad",
    title: `${projectName(context)}: ${branchOf(context)} ${became}`,
    text: withReason(data.execution ?? {}),
    facts: factsOf({ ...originFacts(context), Tasks: redTasks(data), Owners: ownersIn(failures) }),
    lines: failures.map(lineOf),
    state: status === "passed" ? "success" : status === "failed" ? "failure" : "error",
  };
}

/** Returns the words for an execution after which a task is green again. Other tasks of the branch may still be red. */
function toRecovery({ execution }: EventData): string {
  const [first, ...others] = execution?.stillRed ?? [];
  if (first === undefined) return "is green again";
  return `passed again, and ${first}${others.length === 0 ? " is" : ` and ${others.length} more are`} still red`;
}

const ownersIn = (failures: readonly FailureSummary[]): string =>
  [...new Set(failures.flatMap(({ owners }) => owners))].join(", ");

const WHY_RED: Record<string, string> = { timed_out: " (no report)", incomplete: " (shards missing)" };

/** Names the red tasks, if there are several. */
function redTasks({ execution }: EventData): string {
  const red = (execution?.tasks ?? []).filter(({ verdict, status }) => verdict === "failed" || status === "timed_out");
  const names = red.slice(0, 5).map(({ slug, status }) => slug + (WHY_RED[status] ?? ""));
  const all = execution?.redTaskCount ?? red.length;
  return all > names.length ? `${names.join(", ")} and ${all - names.length} more` : names.join(", ");
}

/** Returns the scheduled summary of a project. */
export function toSummaryNotice(
  project: { id: string; name: string; defaultBranch: string },
  summary: ProjectSummary,
  publicUrl: string,
  now: Date,
): Notification {
  const { executions, failedExecutions, openBugs, flakyCases, since } = summary;
  const title = `${project.name}: ${counted(executions, "execution")}, ${failedExecutions} failed`;
  return {
    type: "schedule",
    occurredAt: now.toISOString(),
    tone: "neutral",
    title,
    subject: title,
    text: `${counted(openBugs, "open bug")}, ${counted(flakyCases, "flaky test")}`,
    facts: factsOf({ Since: since }),
    lines: [],
    url: projectUrl(publicUrl, project.id),
    buildUrl: null,
    branch: null,
    commit: null,
    pullRequest: null,
    topic: `${project.id} summary`,
    state: null,
    data: { project: { id: project.id, name: project.name, url: projectUrl(publicUrl, project.id) }, summary },
  };
}

/** Returns the request to a CI engine to run the tasks of an execution. */
export const toDispatchNotice = (
  project: { id: string; name: string },
  execution: Pick<ExecutionData, "id" | "key" | "branch" | "commit">,
  publicUrl: string,
  now: Date,
): Notification => ({
  type: "dispatch",
  occurredAt: now.toISOString(),
  tone: "neutral",
  title: `${project.name}: start the pipeline of the execution ${execution.key ?? execution.id}`,
  subject: `${project.name}: start a pipeline`,
  text: "Results should be uploaded to the execution",
  facts: factsOf({ Branch: execution.branch, Commit: execution.commit?.slice(0, 12) }),
  lines: [],
  url: executionUrl(publicUrl, project.id, execution.id),
  buildUrl: null,
  branch: execution.branch,
  commit: execution.commit,
  pullRequest: null,
  topic: `${project.id} execution ${execution.id}`,
  state: null,
  data: { project: { id: project.id, name: project.name, url: projectUrl(publicUrl, project.id) } },
});

/** Returns the test message of an integration. */
export const toTestNotice = (teamId: string, integrationName: string, publicUrl: string, now: Date): Notification => ({
  type: "test",
  occurredAt: now.toISOString(),
  tone: "neutral",
  title: `Assay can reach ${integrationName}`,
  subject: `Assay can reach ${integrationName}`,
  text: "This is a test message. No action is needed",
  facts: [{ name: "Integration", value: integrationName }],
  lines: [],
  url: teamSettingsUrl(publicUrl, teamId),
  buildUrl: null,
  branch: null,
  commit: null,
  pullRequest: null,
  topic: `${teamId} test`,
  state: null,
  data: { integration: { name: integrationName } },
});
