/** Forgets what nobody asks for any more: old events, deliveries and runs of automations; and bounds how many there are. */

import type { Log } from "../log.ts";
import { MAX_WAITING } from "../schema/deliveries.ts";
import { deleteOldInvitations } from "../store/accounts.ts";
import { deleteOldAutomationRuns } from "../store/automations.ts";
import { KEPT_HOURS, KEPT_UPLOADS } from "../schema/uploads.ts";
import type { Sql } from "../database/connect.ts";
import { deleteOldEvents } from "../store/events.ts";
import {
  deleteDeliveries,
  deleteOldDeliveries,
  giveUpOldest,
  type IntegrationId,
  selectCrowded,
  selectFull,
} from "../store/deliveries.ts";
import { deleteEndedCiKeys, deleteEndedRunnerKeys } from "../store/keys.ts";
import { deleteOldRunners } from "../store/runners.ts";
import { deleteOldRetryBackoffs } from "../database/retry_backoff.ts";
import { deleteEndedSessions } from "../store/sessions.ts";
import { deleteExpiredCiTokens } from "../store/trust_rules.ts";
import { deleteOldUploads } from "../store/uploads.ts";
import { always, eachOf, type GoOn, standardLog } from "./loop.ts";

const KEEP_DAYS = 30;
/** Of what is written with every upload. */
const KEEP_MANY_DAYS = 7;
/** The last try of a delivery comes within a day; an integration that is disabled may be enabled again until then. */
const GIVE_UP_DAYS = 5;
/** Of an integration. */
const KEEP_DELIVERIES = 10_000;
const BATCH = 5_000;
const KEEP_CI_KEYS_HOURS = 6;

export async function prune(sql: Sql, log: Log = standardLog, goOn: GoOn = always): Promise<void> {
  const all = async (deletePage: () => Promise<number>) => {
    while (goOn() && (await deletePage()) > 0);
  };
  const steps: [what: string, forget: () => Promise<unknown>][] = [
    ["events", () => deleteOldEvents(sql, KEEP_MANY_DAYS)],
    ["deliveries", () => deleteOldDeliveries(sql, GIVE_UP_DAYS, KEEP_DAYS)],
    ["too many deliveries", () => boundDeliveries(sql, log, goOn, { onlyGivenUp: false })],
    ["runs of automations", async () => await deleteOldAutomationRuns(sql, KEEP_MANY_DAYS, KEEP_DAYS)],
    ["runners", async () => await deleteOldRunners(sql, KEEP_MANY_DAYS)],
    ["keys of runners that have ended", async () => await deleteEndedRunnerKeys(sql, KEEP_MANY_DAYS, BATCH)],
    ["expired keys of CI jobs", () => all(() => deleteEndedCiKeys(sql, KEEP_CI_KEYS_HOURS, BATCH))],
    ["expired tokens of CI jobs", () => all(() => deleteExpiredCiTokens(sql, BATCH))],
    ["sessions that have ended", async () => await deleteEndedSessions(sql)],
    ["old invitations", async () => await deleteOldInvitations(sql, KEEP_DAYS)],
    ["what was put off", async () => await deleteOldRetryBackoffs(sql, KEEP_MANY_DAYS)],
  ];
  const forgetting = {
    failing: "Cannot forget what is old",
    about: ([what]: (typeof steps)[number]) => ({ what }),
  };
  await eachOf(steps, forgetting, ([, forget]) => forget(), log, goOn);
}

/**
 * What is added makes room for itself, but several servers that come to the bound at once may pass it by a few: these are
 * given up here. A receiver that is away leaves given-up deliveries as fast as events come: with `onlyGivenUp` the
 * integrations that have some are looked at, which costs less than to look at all.
 */
export async function boundDeliveries(
  sql: Sql,
  log: Log = standardLog,
  goOn: GoOn = always,
  { onlyGivenUp }: { onlyGivenUp: boolean } = { onlyGivenUp: true },
): Promise<void> {
  const bounding = {
    failing: "Cannot bound the deliveries of an integration",
    about: ({ teamId, integrationId }: IntegrationId) => ({ teamId, integrationId }),
  };
  const giveUp = async (place: IntegrationId) => {
    const alone = { now: new Date(), how: "alone" } as const;
    while (goOn() && (await giveUpOldest(sql, place, MAX_WAITING, alone)).givenUp.length > 0);
  };
  await eachOf(await selectCrowded(sql, MAX_WAITING), bounding, giveUp, log, goOn);
  const full = await selectFull(sql, KEEP_DELIVERIES, { onlyGivenUp });
  const forget = async (place: (typeof full)[number]) => {
    while (goOn() && (await deleteDeliveries(sql, place, BATCH)) > 0);
  };
  await eachOf(full, bounding, forget, log, goOn);
}

/** Of the uploads that were refused or had warnings. */
export const pruneUploads = (sql: Sql): Promise<void> =>
  deleteOldUploads(sql, { hours: KEPT_HOURS, kept: KEPT_UPLOADS });
