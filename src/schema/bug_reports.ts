/** Bug reports: failures that are one bug, and what people do about it. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { culpritSummary } from "./culprit_searches.ts";
import {
  branch,
  commit,
  createdAt,
  described,
  executionId,
  httpUrl,
  listText,
  patchOf,
  sample,
  taskSlug,
  testCaseId,
  text,
  time,
  updatedAt,
  uuid,
} from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

const expectedOneOf = (values: readonly string[]) => `expected ${values.map((value) => `"${value}"`).join(", ")}`;
const oneOf = <const Value extends string>(values: readonly Value[]) => v.picklist(values, expectedOneOf(values));

export const BUG_STATUSES = ["open", "in_progress", "resolved", "ignored"] as const;
export const bugStatus = described(
  oneOf(BUG_STATUSES),
  "open: nobody is working on it; in_progress: someone is working on it; resolved: fixed, and reopened " +
    "automatically if it occurs again; ignored: occurrences are counted without notifications",
  "open",
);
export const SEVERITIES = ["critical", "major", "minor", "trivial"] as const;
export const severity = described(oneOf(SEVERITIES), "The severity: critical, major, minor or trivial", "major");
const bugSource = described(
  oneOf(["automatic", "manual"]),
  "automatic: opened by failures or an automation; manual: opened by a person",
  "automatic",
);
export type BugStatus = v.InferOutput<typeof bugStatus>;
export type Severity = v.InferOutput<typeof severity>;

const nullableText = v.nullable(v.string());

/** The effect of an upload on a bug report. */
export const touchedBug = v.strictObject({
  id: described(uuid, "The id of the bug report"),
  number: described(v.number(), "Its number in the project", 17),
  title: described(v.string(), "Its title", "expected # items, got #"),
  status: bugStatus,
  change: v.pipe(
    v.picklist(["opened", "regressed", "occurred"]),
    v.description("regressed: it was resolved and is open again"),
  ),
});
export type TouchedBug = v.InferOutput<typeof touchedBug>;

export const bugReport = v.strictObject({
  id: described(uuid, "The id of the bug report", "0199b2c4-a7f1-7d20-b3c4-1e9f8a7b6c5d"),
  number: described(v.number(), "The number within the project, without gaps", 17),
  title: described(
    v.string(),
    "The title; for an automatic bug report the message of the failures, until someone changes it",
    "expected # items, got #",
  ),
  description: described(
    v.string(),
    "The description, written by people or taken from the first failure",
    "Since the cart was rewritten",
  ),
  status: bugStatus,
  severity,
  source: bugSource,
  fingerprint: v.pipe(
    nullableText,
    v.description("The first fingerprint; null for a manual report without one"),
    v.examples(["5f2c9be1a0d34e77"]),
  ),
  occurrences: described(v.number(), "The number of failures of this bug", 23),
  impact: described(
    v.number(),
    "The number of executions of the last 14 days in which it occurred; updated within seconds, over at most its newest 5,000 occurrences",
    6,
  ),
  firstSeenAt: described(v.nullable(time), "When it first occurred; null: never"),
  lastSeenAt: described(v.nullable(time), "When it last occurred; null: never"),
  firstExecutionId: described(
    v.nullable(uuid),
    "The execution in which it first occurred; null: none, or it was deleted",
  ),
  lastExecutionId: described(
    v.nullable(uuid),
    "The execution in which it last occurred; null: none, or it was deleted",
  ),
  taskSlugs: described(v.array(v.string()), "The tasks in which it occurs", ["unit"]),
  owners: described(v.array(v.string()), "The owners of its test cases", ["@acme/cart"]),
  testCaseIds: described(v.array(uuid), "The test cases that fail because of it; the first 100", [
    "0199b2c4-8e02-75cc-a1b0-52d7f90c6e13",
  ]),
  branch: described(branch, "The branch of its last occurrence", "main"),
  commit: described(commit, "The commit of its last occurrence", "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"),
  assignee: described(nullableText, "The assignee; null: none", "ada"),
  labels: described(v.array(v.string()), "The labels", ["checkout"]),
  externalUrl: described(
    nullableText,
    "A link to an issue in another system",
    "https://github.com/acme/shop/issues/12",
  ),
  regressed: v.pipe(v.boolean(), v.description("It occurred again after it was resolved")),
  fixedInCommit: described(nullableText, "The commit that fixes it, as entered by a person", "1a2b3c4d"),
  createdAt,
  updatedAt,
  resolvedAt: described(v.nullable(time), "When it was resolved; null: it is not resolved"),
  sample,
});
export type BugReport = v.InferOutput<typeof bugReport>;
export const bugReportPage = listPage(bugReport);

/** A bug report with the reasons for its grouping and the changes of its status. */
export const bugReportDetail = v.strictObject({
  ...bugReport.entries,
  culprit: described(
    v.nullable(culpritSummary),
    "The newest search for the commit that broke its test; null: there was none. GET …/culprit has its probes",
  ),
  mergedInto: described(v.nullable(uuid), "The bug report that received its fingerprints and occurrences; null: none"),
  grouping: v.pipe(
    v.array(
      v.strictObject({
        fingerprint: described(v.string(), "A value that is equal for all failures of this kind", "5f2c9be1"),
        version: described(v.number(), "The version of the fingerprint algorithm", 3),
        kind: v.pipe(
          v.picklist(["message", "case", "flaky", "outage", "automation"]),
          v.description(
            "message: the message of the failures, of any test; case: the location where one test fails, with any message; " +
              "flaky: a flaky test, with any failure; outage: nearly all tests failed; automation: the subject that the " +
              "automation opened it for",
          ),
        ),
        exceptionType: described(nullableText, "The type of the exception; null: unknown", "AssertionError"),
        message: v.pipe(
          v.string(),
          v.description("The message with variable values replaced"),
          v.examples(["expected # items, got #"]),
        ),
        frames: v.pipe(
          v.array(v.string()),
          v.description("The stack frames of the project's own code, innermost first, without line numbers"),
          v.examples([["cart.test.ts adds an item"]]),
        ),
        test: v.pipe(
          nullableText,
          v.description("The test case, if only the test distinguishes the failure from others"),
          v.examples([null]),
        ),
      }),
    ),
    v.description("The fingerprints by which failures belong to this bug; the first 100"),
  ),
  history: described(
    v.array(
      v.strictObject({
        from: described(v.nullable(bugStatus), "The status before; null: it was opened", "resolved"),
        to: described(bugStatus, "The status after", "open"),
        cause: described(
          v.picklist(["opened", "api", "regression", "clean_runs", "merge", "removed"]),
          "opened: it was created; api: changed by a request; regression: it occurred again; clean_runs: its test cases " +
            "passed three times in a row on the default branch; merge: merged into another bug report; removed: its test " +
            "cases are no longer reported",
          "regression",
        ),
        changedAt: described(time, "When"),
      }),
    ),
    "The changes of its status, oldest first",
  ),
});
export type BugReportDetail = v.InferOutput<typeof bugReportDetail>;

export const bugReportFilter = v.strictObject({
  ...pageQuery,
  status: described(
    v.optional(listText(BUG_STATUSES)),
    "Only bug reports with one of these statuses, separated by commas: open, in_progress, resolved, ignored",
    "open,in_progress",
  ),
  severity: described(
    v.optional(severity),
    "Only bug reports with this severity: critical, major, minor or trivial",
    "critical",
  ),
  source: described(v.optional(bugSource), "Only automatic or only manual bug reports", "automatic"),
  task_slug: described(v.optional(text(200)), "Only bug reports that occur in this task", "unit"),
  test_case_id: described(v.optional(uuid), "Only bug reports of this test case"),
  assignee: described(v.optional(text(200)), "Only bug reports of this assignee", "ada"),
  owner: described(v.optional(text(200)), "Only bug reports with a test case of this owner", "@acme/cart"),
  q: described(
    v.optional(text(500)),
    "Only bug reports that match this search: words such as is:open, severity:critical, assignee:ada or first:>2026-01-31, " +
      "which must all hold, and text that title or description contain, ignoring case. Quotation marks enclose a text or a " +
      "value with spaces. docs/api.md lists the words",
    "severity:critical cart",
  ),
  sort: described(
    v.optional(oneOf(["newest", "occurrences", "impact", "lastSeenAt", "severity"])),
    "The sort order, greatest or latest first. Default: newest",
    "occurrences",
  ),
});
export type BugReportSort = NonNullable<v.InferOutput<typeof bugReportFilter>["sort"]>;

const description = v.pipe(
  v.string("expected a text of at most 65536 characters"),
  v.maxLength(65_536, "expected a text of at most 65536 characters"),
  v.check(
    (value) => !value.includes("\0") && value.isWellFormed(),
    "expected a text without NUL and invalid characters",
  ),
);
const labels = v.pipe(
  listOf(text(100), { max: 50, expected: "expected a list of texts", tooMany: "expected at most 50 labels" }),
  v.transform((all) => [...new Set(all)]),
);

const editable = {
  description: described(
    v.optional(description),
    "The description, at most 65,536 characters",
    "Since the cart was rewritten",
  ),
  severity: described(
    v.optional(severity),
    "The severity: critical, major, minor or trivial. Default: major",
    "critical",
  ),
  assignee: described(v.optional(v.nullable(text(200))), "The assignee, any name; null: none", "ada"),
  labels: described(v.optional(labels), "The labels, at most 50; they replace the previous ones", ["checkout"]),
  externalUrl: described(
    v.optional(v.nullable(httpUrl)),
    "A link to an issue in another system, an http or https address; null: none",
    "https://github.com/acme/shop/issues/12",
  ),
  fixedInCommit: described(v.optional(v.nullable(text(200))), "The commit that fixes it; null: none", "1a2b3c4d"),
};

export const newBugReport = v.strictObject({
  ...editable,
  title: described(text(300), "The title", "The cart forgets items"),
  testCaseIds: described(
    v.optional(listOf(uuid, { max: 100, expected: "expected a list of ids", tooMany: "expected at most 100 ids" }), []),
    "Test cases of this project that fail because of it, at most 100: their next failures join it",
    ["0199b2c4-8e02-75cc-a1b0-52d7f90c6e13"],
  ),
});
export type NewBugReport = v.InferOutput<typeof newBugReport>;
export const bugReportPatch = patchOf({
  ...editable,
  title: described(v.optional(text(300)), "The title", "The cart forgets items"),
  status: described(
    v.optional(bugStatus),
    "open, in_progress, resolved or ignored; a merged bug report cannot be changed. Each change is recorded in the " +
      "history",
    "in_progress",
  ),
});
export type BugReportPatch = v.InferOutput<typeof bugReportPatch>;

export const mergeRequest = v.strictObject({
  into: described(uuid, "The bug report of this project that receives the fingerprints and occurrences of this one"),
});

const bugOccurrence = v.strictObject({
  executionId,
  taskSlug,
  testCaseId,
  branch,
  commit,
  message: described(nullableText, "The message of the failure", "expected 2 items, got 1"),
  seenAt: described(time, "When that run was completed"),
});
export type BugOccurrence = v.InferOutput<typeof bugOccurrence>;
export const bugOccurrencePage = listPage(bugOccurrence);
export const bugOccurrenceFilter = v.strictObject(pageQuery);
