/** How a project has been doing, day by day: figures of its completed runs, all together and of each task. */

import * as v from "valibot";
import { branchName, count, integerText, sample, slug } from "./fields.ts";

const figures = {
  runs: v.pipe(count, v.description("Test runs that were completed on that day")),
  passed: v.pipe(count, v.description("Of these, those whose verdict is passed")),
  failed: count,
  passRate: v.pipe(
    v.nullable(v.number()),
    v.description("The share of runs that passed, from 0 to 1; null without runs"),
  ),
  p50Ms: v.pipe(v.nullable(count), v.description("The median duration of the runs; null without runs")),
  p95Ms: v.pipe(v.nullable(count), v.description("The 95th percentile of it; null without runs")),
  flaky: v.pipe(count, v.description("Results of cases that failed before they passed within a run")),
};

const day = v.pipe(v.string(), v.isoDate(), v.description("In UTC"));
const taskDay = v.strictObject({ day, ...figures });
const allDay = v.strictObject({
  day,
  executions: v.pipe(count, v.description("Executions with a run that was completed on that day")),
  ...figures,
});

export const trends = v.strictObject({
  days: v.pipe(v.array(allDay), v.description("Every day, oldest first, today the last; sample data left out")),
  tasks: v.pipe(
    v.array(v.strictObject({ taskSlug: v.string(), days: v.array(taskDay), sample })),
    v.description("The same days for each task; the 50 with the most runs, most first"),
  ),
});
export type Trends = v.InferOutput<typeof trends>;

export const trendFilter = v.strictObject({
  days: v.optional(integerText(1, 90), "30"),
  branch: v.optional(branchName),
  task_slug: v.optional(slug),
});
