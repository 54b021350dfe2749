/** One infrastructure rule: changed, tried on recent failures, deleted. */

import type { Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import {
  changeInfrastructureRule,
  findInfrastructureRule,
  removeInfrastructureRule,
} from "../../../operations/projects/infrastructure_rules.ts";
import { infrastructureRulePatch, type RuleTrialResult } from "../../../schema/infrastructure_rules.ts";
import { Danger, FormError } from "../../components/form.tsx";
import { External } from "../../components/text.tsx";
import { action, deletion } from "../../site/action.ts";
import { page, type View, type TeamContext, type Page } from "../../site/page.ts";
import {
  type RuleFields,
  ruleFields,
  RuleForm,
  ruleWords,
  toRule,
  toRuleFields,
  TrialResult,
  tryRule,
} from "./form.tsx";
import { createRuleForm, listPage } from "./list.tsx";

type RuleContext = TeamContext & { params: { teamId: string; infrastructureRuleId: string } };

type RuleState = { problem?: string; fields?: RuleFields; result?: RuleTrialResult };

async function showRule(context: RuleContext, { problem, fields, result }: RuleState): Promise<View> {
  const { fast, params, role, csrf, team } = context;
  const rule = await findInfrastructureRule(fast, params);
  const list: Path = `/teams/${team.id}/infrastructure-rules`;
  const base: Path = `${list}/${rule.id}`;
  const body = (
    <>
      <h1>{rule.name}</h1>
      <div class="meta">
        <span>A failure matches if it {ruleWords(rule)}</span>
        {rule.url === null ? null : <External href={rule.url} of={<>About this rule</>} />}
        <a href={list}>All infrastructure rules</a>
      </div>
      {role !== "owner" ? null : (
        <>
          <FormError message={problem} />
          <RuleForm to={base} csrf={csrf} fields={fields ?? toRuleFields(rule)} button="Save" />
          {result ? <TrialResult result={result} /> : null}
          <h2>Delete</h2>
          <Danger
            action={`${base}/delete`}
            csrf={csrf}
            label={`Delete ${rule.name}`}
            loss="Failures that it matched stay as they are. New ones are judged without it."
          />
        </>
      )}
    </>
  );
  return { title: rule.name, body, section: "team", ...(problem === undefined ? {} : { status: 400 }) };
}

const onePath = "/teams/:teamId/infrastructure-rules/:infrastructureRuleId";

const rulePage = page(onePath, { access: "viewer" }, async (context) => await showRule(context, {}));

const changeRuleForm = action(
  onePath,
  { access: "owner", fields: ruleFields },
  {
    preview: (context) => tryRule(context, (fields, result) => showRule(context, { fields, result })),
    read: ({ fields }) => check(infrastructureRulePatch, toRule(fields)),
    act: (sql, { params }, patch) => changeInfrastructureRule(sql, params, patch),
    record: ({ id, name, pattern }) => ({
      action: "infrastructure_rule.changed",
      subject: name,
      details: { infrastructureRuleId: id, pattern },
    }),
    refused: (context, problem) => showRule(context, { problem, fields: context.fields }),
    done: ({ params }) => `/teams/${params.teamId}/infrastructure-rules?notice=saved`,
  },
);

export const infrastructureRules: Page[] = [
  listPage,
  createRuleForm,
  rulePage,
  changeRuleForm,
  deletion(onePath, "infrastructure_rule", removeInfrastructureRule),
];
