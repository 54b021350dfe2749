/** The infrastructure rules of a team. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { createInfrastructureRule } from "../../../operations/projects/infrastructure_rules.ts";
import {
  type InfrastructureRule,
  newInfrastructureRule,
  type RuleTrialResult,
} from "../../../schema/infrastructure_rules.ts";
import {
  type InfrastructureShare,
  selectInfrastructureRules,
  selectInfrastructureShares,
} from "../../../store/infrastructure_rules.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { AgoCell, CardTable, TeamList, toPagedRows } from "../../components/list.tsx";
import { DayBars } from "../../components/day_bars.tsx";
import { FormError, noticeParameter } from "../../components/form.tsx";
import { External, toPercent } from "../../components/text.tsx";
import { page, type View, type TeamContext } from "../../site/page.ts";
import { EMPTY_RULE, type RuleFields, ruleFields, RuleForm, ruleWords, toRule, TrialResult, tryRule } from "./form.tsx";
import { action } from "../../site/action.ts";

const MAX_ROWS = 50;

const NOTICES = {
  created: "Rule created. It applies to failures from now on.",
  saved: "Rule saved. It applies to failures from now on.",
  deleted: "Rule deleted.",
} as const;

type ListState = {
  cursor?: string | undefined;
  notice?: keyof typeof NOTICES | undefined;
  problem?: string;
  fields?: RuleFields;
  result?: RuleTrialResult;
};

type TableProperties = { base: Path; rules: readonly InfrastructureRule[]; now: Date };

const RuleTable = ({ base, rules, now }: TableProperties): Html => (
  <CardTable
    caption="Infrastructure rules, in the order in which they are tried"
    columns={["Rule", "A failure", ["Changed", "number", "wide"]]}
  >
    {rules.map((rule) => (
      <tr>
        <td class="long">
          <a href={`${base}/${rule.id}`}>
            <b>{rule.name}</b>
          </a>{" "}
          {rule.url === null ? null : <External href={rule.url} of={<>About</>} />}
        </td>
        <td class="long">{ruleWords(rule)}</td>
        <AgoCell at={rule.updatedAt} now={now} kind="number soft wide" />
      </tr>
    ))}
  </CardTable>
);

const SHARE_DAYS = 30;
const MAX_SHARES = 20;
const DAY_MS = 86_400_000;

/** The share of failures that the rules explain, by project and day. */
const Shares = ({ shares, now }: { shares: readonly InfrastructureShare[]; now: Date }): Html | null =>
  shares.length === 0 ? null : (
    <>
      <h2 id="trend">
        Failures of the infrastructure <small>last {SHARE_DAYS} days</small>
      </h2>
      <CardTable
        caption="Failures that match a rule, by project"
        columns={["Project", ["Share", "number"], ["By day", "wide"]]}
      >
        {shares.map(({ projectId, name, failures, matched, days }) => (
          <tr>
            <td class="long">
              <a href={`/projects/${projectId}`}>{name}</a>
            </td>
            <td class="number">
              {toPercent(matched / failures)}{" "}
              <span class="small soft">
                {toCount(matched)} of {counted(failures, "failure")}
              </span>
            </td>
            <td class="wide">
              <DayBars figures={new Map(Object.entries(days))} days={SHARE_DAYS} now={now} height={18} noun="failure" />
            </td>
          </tr>
        ))}
      </CardTable>
    </>
  );

async function showList({ sql, team, role, csrf, now }: TeamContext, state: ListState): Promise<View> {
  const { cursor, problem, fields, result } = state;
  const from = new Date(now.getTime() - (SHARE_DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
  const [found, shares] = await Promise.all([
    selectInfrastructureRules(sql, team.id, MAX_ROWS, cursor),
    selectInfrastructureShares(sql, team.id, { from, limit: MAX_SHARES }),
  ]);
  const list = toPagedRows(found, MAX_ROWS, ({ id }) => id);
  const base: Path = `/teams/${team.id}/infrastructure-rules`;
  const body = (
    <>
      <TeamList
        path={base}
        title="Infrastructure rules"
        noun="infrastructure rule"
        description="A failure that matches a rule blames nobody and does not count in the health of its test. All such failures of a project share a bug."
        suggestion="Create one below, for example for an unavailable package registry or a full disk."
        notices={NOTICES}
        {...{ role, list, query: state }}
      >
        <RuleTable base={base} rules={list.rows} now={now} />
      </TeamList>
      <Shares shares={shares} now={now} />
      {role !== "owner" ? null : (
        <>
          <h2 id="new">New infrastructure rule</h2>
          <FormError message={problem} />
          <RuleForm to={base} csrf={csrf} fields={fields ?? EMPTY_RULE} button="Create rule" />
          {result ? <TrialResult result={result} /> : null}
        </>
      )}
    </>
  );
  return { title: "Infrastructure rules", body, section: "team", ...(problem === undefined ? {} : { status: 400 }) };
}

const cursor = v.optional(v.pipe(v.string(), v.uuid()));

export const listPage = page(
  "/teams/:teamId/infrastructure-rules",
  { access: "viewer", query: v.strictObject({ notice: noticeParameter(NOTICES), cursor }) },
  async (context) => await showList(context, context.query),
);

export const createRuleForm = action(
  "/teams/:teamId/infrastructure-rules",
  { access: "owner", fields: ruleFields },
  {
    preview: (context) => tryRule(context, (fields, result) => showList(context, { fields, result })),
    read: ({ fields }) => check(newInfrastructureRule, toRule(fields)),
    act: (sql, { team }, rule) => createInfrastructureRule(sql, team.id, rule),
    record: ({ id, name }, _, { pattern }) => ({
      action: "infrastructure_rule.created",
      subject: name,
      details: { infrastructureRuleId: id, pattern },
    }),
    refused: (context, problem) => showList(context, { problem, fields: context.fields }),
    done: ({ team }) => `/teams/${team.id}/infrastructure-rules?notice=created`,
  },
);
