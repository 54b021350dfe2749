/** The way of a new project to its first results: steps, snippets, sample data. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { count, described, patchOf, time } from "./fields.ts";

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
const TITLES: Record<System, string> = {
  curl: "a plain shell",
  githubActions: "GitHub Actions",
  gitlabCi: "GitLab CI",
  jenkins: "Jenkins",
  circleci: "CircleCI",
  azurePipelines: "Azure Pipelines",
  buildkite: "Buildkite",
};

const expectedStep = `expected ${STEPS.map((step) => `"${step}"`).join(", ")}`;

export const onboarding = v.strictObject({
  completed: v.pipe(v.boolean(), v.description("Every step is done or skipped")),
  dismissed: described(v.boolean(), "Whether nobody wants to see it any more", false),
  steps: described(
    v.array(
      v.strictObject({
        id: described(v.picklist(STEPS), "Which step it is", "first_run"),
        title: described(v.string(), "What is to be done", "Upload a first report"),
        status: described(
          v.picklist(["done", "todo", "skipped"]),
          "By what has really happened, not by what was clicked",
          "done",
        ),
        doneAt: v.pipe(v.nullable(time), v.description("When it first happened, not when somebody looked")),
        hint: described(v.string(), "How to do it", "Paste the snippet of your CI"),
      }),
    ),
    "The steps, in the order in which they help",
  ),
  snippets: v.pipe(
    v.strictObject(
      Object.fromEntries(
        SYSTEMS.map((system) => [system, described(v.string(), `For ${TITLES[system]}`, "npm test …")]),
      ) as Record<System, v.StringSchema<undefined>>,
    ),
    v.description(
      "Ready to paste: they run the tests, for which `npm test` stands, and upload their report.xml with the key in ASSAY_KEY; a runner that leaves no report is a failure, and the job ends as the tests did",
    ),
  ),
});
export type Onboarding = v.InferOutput<typeof onboarding>;

export const onboardingPatch = patchOf({
  skip: v.pipe(
    v.optional(listOf(v.picklist(STEPS, expectedStep), { max: 20, expected: "expected a list of steps" })),
    v.description("All steps that are skipped: an empty list takes them up again"),
    v.examples([["environment"]]),
  ),
  dismissed: described(
    v.optional(v.boolean("expected true or false")),
    "Whether nobody wants to see it any more; false brings it back",
    true,
  ),
});
export type OnboardingPatch = v.InferOutput<typeof onboardingPatch>;

export const sampleData = v.strictObject({
  executions: described(count, "How many executions of samples there are", 84),
  testCases: described(count, "How many test cases they are of", 120),
  bugReports: described(count, "How many bug reports their failures have opened", 6),
});
export type SampleData = v.InferOutput<typeof sampleData>;
