/** Automations of a team: actions on events and schedules; dry runs, and the result of each run. */

import {
  changeAutomation,
  createAutomation,
  findAutomation,
  removeAutomation,
  runByHand,
} from "../operations/automation/automation_settings.ts";
import { toPage } from "../request/page.ts";
import { noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { automation, automationFilter, automationPage, automationPatch, newAutomation } from "../schema/automations.ts";
import { automationRun, automationRunFilter, automationRunPage, runRequest } from "../schema/automation_runs.ts";
import { selectAutomationRuns, selectAutomations } from "../store/automations.ts";

export const automations: Route[] = [
  route(
    "GET /teams/:teamId/automations",
    {
      summary: "List automations, newest first",
      description: "Each with its last run and the next run of its schedule.",
      query: automationFilter,
      answer: automationPage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const rows = await selectAutomations(sql, params.teamId, query.limit, page.after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),

  route(
    "POST /teams/:teamId/automations",
    {
      summary: "Create an automation",
      record: "automation.created",
      description:
        "An automation that cannot work is answered 400 with all reasons: a condition that the event never meets, an " +
        "action that the event does not support, an integration that cannot do it. Test it with dryRun before you rely " +
        "on it.",
      example: {
        body: {
          name: "main is red",
          trigger: { event: "execution.failed" },
          conditions: { branches: ["main"] },
          actions: [{ type: "notify", integrationId: "0199b2c4-b1d2-7e33-9a44-6f5e4d3c2b1a" }],
        },
      },
      body: newAutomation,
      answer: automation,
      status: 201,
    },
    async ({ params, body, conclude, services: { seal } }) =>
      await conclude((sql) => createAutomation(sql, seal, params.teamId, body)),
  ),

  route(
    "GET /teams/:teamId/automations/:automationId",
    {
      summary: "One automation",
      description: "Its trigger, conditions and actions, its last run, and its next run.",
      answer: automation,
    },
    async ({ fast, params }) => await findAutomation(fast, params),
  ),

  route(
    "PATCH /teams/:teamId/automations/:automationId",
    {
      summary: "Change an automation",
      description: "Changes the given fields and keeps the others. An unchanged schedule keeps its next run.",
      record: "automation.changed",
      example: { body: { enabled: false } },
      body: automationPatch,
      answer: automation,
    },
    async ({ params, body, transact, services: { seal } }) =>
      await transact((sql) => changeAutomation(sql, seal, params, body)),
  ),

  route(
    "DELETE /teams/:teamId/automations/:automationId",
    {
      summary: "Delete an automation with its runs",
      description: "Queued messages, executions and bug reports that it started are not affected.",
      record: "automation.deleted",
      answer: null,
    },
    async ({ params, transact }) => {
      await transact((sql) => removeAutomation(sql, params));
      return noContent();
    },
  ),

  route(
    "POST /teams/:teamId/automations/:automationId/run",
    {
      summary: "Run an automation now for the last event of its type, or test it with dryRun",
      description:
        "Uses the last event of its type within 7 days; the answer says whether it met the conditions. With dryRun " +
        "nothing is done or stored. Without such an event only a dry run is possible.",
      example: { body: { dryRun: true } },
      body: runRequest,
      answer: automationRun,
    },
    async ({ params, body: { dryRun }, conclude, publicUrl, services: { log } }) => {
      const onBug = (error: unknown) => log.error("Cannot run an automation", { ...params, dryRun, error });
      const running = { publicUrl, now: new Date(), dryRun, onBug };
      return await conclude((sql) => runByHand(sql, running, params));
    },
  ),

  route(
    "GET /teams/:teamId/automations/:automationId/runs",
    {
      summary: "List the runs of an automation, newest first",
      description:
        "One run for each processed event and each time of its schedule, with what it did, or the condition that did not " +
        "hold.",
      example: { query: { status: "skipped" } },
      query: automationRunFilter,
      answer: automationRunPage,
    },
    async (context) => {
      const { sql, fast, params, query, page } = context;
      await findAutomation(fast, params);
      const rows = await selectAutomationRuns(sql, params.teamId, params.automationId, query, page.after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),
];
