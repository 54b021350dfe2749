/** Infrastructure rules of a team: texts of failures that are not the fault of a test. */

import {
  changeInfrastructureRule,
  createInfrastructureRule,
  findInfrastructureRule,
  removeInfrastructureRule,
  tryInfrastructureRule,
} from "../operations/projects/infrastructure_rules.ts";
import { toPage } from "../request/page.ts";
import { noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import {
  infrastructureRule,
  infrastructureRuleFilter,
  infrastructureRulePage,
  infrastructureRulePatch,
  newInfrastructureRule,
  ruleTrial,
  ruleTrialResult,
} from "../schema/infrastructure_rules.ts";
import { selectInfrastructureRules } from "../store/infrastructure_rules.ts";

const example = { name: "Package registry", pattern: "ECONNREFUSED*registry" };

export const infrastructureRules: Route[] = [
  route(
    "GET /teams/:teamId/infrastructure-rules",
    {
      summary: "List infrastructure rules, in the order in which they are tried",
      description: "The first rule that matches a failure explains it.",
      query: infrastructureRuleFilter,
      answer: infrastructureRulePage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const rows = await selectInfrastructureRules(sql, params.teamId, query.limit, page.after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),

  route(
    "POST /teams/:teamId/infrastructure-rules",
    {
      summary: "Create an infrastructure rule",
      description:
        "A failure whose message, stack or output it matches is attributed to no change: it is listed under incidentFailures, does not " +
        "count in health, and all such failures of a project share a bug report. Failures that were judged before stay as " +
        "they are. A team has at most 50 rules.",
      record: "infrastructure_rule.created",
      example: { body: { ...example, url: "https://wiki.shop.example/registry" } },
      body: newInfrastructureRule,
      answer: infrastructureRule,
      status: 201,
    },
    async ({ params, body, conclude }) => await conclude((sql) => createInfrastructureRule(sql, params.teamId, body)),
  ),

  route(
    "POST /teams/:teamId/infrastructure-rules/try",
    {
      summary: "Try an infrastructure rule on the failures of the last days",
      description:
        "Returns how many of the newest failures of each project the rule would match, and some of them. Nothing is " +
        "stored.",
      example: { body: { pattern: example.pattern, days: 7 } },
      body: ruleTrial,
      answer: ruleTrialResult,
    },
    async ({ sql, params, body }) => await tryInfrastructureRule(sql, params.teamId, body, new Date()),
  ),

  route(
    "GET /teams/:teamId/infrastructure-rules/:infrastructureRuleId",
    {
      summary: "Get an infrastructure rule",
      description: "Its name, what it looks for, and its link.",
      answer: infrastructureRule,
    },
    async ({ fast, params }) => await findInfrastructureRule(fast, params),
  ),

  route(
    "PATCH /teams/:teamId/infrastructure-rules/:infrastructureRuleId",
    {
      summary: "Change an infrastructure rule",
      description: "Omitted fields are unchanged. Failures that were judged before stay as they are.",
      record: "infrastructure_rule.changed",
      example: { body: { name: "Package registry" } },
      body: infrastructureRulePatch,
      answer: infrastructureRule,
    },
    async ({ params, body, transact }) => await transact((sql) => changeInfrastructureRule(sql, params, body)),
  ),

  route(
    "DELETE /teams/:teamId/infrastructure-rules/:infrastructureRuleId",
    {
      summary: "Delete an infrastructure rule",
      description: "Failures that it matched keep its name, and their bug report stays.",
      record: "infrastructure_rule.deleted",
      answer: null,
    },
    async ({ params, transact }) => {
      await transact((sql) => removeInfrastructureRule(sql, params));
      return noContent();
    },
  ),
];
