/** The way of a new project to its first results: steps, snippets, sample data. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { count, described, patchOf, time } from "./fields.ts";

export const STEPS = [
  "first_run",
  "report_format",
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
  dismissed: described(v.boolean(), "Whether the onboarding is hidden", false),
  steps: described(
    v.array(
      v.strictObject({
        id: described(v.picklist(STEPS), "The step", "first_run"),
        title: described(v.string(), "The title of the step", "Upload a first report"),
        status: described(
          v.picklist(["done", "todo", "skipped"]),
          "Whether it has happened, regardless of what was clicked",
          "done",
        ),
        doneAt: v.pipe(v.nullable(time), v.description("When it first happened")),
        hint: described(v.string(), "Instructions", "Run the curl command"),
      }),
    ),
    "The steps, in the recommended order",
  ),
  snippets: v.pipe(
    v.strictObject(
      Object.fromEntries(
        SYSTEMS.map((system) => [system, described(v.string(), `For ${TITLES[system]}`, "npm test …")]),
      ) as Record<System, v.StringSchema<undefined>>,
    ),
    v.description(
      "Lines to paste. curl uploads report.xml; the others run the tests (replace `npm test`) with the command assay upload, " +
        "which uploads the report and exits with the exit code of the tests. The key is in ASSAY_KEY",
    ),
  ),
});
export type Onboarding = v.InferOutput<typeof onboarding>;

export const onboardingPatch = patchOf({
  skip: v.pipe(
    v.optional(listOf(v.picklist(STEPS, expectedStep), { max: 20, expected: "expected a list of steps" })),
    v.description("All skipped steps; an empty list skips none"),
    v.examples([["environment"]]),
  ),
  dismissed: described(
    v.optional(v.boolean("expected true or false")),
    "Whether the onboarding is hidden; false shows it again",
    true,
  ),
});
export type OnboardingPatch = v.InferOutput<typeof onboardingPatch>;

export const sampleData = v.strictObject({
  executions: described(count, "The number of sample executions", 84),
  testCases: described(count, "The number of sample test cases", 120),
  bugReports: described(count, "The number of sample bug reports", 6),
});
export type SampleData = v.InferOutput<typeof sampleData>;
