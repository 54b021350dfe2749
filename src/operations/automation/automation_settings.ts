/** Automations of a team: made, changed, run by hand. */

import type { Action } from "../../schema/automation_actions.ts";
import {
  ACTIONS_OF,
  type AutomationPatch,
  CONDITIONS_OF,
  type Conditions,
  type NewAutomation,
  nextTime,
} from "../../schema/automations.ts";
import type { AutomationRun } from "../../schema/automation_runs.ts";
import { toPlannedTask } from "../../schema/planned_tasks.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Seal } from "../../secrets/seal.ts";
import { actionsOf } from "../../senders/send.ts";
import {
  type AutomationRow,
  deleteAutomation,
  insertAutomation,
  lockAutomation,
  selectAutomation,
  selectTeamProjects,
  updateAutomation,
} from "../../store/automations.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { selectLastEvent } from "../../store/events.ts";
import { selectIntegration } from "../../store/integrations.ts";
import type { AutomationServices } from "./occasion.ts";
import { runForEvent, runForSchedule } from "./automations.ts";
import { findProblem } from "./dispatch.ts";

/** Which automation, of which team. */
type AutomationKey = { teamId: string; automationId: string };

export const findAutomation = async (sql: Sql, { teamId, automationId }: AutomationKey): Promise<AutomationRow> =>
  (await selectAutomation(sql, teamId, automationId)) ?? refuseAbsent();

/** Refuses what cannot work: a condition that never holds, an integration that does not support the action. `given`: the changes. */
async function requireSense(
  { sql, seal }: { sql: Sql; seal: Seal },
  teamId: string,
  wanted: NewAutomation,
  given: AutomationPatch = wanted,
): Promise<void> {
  const { trigger, conditions, actions } = wanted;
  // Unchanged conditions and actions may refer to objects that were deleted since; the automation can still be disabled.
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
    if (action.type === "notify" && action.owners && !CONDITIONS_OF[occasion].includes("owners"))
      problems.push(`Cannot use "${place}.owners" with ${what}`);
    if (!("integrationId" in action) || fresh.actions.length === 0) continue;
    const integration = await selectIntegration(sql, teamId, action.integrationId);
    if (!integration)
      problems.push(`Cannot read "${place}.integrationId": there is no integration "${action.integrationId}"`);
    else if (!actionsOf(integration.kind).includes(action.type))
      problems.push(
        `Cannot use "${place}": an integration of ${integration.kind} knows ${actionsOf(integration.kind).join(", ")}`,
      );
  }
  if (problems.length > 0) refuse([...new Set(problems)].join("; "));

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

export async function createAutomation(
  sql: Tx,
  seal: Seal,
  teamId: string,
  wanted: NewAutomation,
): Promise<AutomationRow> {
  await requireSense({ sql, seal }, teamId, wanted);
  const automationId = Bun.randomUUIDv7();
  await insertAutomation(sql, teamId, automationId, { ...wanted, nextRunAt: nextRunOf(wanted) });
  return await findAutomation(sql, { teamId, automationId });
}

/** Changes an automation; fields that the patch omits stay. */
export async function changeAutomation(
  sql: Tx,
  seal: Seal,
  place: AutomationKey,
  patch: AutomationPatch,
): Promise<AutomationRow> {
  const { teamId, automationId } = place;
  if (!(await lockAutomation(sql, teamId, automationId))) refuseAbsent();
  const before = await findAutomation(sql, place);
  const { name, enabled, trigger, conditions, actions } = before;
  const given = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
  const after: NewAutomation = { name, enabled, trigger, conditions, actions, ...given };
  await requireSense({ sql, seal }, teamId, after, patch);
  // A name that changes does not put the next run off.
  const keeps = isSame(after.trigger, trigger) && after.enabled === enabled;
  const nextRunAt = keeps ? before.nextRunAt : nextRunOf(after);
  await updateAutomation(sql, teamId, automationId, { ...after, nextRunAt });
  return await findAutomation(sql, place);
}

/** Deletes an automation with its runs. Returns the name that it had. */
export const removeAutomation = async (sql: Tx, { teamId, automationId }: AutomationKey): Promise<string> =>
  (await deleteAutomation(sql, teamId, automationId)) ?? refuseAbsent();

/** Runs an automation now, for the last event of its kind; a dry run only reports what would happen and why. */
export async function runByHand(
  sql: Tx,
  services: AutomationServices & { dryRun: boolean },
  place: AutomationKey,
): Promise<AutomationRun> {
  const { teamId, automationId } = place;
  if (!(await lockAutomation(sql, teamId, automationId))) refuseAbsent();
  const row = await findAutomation(sql, place);
  const { trigger } = row;
  if ("schedule" in trigger) return await runForSchedule(sql, services, teamId, row, "manual");
  const event = await selectLastEvent(sql, teamId, trigger.event, row.conditions.projects);
  if (event) return (await runForEvent(sql, services, row, event, "manual")) ?? refuseAbsent();
  if (!services.dryRun) refuse(`Cannot run the automation: there was no "${trigger.event}" in the last 7 days`);
  return {
    id: null,
    cause: "manual",
    eventId: null,
    eventType: trigger.event,
    projectId: null,
    status: "skipped",
    reason: `There was no "${trigger.event}" in the last 7 days to try the automation with`,
    actions: [],
    createdAt: services.now.toISOString(),
  };
}
