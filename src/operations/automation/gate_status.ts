/** The commit status of a gate: what a protected branch can require. */

import { readGate } from "../executions/gate.ts";
import { statusContext } from "../../rules/status_context.ts";
import type { Action } from "../../schema/automation_actions.ts";
import type { GateMode } from "../../schema/gate.ts";
import type { Notification } from "../../schema/notifications.ts";
import type { Tx } from "../../database/connect.ts";
import type { EventRow } from "../../store/events.ts";
import { selectBuildStatus } from "../../store/executions.ts";
import { gateSummary } from "../../wording/gate.ts";

/** Returns whether the action shows the decision of a gate, which a report after the end of its execution can change. */
export const isGateStatus = (action: Action): boolean =>
  action.type === "set_commit_status" && action.gate !== undefined;

export const gateContextOf = (taskSlug: string | undefined): string => statusContext("assay/gate", taskSlug);

/**
 * Returns the notification with the gate's decision instead of the outcome, or why there is none. A rerun is part of the build that it
 * repeats, so the decision is about that build.
 */
export async function toGateNotice(
  sql: Tx,
  notice: Notification,
  gate: GateMode,
  { projectId, data }: Pick<EventRow, "projectId" | "data">,
): Promise<{ notice: Notification } | { missing: string }> {
  const id = data.execution?.id;
  const build = projectId === null || id === undefined ? undefined : await selectBuildStatus(sql, projectId, id);
  if (!build) return { missing: "The execution was deleted" };
  const decision = await readGate(
    sql,
    projectId!,
    { mode: gate, missingPercent: undefined },
    build,
    data.testRun?.taskSlug,
  );
  if (!decision.final) return { missing: `The decision is not final: ${decision.reasons.join("; ")}` };
  const tone = decision.pass ? "good" : "bad";
  return { notice: { ...notice, tone, text: gateSummary(decision), state: decision.pass ? "success" : "failure" } };
}
