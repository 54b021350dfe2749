/** Sends due deliveries, and decides what an attempt means for the delivery and for its integration. */

import { type DispatchedFor, endUndispatched, reasonAgainst } from "./dispatch.ts";
import { type DeliveryAttempt, type DeliveryStatus, notSent } from "../../schema/deliveries.ts";
import { type Kind, SECRETS } from "../../schema/integration_configs.ts";
import { keepComment, prepareForHost } from "./host_deliveries.ts";
import { integrationPlace } from "../../secrets/places.ts";
import { type Seal, SealError } from "../../secrets/seal.ts";
import { INTERNAL_ATTEMPT, type Outbound, send, type Receiver } from "../../senders/send.ts";
import type { Job, Outcome } from "../../senders/sender.ts";
import { setExternalUrl } from "../../store/bug_reports.ts";
import { isUnavailable, isTimeout, savepoint, type Tx } from "../../database/connect.ts";
import { insertTeamEvent } from "../../store/events.ts";
import {
  type IntegrationClaim,
  countFailure,
  disableIntegration,
  markIntegrationSound,
  pauseIntegration,
} from "../../store/integrations.ts";
import { type DueDelivery, endUnsent, updateDelivery } from "../../store/deliveries.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** After the first, second, … attempt that failed. */
const RETRIES = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  15 * MINUTE_MS,
  HOUR_MS,
  3 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
];
/**
 * Pauses after consecutive failures of a receiver, from the second on; during a pause, due deliveries try it occasionally. A single failure
 * only concerns its delivery.
 */
const PAUSES_MS = [5 * SECOND_MS, 30 * SECOND_MS, 2 * MINUTE_MS, 15 * MINUTE_MS];
/** Maximum retry delay that a receiver can request. */
const MAX_RETRY_AFTER_MS = DAY_MS;
const GIVE_UP_AFTER_MS = 5 * DAY_MS;
const MAX_KEPT_ATTEMPTS = 20;

/** While a webhook's secret is replaced, the one before signs as well. */
export const ROTATION_MS = DAY_MS;

export type Secrets = Record<string, string | null>;

/** Fields besides the config: the previous secret, and until when it signs. */
type StoredSecrets = Secrets & { previousSecret?: string; previousUntil?: string };

/** The whole config, and which texts in it are secret. */
function toReceiver(
  seal: Seal,
  teamId: string,
  { id, kind, config, sealed }: { id: string; kind: Kind; config: Record<string, unknown>; sealed: Buffer },
  now: Date,
): Receiver {
  const { previousSecret, previousUntil, ...secrets } = openSecrets(seal, teamId, id, sealed);
  const rotating = previousSecret !== undefined && previousUntil !== undefined && previousUntil > now.toISOString();
  const texts = [...SECRETS[kind].map((name) => secrets[name]), previousSecret];
  return {
    kind,
    config: { ...config, ...secrets, ...(rotating ? { previousSecret } : {}) },
    secrets: texts.filter((text) => typeof text === "string"),
  };
}

export const openSecrets = (seal: Seal, teamId: string, id: string, sealed: Buffer): StoredSecrets =>
  JSON.parse(seal.open(integrationPlace(teamId, id), sealed)) as StoredSecrets;

type Place = Pick<IntegrationClaim, "teamId" | "id">;

export type DeliveryOptions = {
  begin: <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;
  outbound: Outbound;
  seal: Seal;
  /** Gets internal errors; the delivery only shows that there was one. */
  onBug: (error: unknown) => void;
  /** Called with the status of the delivery once an attempt is stored. */
  onAttempt?: (status: DeliveryStatus) => void;
};

const UNOPENED = "Cannot open the secrets of this integration: enter them again";

/**
 * Returns whether the integration may get the next delivery at once. With "once" the delivery fails instead of being retried, and the
 * failure does not count against the integration.
 */
export async function attemptDelivery(
  { begin, outbound, seal, onBug, onAttempt }: DeliveryOptions,
  claim: Place,
  delivery: DueDelivery,
  tried: "until sent" | "once" = "until sent",
): Promise<boolean> {
  const now = new Date();
  const { id, action, options, notice, tries } = delivery;
  const awaiting = executionOf(delivery);
  const against =
    awaiting && (await begin((sql) => reasonAgainst(sql, awaiting, { isAskedAgain: isAskedAgain(delivery) })));
  const place = { teamId: claim.teamId, integrationId: claim.id, id };
  if (against !== undefined) {
    await begin((sql) => endUnsent(sql, place, "failed", notSent(now, against)));
    onAttempt?.("failed");
    return true;
  }
  const shown = await begin((sql) => prepareForHost(sql, place, delivery));
  if ("against" in shown) {
    await begin((sql) => endUnsent(sql, place, "inapplicable", notSent(now, shown.against)));
    onAttempt?.("inapplicable");
    return true;
  }
  const { comment, annotations } = shown;
  const sent = await sendTo(
    { outbound, seal },
    claim.teamId,
    { ...delivery, id: claim.id },
    { id, action, options, notice, now, isRetry: delivery.attempts.length > 0, comment: comment?.job, annotations },
  );
  const { attempt, bug } = sent;
  const outcome = comment ? await begin((sql) => keepComment(sql, comment, sent.outcome)) : sent.outcome;
  if (bug !== undefined) onBug(bug);
  const attempts = [...delivery.attempts, attempt].slice(-MAX_KEPT_ATTEMPTS);
  const judged = judge(outcome, tried === "once" ? RETRIES.length : tries);
  const goesOn = await begin(async (sql) => {
    await updateDelivery(sql, place, { ...judged, attempts });
    if (awaiting && judged.status === "failed" && "error" in outcome)
      await endUndispatched(sql, awaiting, outcome.error, now);
    if (tried === "once" && !hasAnswered(outcome)) return false;
    // The receiver has no part in it.
    if (bug !== undefined) return true;
    return await judgeIntegration(sql, claim, delivery, outcome, onBug);
  });
  onAttempt?.(judged.status);
  return goesOn;
}

/** Returns the execution that a pipeline is started for. */
function executionOf({ action, options }: DueDelivery): DispatchedFor | undefined {
  const { execution } = options as { execution?: DispatchedFor };
  return action === "dispatch" && execution?.waits ? execution : undefined;
}

/** All its tries are before it once more. */
const isAskedAgain = ({ tries, attempts }: DueDelivery) => tries === 0 && attempts.length > 0;

type Sent = { outcome: Outcome; attempt: DeliveryAttempt; bug?: unknown };

async function sendTo(
  { outbound, seal }: Pick<DeliveryOptions, "outbound" | "seal">,
  teamId: string,
  integration: Parameters<typeof toReceiver>[2],
  job: Job,
): Promise<Sent> {
  let target: Receiver;
  try {
    target = toReceiver(seal, teamId, integration, job.now);
  } catch (bug) {
    const error = bug instanceof SealError ? UNOPENED : INTERNAL_ATTEMPT;
    return { outcome: { status: "retry", error }, attempt: notSent(job.now, error), bug };
  }
  return await send(outbound, target, job);
}

/** Whether the receiver has answered as it should: it accepted the message, or there was nothing to send. */
const hasAnswered = (outcome: Outcome): outcome is Extract<Outcome, { status: "sent" | "inapplicable" }> =>
  outcome.status === "sent" || outcome.status === "inapplicable";

function judge(outcome: Outcome, tries: number): { status: DeliveryStatus; nextMs: number | null } {
  if (hasAnswered(outcome)) return { status: outcome.status, nextMs: null };
  const wait = RETRIES[tries];
  if (outcome.status !== "retry" || wait === undefined) return { status: "failed", nextMs: null };
  // Deliveries that failed together should not all come back at the same moment.
  const jittered = wait * (1 + 0.2 * Math.random());
  return { status: "pending", nextMs: Math.min(Math.max(jittered, outcome.afterMs ?? 0), MAX_RETRY_AFTER_MS) };
}

async function judgeIntegration(
  sql: Tx,
  claim: Place,
  delivery: DueDelivery,
  outcome: Outcome,
  onBug: DeliveryOptions["onBug"],
): Promise<boolean> {
  const { teamId, id } = claim;
  if (hasAnswered(outcome)) {
    await markIntegrationSound(sql, teamId, id);
    const link = outcome.status === "sent" ? outcome.link : undefined;
    if (link === undefined) return true;
    // The issue exists whether or not it can be linked. Rolling back its delivery would open another one.
    await savepoint(sql, (sql) => linkBugReport(sql, delivery, link)).catch((error: unknown) => {
      if (isUnavailable(error) && !isTimeout(error)) throw error;
      onBug(error);
    });
    return true;
  }
  const state = await countFailure(sql, teamId, id);
  const reason =
    outcome.status === "gone"
      ? "The receiver answered 410 and no longer accepts messages"
      : state && state.failingForMs > GIVE_UP_AFTER_MS
        ? "No delivery succeeded for 5 days"
        : undefined;
  if (reason !== undefined && (await disableIntegration(sql, teamId, id, reason))) {
    const integration = { id, kind: delivery.kind, name: delivery.integrationName, reason };
    await insertTeamEvent(sql, teamId, "integration.disabled", { integration });
    return false;
  }
  if (outcome.status === "refused") return true;
  const inRow = state?.failures ?? 1;
  const pause = inRow < 2 ? 0 : PAUSES_MS[Math.min(inRow - 2, PAUSES_MS.length - 1)]!;
  const asked = outcome.status === "retry" ? Math.min(outcome.afterMs ?? 0, PAUSES_MS.at(-1)!) : 0;
  if (pause === 0 && asked === 0) return true;
  await pauseIntegration(sql, teamId, id, Math.max(pause, asked));
  return false;
}

/** Links a bug report to the issue that was opened for it. */
async function linkBugReport(sql: Tx, { action, notice }: DueDelivery, link: string): Promise<void> {
  const { project, bugReport } = notice.data as { project?: { id: string }; bugReport?: { id: string } };
  if (action === "create_issue" && project && bugReport && /^https?:\/\/\S{1,1990}$/.test(link))
    await setExternalUrl(sql, project.id, bugReport.id, link);
}
