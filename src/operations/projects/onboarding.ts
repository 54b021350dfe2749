/** The way of a new project to its first results: how far it has come, and sample data for looking around before. */

import { createSnippets } from "../../rules/snippets.ts";
import { type Onboarding, type OnboardingPatch, type SampleData, type StepId, STEPS } from "../../schema/onboarding.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { lockBugs } from "../../store/bug_reports.ts";
import { lockHealth } from "../../store/pending_health.ts";
import {
  countSample,
  deleteSample,
  lockSample,
  lockSampleExecutions,
  selectOnboarding,
  updateSkipped,
  upsertOnboarding,
} from "../../store/onboarding.ts";
import { selectProject } from "../../store/projects.ts";
import { lockTestCases } from "../../store/test_case_names.ts";
import { insertSampleData } from "./sample_data.ts";

const TEXTS: Record<StepId, { title: string; hint: string }> = {
  first_run: {
    title: "Upload a first report",
    hint: "Run the curl command, or add the lines for your CI and replace npm test with your tests.",
  },
  report_format: {
    title: "Send the format that keeps retries",
    hint: "JUnit XML of Vitest, Jest, Playwright, Mocha and Cucumber omits retries: send their own format, which docs/reports.md lists.",
  },
  commit_and_branch: {
    title: "Send commit and branch",
    hint: "Send commit and branch with each upload, as assay upload does. They are needed to find flaky tests and bugs.",
  },
  environment: {
    title: "Send the environment",
    hint: "Send environment, such as staging, with uploads of tests against a deployed system.",
  },
  integration: {
    title: "Connect your tools",
    hint: "POST /teams/{teamId}/integrations with the team key: Slack, Teams, GitHub, Jira, a webhook of your own.",
  },
  automation: {
    title: "Get notified when the branch breaks",
    hint: "POST /teams/{teamId}/automations with the team key: run actions on an event or on a schedule.",
  },
  bug_triaged: {
    title: "Triage a first bug report",
    hint: "Failures on the default branch open bug reports: set the status of one, or merge two.",
  },
};

/** The option with which each tool writes its own format. */
const OPTIONS: Record<string, string> = {
  Vitest: "--reporter=json --outputFile=report.json",
  Jest: "--json --outputFile=report.json",
  Playwright: "--reporter=json",
  Mocha: "--reporter json",
};

const toolHint = (tool: string) =>
  `The last report is the JUnit XML of ${tool}, which omits retries, so flaky tests are found later: write ${OPTIONS[tool]} instead.`;

export async function findOnboarding(sql: Sql, projectId: string, publicUrl: string): Promise<Onboarding> {
  const { skipped, dismissed, doneAt, tool } = await selectOnboarding(sql, projectId);
  const steps = STEPS.map((id): Onboarding["steps"][number] => {
    const status = doneAt[id] !== null ? "done" : skipped.includes(id) ? "skipped" : "todo";
    const hint = id === "report_format" && tool !== null ? toolHint(tool) : TEXTS[id].hint;
    return { id, title: TEXTS[id].title, status, doneAt: doneAt[id], hint };
  });
  return {
    completed: steps.every(({ status }) => status !== "todo"),
    dismissed,
    steps,
    snippets: createSnippets({ publicUrl, projectId }),
  };
}

export const changeOnboarding = async (sql: Tx, projectId: string, patch: OnboardingPatch): Promise<void> => {
  await upsertOnboarding(sql, projectId, patch);
};

/** Skips a step, or resumes it; the others stay as they are. */
export const skipStep = async (sql: Tx, projectId: string, step: StepId, isSkipped: boolean): Promise<void> => {
  await updateSkipped(sql, projectId, step, isSkipped);
};

/** Adds sample data and returns the state; `added` is false if there was sample data before. */
export async function addSampleData(sql: Tx, projectId: string): Promise<SampleData & { added: boolean }> {
  await lockSample(sql, projectId);
  const there = await countSample(sql, projectId);
  if (there.executions > 0) return { ...there, added: false };
  const { defaultBranch } = (await selectProject(sql, projectId)) ?? refuseAbsent();
  await insertSampleData(sql, projectId, defaultBranch, new Date());
  return { ...(await countSample(sql, projectId)), added: true };
}

/** Removes all sample data. */
export async function removeSampleData(sql: Tx, projectId: string): Promise<void> {
  await lockSample(sql, projectId);
  // An upload may be adopting a case of the sample, reporting to one of its executions, or counting or judging its results.
  await lockTestCases(sql, projectId);
  await lockSampleExecutions(sql, projectId);
  await lockHealth(sql, projectId);
  await lockBugs(sql, projectId);
  await deleteSample(sql, projectId);
}
