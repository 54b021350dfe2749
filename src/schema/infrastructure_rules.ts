/** Infrastructure rules of a team: texts of failures that are not the fault of a test. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import {
  count,
  createdAt,
  described,
  executionId,
  httpUrl,
  integer,
  patchOf,
  text,
  updatedAt,
  uuid,
} from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

export const MAX_INFRASTRUCTURE_RULES = 50;
const MAX_PATTERN = 300;

const TOLD_PATTERN =
  "The text that the message, the stack or the output of a failure contains; * stands for any run of characters. Letter case makes no " +
  "difference";
const EXAMPLE_PATTERN = "ECONNREFUSED*registry";

const pattern = v.pipe(
  text(MAX_PATTERN),
  v.check((value) => !/[\n\r]/.test(value), "expected a single line"),
  v.check((value) => /[^\s*]/.test(value), "expected a text that is not blank and more than *"),
);

const link = described(
  v.optional(v.nullable(httpUrl)),
  "A link to more information, such as a runbook; null: none",
  "https://wiki.shop.example/registry",
);

export const newInfrastructureRule = v.strictObject({
  name: described(text(200), "The name, shown as the reason of a failure", "Package registry"),
  pattern: described(pattern, TOLD_PATTERN, EXAMPLE_PATTERN),
  url: link,
});
export type NewInfrastructureRule = v.InferOutput<typeof newInfrastructureRule>;

export const infrastructureRulePatch = patchOf({
  name: described(v.optional(text(200)), "The name, shown as the reason of a failure", "Package registry"),
  pattern: described(v.optional(pattern), TOLD_PATTERN, EXAMPLE_PATTERN),
  url: link,
});
export type InfrastructureRulePatch = v.InferOutput<typeof infrastructureRulePatch>;

export const infrastructureRule = v.strictObject({
  id: described(uuid, "The id of the rule"),
  name: described(v.string(), "The name, shown as the reason of a failure", "Package registry"),
  pattern: described(v.string(), TOLD_PATTERN, EXAMPLE_PATTERN),
  url: described(
    v.nullable(v.string()),
    "A link to more information; null: none",
    "https://wiki.shop.example/registry",
  ),
  createdAt,
  updatedAt,
});
export type InfrastructureRule = v.InferOutput<typeof infrastructureRule>;
export const infrastructureRulePage = listPage(infrastructureRule);
export const infrastructureRuleFilter = v.strictObject(pageQuery);

export const ruleTrial = v.strictObject({
  pattern: described(pattern, TOLD_PATTERN, EXAMPLE_PATTERN),
  days: described(v.optional(integer(1, 30), 7), "The number of days whose failures are searched. Default: 7", 7),
});
export type RuleTrial = v.InferOutput<typeof ruleTrial>;

/** Maximum failures that are searched in a project, and the number of matches that are listed. */
export const TRIAL = { failures: 500, examples: 5, projects: 20 };

export const ruleTrialResult = v.strictObject({
  projects: described(
    v.array(
      v.strictObject({
        projectId: described(uuid, "The project"),
        name: described(v.string(), "Its name", "Shop"),
        failures: described(
          count,
          `The number of failures that were searched: the newest, at most ${TRIAL.failures}`,
          120,
        ),
        matched: described(count, "The number of these that the rule matches", 14),
        examples: described(
          v.array(
            v.strictObject({
              executionId,
              ...caseRef.entries,
              message: described(v.nullable(v.string()), "The first line of the message", "connect ECONNREFUSED"),
            }),
          ),
          `The newest matches, at most ${TRIAL.examples}`,
        ),
      }),
    ),
    `The projects of the team, at most ${TRIAL.projects}`,
  ),
});
export type RuleTrialResult = v.InferOutput<typeof ruleTrialResult>;
