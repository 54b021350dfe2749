/** The places in a live stream: their order, and how they are written as the ids of its events. */

import type { Position } from "../schema/live.ts";

const FIRST_ID = "00000000-0000-0000-0000-000000000000";
const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** Before everything of a transaction, and after all of those with smaller numbers. */
export const before = (xact: number, at: number): Position => ({
  xact,
  event: FIRST_ID,
  lease: FIRST_ID,
  start: -1,
  at,
});
export const atEvent = (xact: number, event: string, at: number): Position => ({ ...before(xact, at), event });
export const atLog = (xact: number, lease: string, start: number, at: number): Position => ({
  ...{ xact, event: LAST_ID, lease, start, at },
});

export function compare(a: Position, b: Position): number {
  if (a.xact !== b.xact) return a.xact - b.xact;
  if (a.event !== b.event) return a.event < b.event ? -1 : 1;
  if (a.lease !== b.lease) return a.lease < b.lease ? -1 : 1;
  return a.start - b.start;
}

const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const WRITTEN = new RegExp(
  `^([0-9]{1,15})\\.([0-9]{1,11})(?:\\.e\\.(${UUID})|\\.l\\.(${UUID})\\.([0-9]{1,15}))?(\\.end)?$`,
);

/** `isEnd`: of the last event of a stream that ended by itself. */
export function writePosition({ xact, event, lease, start, at }: Position, isEnd = false): string {
  const place = start >= 0 ? `.l.${lease}.${start}` : event === FIRST_ID ? "" : `.e.${event}`;
  return `${xact}.${at}${place}${isEnd ? ".end" : ""}`;
}

/** Undefined where `text` is none that `writePosition` has written. */
export function readPosition(text: string): { position: Position; isEnd: boolean } | undefined {
  const match = WRITTEN.exec(text);
  if (!match) return undefined;
  const [, xact, at, event, lease, start, end] = match;
  const place = { xact: Number(xact), at: Number(at) };
  const position =
    event !== undefined
      ? atEvent(place.xact, event, place.at)
      : lease !== undefined
        ? atLog(place.xact, lease, Number(start), place.at)
        : before(place.xact, place.at);
  return { position, isEnd: end !== undefined };
}
