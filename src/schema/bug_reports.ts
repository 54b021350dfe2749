/** Bug reports: failures that are one bug, and what people do about it. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
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

const STATUSES = ["open", "in_progress", "resolved", "ignored"] as const;
export const bugStatus = described(
  oneOf(STATUSES),
  "open: nobody is at it; in_progress: somebody is; resolved: it is mended, and reopened by itself where it occurs again; " +
    "ignored: it goes on counting and stays silent",
  "open",
);
export const severity = described(
  oneOf(["critical", "major", "minor", "trivial"]),
  "How bad it is: critical, major, minor or trivial",
  "major",
);
const bugSource = described(
  oneOf(["automatic", "manual"]),
  "automatic: failures, or an automation, have opened it; manual: somebody has",
  "automatic",
);
export type BugStatus = v.InferOutput<typeof bugStatus>;
export type Severity = v.InferOutput<typeof severity>;

const nullableText = v.nullable(v.string());

/** How an upload touched a bug report. */
export const touchedBug = v.strictObject({
  id: described(uuid, "The id of the bug report"),
  number: described(v.number(), "Its number in the project", 17),
  title: described(v.string(), "Its title", "expected # items, got #"),
  status: bugStatus,
  change: v.pipe(
    v.picklist(["opened", "regressed", "occurred"]),
    v.description("regressed: it was resolved, and is open again"),
  ),
});
export type TouchedBug = v.InferOutput<typeof touchedBug>;

export const bugReport = v.strictObject({
  id: described(uuid, "The id of the bug report", "0199b2c4-a7f1-7d20-b3c4-1e9f8a7b6c5d"),
  number: described(v.number(), "Counts per project, without gaps", 17),
  title: described(
    v.string(),
    "Its title; of an automatic one what the failures say, until somebody changes it",
    "expected # items, got #",
  ),
  description: described(v.string(), "What people, or the first failure, say of it", "Since the cart was rewritten"),
  status: bugStatus,
  severity,
  source: bugSource,
  fingerprint: v.pipe(
    nullableText,
    v.description("The first of them; null for a manual report without any"),
    v.examples(["5f2c9be1a0d34e77"]),
  ),
  occurrences: described(v.number(), "How many failures are of it", 23),
  impact: described(
    v.number(),
    "Executions of the last 14 days in which it occurred; counted within seconds, over at most its newest 5,000 occurrences",
    6,
  ),
  firstSeenAt: described(v.nullable(time), "When it first occurred; null: it never has"),
  lastSeenAt: described(v.nullable(time), "When it last occurred; null: it never has"),
  firstExecutionId: described(
    v.nullable(uuid),
    "The execution in which it first occurred; null: none, or it was deleted",
  ),
  lastExecutionId: described(
    v.nullable(uuid),
    "The execution in which it last occurred; null: none, or it was deleted",
  ),
  taskSlugs: described(v.array(v.string()), "The tasks in which it occurs", ["unit"]),
  testCaseIds: described(v.array(uuid), "The test cases that it makes fail; the first 100", [
    "0199b2c4-8e02-75cc-a1b0-52d7f90c6e13",
  ]),
  branch: described(branch, "The branch of its last occurrence", "main"),
  commit: described(commit, "The commit of its last occurrence", "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"),
  assignee: described(nullableText, "Who is at it; null: nobody", "ada"),
  labels: described(v.array(v.string()), "Words to find it by", ["checkout"]),
  externalUrl: described(
    nullableText,
    "Where else it is written down: an issue",
    "https://github.com/acme/shop/issues/12",
  ),
  regressed: v.pipe(v.boolean(), v.description("It came back after it had been resolved")),
  fixedInCommit: described(nullableText, "The commit that mends it, as somebody has said", "1a2b3c4d"),
  createdAt,
  updatedAt,
  resolvedAt: described(v.nullable(time), "When it was resolved; null: it is not"),
  sample,
});
export type BugReport = v.InferOutput<typeof bugReport>;
export const bugReportPage = listPage(bugReport);

/** A bug report with the reasons for its grouping and the changes of its status. */
export const bugReportDetail = v.strictObject({
  ...bugReport.entries,
  mergedInto: described(v.nullable(uuid), "The bug report that has got its fingerprints and occurrences; null: none"),
  grouping: v.pipe(
    v.array(
      v.strictObject({
        fingerprint: described(v.string(), "What is the same for all failures of this kind", "5f2c9be1"),
        version: described(v.number(), "Of the way in which fingerprints are made", 3),
        kind: v.pipe(
          v.picklist(["message", "case", "flaky", "outage", "automation"]),
          v.description(
            "message: what the failures say, whichever test it is; case: where one test fails, whatever it says; flaky: " +
              "a flaky test, however it fails; outage: nearly everything failed; automation: what it was opened for",
          ),
        ),
        exceptionType: described(nullableText, "What was thrown; null: the failures do not say", "AssertionError"),
        message: v.pipe(
          v.string(),
          v.description("With what varies replaced"),
          v.examples(["expected # items, got #"]),
        ),
        frames: v.pipe(
          v.array(v.string()),
          v.description("The project's own, innermost first, without lines"),
          v.examples([["cart.test.ts adds an item"]]),
        ),
        test: v.pipe(
          nullableText,
          v.description("Where nothing but the test tells the failure from others"),
          v.examples([null]),
        ),
      }),
    ),
    v.description("Why its failures are one bug: they have one of these in common; the first 100"),
  ),
  history: described(
    v.array(
      v.strictObject({
        from: described(v.nullable(bugStatus), "The status before; null: it was opened", "resolved"),
        to: described(bugStatus, "The status after", "open"),
        cause: described(
          v.picklist(["opened", "api", "regression", "clean_runs", "merge", "removed"]),
          "opened: it began; api: somebody changed it; regression: it occurred again; clean_runs: its test cases passed three " +
            "times in a row on the default branch; merge: it went into another; removed: its test cases are not reported any more",
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
    v.optional(listText(STATUSES)),
    "Only those of this status, or of several with commas between them: open, in_progress, resolved, ignored",
    "open,in_progress",
  ),
  severity: described(
    v.optional(severity),
    "Only those of this severity: critical, major, minor or trivial",
    "critical",
  ),
  source: described(v.optional(bugSource), "Only those that failures have opened, or only those by hand", "automatic"),
  task_slug: described(v.optional(text(200)), "Only those that occur in this task", "unit"),
  assignee: described(v.optional(text(200)), "Only those of this assignee", "ada"),
  q: described(
    v.optional(text(200)),
    "Only those whose title or description holds this text, whatever the case",
    "cart",
  ),
  sort: described(
    v.optional(oneOf(["newest", "occurrences", "impact", "lastSeenAt", "severity"])),
    "By what they are sorted, greatest or latest first. Default: newest",
    "occurrences",
  ),
});
export type BugReportSort = NonNullable<v.InferOutput<typeof bugReportFilter>["sort"]>;

const description = v.pipe(
  v.string("expected a text of at most 65536 characters"),
  v.maxLength(65_536, "expected a text of at most 65536 characters"),
  v.check(
    (value) => !value.includes("\0") && value.isWellFormed(),
    "expected a text without NUL and broken characters",
  ),
);
const labels = v.pipe(
  listOf(text(100), { max: 50, expected: "expected a list of texts", tooMany: "expected at most 50 labels" }),
  v.transform((all) => [...new Set(all)]),
);

const editable = {
  description: described(
    v.optional(description),
    "What is to be said of it, at most 65,536 characters",
    "Since the cart was rewritten",
  ),
  severity: described(
    v.optional(severity),
    "How bad it is: critical, major, minor or trivial; a new one is major",
    "critical",
  ),
  assignee: described(v.optional(v.nullable(text(200))), "Who is at it, by any name; null: nobody", "ada"),
  labels: described(v.optional(labels), "Words to find it by, at most 50; they replace those before", ["checkout"]),
  externalUrl: described(
    v.optional(v.nullable(httpUrl)),
    "Where else it is written down, an http or https address; null: nowhere",
    "https://github.com/acme/shop/issues/12",
  ),
  fixedInCommit: described(v.optional(v.nullable(text(200))), "The commit that mends it; null: none", "1a2b3c4d"),
};

export const newBugReport = v.strictObject({
  ...editable,
  title: described(text(300), "What it is called", "The cart forgets items"),
  testCaseIds: described(
    v.optional(listOf(uuid, { max: 100, expected: "expected a list of ids", tooMany: "expected at most 100 ids" }), []),
    "Test cases of this project that it makes fail, at most 100: their next failures join it",
    ["0199b2c4-8e02-75cc-a1b0-52d7f90c6e13"],
  ),
});
export type NewBugReport = v.InferOutput<typeof newBugReport>;
export const bugReportPatch = patchOf({
  ...editable,
  title: described(v.optional(text(300)), "What it is called", "The cart forgets items"),
  status: described(
    v.optional(bugStatus),
    "open, in_progress, resolved or ignored; a merged one has none to change. Each change is kept in its history",
    "in_progress",
  ),
});
export type BugReportPatch = v.InferOutput<typeof bugReportPatch>;

export const mergeRequest = v.strictObject({
  into: described(uuid, "The bug report of this project that gets the fingerprints and occurrences of this one"),
});

const bugOccurrence = v.strictObject({
  executionId,
  taskSlug,
  testCaseId,
  branch,
  commit,
  message: described(nullableText, "What the failure said", "expected 2 items, got 1"),
  seenAt: described(time, "When that run was completed"),
});
export type BugOccurrence = v.InferOutput<typeof bugOccurrence>;
export const bugOccurrencePage = listPage(bugOccurrence);
export const bugOccurrenceFilter = v.strictObject(pageQuery);
