/** Daily figures of a project's completed runs, in total and per task. */

import * as v from "valibot";
import { branchName, count, described, integerText, sample, slug, taskSlug } from "./fields.ts";

const figures = {
  runs: v.pipe(count, v.description("The number of test runs completed on that day"), v.examples([40])),
  passed: v.pipe(count, v.description("The number of these runs that passed"), v.examples([38])),
  failed: described(count, "The number of these runs that failed", 2),
  passRate: v.pipe(
    v.nullable(v.number()),
    v.description("The share of runs that passed, from 0 to 1; null without runs"),
    v.examples([0.95]),
  ),
  p50Ms: v.pipe(
    v.nullable(count),
    v.description("The median duration of the runs, in milliseconds; null without runs"),
    v.examples([252_000]),
  ),
  p95Ms: v.pipe(
    v.nullable(count),
    v.description("The 95th percentile of it; null without runs"),
    v.examples([310_000]),
  ),
  flaky: v.pipe(
    count,
    v.description("The number of results that failed before they passed within a run"),
    v.examples([3]),
  ),
  forgiven: described(count, "The number of failures that gates have forgiven, so that a job did not fail", 2),
  testFailures: described(count, "The number of failed results, without those of outages", 12),
  infrastructureFailures: described(count, "The number of these that match an infrastructure rule of the team", 5),
};

const day = v.pipe(v.string(), v.isoDate(), v.description("The day, in UTC"), v.examples(["2026-01-31"]));
const taskDay = v.strictObject({ day, ...figures });
const allDay = v.strictObject({
  day,
  executions: v.pipe(
    count,
    v.description("The number of executions with a run completed on that day"),
    v.examples([12]),
  ),
  ...figures,
});

export const projectTrends = v.strictObject({
  days: v.pipe(v.array(allDay), v.description("Every day, oldest first, ending today; without sample data")),
  tasks: v.pipe(
    v.array(v.strictObject({ taskSlug, days: described(v.array(taskDay), "Every day, oldest first"), sample })),
    v.description("The same days for each task; the 50 with the most runs, most first"),
  ),
});
export type Trends = v.InferOutput<typeof projectTrends>;

export const trendFilter = v.strictObject({
  days: described(v.optional(integerText(1, 90), "30"), "The number of days, including today"),
  branch: described(v.optional(branchName), "Only the runs of this branch. Default: all branches", "main"),
  task_slug: described(v.optional(slug), "Only the runs of this task. Default: all tasks", "unit"),
});
