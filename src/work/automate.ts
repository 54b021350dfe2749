/** Looks at what has happened and at what time it is, and does what automations say; any number of servers may. */

import { runForEvent, runForSchedule } from "../automations.ts";
import type { Log } from "../log.ts";
import { nextTime } from "../schema/automations.ts";
import { lockDueAutomation, selectAutomationsFor, updateNextRun } from "../store/automations.ts";
import type { Database } from "../store/connect.ts";
import { always, type GoOn } from "./loop.ts";
import { type EventRow, lockDueEvent, markEventDone, putEventOff } from "../store/events.ts";

/** After so many failures of ours an event is left alone: it would fail for ever. */
const MAX_TRIES = 8;

type Servers = Pick<Database, "pool" | "begin">;

/** How many events there were. Each is handled in one transaction with everything that it causes. */
export async function handleEvents(
  { pool, begin }: Servers,
  publicUrl: string,
  log: Log,
  goOn: GoOn = always,
): Promise<number> {
  for (let count = 0; ; count++) {
    if (!goOn()) return count;
    let current: EventRow | undefined;
    try {
      const handled = await begin(async (sql) => {
        current = await lockDueEvent(sql);
        if (!current) return false;
        for (const automation of await selectAutomationsFor(sql, current.teamId, current.type))
          await runForEvent(sql, { publicUrl, now: new Date() }, automation, current, "event");
        await markEventDone(sql, current);
        return true;
      });
      if (!handled) return count;
    } catch (error) {
      if (!current) throw error;
      log.error("Cannot handle an event", { eventId: current.id, type: current.type, tries: current.tries + 1, error });
      await putEventOff(pool, current, MAX_TRIES);
    }
  }
}

/** How many schedules were due. What was missed while no server ran is made up for once, not as often as it was missed. */
export async function runSchedules({ begin }: Servers, publicUrl: string, now = new Date()): Promise<number> {
  for (let count = 0; ; count++) {
    const found = await begin(async (sql) => {
      const due = await lockDueAutomation(sql, now.toISOString());
      if (!due || !("schedule" in due.trigger)) return false;
      await updateNextRun(sql, due, nextTime(due.trigger.schedule, due.trigger.timezone, now)?.toISOString() ?? null);
      await runForSchedule(sql, { publicUrl, now }, due.teamId, due, "schedule");
      return true;
    });
    if (!found) return count;
  }
}
