/** The catalogue of test cases: what is remembered of each, its history, its quarantine. */

import * as v from "valibot";
import {
  branchName,
  booleanText,
  count,
  caseStatus,
  listText,
  patchOf,
  sample,
  text,
  time,
  timestamp,
  uuid,
} from "./fields.ts";
import { page, pageQuery } from "./page.ts";

const ms = v.nullable(count);

const HEALTHS = ["healthy", "flaky", "broken", "new"] as const;
export const health = v.picklist(HEALTHS, `expected "healthy", "flaky", "broken" or "new"`);

const SORTS = ["flakeRate", "failures", "p95Ms", "lastRunAt"] as const;
export type TestCaseSort = (typeof SORTS)[number];

const FLAKY_SIGNS = ["retry", "same_commit", "episodes"] as const;
export type FlakySign = (typeof FLAKY_SIGNS)[number];

export const quarantine = v.strictObject({
  reason: v.string(),
  until: v.pipe(v.nullable(time), v.description("Its end; null: until somebody ends it")),
  createdAt: time,
});

export const testCase = v.strictObject({
  id: uuid,
  taskSlug: v.string(),
  suite: v.string(),
  name: v.string(),
  file: v.nullable(v.string()),
  health: v.pipe(
    health,
    v.description(
      "broken: the last 5 results on the default branch failed; flaky: passed after a failure within a run, or had both " +
        "outcomes on one commit, or failed in 3 separate episodes of less than 5 results within 100 on the default " +
        "branch, until so many passed in a row that at its own flake rate the odds of that are below 1 %, at least 20; " +
        "new: fewer than 5 results",
    ),
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
  lastStatus: v.nullable(caseStatus),
  lastRunAt: v.nullable(time),
  lastPassedAt: v.pipe(v.nullable(time), v.description("When the last run in which it passed was completed")),
  lastFailedAt: v.pipe(
    v.nullable(time),
    v.description("When the last run in which it failed was completed, be it only before it passed"),
  ),
  runs: v.pipe(count, v.description("Results that passed or failed, those of outages left out")),
  failures: v.pipe(count, v.description("Of these, the failed ones")),
  flakeRate: v.pipe(
    v.number(),
    v.description(
      "Of the last 50 results, the share that showed the case to be flaky, or of the last 100 on the default branch; above 0 as long as it is flaky",
    ),
  ),
  averageMs: ms,
  p95Ms: v.pipe(ms, v.description("The 95th percentile of the last 20 durations")),
  quarantine: v.nullable(quarantine),
  owner: v.nullable(v.string()),
  sample,
});
export type TestCase = v.InferOutput<typeof testCase>;
export const testCasePage = page(testCase);

export const testCaseFilter = v.strictObject({
  ...pageQuery,
  health: v.optional(listText(HEALTHS)),
  task_slug: v.optional(text(200)),
  q: v.optional(text(200)),
  owner: v.optional(text(200)),
  quarantined: v.optional(booleanText),
  sort: v.optional(v.picklist(SORTS, `expected "flakeRate", "failures", "p95Ms" or "lastRunAt"`)),
});

const quarantinePatch = v.strictObject(
  { reason: text(1_000), until: v.optional(v.nullable(timestamp)) },
  "expected an object with a reason, or null",
);

export const testCasePatch = patchOf({
  owner: v.optional(v.nullable(text(200))),
  quarantine: v.optional(v.nullable(quarantinePatch)),
});
export type TestCasePatch = v.InferOutput<typeof testCasePatch>;

const IDS = "expected 1 to 100 ids of test cases";

/** The same for several at once. */
export const testCasesPatch = v.strictObject({
  testCaseIds: v.pipe(
    v.array(uuid, IDS),
    v.minLength(1, IDS),
    v.maxLength(100, IDS),
    v.transform((ids) => [...new Set(ids)]),
  ),
  ...testCasePatch.entries,
});

export const changedTestCases = v.strictObject({
  changed: v.pipe(count, v.description("Of the test cases that were named, those that are different now")),
});

/** One result in the history of a test case. */
export const testCaseResult = v.strictObject({
  executionId: uuid,
  taskSlug: v.string(),
  status: caseStatus,
  flaky: v.boolean(),
  durationMs: ms,
  attempt: count,
  branch: v.nullable(v.string()),
  commit: v.nullable(v.string()),
  outage: v.pipe(v.boolean(), v.description("Nearly everything failed in that run: it says nothing of this case")),
  message: v.nullable(v.string()),
  completedAt: v.pipe(v.nullable(time), v.description("null while shards of the run are missing")),
});
export type TestCaseResult = v.InferOutput<typeof testCaseResult>;
export const testCaseResultPage = page(testCaseResult);
export const testCaseResultFilter = v.strictObject({
  ...pageQuery,
  status: v.optional(caseStatus),
  branch: v.optional(branchName),
});
