/** Automations of a team: what to do when something happens or it is time; tried out, and what each run did. */

import { runForEvent, runForSchedule } from "../operations/automations.ts";
import { findProblem } from "../operations/dispatch.ts";
import { absent, fail } from "../http/problem.ts";
import { toPage } from "../request/page.ts";
import { noContent } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import {
  type Action,
  ACTIONS_OF,
  automation,
  automationFilter,
  automationPage,
  automationPatch,
  type AutomationPatch,
  automationRun,
  type AutomationRun,
  automationRunFilter,
  automationRunPage,
  CONDITIONS_OF,
  type Conditions,
  newAutomation,
  type NewAutomation,
  nextTime,
  runRequest,
} from "../schema/automations.ts";
import { toPlannedTask } from "../schema/executions.ts";
import type { Seal } from "../secrets/seal.ts";
import { actionsOf } from "../senders/send.ts";
import {
  type AutomationRow,
  deleteAutomation,
  insertAutomation,
  lockAutomation,
  selectAutomation,
  selectAutomationRuns,
  selectAutomations,
  selectTeamProjects,
  updateAutomation,
} from "../store/automations.ts";
import type { Sql } from "../store/connect.ts";
import { selectLastEvent } from "../store/events.ts";
import { selectIntegration } from "../store/integrations.ts";

type One = Pick<Context<{ teamId: string; automationId: string }>, "params">;

const find = async (sql: Sql, { params }: One): Promise<AutomationRow> =>
  (await selectAutomation(sql, params.teamId, params.automationId)) ?? absent();

/** Fails with everything that cannot work: a condition that never holds, an integration that cannot do it. `given`: what is new. */
async function requireSense(
  { sql, seal }: { sql: Sql; seal: Seal },
  teamId: string,
  wanted: NewAutomation,
  given: AutomationPatch = wanted,
): Promise<void> {
  const { trigger, conditions, actions } = wanted;
  // What has been there before may refer to something that was deleted since: it can still be switched off.
  const fresh = { conditions: given.conditions ?? {}, actions: given.actions ?? [] };
  const occasion = "event" in trigger ? trigger.event : "schedule";
  const what = occasion === "schedule" ? "a schedule" : `"${occasion}"`;
  const problems: string[] = [];
  for (const name of Object.keys(conditions) as (keyof Conditions)[])
    if (!CONDITIONS_OF[occasion].includes(name)) problems.push(`Cannot use "conditions.${name}" with ${what}`);
  const projectIds = [
    ...(fresh.conditions.projects ?? []).map((id) => ["conditions.projects", id] as const),
    ...fresh.actions.flatMap((action, index) =>
      action.type === "start_execution" && action.projectId
        ? [[`actions.${index}.projectId`, action.projectId] as const]
        : [],
    ),
  ];
  const ids = projectIds.map(([, id]) => id);
  const projects = new Set(ids.length === 0 ? [] : (await selectTeamProjects(sql, teamId, ids)).map(({ id }) => id));
  for (const [place, id] of projectIds)
    if (!projects.has(id)) problems.push(`Cannot read "${place}": there is no project "${id}" in this team`);
  for (const [index, action] of actions.entries()) {
    const place = `actions.${index}`;
    if (!ACTIONS_OF[occasion].includes(action.type))
      problems.push(`Cannot use "${place}" with ${what}: ${action.type}`);
    if (action.type === "start_execution") {
      problems.push(...(await findStartProblems(action, place)));
      continue;
    }
    if (!("integrationId" in action) || fresh.actions.length === 0) continue;
    const integration = await selectIntegration(sql, teamId, action.integrationId);
    if (!integration)
      problems.push(`Cannot read "${place}.integrationId": there is no integration "${action.integrationId}"`);
    else if (!actionsOf(integration.kind).includes(action.type))
      problems.push(
        `Cannot use "${place}": an integration of ${integration.kind} knows ${actionsOf(integration.kind).join(", ")}`,
      );
  }
  if (problems.length > 0) fail("VALIDATION_ERROR", [...new Set(problems)].join("; "));

  async function findStartProblems(
    { mode, tasks, dispatch }: Extract<Action, { type: "start_execution" }>,
    place: string,
  ): Promise<string[]> {
    const found: string[] = [];
    const planned = tasks.map(toPlannedTask);
    if (
      mode !== "run" &&
      planned.some(({ labels, timeoutSeconds }) => labels.length > 0 || timeoutSeconds !== undefined)
    )
      found.push(`Cannot read "${place}.tasks": labels and timeoutSeconds are for executions of mode "run"`);
    if (mode === "run" && dispatch)
      found.push(`Cannot read "${place}.dispatch": an execution of mode "run" is for runners`);
    if (!dispatch || fresh.actions.length === 0) return found;
    const integration = await selectIntegration(sql, teamId, dispatch.integrationId);
    const problem = findProblem(teamId, integration, dispatch, seal);
    return problem ? [...found, `Cannot read "${place}.dispatch.${problem.field}": ${problem.message}`] : found;
  }
}

const nextRunOf = ({ enabled, trigger }: Pick<NewAutomation, "enabled" | "trigger">): string | null =>
  enabled && "schedule" in trigger
    ? (nextTime(trigger.schedule, trigger.timezone, new Date())?.toISOString() ?? null)
    : null;

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

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
    { summary: "Create an automation", body: newAutomation, answer: automation, status: 201 },
    async ({ params: { teamId }, body, conclude, services: { seal } }) => {
      const id = Bun.randomUUIDv7();
      return await conclude(async (sql) => {
        await requireSense({ sql, seal }, teamId, body);
        await insertAutomation(sql, teamId, id, { ...body, nextRunAt: nextRunOf(body) });
        return await find(sql, { params: { teamId, automationId: id } });
      });
    },
  ),

  route(
    "GET /teams/:teamId/automations/:automationId",
    { summary: "One automation", answer: automation },
    async (context) => await find(context.fast, context),
  ),

  route(
    "PATCH /teams/:teamId/automations/:automationId",
    { summary: "Change an automation", body: automationPatch, answer: automation },
    async (context) => {
      const { params, body, transact, services } = context;
      const { teamId, automationId } = params;
      return await transact(async (sql) => {
        if (!(await lockAutomation(sql, teamId, automationId))) absent();
        const before = await find(sql, context);
        const { name, enabled, trigger, conditions, actions } = before;
        const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
        const after: NewAutomation = { name, enabled, trigger, conditions, actions, ...given };
        await requireSense({ sql, seal: services.seal }, teamId, after, body);
        // A name that changes does not put the next run off.
        const keeps = isSame(after.trigger, trigger) && after.enabled === enabled;
        const nextRunAt = keeps ? before.nextRunAt : nextRunOf(after);
        await updateAutomation(sql, teamId, automationId, { ...after, nextRunAt });
        return await find(sql, context);
      });
    },
  ),

  route(
    "DELETE /teams/:teamId/automations/:automationId",
    { summary: "Delete an automation with its runs", answer: null },
    async ({ params, transact }) =>
      (await transact((sql) => deleteAutomation(sql, params.teamId, params.automationId))) ? noContent() : absent(),
  ),

  route(
    "POST /teams/:teamId/automations/:automationId/run",
    {
      summary: "Run it now, for the last event of its kind; or only say what would happen and why",
      body: runRequest,
      answer: automationRun,
    },
    async (context) => {
      const { params, body, conclude, publicUrl, services } = context;
      const { teamId, automationId } = params;
      const { dryRun } = body;
      const onBug = (error: unknown) =>
        services.log.error("Cannot run an automation", { teamId, automationId, dryRun, error });
      const running = { publicUrl, now: new Date(), dryRun, onBug };
      return await conclude(async (sql): Promise<AutomationRun> => {
        if (!(await lockAutomation(sql, teamId, automationId))) absent();
        const row = await find(sql, context);
        const { trigger } = row;
        if ("schedule" in trigger) return await runForSchedule(sql, running, teamId, row, "manual");
        const event = await selectLastEvent(sql, teamId, trigger.event, row.conditions.projects);
        if (event) return (await runForEvent(sql, running, row, event, "manual")) ?? absent();
        if (!dryRun) fail("VALIDATION_ERROR", `Cannot run it: there was no "${trigger.event}" in the last 7 days`);
        return {
          id: null,
          cause: "manual",
          eventId: null,
          eventType: trigger.event,
          projectId: null,
          status: "skipped",
          reason: `There was no "${trigger.event}" in the last 7 days to try it with`,
          actions: [],
          createdAt: running.now.toISOString(),
        };
      });
    },
  ),

  route(
    "GET /teams/:teamId/automations/:automationId/runs",
    { summary: "What an automation did and why, newest first", query: automationRunFilter, answer: automationRunPage },
    async (context) => {
      const { sql, fast, params, query, after } = context;
      await find(fast, context);
      const rows = await selectAutomationRuns(sql, params.teamId, params.automationId, query, after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),
];
