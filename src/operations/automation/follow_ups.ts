/** Keeps the comments and the statuses of gates current that automations have written, by events that are not their own. */

import { type EventFacts, meets } from "../../rules/automation.ts";
import type { Action } from "../../schema/automation_actions.ts";
import type { EventType } from "../../schema/events.ts";
import type { Tx } from "../../database/connect.ts";
import type { AutomationRow } from "../../store/automations.ts";
import type { EventRow } from "../../store/events.ts";
import { selectCommentators } from "../../store/pull_request_comments.ts";
import { isGateStatus } from "./gate_status.ts";

/** Events whose automations also create the comment on a pull request that has none yet. */
const BEGINS_COMMENTS: readonly EventType[] = ["test_run.completed", "execution.completed"];

/** `met`: the event meets all conditions. An existing comment does not depend on the number and owners of failed tests. */
export async function selectFollowUps(
  sql: Tx,
  { trigger, conditions, actions }: AutomationRow,
  { type, teamId, projectId, data: { execution } }: EventRow,
  facts: EventFacts,
  met: boolean,
): Promise<readonly Action[]> {
  const own = "event" in trigger ? trigger.event : undefined;
  const isGated = met && own === "execution.completed" && execution?.status !== "cancelled";
  const gates = isGated && type === "execution.changed" ? actions.filter(isGateStatus) : [];
  // The other event follows separately.
  const isDouble = type === "execution.completed" && own === "execution.failed" && execution?.status !== "passed";
  const pullRequest = execution?.pullRequest ?? null;
  if (projectId === null || pullRequest === null || own === undefined || isDouble) return gates;
  const { owners: _, minFailed: __, ...origin } = conditions;
  if (!meets(origin, facts).met) return gates;
  const notifying = actions.filter((action) => action.type === "notify");
  const ids = notifying.map(({ integrationId }) => integrationId);
  const found = await selectCommentators(sql, { teamId, projectId, pullRequest }, ids);
  const isKept = (id: string) =>
    found.some((one) => one.id === id && (one.hasCommented || (met && BEGINS_COMMENTS.includes(own))));
  return [...gates, ...notifying.filter(({ integrationId }) => isKept(integrationId))];
}
