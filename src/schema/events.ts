/** Events of a project or a team that automations, webhooks and pages may need. */

import type { Severity } from "./bug_reports.ts";
import type { CaseRef } from "./case_ref.ts";
import type { ExecutionStatus, TaskStatus } from "./executions.ts";
import type { BlameCounts } from "./failures.ts";
import type { Verdict } from "./fields.ts";

export const EVENT_TYPES = [
  "execution.completed",
  "execution.failed",
  "execution.recovered",
  "execution.changed",
  "test_run.completed",
  "bug_report.opened",
  "bug_report.regressed",
  "bug_report.resolved",
  "bug_report.culprit_found",
  "test_case.became_flaky",
  "test_case.recovered",
  "test_case.verified",
  "task.missed",
  "integration.disabled",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

type CountsData = { passed: number; failed: number; skipped: number; total: number; flaky: number };

/** The origin of an execution. */
export type ExecutionData = {
  id: string;
  key: string | null;
  status: ExecutionStatus;
  branch: string | null;
  commit: string | null;
  pullRequest: string | null;
  /** The branch that the pull request or the merge queue merges into; null: unknown. */
  baseBranch: string | null;
  /** The ref that a merge queue has made for the build; null for any other build. */
  queueRef: string | null;
  buildUrl: string | null;
  environment: string | null;
};

export type TaskData = {
  slug: string;
  status: TaskStatus;
  passed: number;
  failed: number;
  skipped: number;
  verdict: Verdict | null;
};

type BugReportData = {
  id: string;
  number: number;
  title: string;
  status: string;
  severity: Severity;
  source: string;
  occurrences: number;
  taskSlugs: string[];
  branch: string | null;
  commit: string | null;
  lastExecutionId: string | null;
  assignee: string | null;
  /** Missing in events from before there were any, as in `TestCaseData`. */
  owners?: string[];
  labels: string[];
  externalUrl: string | null;
};

/** The commit that broke the test of a bug, which was confirmed. */
export type CulpritData = {
  searchId: string;
  /** One sentence that names the commit and states the proof. */
  summary: string;
  /** The second half of `summary`: "it failed there 2 of 2 times, on its parent 0a1b2c3d4e it passed 2 of 2 times". */
  proof: string;
  testCase: CaseRef;
  commit: string;
  author: string;
  date: string;
  subject: string;
  /** The first files that it changes. */
  files: string[];
};

export type VerificationData = {
  id: string;
  commit: string;
  /** "passed": no run failed. */
  status: "passed" | "flaky" | "failed" | "inconclusive";
  passed: number;
  failed: number;
  /** The result in words. */
  statement: string;
  /** Whether it ended a quarantine. */
  released: boolean;
};

type TestCaseData = {
  id: string;
  taskSlug: string;
  suite: string;
  name: string;
  file: string | null;
  owner: string | null;
  owners?: string[];
  flakeRate: number;
  flakeFailures: number;
  flakeResults: number;
};

/** The data of an event, as of when it happened. Its type determines which parts are present. */
export type EventData = {
  execution?: ExecutionData & {
    /** The first ones, red tasks before others. */
    tasks?: TaskData[];
    taskCount?: number;
    redTaskCount?: number;
    /** Why it is red beside its failing tests, in one line. */
    reason?: string;
    /** Only in execution.failed: its tasks that are red on its branch by their newest results; at most 100. */
    redTasks?: string[];
    /** Only in execution.recovered: tasks of its branch that are still red; at most 20. */
    stillRed?: string[];
  } & Partial<CountsData & BlameCounts & { outage: true }>;
  testRun?: CountsData &
    Partial<BlameCounts & { outage: true }> & {
      taskSlug: string;
      attempt: number;
      verdict: Verdict;
      durationMs: number;
      /** Why it is red beside its failing tests, in one line. */
      reason?: string;
    };
  bugReport?: BugReportData;
  /** Whether only failures of quarantined tests belong to the bug, so that no message is sent. */
  quarantined?: true;
  culprit?: CulpritData;
  testCase?: TestCaseData;
  verification?: VerificationData;
  taskSlug?: string;
  /** Why it did not report. */
  reason?: string;
  integration?: { id: string; kind: string; name: string; reason: string };
};

export type NewEvent = { type: EventType; data: EventData; depth: number };

/** A test case, by its number, that has just become flaky, or has recovered. */
export type FlakinessChange = { testCase: number; flaky: boolean };
