/** The catalogue of test cases: the record of each, its history, its quarantine. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import {
  branchName,
  booleanText,
  count,
  caseStatus,
  branch,
  commit,
  described,
  executionId,
  isStorable,
  listText,
  MAX_SLUG_LENGTH,
  patchOf,
  sample,
  taskSlug,
  testCaseId,
  text,
  time,
  timestamp,
  uuid,
} from "./fields.ts";
import { caseNames, caseOwners } from "./case_ref.ts";
import { listPage, pageQuery } from "./page.ts";
import { tagParameter, tags } from "./tags.ts";

const ms = v.nullable(count);

export const HEALTHS = ["healthy", "flaky", "broken", "new", "removed"] as const;
export const health = v.picklist(HEALTHS, `expected "healthy", "flaky", "broken", "new" or "removed"`);

const SORTS = ["flakeRate", "failures", "p95Ms", "lastRunAt"] as const;
export type TestCaseSort = (typeof SORTS)[number];

const FLAKY_SIGNS = ["retry", "same_commit", "unexplained"] as const;
export type FlakySign = (typeof FLAKY_SIGNS)[number];

export const quarantine = v.strictObject({
  reason: described(v.string(), "Why", "#12"),
  until: v.pipe(v.nullable(time), v.description("The end of the quarantine; null: until it is ended by hand")),
  skip: described(v.boolean(), "Whether jobs leave the test out until then: it is not missing in their runs", false),
  createdAt: described(time, "Since when"),
  automation: described(
    v.nullable(v.string()),
    "The name of the automation that quarantined the test case; null: a person or an API key did",
    "Quarantine flaky tests",
  ),
});

/** How often a test fails by itself. */
const flakeCounts = {
  flakeFailures: described(
    count,
    "How many of the last results failed by themselves, each pass on retry included. Failures of one pull request count once",
    3,
  ),
  flakeResults: described(count, "The number of these results, at most 200", 25),
  flakeRate: described(v.number(), "flakeFailures divided by flakeResults", 0.12),
};

export const testCase = v.strictObject({
  id: described(uuid, "The id of the test case", "0199b2c4-8e02-75cc-a1b0-52d7f90c6e13"),
  taskSlug: described(taskSlug, "The task of the test case", "unit"),
  tags,
  ...caseNames,
  health: v.pipe(
    health,
    v.description(
      "broken: it fails on the default branch now, and its failure is explained by a change or inherited, which for a flaky test case needs so many failures in a row that they are seldom its own; flaky: it fails by itself, with a chance of at least 95 %, by its failures in the last 200 results that nothing else explains, each pass on retry included. It recovers after so many consecutive passes, at most 200, that it is unlikely to be flaky still; new: fewer than 5 results; removed: it was flaky or broken, and is missing from the last 20 runs of its task on the default branch, or from those of 14 days, at least 5. A removed test case that returns keeps its history",
    ),
    v.examples(["flaky"]),
  ),
  flaky: v.pipe(
    v.nullable(
      v.strictObject({
        since: v.pipe(v.nullable(time), v.description("When it became flaky")),
        lastSeenAt: v.pipe(v.nullable(time), v.description("When it was last observed to be flaky")),
        signs: v.pipe(
          v.array(v.picklist(FLAKY_SIGNS)),
          v.description(
            "How it failed by itself. retry: it passed on retry within a run; same_commit: a later run passed it on the same " +
              "commit; unexplained: nothing else explains the failure",
          ),
        ),
      }),
    ),
    v.description("null: it is not flaky"),
  ),
  lastStatus: described(v.nullable(caseStatus), "The result in its last run; null: no run", "passed"),
  lastRunAt: described(v.nullable(time), "When its last run was completed; null: no run"),
  lastPassedAt: v.pipe(v.nullable(time), v.description("When the last run in which it passed was completed")),
  lastFailedAt: v.pipe(
    v.nullable(time),
    v.description(
      "When the last run in which it failed was completed, including failures before a pass in the same run",
    ),
  ),
  runs: described(count, "The number of results that passed or failed, without outages", 412),
  failures: described(count, "The number of failed results among them", 9),
  ...flakeCounts,
  averageMs: described(ms, "The average duration in milliseconds; null: unknown", 830),
  p95Ms: described(ms, "The 95th percentile of the last 20 durations", 1240),
  quarantine: described(
    v.nullable(quarantine),
    "The quarantine: failures are counted but do not turn a run red; null: not quarantined",
  ),
  ...caseOwners,
  sample,
});
export type TestCase = v.InferOutput<typeof testCase>;
export const testCasePage = listPage(testCase);

const newestResults = {
  passed: described(count, "How many of the last 50 results passed, without outages", 38),
  failed: described(count, "How many of them failed", 12),
};

/** One test case in detail. */
export const testCaseDetail = v.strictObject({
  ...testCase.entries,
  variants: described(
    v.array(
      v.strictObject({
        testCaseId,
        taskSlug,
        tags,
        health: described(health, "As of the test case", "broken"),
        lastStatus: described(v.nullable(caseStatus), "The result in its last run; null: no run", "failed"),
        lastRunAt: described(v.nullable(time), "When its last run was completed; null: no run"),
        ...newestResults,
      }),
    ),
    "The test case in every variant of its task, including this one, ordered by taskSlug; empty: the task has no variants",
  ),
  byTag: described(
    v.array(v.strictObject({ tag: described(v.string(), "The tag", "browser:webkit"), ...newestResults })),
    "The newest results of all variants by tag, in alphabetical order",
  ),
});

export type TestCaseDetail = v.InferOutput<typeof testCaseDetail>;

export const testCaseFilter = v.strictObject({
  ...pageQuery,
  health: described(
    v.optional(listText(HEALTHS)),
    "Only test cases with one of these health values, separated by commas: healthy, flaky, broken, new",
    "flaky,broken",
  ),
  task_slug: described(v.optional(text(200)), "Only test cases of this task", "unit"),
  tag: tagParameter("Only test cases of variants that have all of these tags"),
  q: described(
    v.optional(text(500)),
    "Only test cases that match this search: words such as is:flaky, owner:@acme/cart, file:cart or failed:>2, which must " +
      "all hold, and text that suite, name or file contain, ignoring case. Quotation marks enclose a text or a value with " +
      "spaces. docs/api.md lists the words",
    "is:flaky cart",
  ),
  owner: described(v.optional(text(200)), "Only test cases of this owner, alone or with others", "@acme/cart"),
  owned: described(v.optional(booleanText), "true: only test cases with an owner; false: only those without"),
  quarantined: described(v.optional(booleanText), "true: only quarantined test cases; false: only the others"),
  skip: described(v.optional(booleanText), "true: only test cases that jobs leave out; false: only the others"),
  sort: described(
    v.optional(v.picklist(SORTS, `expected "flakeRate", "failures", "p95Ms" or "lastRunAt"`)),
    "The sort order, greatest or latest first; lastRunAt: by its day in UTC. Default: the order in which they were first seen",
    "flakeRate",
  ),
});

/** A test that does not run is forgotten. */
export const MAX_SKIPPED_DAYS = 30;

const quarantinePatch = v.strictObject(
  {
    reason: described(text(1_000), "Why", "#12"),
    until: described(
      v.optional(v.nullable(timestamp)),
      "When the quarantine ends, a time in the future; null or omitted: when it is ended by hand",
    ),
    skip: described(
      v.optional(v.boolean()),
      `Whether jobs leave the test out until then, which must be within ${MAX_SKIPPED_DAYS} days; omitted: it keeps running`,
    ),
  },
  "expected an object with a reason, or null",
);

export const testCasePatch = patchOf({
  owner: described(
    v.optional(v.nullable(text(200))),
    "The owner, any name, instead of those of the ownership file; null: those of the file",
    "ada",
  ),
  quarantine: described(
    v.optional(v.nullable(quarantinePatch)),
    "Quarantines the test case, so that its failures do not turn a run red; null ends the quarantine",
  ),
});
export type TestCasePatch = v.InferOutput<typeof testCasePatch>;

const IDS = "expected 1 to 100 ids of test cases";

/** The same for several at once. */
export const testCasesPatch = v.strictObject({
  testCaseIds: described(
    v.pipe(
      listOf(uuid, { max: 100, expected: IDS, tooMany: IDS }),
      v.minLength(1, IDS),
      v.transform((ids) => [...new Set(ids)]),
    ),
    "The test cases, 1 to 100: either all are changed, or none",
  ),
  ...testCasePatch.entries,
});

const MAX_ASKED = 1_000;
const ASKED = `expected 1 to ${MAX_ASKED} test cases`;

const named = v.pipe(
  v.string("expected a text"),
  v.check(isStorable, "expected a text without NUL and invalid characters"),
);
const askedCase = v.strictObject({
  suite: described(named, "The suites, outermost first; may be empty", "checkout > cart"),
  name: described(named, "The name of the test", "adds an item"),
  file: described(v.nullable(named), "The file; null if the report names none", "test/cart.test.ts"),
});

export const newTestCasesRequest = v.strictObject({
  taskSlug: described(text(MAX_SLUG_LENGTH), "The task, with the tags of its variant as in a test run", "unit"),
  testCases: described(
    v.pipe(listOf(askedCase, { max: MAX_ASKED, expected: ASKED, tooMany: ASKED }), v.minLength(1, ASKED)),
    "The test cases as a report names them; paths of files are relative to the repository",
  ),
});

export const newTestCases = v.strictObject({
  testCases: described(
    v.array(v.strictObject(caseNames)),
    "Those of them that the default branch has never run, in the order of the request",
  ),
});

export const changedTestCases = v.strictObject({
  changed: v.pipe(count, v.description("The number of test cases that changed"), v.examples([1])),
});

/** One result in the history of a test case. */
export const testCaseResult = v.strictObject({
  executionId,
  taskSlug,
  status: caseStatus,
  flaky: described(v.boolean(), "Whether it failed before it passed within the run", false),
  durationMs: described(ms, "The duration in milliseconds; null: unknown", 830),
  attempt: described(count, "The attempt of the run that this result is from", 1),
  branch,
  commit,
  outage: v.pipe(
    v.boolean(),
    v.description("Whether nearly all tests failed in that run, so that the result does not count for this test case"),
  ),
  message: described(v.nullable(v.string()), "Why it failed or was skipped", "expected 2 items, got 1"),
  completedAt: v.pipe(v.nullable(time), v.description("null while shards of the run are missing")),
});
export type TestCaseResult = v.InferOutput<typeof testCaseResult>;
export const testCaseResultPage = listPage(testCaseResult);
export const testCaseResultFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(caseStatus), "Only results with this status: passed, failed or skipped", "failed"),
  branch: described(v.optional(branchName), "Only results of this branch", "main"),
});
