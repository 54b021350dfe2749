/** The form of an infrastructure rule, and what it matches in the failures of the last days. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { tryInfrastructureRule } from "../../../operations/projects/infrastructure_rules.ts";
import {
  type InfrastructureRule,
  ruleTrial,
  type RuleTrialResult,
  TRIAL,
} from "../../../schema/infrastructure_rules.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { Form, field } from "../../components/form.tsx";
import { Breakable } from "../../components/text.tsx";
import { executionPath, testPath } from "../../site/paths.ts";
import type { TeamContext, View } from "../../site/page.ts";

export const ruleFields = v.strictObject({
  name: v.string(),
  pattern: v.string(),
  url: v.string(),
  do: v.picklist(["save", "try"], "expected a known operation"),
});
export type RuleFields = Omit<SentFields, "do">;
type SentFields = v.InferOutput<typeof ruleFields>;

export const EMPTY_RULE: RuleFields = { name: "", pattern: "", url: "" };

/** Converts the fields to the input of the API. */
export const toRule = ({ name, pattern, url }: RuleFields) => ({
  name: name.trim(),
  pattern,
  url: url.trim() === "" ? null : url.trim(),
});

export const toRuleFields = ({ name, pattern, url }: InfrastructureRule): RuleFields => {
  return { name, pattern, url: url ?? "" };
};

/** Searches the failures of the last days with the rule of a form. Returns undefined if the form is to be saved. */
export function tryRule(
  { sql, team, now, fields }: TeamContext & { fields: SentFields },
  show: (fields: RuleFields, result: RuleTrialResult) => Promise<View>,
): Promise<View> | undefined {
  if (fields.do === "save") return undefined;
  const { pattern } = fields;
  return tryInfrastructureRule(sql, team.id, check(ruleTrial, { pattern }), now).then((result) => show(fields, result));
}

type FormProperties = { to: Path; csrf: string; fields: RuleFields; button: string };

export const RuleForm = ({ to, csrf, fields, button }: FormProperties): Html => (
  <Form to={to} csrf={csrf}>
    {field(fields, "name", "Name", {
      required: true,
      max: 200,
      placeholder: "Package registry",
      hint: "Shown as the reason of a failure and as the title of its bug.",
    })}
    {field(fields, "pattern", "Text", {
      required: true,
      max: 300,
      isCode: true,
      placeholder: "ECONNREFUSED*registry",
      hint: "Searched in the message, the first lines of the stack and the end of the output. * stands for any characters. Letter case is ignored.",
    })}
    {field(fields, "url", "Link", {
      type: "url",
      max: 2000,
      placeholder: "https://wiki.example.com/registry",
      hint: "More information about this cause (optional).",
    })}
    <div class="actions">
      <button class="main" name="do" value="save">
        {button}
      </button>
      <button name="do" value="try">
        Try on recent failures
      </button>
    </div>
  </Form>
);

export const ruleWords = ({ pattern }: Pick<InfrastructureRule, "pattern">): Html => (
  <>
    contains{" "}
    <code>
      <Breakable text={pattern} />
    </code>
  </>
);

export function TrialResult({ result: { projects } }: { result: RuleTrialResult }): Html {
  const matched = projects.reduce((sum, project) => sum + project.matched, 0);
  const searched = projects.reduce((sum, project) => sum + project.failures, 0);
  return (
    <>
      <h2 id="trial">
        Matches {toCount(matched)} of {counted(searched, "failure")}{" "}
        <small>the newest of the last 7 days, at most {TRIAL.failures} for each project; nothing is saved</small>
      </h2>
      {projects
        .filter((project) => project.matched > 0)
        .map((project) => (
          <div class="card padded">
            <h3>
              {project.name}: {toCount(project.matched)} of {toCount(project.failures)}
            </h3>
            <ul class="plain">
              {project.examples.map(({ testCaseId, executionId, name, message }) => (
                <li class="long">
                  <a href={testPath(project.projectId, testCaseId)}>
                    <Breakable text={name} />
                  </a>{" "}
                  <span class="soft">{message}</span>{" "}
                  <a href={executionPath(project.projectId, executionId)}>Execution</a>
                </li>
              ))}
            </ul>
          </div>
        ))}
    </>
  );
}
