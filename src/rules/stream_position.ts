/** Positions in a live stream: their order, and their text form as the ids of events. */

import type { Position } from "../schema/live.ts";

const FIRST_ID = "00000000-0000-0000-0000-000000000000";
const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** Returns the position before all events of a transaction and after those of earlier ones. */
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

/** `isEnd` marks the last event of a stream that has ended. */
export function writePosition({ xact, event, lease, start, at }: Position, isEnd = false): string {
  const location = start >= 0 ? `.l.${lease}.${start}` : event === FIRST_ID ? "" : `.e.${event}`;
  return `${xact}.${at}${location}${isEnd ? ".end" : ""}`;
}

/** Returns undefined if `writePosition` has not written the text. */
export function readPosition(text: string): { position: Position; isEnd: boolean } | undefined {
  const match = WRITTEN.exec(text);
  if (!match) return undefined;
  const [, xact, at, event, lease, start, end] = match;
  const numbers = { xact: Number(xact), at: Number(at) };
  const position =
    event !== undefined
      ? atEvent(numbers.xact, event, numbers.at)
      : lease !== undefined
        ? atLog(numbers.xact, lease, Number(start), numbers.at)
        : before(numbers.xact, numbers.at);
  return { position, isEnd: end !== undefined };
}
