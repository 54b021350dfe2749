/** The way of a new project to its first results: steps, snippets, sample data. */

import * as v from "valibot";
import { count, patchOf, time } from "./fields.ts";

export const STEPS = [
  "first_run",
  "commit_and_branch",
  "environment",
  "integration",
  "automation",
  "bug_triaged",
] as const;
export type StepId = (typeof STEPS)[number];

const SYSTEMS = ["curl", "githubActions", "gitlabCi", "jenkins", "circleci", "azurePipelines", "buildkite"] as const;
export type System = (typeof SYSTEMS)[number];

const expectedStep = `expected ${STEPS.map((step) => `"${step}"`).join(", ")}`;

export const onboarding = v.strictObject({
  completed: v.pipe(v.boolean(), v.description("Every step is done or skipped")),
  dismissed: v.boolean(),
  steps: v.array(
    v.strictObject({
      id: v.picklist(STEPS),
      title: v.string(),
      status: v.picklist(["done", "todo", "skipped"]),
      doneAt: v.pipe(v.nullable(time), v.description("When it first happened, not when somebody looked")),
      hint: v.string(),
    }),
  ),
  snippets: v.pipe(
    v.strictObject(
      Object.fromEntries(SYSTEMS.map((system) => [system, v.string()])) as Record<System, v.StringSchema<undefined>>,
    ),
    v.description(
      "Ready to paste: they run the tests, for which `npm test` stands, and upload their report.xml with the key in ASSAY_KEY; a runner that leaves no report is a failure, and the job ends as the tests did",
    ),
  ),
});
export type Onboarding = v.InferOutput<typeof onboarding>;

export const onboardingPatch = patchOf({
  skip: v.pipe(
    v.optional(v.array(v.picklist(STEPS, expectedStep), "expected a list of steps")),
    v.description("All steps that are skipped: an empty list takes them up again"),
  ),
  dismissed: v.optional(v.boolean("expected true or false")),
});
export type OnboardingPatch = v.InferOutput<typeof onboardingPatch>;

export const sampleData = v.strictObject({ executions: count, testCases: count, bugReports: count });
export type SampleData = v.InferOutput<typeof sampleData>;
