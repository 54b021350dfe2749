/** The catalogue of test cases: what is remembered of each, its history, its quarantine. */

import * as v from "valibot";
import { count, caseStatus, listText, sample, text, time, timestamp, uuid } from "./fields.ts";
import { page, pageQuery } from "./page.ts";

const ms = v.nullable(count);

const HEALTHS = ["healthy", "flaky", "broken", "new"] as const;
export const health = v.picklist(HEALTHS, `expected "healthy", "flaky", "broken" or "new"`);

const SORTS = ["flakeRate", "failures", "p95Ms", "lastRunAt"] as const;
export type TestCaseSort = (typeof SORTS)[number];

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
      "broken: the last 5 results on the default branch failed; flaky: passed after a failure within a run, or both " +
        "outcomes on one commit, within 50 results or 14 days, until 20 passed in a row; new: fewer than 5 results",
    ),
  ),
  lastStatus: v.nullable(caseStatus),
  lastRunAt: v.nullable(time),
  runs: v.pipe(count, v.description("Results that passed or failed, those of outages left out")),
  failures: v.pipe(count, v.description("Of these, the failed ones")),
  flakeRate: v.pipe(v.number(), v.description("Of the last 50 results, the share that showed the case to be flaky")),
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
  sort: v.optional(v.picklist(SORTS, `expected "flakeRate", "failures", "p95Ms" or "lastRunAt"`)),
});

const quarantinePatch = v.strictObject(
  { reason: text(1_000), until: v.optional(v.nullable(timestamp)) },
  "expected an object with a reason, or null",
);

export const testCasePatch = v.strictObject({
  owner: v.optional(v.nullable(text(200))),
  quarantine: v.optional(v.nullable(quarantinePatch)),
});
export type TestCasePatch = v.InferOutput<typeof testCasePatch>;

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
export const testCaseResultFilter = v.strictObject(pageQuery);
