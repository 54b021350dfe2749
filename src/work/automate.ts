/** Runs automations for events and schedules; several servers may do so at once. */

import { factsOf, reasonOf, runForEvent, runForSchedule } from "../operations/automation/automations.ts";
import type { Log } from "../log.ts";
import { nextTime } from "../schema/automations.ts";
import {
  type AutomationRow,
  type DueAutomation,
  insertAutomationRun,
  lockDueAutomation,
  selectAutomationsFor,
  updateNextRun,
} from "../store/automations.ts";
import { type Database, isUnavailable, isTimeout, savepoint, type Tx } from "../database/connect.ts";
import { deleteRetryBackoff, postponeRetry } from "../database/retry_backoff.ts";
import { always, type GoOn, type Item, MAX_STALLS, standardLog, takeAll } from "./loop.ts";
import { type EventRow, lockDueEvent, markEventDone, postponeEvent } from "../store/events.ts";

type Servers = Pick<Database, "pool" | "begin">;

/**
 * Handles events and returns their number. Each is handled in one transaction with everything that it causes, and its automations are
 * independent: one that fails leaves a failed run, and the effects of the others stay.
 */
export async function handleEvents(
  { pool, begin }: Servers,
  publicUrl: string,
  log: Log,
  goOn: GoOn = always,
): Promise<number> {
  const failing = "Cannot handle an event";
  return await takeAll<Item & { event: EventRow }>(
    pool,
    {
      failing,
      async next(take) {
        return await begin(async (sql) => {
          const event = await lockDueEvent(sql);
          if (!event) return false;
          const about = { eventId: event.id, type: event.type, teamId: event.teamId };
          take({ loop: "event", id: event.id, about, event });
          // An event that cannot be read is a failure of the event, not of the automations.
          factsOf(event);
          const late = await runAll(sql, event, about);
          const state = late.length > 0 ? await postponeRetry(sql, "event", event.id, true) : undefined;
          if (state && state.stalls < MAX_STALLS) return true;
          for (const automation of late) await noteFailure(sql, event, automation, true);
          await markEventDone(sql, event);
          return true;
        });
      },
      async postpone({ event }, isStall) {
        const tries = isStall ? undefined : await postponeEvent(pool, event);
        return tries === undefined ? undefined : { tries, stalls: 0 };
      },
      giveUp: ({ event }, isStall) =>
        begin(async (sql) => {
          for (const automation of await selectAutomationsFor(sql, event))
            await noteFailure(sql, event, automation, isStall);
          await markEventDone(sql, event);
        }),
    },
    log,
    goOn,
  );

  /** Returns automations that timed out. The runs of others are kept, and the event is handled again for these. */
  async function runAll(sql: Tx, event: EventRow, about: object): Promise<AutomationRow[]> {
    const late: AutomationRow[] = [];
    for (const automation of await selectAutomationsFor(sql, event)) {
      const ids = { ...about, automationId: automation.id };
      const onBug = (error: unknown) => log.error("Cannot run an automation", { ...ids, error });
      try {
        await runForEvent(sql, { publicUrl, now: new Date(), onBug }, automation, event, "event");
      } catch (error) {
        if (isTimeout(error)) {
          log.warn("The database was too slow for an automation; it is retried", { ...ids, error });
          late.push(automation);
        } else if (isUnavailable(error)) throw error;
        else log.error("Cannot record the failure of an automation", { ...ids, error });
      }
    }
    return late;
  }

  /** Records a failure at most once, like every run for an event. */
  async function noteFailure(sql: Tx, event: EventRow, { id }: AutomationRow, isStall: boolean): Promise<void> {
    const { teamId, projectId, type } = event;
    const about = { cause: "event" as const, eventId: event.id, eventType: type, projectId };
    try {
      await savepoint(sql, (sql) =>
        insertAutomationRun(sql, teamId, id, { ...about, status: "failed", reason: reasonOf(isStall), actions: [] }),
      );
    } catch (error) {
      if (isUnavailable(error)) throw error;
      log.error("Cannot record the failure of an automation", { eventId: event.id, automationId: id, error });
    }
  }
}

/**
 * Runs due schedules and returns their number. Runs that were missed while no server ran are made up for once; an internal error is stored
 * as a failed run, and the next time is planned.
 */
export async function runSchedules(
  { pool, begin }: Servers,
  publicUrl: string,
  now = new Date(),
  log: Log = standardLog,
  goOn: GoOn = always,
): Promise<number> {
  return await takeAll<Item & { due: DueAutomation }>(
    pool,
    {
      failing: "Cannot run a schedule",
      async next(take) {
        return await begin(async (sql) => {
          const due = await lockDueAutomation(sql, now.toISOString());
          if (!due) return false;
          const about = { automationId: due.id, teamId: due.teamId };
          take({ loop: "schedule", id: due.id, about, due });
          await updateNextRun(sql, due, nextRunOf(due));
          const onBug = (error: unknown) => log.error("Cannot run a schedule", { ...about, error });
          await runForSchedule(sql, { publicUrl, now, onBug }, due.teamId, due, "schedule");
          await deleteRetryBackoff(sql, "schedule", due.id);
          return true;
        });
      },
      giveUp: ({ due }, isStall) =>
        begin(async (sql) => {
          const about = { cause: "schedule" as const, eventId: null, eventType: null, projectId: null };
          const failure = { status: "failed" as const, reason: reasonOf(isStall), actions: [] };
          await insertAutomationRun(sql, due.teamId, due.id, { ...about, ...failure });
          await updateNextRun(sql, due, nextRunOf(due));
          await deleteRetryBackoff(sql, "schedule", due.id);
        }),
    },
    log,
    goOn,
  );

  /** A trigger that cannot be read has no next time: it would be due for ever. */
  function nextRunOf({ trigger }: DueAutomation): string | null {
    if (typeof trigger !== "object" || trigger === null || !("schedule" in trigger)) return null;
    return nextTime(trigger.schedule, trigger.timezone, now)?.toISOString() ?? null;
  }
}
