/** Automations of a team: what to do when something happens or it is time; tried out, and what each run did. */

import {
  changeAutomation,
  createAutomation,
  findAutomation,
  removeAutomation,
  runByHand,
} from "../operations/automation_settings.ts";
import { toPage } from "../request/page.ts";
import { noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import {
  automation,
  automationFilter,
  automationPage,
  automationPatch,
  automationRun,
  automationRunFilter,
  automationRunPage,
  newAutomation,
  runRequest,
} from "../schema/automations.ts";
import { selectAutomationRuns, selectAutomations } from "../store/automations.ts";

export const automations: Route[] = [
  route(
    "GET /teams/:teamId/automations",
    { summary: "List automations, newest first", query: automationFilter, answer: automationPage },
    async (context) => {
      const { sql, params, query, after } = context;
      const rows = await selectAutomations(sql, params.teamId, query.limit, after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),

  route(
    "POST /teams/:teamId/automations",
    {
      summary: "Create an automation",
      record: "automation.created",
      body: newAutomation,
      answer: automation,
      status: 201,
    },
    async ({ params, body, conclude, services: { seal } }) =>
      await conclude((sql) => createAutomation(sql, seal, params.teamId, body)),
  ),

  route(
    "GET /teams/:teamId/automations/:automationId",
    { summary: "One automation", answer: automation },
    async ({ fast, params }) => await findAutomation(fast, params),
  ),

  route(
    "PATCH /teams/:teamId/automations/:automationId",
    { summary: "Change an automation", record: "automation.changed", body: automationPatch, answer: automation },
    async ({ params, body, transact, services: { seal } }) =>
      await transact((sql) => changeAutomation(sql, seal, params, body)),
  ),

  route(
    "DELETE /teams/:teamId/automations/:automationId",
    { summary: "Delete an automation with its runs", record: "automation.deleted", answer: null },
    async ({ params, transact }) => {
      await transact((sql) => removeAutomation(sql, params));
      return noContent();
    },
  ),

  route(
    "POST /teams/:teamId/automations/:automationId/run",
    {
      summary: "Run it now, for the last event of its kind; or only say what would happen and why",
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
    { summary: "What an automation did and why, newest first", query: automationRunFilter, answer: automationRunPage },
    async (context) => {
      const { sql, fast, params, query, after } = context;
      await findAutomation(fast, params);
      const rows = await selectAutomationRuns(sql, params.teamId, params.automationId, query, after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),
];
