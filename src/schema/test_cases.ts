/** The catalogue of test cases: what is remembered of each, its history, its quarantine. */

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
  listText,
  patchOf,
  sample,
  taskSlug,
  text,
  time,
  timestamp,
  uuid,
} from "./fields.ts";
import { caseNames } from "./case_ref.ts";
import { listPage, pageQuery } from "./page.ts";

const ms = v.nullable(count);

const HEALTHS = ["healthy", "flaky", "broken", "new", "removed"] as const;
export const health = v.picklist(HEALTHS, `expected "healthy", "flaky", "broken", "new" or "removed"`);

const SORTS = ["flakeRate", "failures", "p95Ms", "lastRunAt"] as const;
export type TestCaseSort = (typeof SORTS)[number];

const FLAKY_SIGNS = ["retry", "same_commit", "episodes"] as const;
export type FlakySign = (typeof FLAKY_SIGNS)[number];

export const quarantine = v.strictObject({
  reason: described(v.string(), "Why", "#12"),
  until: v.pipe(v.nullable(time), v.description("Its end; null: until somebody ends it")),
  createdAt: described(time, "Since when"),
});

export const testCase = v.strictObject({
  id: described(uuid, "The id of the test case", "0199b2c4-8e02-75cc-a1b0-52d7f90c6e13"),
  taskSlug: described(taskSlug, "The task that it belongs to", "unit"),
  ...caseNames,
  health: v.pipe(
    health,
    v.description(
      "broken: the last 5 results on the default branch failed; flaky: passed after a failure within a run, or had both " +
        "outcomes on one commit, or failed in 3 separate episodes of less than 5 results within 100 on the default " +
        "branch, until so many passed in a row that at its own flake rate the odds of that are below 1 %, at least 20; " +
        "new: fewer than 5 results; removed: it was flaky or broken, and the last 20 runs of its task on the default branch " +
        "did not have it, or those of 14 days, at least 5; it returns with its history",
    ),
    v.examples(["flaky"]),
  ),
  flaky: v.pipe(
    v.nullable(
      v.strictObject({
        since: v.pipe(v.nullable(time), v.description("When it became flaky")),
        lastSeenAt: v.pipe(v.nullable(time), v.description("The last sign of it")),
        signs: v.pipe(
          v.array(v.picklist(FLAKY_SIGNS)),
          v.description(
            "What it was seen by since then. retry: passed after a failure within a run; same_commit: both outcomes on " +
              "one commit; episodes: separate short episodes of failure on the default branch",
          ),
        ),
      }),
    ),
    v.description("null: it is not flaky"),
  ),
  lastStatus: described(v.nullable(caseStatus), "What came of it in its last run; null: it has none", "passed"),
  lastRunAt: described(v.nullable(time), "When its last run was completed; null: it has none"),
  lastPassedAt: v.pipe(v.nullable(time), v.description("When the last run in which it passed was completed")),
  lastFailedAt: v.pipe(
    v.nullable(time),
    v.description("When the last run in which it failed was completed, be it only before it passed"),
  ),
  runs: described(count, "Results that passed or failed, those of outages left out", 412),
  failures: described(count, "Of these, the failed ones", 9),
  flakeRate: v.pipe(
    v.number(),
    v.description(
      "Of the last 50 results, the share that showed the case to be flaky, or of the last 100 on the default branch; above 0 as long as it is flaky",
    ),
    v.examples([0.04]),
  ),
  averageMs: described(ms, "How many milliseconds it takes on average; null: nobody knows", 830),
  p95Ms: described(ms, "The 95th percentile of the last 20 durations", 1240),
  quarantine: described(
    v.nullable(quarantine),
    "While it is quarantined its failures count, and do not turn a run red; null: it is not",
  ),
  owner: described(v.nullable(v.string()), "Who looks after it; null: nobody has said", "ada"),
  sample,
});
export type TestCase = v.InferOutput<typeof testCase>;
export const testCasePage = listPage(testCase);

export const testCaseFilter = v.strictObject({
  ...pageQuery,
  health: described(
    v.optional(listText(HEALTHS)),
    "Only those of this health, or of several with commas between them: healthy, flaky, broken, new",
    "flaky,broken",
  ),
  task_slug: described(v.optional(text(200)), "Only those of this task", "unit"),
  q: described(
    v.optional(text(200)),
    "Only those whose suite, name or file holds this text, whatever the case",
    "cart",
  ),
  owner: described(v.optional(text(200)), "Only those that this one looks after", "ada"),
  quarantined: described(v.optional(booleanText), "true: only those that are quarantined; false: only the others"),
  sort: described(
    v.optional(v.picklist(SORTS, `expected "flakeRate", "failures", "p95Ms" or "lastRunAt"`)),
    "By what they are sorted, greatest or latest first. Default: as they were first seen",
    "flakeRate",
  ),
});

const quarantinePatch = v.strictObject(
  {
    reason: described(text(1_000), "Why", "#12"),
    until: described(
      v.optional(v.nullable(timestamp)),
      "When it ends by itself, a time to come; null or left out: when somebody ends it",
    ),
  },
  "expected an object with a reason, or null",
);

export const testCasePatch = patchOf({
  owner: described(v.optional(v.nullable(text(200))), "Who looks after it, by any name; null: nobody", "ada"),
  quarantine: described(
    v.optional(v.nullable(quarantinePatch)),
    "From now on its failures do not turn a run red; null ends that",
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
    "The test cases, 1 to 100 of them: all are changed, or none",
  ),
  ...testCasePatch.entries,
});

export const changedTestCases = v.strictObject({
  changed: v.pipe(
    count,
    v.description("Of the test cases that were named, those that are different now"),
    v.examples([1]),
  ),
});

/** One result in the history of a test case. */
export const testCaseResult = v.strictObject({
  executionId,
  taskSlug,
  status: caseStatus,
  flaky: described(v.boolean(), "Whether it failed before it passed, within the run", false),
  durationMs: described(ms, "How many milliseconds it took; null: the report does not say", 830),
  attempt: described(count, "The attempt of the run that this result is from", 1),
  branch,
  commit,
  outage: v.pipe(v.boolean(), v.description("Almost all tests failed in that run, so it does not count for this case")),
  message: described(v.nullable(v.string()), "Why it failed, or was skipped", "expected 2 items, got 1"),
  completedAt: v.pipe(v.nullable(time), v.description("null while shards of the run are missing")),
});
export type TestCaseResult = v.InferOutput<typeof testCaseResult>;
export const testCaseResultPage = listPage(testCaseResult);
export const testCaseResultFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(caseStatus), "Only results of this status: passed, failed or skipped", "failed"),
  branch: described(v.optional(branchName), "Only results of this branch", "main"),
});
