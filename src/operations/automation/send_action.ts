/** The actions of automations that are sent to an integration: messages, issues, commit statuses, requests to start a pipeline. */

import { gateContextOf, toGateNotice } from "./gate_status.ts";
import { type AutomationServices, failed, type Occasion, type ActionAnswer, skipped } from "./occasion.ts";
import { findRedNews } from "./red_news.ts";
import { statusContext } from "../../rules/status_context.ts";
import type { Action } from "../../schema/automation_actions.ts";
import { MAX_WAITING, notSent } from "../../schema/deliveries.ts";
import type { Notification } from "../../schema/notifications.ts";
import { actionsOf, stateOf } from "../../senders/send.ts";
import { type ActionOptions, isAboutCulprit, isCommitHash } from "../../senders/sender.ts";
import type { TeamProject } from "../../store/automations.ts";
import type { Tx } from "../../database/connect.ts";
import type { EventRow } from "../../store/events.ts";
import { endUnsent, dropOldestDeliveries, insertDelivery, selectDeliveryOf } from "../../store/deliveries.ts";
import { lockIntegrationForUse, selectIntegration } from "../../store/integrations.ts";

type Delivered = Extract<Action, { integrationId: string }>;

export async function sendAction(
  sql: Tx,
  { dryRun, now }: AutomationServices,
  action: Delivered,
  { teamId, automation, event, project, notice: outcome, cause }: Occasion,
): Promise<ActionAnswer> {
  const { type, integrationId, owners: _, ...given } = { owners: undefined, ...action };
  // Locked until the delivery refers to it, so that it is not deleted.
  const integration =
    (await lockIntegrationForUse(sql, teamId, integrationId)) && (await selectIntegration(sql, teamId, integrationId));
  if (!integration) return failed("The integration was deleted");
  const { kind, name, enabled } = integration;
  const about = { integrationId };
  if (!actionsOf(kind).includes(type)) return { ...failed(`An integration of ${kind} cannot ${type}`), ...about };
  if (!enabled) return { ...skipped(`The integration "${name}" is disabled`), ...about };
  const missing = whatIsMissing(type, kind, outcome);
  if (missing !== undefined) return { ...skipped(missing), ...about };
  const gate = action.type === "set_commit_status" ? action.gate : undefined;
  const gated = gate && event ? await toGateNotice(sql, outcome, gate, event) : { notice: outcome };
  if ("missing" in gated) return { ...skipped(gated.missing), ...about };
  const { notice } = gated;
  const options =
    type === "set_commit_status"
      ? { context: contextOf(given, notice) }
      : type === "dispatch"
        ? { ...given, ...executionOf(event, project) }
        : given;
  const what = type === "dispatch" ? "the request to start a pipeline" : JSON.stringify(notice.title);
  if (dryRun) return { status: "planned", reason: `Would send ${what} to "${name}" (${kind})`, ...about };
  const stateKey = stateOf(kind, { action: type, options, notice });
  const sends: ActionAnswer = { status: "done", reason: `Sends ${what} to "${name}" (${kind})`, ...about };
  if (type === "notify" && event && isComment(kind)) {
    // Several automations can keep one comment.
    const same = stateKey && (await selectDeliveryOf(sql, { teamId, integrationId, stateKey, eventId: event.id }));
    if (same) return { ...sends, deliveryId: same };
  } else if (type === "notify" && event && cause === "event") {
    const isQuarantined = event.data.quarantined === true;
    const known = isQuarantined ? QUARANTINED : await findRedNews(sql, { teamId, automation, action, event });
    if (known !== undefined) return { ...skipped(known), ...about };
  }
  const deliveryId = Bun.randomUUIDv7();
  await insertDelivery(sql, teamId, {
    id: deliveryId,
    integrationId,
    action: type,
    options,
    eventId: event?.id ?? null,
    projectId: project?.id,
    notice,
    stateKey,
    due: "now",
  });
  const waits = `${MAX_WAITING} deliveries are waiting for "${name}" already`;
  const quota = await dropOldestDeliveries(sql, { teamId, integrationId }, MAX_WAITING, { now, how: "among" });
  if (quota.givenUp.includes(deliveryId)) return { ...failed(waits), ...about, deliveryId };
  // Old messages are dropped to make room. If there are none left, the failure is reported now.
  if (type !== "notify" && quota.isFull) {
    await endUnsent(sql, { teamId, integrationId, id: deliveryId }, "failed", notSent(now, `Not sent: ${waits}`));
    return { ...failed(waits), ...about, deliveryId };
  }
  return { ...sends, deliveryId };
}

const QUARANTINED = "All tests that failed are quarantined";

/** Messages to code hosts are comments, which show a state: they are written again whenever it changes. */
const isComment = (kind: string): boolean => kind === "github" || kind === "gitlab";

/** Returns the execution that a pipeline may add its results to. */
function executionOf(event: EventRow | null, project: TeamProject | null): Pick<ActionOptions, "execution"> {
  const id = event?.data.execution?.id;
  return id === undefined || !project ? {} : { execution: { projectId: project.id, id, waits: false } };
}

function contextOf(given: object, { data }: Notification): string {
  const { context, gate } = given as { context?: string; gate?: string };
  const taskSlug = (data["testRun"] as { taskSlug?: string } | undefined)?.taskSlug;
  if (context === undefined && gate !== undefined) return gateContextOf(taskSlug);
  return context ?? statusContext("assay", taskSlug);
}

/** Returns what the notification lacks for this action. */
function whatIsMissing(type: Delivered["type"], kind: string, notice: Notification): string | undefined {
  if (type === "set_commit_status" && notice.commit === null) return "The commit is unknown";
  if (type === "set_commit_status" && !isCommitHash(notice.commit))
    return `${JSON.stringify(notice.commit)} is no commit`;
  if (type === "notify" && isComment(kind) && !hasPullRequest(notice)) return "There is no pull request to comment on";
  const { externalUrl } = (notice.data["bugReport"] ?? {}) as { externalUrl?: string | null };
  if (type === "create_issue" && externalUrl) return `The bug report is followed up at ${externalUrl} already`;
  return undefined;
}

/** The pull request that brought the culprit of a bug is found when the message is sent. */
const hasPullRequest = (notice: Notification): boolean =>
  isAboutCulprit(notice) ? isCommitHash(notice.commit) : notice.pullRequest !== null;
