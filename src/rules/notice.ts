/** What there is to tell about an event, in words for people and in data for programs. */

import type { EventData, EventType } from "../schema/events.ts";
import type { Notice } from "../schema/integrations.ts";
import { bugReportUrl, executionUrl, projectUrl, teamSettingsUrl, testCaseUrl } from "../schema/urls.ts";

/** An event with what is known of where it happened. */
export type Occurrence = {
  type: EventType;
  teamId: string;
  project: { id: string; name: string; defaultBranch: string } | null;
  data: EventData;
  occurredAt: string;
  /** Failed test cases of the execution, the first ones. */
  failures: readonly ToldFailure[];
};

export type ToldFailure = { suite: string; name: string; file: string | null; message: string | null };

type Counts = { passed?: number; failed?: number; skipped?: number; flaky?: number };
type Fact = Notice["facts"][number];

const WORDS: Record<string, string> = { passed: "passed", failed: "failed", timed_out: "timed out" };

export const firstTextLine = (text: string): string => /\S[^\r\n]*/.exec(text)?.[0].trim() ?? "";

/** What is worth a word: failures first, and nothing that did not happen. */
function counted({ passed = 0, failed = 0, skipped = 0, flaky = 0 }: Counts): string {
  const parts: [number, string][] = [
    [failed, "failed"],
    [passed, "passed"],
    [skipped, "skipped"],
    [flaky, "flaky"],
  ];
  const told = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return told.length === 0 ? "No test cases" : told.join(", ");
}

const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;

const named = (suite: string, name: string) => [suite, name].filter(Boolean).join(" > ");

const lineOf = ({ suite, name, message }: ToldFailure): string => {
  const reason = message === null ? "" : firstTextLine(message).slice(0, 200);
  return reason === "" ? named(suite, name) : `${named(suite, name)}: ${reason}`;
};

const factsOf = (facts: Record<string, string | null | undefined>): Fact[] =>
  Object.entries(facts).flatMap(([name, value]) => (value ? [{ name, value: value.slice(0, 500) }] : []));

const originFacts = ({ execution }: EventData): Record<string, string | null | undefined> => ({
  Branch: execution?.branch,
  Commit: execution?.commit?.slice(0, 12),
  "Pull request": execution?.pullRequest,
  Environment: execution?.environment,
});

type Words = Pick<Notice, "tone" | "title" | "text"> & Partial<Notice>;

/** `publicUrl` is without a slash at the end. */
export function toNotice(told: Occurrence, publicUrl: string): Notice {
  const { type, project, data, occurredAt, failures } = told;
  const { execution } = data;
  const words = toWords(told, publicUrl);
  const branch = execution?.branch ?? data.bugReport?.branch ?? null;
  const onProject = project && { id: project.id, name: project.name, url: projectUrl(publicUrl, project.id) };
  return {
    type,
    occurredAt,
    subject: words.title,
    facts: factsOf(originFacts(data)),
    lines: [],
    url: execution && project ? executionUrl(publicUrl, project.id, execution.id) : null,
    buildUrl: execution?.buildUrl ?? null,
    branch,
    commit: execution?.commit ?? data.bugReport?.commit ?? null,
    pullRequest: execution?.pullRequest ?? null,
    topic: `${project?.id ?? told.teamId} ${branch ?? project?.defaultBranch ?? ""}`,
    state: null,
    data: {
      ...(onProject ? { project: onProject } : {}),
      ...data,
      ...(execution && project
        ? { execution: { ...execution, url: executionUrl(publicUrl, project.id, execution.id) } }
        : {}),
      ...(data.bugReport && project
        ? { bugReport: { ...data.bugReport, url: bugReportUrl(publicUrl, project.id, data.bugReport.id) } }
        : {}),
      ...(data.testCase && project
        ? { testCase: { ...data.testCase, url: testCaseUrl(publicUrl, project.id, data.testCase.id) } }
        : {}),
      ...(failures.length > 0 ? { failures } : {}),
    },
    ...words,
  };
}

function toWords({ type, teamId, project, data, failures }: Occurrence, publicUrl: string): Words {
  const { execution, testRun, bugReport, testCase, taskSlug, integration } = data;
  const branch = execution?.branch ?? project?.defaultBranch ?? "";
  const where = project?.name ?? "";
  if (testRun && execution) {
    const outcome = testRun.verdict === "passed" ? "passed" : "failed";
    return {
      tone: outcome === "passed" ? "good" : "bad",
      title: `${where}: ${testRun.taskSlug} ${outcome} on ${branch}`,
      text: counted(testRun),
      topic: `${project?.id} ${branch} ${testRun.taskSlug}`,
      lines: failures.map(lineOf),
      state: outcome === "passed" ? "success" : "failure",
    };
  }
  if (bugReport && project) {
    const happened = { "bug_report.opened": "opened", "bug_report.regressed": "is back" }[type as string] ?? "resolved";
    return {
      tone: happened === "resolved" ? "good" : "bad",
      title: `${where}: bug #${bugReport.number} ${happened}: ${bugReport.title}`,
      subject: bugReport.title,
      text: `${bugReport.severity}, ${plural(bugReport.occurrences, "occurrence")}`,
      facts: factsOf({
        Severity: bugReport.severity,
        Tasks: bugReport.taskSlugs.slice(0, 5).join(", "),
        Branch: bugReport.branch,
        Commit: bugReport.commit?.slice(0, 12),
        Assignee: bugReport.assignee,
      }),
      lines: failures.map(lineOf),
      url: bugReportUrl(publicUrl, project.id, bugReport.id),
      topic: `${project.id} bug ${bugReport.number}`,
    };
  }
  if (testCase && project) {
    const isFlaky = type === "test_case.became_flaky";
    const name = named(testCase.suite, testCase.name);
    return {
      tone: isFlaky ? "bad" : "good",
      title: isFlaky ? `${where}: flaky test: ${name}` : `${where}: no longer flaky: ${name}`,
      subject: isFlaky ? `Flaky test: ${name}` : `No longer flaky: ${name}`,
      text: `${Math.round(testCase.flakeRate * 100)} % of its last 50 results were flaky`,
      facts: factsOf({
        Task: testCase.taskSlug,
        File: testCase.file,
        Owner: testCase.owner,
        ...originFacts(data),
      }),
      url: testCaseUrl(publicUrl, project.id, testCase.id),
      topic: `${project.id} test ${testCase.id}`,
    };
  }
  if (type === "task.missed")
    return {
      tone: "bad",
      title: `${where}: ${taskSlug} did not report`,
      text: "A schedule expected it, and nothing has arrived in time",
      topic: `${project?.id} ${branch} missed ${taskSlug}`,
    };
  if (integration)
    return {
      tone: "bad",
      title: `The integration "${integration.name}" was disabled`,
      text: integration.reason,
      facts: factsOf({ Kind: integration.kind }),
      url: teamSettingsUrl(publicUrl, teamId),
      topic: `${teamId} integration ${integration.id}`,
    };
  const status = execution?.status ?? "passed";
  const recovered = type === "execution.recovered";
  return {
    tone: status === "passed" ? "good" : "bad",
    title: recovered ? `${where}: ${branch} is green again` : `${where}: ${branch} ${WORDS[status] ?? status}`,
    text: counted(execution ?? {}),
    facts: factsOf({ ...originFacts(data), Tasks: redTasks(data) }),
    lines: failures.map(lineOf),
    state: status === "passed" ? "success" : status === "failed" ? "failure" : "error",
  };
}

/** Which tasks are red, where there are several. */
function redTasks({ execution }: EventData): string {
  const red = (execution?.tasks ?? []).filter(({ verdict, status }) => verdict === "failed" || status === "timed_out");
  const names = red.slice(0, 5).map(({ slug, status }) => (status === "timed_out" ? `${slug} (no report)` : slug));
  return red.length > names.length ? `${names.join(", ")} and ${red.length - names.length} more` : names.join(", ");
}

export type Summary = {
  executions: number;
  failedExecutions: number;
  openBugs: number;
  flakyCases: number;
  since: string;
};

/** What a schedule tells of a project. */
export function toSummaryNotice(
  project: { id: string; name: string; defaultBranch: string },
  summary: Summary,
  publicUrl: string,
  now: Date,
): Notice {
  const { executions, failedExecutions, openBugs, flakyCases, since } = summary;
  const title = `${project.name}: ${plural(executions, "execution")}, ${failedExecutions} failed`;
  return {
    type: "schedule",
    occurredAt: now.toISOString(),
    tone: "neutral",
    title,
    subject: title,
    text: `${plural(openBugs, "open bug")}, ${plural(flakyCases, "flaky test")}`,
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

/** What a test of an integration sends. */
export const toTestNotice = (teamId: string, integrationName: string, publicUrl: string, now: Date): Notice => ({
  type: "test",
  occurredAt: now.toISOString(),
  tone: "neutral",
  title: `Assay can reach ${integrationName}`,
  subject: `Assay can reach ${integrationName}`,
  text: "This is a test: nothing has happened",
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
