/** Deletes old events, deliveries and runs of automations, and limits their number. */

import type { Log } from "../log.ts";
import { MAX_WAITING } from "../schema/deliveries.ts";
import { deleteOldInvitations } from "../store/accounts.ts";
import { deleteOldAutomationRuns } from "../store/automations.ts";
import { KEPT_HOURS, KEPT_UPLOADS } from "../schema/uploads.ts";
import type { Sql } from "../database/connect.ts";
import { deleteOldCommits } from "../store/commits.ts";
import { deleteOldEvents, deleteOldRedTasks } from "../store/events.ts";
import {
  deleteDeliveries,
  deleteOldDeliveries,
  dropOldestDeliveries,
  type IntegrationId,
  selectOverQuota,
  selectFull,
} from "../store/deliveries.ts";
import { deleteEndedCiKeys, deleteEndedRunnerKeys } from "../store/keys.ts";
import { deleteOldRunners } from "../store/runners.ts";
import { deleteOldRetryBackoffs } from "../database/retry_backoff.ts";
import { deleteEndedSessions } from "../store/sessions.ts";
import { deleteExpiredCiTokens } from "../store/trust_rules.ts";
import { deleteOldUploads } from "../store/uploads.ts";
import { always, eachOf, type GoOn, type OnDeleted, standardLog } from "./loop.ts";

const KEEP_DAYS = 30;
/** Retention of rows that every upload creates. */
const KEEP_MANY_DAYS = 7;
const KEEP_RED_DAYS = 365;
const KEEP_COMMITS_DAYS = 2 * 365;
/** The last try of a delivery comes within a day; an integration that is disabled may be enabled again until then. */
const GIVE_UP_DAYS = 5;
/** Maximum number of deliveries kept per integration. */
const MAX_DELIVERIES = 10_000;
const BATCH_ROWS = 5_000;
const KEEP_CI_KEYS_HOURS = 6;

type Forgotten = number | { count: number };

export async function prune(
  sql: Sql,
  log: Log = standardLog,
  goOn: GoOn = always,
  onDeleted: OnDeleted = () => {},
): Promise<void> {
  const all = async (deletePage: () => Promise<number>) => {
    let [count, page] = [0, 0];
    while (goOn() && (page = await deletePage()) > 0) count += page;
    return count;
  };
  const days = (count: number) => `${count} days`;
  const steps: [table: string, olderThan: string, forget: () => PromiseLike<Forgotten>][] = [
    ["event", days(KEEP_MANY_DAYS), () => deleteOldEvents(sql, KEEP_MANY_DAYS)],
    ["red_task", days(KEEP_RED_DAYS), () => deleteOldRedTasks(sql, KEEP_RED_DAYS)],
    ["commit", days(KEEP_COMMITS_DAYS), () => deleteOldCommits(sql, KEEP_COMMITS_DAYS)],
    ["delivery", days(KEEP_DAYS), () => deleteOldDeliveries(sql, GIVE_UP_DAYS, KEEP_DAYS)],
    ["delivery", `${MAX_DELIVERIES} newer ones`, () => boundDeliveries(sql, log, goOn, { onlyGivenUp: false })],
    ["automation_run", days(KEEP_DAYS), () => deleteOldAutomationRuns(sql, KEEP_MANY_DAYS, KEEP_DAYS)],
    ["runner", days(KEEP_MANY_DAYS), () => deleteOldRunners(sql, KEEP_MANY_DAYS)],
    ["api_key", days(KEEP_MANY_DAYS), () => deleteEndedRunnerKeys(sql, KEEP_MANY_DAYS, BATCH_ROWS)],
    ["api_key", `${KEEP_CI_KEYS_HOURS} hours`, () => all(() => deleteEndedCiKeys(sql, KEEP_CI_KEYS_HOURS, BATCH_ROWS))],
    ["used_ci_token", "1 hour", () => all(() => deleteExpiredCiTokens(sql, BATCH_ROWS))],
    ["session", "1 day", () => deleteEndedSessions(sql)],
    ["invitation", days(KEEP_DAYS), () => deleteOldInvitations(sql, KEEP_DAYS)],
    ["retry_backoff", days(KEEP_MANY_DAYS), () => deleteOldRetryBackoffs(sql, KEEP_MANY_DAYS)],
  ];
  const forgetting = {
    failing: "Cannot forget what is old",
    about: ([table, olderThan]: (typeof steps)[number]) => ({ table, olderThan }),
  };
  const forgetStep = async ([table, olderThan, forget]: (typeof steps)[number]) => {
    const forgotten = await forget();
    const rows = typeof forgotten === "number" ? forgotten : forgotten.count;
    if (rows === 0) return;
    log.info("Deleted rows for their age", { table, rows, olderThan });
    onDeleted(table, rows);
  };
  await eachOf(steps, forgetting, forgetStep, log, goOn);
}

/**
 * Inserting a delivery already drops the oldest, but several servers that do so at once may exceed the bound by a few, which are given up
 * here. While a receiver is away, deliveries are given up as fast as events occur. With `onlyGivenUp` only integrations with such
 * deliveries are checked, which costs less.
 */
export async function boundDeliveries(
  sql: Sql,
  log: Log = standardLog,
  goOn: GoOn = always,
  { onlyGivenUp }: { onlyGivenUp: boolean } = { onlyGivenUp: true },
): Promise<number> {
  const bounding = {
    failing: "Cannot bound the deliveries of an integration",
    about: ({ teamId, integrationId }: IntegrationId) => ({ teamId, integrationId }),
  };
  const giveUp = async (place: IntegrationId) => {
    const alone = { now: new Date(), how: "alone" } as const;
    while (goOn() && (await dropOldestDeliveries(sql, place, MAX_WAITING, alone)).givenUp.length > 0);
  };
  await eachOf(await selectOverQuota(sql, MAX_WAITING), bounding, giveUp, log, goOn);
  const full = await selectFull(sql, MAX_DELIVERIES, { onlyGivenUp });
  let [deleted, page] = [0, 0];
  const forget = async (place: (typeof full)[number]) => {
    while (goOn() && (page = await deleteDeliveries(sql, place, BATCH_ROWS)) > 0) deleted += page;
  };
  await eachOf(full, bounding, forget, log, goOn);
  return deleted;
}

/** Deletes old entries about uploads that were refused or had warnings. */
export const pruneUploads = (sql: Sql): Promise<void> =>
  deleteOldUploads(sql, { hours: KEPT_HOURS, kept: KEPT_UPLOADS });
