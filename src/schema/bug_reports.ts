/** Bug reports: failures that are one bug, and what people do about it. */

import * as v from "valibot";
import { httpUrl, listText, patchOf, sample, text, time, uuid } from "./fields.ts";
import { page, pageQuery } from "./page.ts";

const expectedOneOf = (values: readonly string[]) => `expected ${values.map((value) => `"${value}"`).join(", ")}`;
const oneOf = <const Value extends string>(values: readonly Value[]) => v.picklist(values, expectedOneOf(values));

const STATUSES = ["open", "in_progress", "resolved", "ignored"] as const;
export const bugStatus = oneOf(STATUSES);
export const severity = oneOf(["critical", "major", "minor", "trivial"]);
const bugSource = oneOf(["automatic", "manual"]);
export type BugStatus = v.InferOutput<typeof bugStatus>;
export type Severity = v.InferOutput<typeof severity>;

const nullableText = v.nullable(v.string());

/** How an upload touched a bug report. */
export const touchedBug = v.strictObject({
  id: uuid,
  number: v.number(),
  title: v.string(),
  status: bugStatus,
  change: v.pipe(
    v.picklist(["opened", "regressed", "occurred"]),
    v.description("regressed: it was resolved, and is open again"),
  ),
});
export type TouchedBug = v.InferOutput<typeof touchedBug>;

export const bugReport = v.strictObject({
  id: uuid,
  number: v.pipe(v.number(), v.description("Counts per project, without gaps")),
  title: v.string(),
  description: v.string(),
  status: bugStatus,
  severity,
  source: bugSource,
  fingerprint: v.pipe(nullableText, v.description("The first of them; null for a manual report without any")),
  occurrences: v.number(),
  firstSeenAt: v.nullable(time),
  lastSeenAt: v.nullable(time),
  firstExecutionId: v.nullable(uuid),
  lastExecutionId: v.nullable(uuid),
  taskSlugs: v.array(v.string()),
  testCaseIds: v.pipe(v.array(uuid), v.description("The first 100")),
  branch: nullableText,
  commit: nullableText,
  assignee: nullableText,
  labels: v.array(v.string()),
  externalUrl: nullableText,
  regressed: v.pipe(v.boolean(), v.description("It came back after it had been resolved")),
  fixedInCommit: nullableText,
  createdAt: time,
  updatedAt: time,
  resolvedAt: v.nullable(time),
  sample,
});
export type BugReport = v.InferOutput<typeof bugReport>;
export const bugReportPage = page(bugReport);

/** A bug report with the reasons for its grouping and the changes of its status. */
export const bugReportDetail = v.strictObject({
  ...bugReport.entries,
  mergedInto: v.nullable(uuid),
  grouping: v.pipe(
    v.array(
      v.strictObject({
        fingerprint: v.string(),
        version: v.number(),
        kind: v.pipe(
          v.picklist(["message", "case", "flaky", "outage", "automation"]),
          v.description(
            "message: what the failures say, whichever test it is; case: where one test fails, whatever it says; flaky: " +
              "a flaky test, however it fails; outage: nearly everything failed; automation: what it was opened for",
          ),
        ),
        exceptionType: nullableText,
        message: v.pipe(v.string(), v.description("With what varies replaced")),
        frames: v.pipe(v.array(v.string()), v.description("The project's own, innermost first, without lines")),
        test: v.pipe(nullableText, v.description("Where nothing but the test tells the failure from others")),
      }),
    ),
    v.description("Why its failures are one bug: they have one of these in common; the first 100"),
  ),
  history: v.array(
    v.strictObject({
      from: v.nullable(bugStatus),
      to: bugStatus,
      cause: v.picklist(["opened", "api", "regression", "clean_runs", "merge"]),
      changedAt: time,
    }),
  ),
});
export type BugReportDetail = v.InferOutput<typeof bugReportDetail>;

export const bugReportFilter = v.strictObject({
  ...pageQuery,
  status: v.optional(listText(STATUSES)),
  severity: v.optional(severity),
  source: v.optional(bugSource),
  task_slug: v.optional(text(200)),
  assignee: v.optional(text(200)),
  q: v.optional(text(200)),
  sort: v.optional(oneOf(["newest", "occurrences", "lastSeenAt", "severity"])),
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
  v.array(text(100), "expected a list of texts"),
  v.maxLength(50, "expected at most 50 labels"),
  v.transform((all) => [...new Set(all)]),
);

const editable = {
  description: v.optional(description),
  severity: v.optional(severity),
  assignee: v.optional(v.nullable(text(200))),
  labels: v.optional(labels),
  externalUrl: v.optional(v.nullable(httpUrl)),
  fixedInCommit: v.optional(v.nullable(text(200))),
};

export const newBugReport = v.strictObject({
  ...editable,
  title: text(300),
  testCaseIds: v.optional(
    v.pipe(v.array(uuid, "expected a list of ids"), v.maxLength(100, "expected at most 100 ids")),
    [],
  ),
});
export type NewBugReport = v.InferOutput<typeof newBugReport>;
export const bugReportPatch = patchOf({
  ...editable,
  title: v.optional(text(300)),
  status: v.optional(bugStatus),
});
export type BugReportPatch = v.InferOutput<typeof bugReportPatch>;

export const mergeRequest = v.strictObject({ into: uuid });

const bugOccurrence = v.strictObject({
  executionId: uuid,
  taskSlug: v.string(),
  testCaseId: uuid,
  branch: nullableText,
  commit: nullableText,
  message: nullableText,
  seenAt: time,
});
export type BugOccurrence = v.InferOutput<typeof bugOccurrence>;
export const bugOccurrencePage = page(bugOccurrence);
export const bugOccurrenceFilter = v.strictObject(pageQuery);
