/** Starts pipelines in external CI systems, and passes them the execution that their results belong to. */

import { toDispatchNotice } from "../../wording/notification.ts";
import { hasEnded } from "../../rules/execution.ts";
import { type Dispatch, MAX_INPUTS } from "../../schema/integration_configs.ts";
import { MAX_WAITING, notSent } from "../../schema/deliveries.ts";
import { refuse } from "../../schema/refusal.ts";
import { integrationPlace } from "../../secrets/places.ts";
import { type Seal, SealError } from "../../secrets/seal.ts";
import { actionsOf } from "../../senders/send.ts";
import { selectTeamProjects, type TeamProject } from "../../store/automations.ts";
import type { Tx } from "../../database/connect.ts";
import { lockExecution, type LockedExecution, selectExecutionStatus } from "../../store/executions.ts";
import { selectTasks } from "../../store/execution_tasks.ts";
import { endUnsent, dropOldestDeliveries, insertDelivery, selectWaitingDispatch } from "../../store/deliveries.ts";
import { type IntegrationRow, lockIntegrationForUse, selectIntegration } from "../../store/integrations.ts";
import { advanceExecution } from "../executions/advance.ts";

/** An integration that can start what it is asked for. */
type Engine = Pick<IntegrationRow, "id" | "kind" | "name">;

/** A problem and the field of the dispatch that it concerns. */
type Problem = { field: "integrationId" | "workflow" | "inputs"; message: string };

/** Returns why a dispatch is impossible with this integration, or without one. Without a seal, secrets are not checked. */
export function findProblem(
  teamId: string,
  integration: IntegrationRow | undefined,
  { workflow, inputs = {} }: Dispatch,
  seal?: Seal,
): Problem | undefined {
  const engine = (message: string): Problem => ({ field: "integrationId", message });
  if (!integration) return engine("there is no such integration in this team");
  const { kind, name, enabled, config } = integration;
  if (!actionsOf(kind).includes("dispatch")) return engine(`an integration of ${kind} starts no pipelines`);
  if (!enabled) return engine(`the integration "${name}" is disabled`);
  if (kind === "github" && !workflow && !config["workflow"])
    return { field: "workflow", message: `neither it nor the integration "${name}" names one` };
  if (kind !== "github" && workflow !== undefined)
    return { field: "workflow", message: `an integration of ${kind} knows none` };
  if (kind === "gitlab" && seal && !hasTriggerToken(teamId, integration, seal))
    return engine(`the integration "${name}" has no "triggerToken"`);
  const names = Object.keys(inputs);
  const own = names.find((name) => name.toLowerCase() === "assay_execution_id");
  if (own !== undefined) return { field: "inputs", message: `"${own}" is the id of the execution, and set already` };
  if (kind === "github" && names.length >= MAX_INPUTS)
    return {
      field: "inputs",
      message: `expected at most ${MAX_INPUTS - 1} beside the execution's id, got ${names.length}`,
    };
  return undefined;
}

/** A secret that cannot be decrypted is reported when it is used. */
function hasTriggerToken(teamId: string, { id, sealed }: IntegrationRow, seal: Seal): boolean {
  try {
    const secrets = JSON.parse(seal.open(integrationPlace(teamId, id), sealed)) as { triggerToken?: string | null };
    return Boolean(secrets.triggerToken);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return true;
  }
}

/** Locks an integration that starts pipelines until the end of the transaction, or returns why it cannot start one. */
export async function lockEngine(
  sql: Tx,
  teamId: string,
  dispatch: Dispatch,
  seal?: Seal,
): Promise<Engine | { problem: Problem }> {
  const { integrationId } = dispatch;
  const integration = (await lockIntegrationForUse(sql, teamId, integrationId))
    ? await selectIntegration(sql, teamId, integrationId)
    : undefined;
  const problem = findProblem(teamId, integration, dispatch, seal);
  return problem ? { problem } : integration!;
}

type Begun = { teamId: string; project: TeamProject; execution: LockedExecution };

/** Requests the pipeline, in the transaction that created the execution, or returns why the integration accepts no more. */
export async function askEngine(
  sql: Tx,
  { teamId, project, execution }: Begun,
  { integrationId, workflow, ref = execution.queueRef ?? execution.branch ?? undefined, inputs }: Dispatch,
  { publicUrl, now, eventId = null }: { publicUrl: string; now: Date; eventId?: string | null },
): Promise<{ deliveryId: string; problem?: string }> {
  const deliveryId = Bun.randomUUIDv7();
  await insertDelivery(sql, teamId, {
    id: deliveryId,
    integrationId,
    action: "dispatch",
    options: { workflow, ref, inputs, execution: { projectId: project.id, id: execution.id, waits: true } },
    eventId,
    projectId: project.id,
    notice: toDispatchNotice(project, execution, publicUrl, now),
    due: "now",
  });
  const { isFull } = await dropOldestDeliveries(sql, { teamId, integrationId }, MAX_WAITING, { now, how: "among" });
  if (!isFull) return { deliveryId };
  const problem = `${MAX_WAITING} deliveries are waiting for the integration already`;
  await endUnsent(sql, { teamId, integrationId, id: deliveryId }, "failed", notSent(now, `Not sent: ${problem}`));
  return { deliveryId, problem };
}

/**
 * Requests the pipeline, in the transaction that created the execution. Refuses with the name of the field, for a caller who can correct
 * it.
 */
export async function dispatchExecution(
  sql: Tx,
  { teamId, seal, publicUrl, now }: { teamId: string; seal: Seal; publicUrl: string; now: Date },
  projectId: string,
  execution: LockedExecution,
  dispatch: Dispatch,
): Promise<void> {
  if (execution.mode !== "report")
    refuse(`Cannot read "dispatch": an execution of mode "${execution.mode}" is for runners`);
  if ((await selectTasks(sql, projectId, execution.id)).length === 0)
    refuse(`Cannot read "tasks": "dispatch" needs at least one task`);
  const engine = await lockEngine(sql, teamId, dispatch, seal);
  if ("problem" in engine) refuse(`Cannot read "dispatch.${engine.problem.field}": ${engine.problem.message}`);
  const [project] = await selectTeamProjects(sql, teamId, [projectId]);
  const { problem } = await askEngine(sql, { teamId, project: project!, execution }, dispatch, { publicUrl, now });
  if (problem) refuse(`Cannot dispatch: ${problem}`);
}

/** The execution that a dispatch was made for, as it stands in its options. */
export type DispatchedFor = { projectId: string; id: string; waits: boolean };

const NOT_STARTED = "The pipeline was not started";

/** Ends an execution that waits for a pipeline which will not be started, with this reason. */
export async function endUndispatched(
  sql: Tx,
  { projectId, id }: Pick<DispatchedFor, "projectId" | "id">,
  why: string,
  now: Date,
): Promise<void> {
  const execution = await lockExecution(sql, projectId, id);
  if (!execution || hasEnded(execution.status)) return;
  const change = { arrived: false, now, reason: `${NOT_STARTED}: ${why}` };
  await advanceExecution(sql, projectId, execution, "completed", change);
}

/** Returns why an execution whose time is over has no reports, if its CI system could not be reached. */
export async function reasonOfSilence(sql: Tx, projectId: string, id: string): Promise<string | undefined> {
  const waiting = await selectWaitingDispatch(sql, projectId, id);
  if (!waiting) return undefined;
  return `${NOT_STARTED} in time: ${waiting.error ?? "nothing could be sent to the integration yet"}`;
}

/**
 * Returns why a pipeline must no longer be started: the execution that waited for it has ended. Undefined: it may be started, also if a
 * failed dispatch is retried, whose results then come late.
 */
export async function reasonAgainst(
  sql: Tx,
  { projectId, id, waits }: DispatchedFor,
  { isAskedAgain }: { isAskedAgain: boolean },
): Promise<string | undefined> {
  if (!waits) return undefined;
  const status = await selectExecutionStatus(sql, projectId, id);
  if (status === undefined) return "Not sent: its execution was deleted";
  const isOver = status === "cancelled" || (hasEnded(status) && !isAskedAgain);
  return isOver ? `Not sent: its execution has ended, it is "${status}"` : undefined;
}
