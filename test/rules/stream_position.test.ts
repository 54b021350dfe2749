import { expect, test } from "bun:test";
import { atEvent, atLog, before, compare, readPosition, writePosition } from "../../src/rules/stream_position.ts";

const id = (digit: string) => "00000000-0000-7000-8000-00000000000x".replace("x", digit);
/** In their order. */
const positions = [
  before(7, 100),
  atEvent(7, id("1"), 100),
  atEvent(7, id("2"), 100),
  atLog(7, id("1"), 0, 100),
  atLog(7, id("1"), 9, 100),
  atLog(7, id("1"), 10, 100),
  atLog(7, id("2"), 0, 100),
  before(8, 100),
  before(10, 100),
];

test("of a transaction events come before logs, and a log's parts in their order", () => {
  const shuffled = [...positions].sort((a, b) => (Bun.hash(writePosition(a)) < Bun.hash(writePosition(b)) ? -1 : 1));
  expect(shuffled.sort(compare)).toEqual(positions);
});

test("what is written is read again", () => {
  for (const position of positions)
    for (const isEnd of [false, true])
      expect(readPosition(writePosition(position, isEnd))).toEqual({ position, isEnd });
});

test("what nobody has written is not read", () => {
  const good = writePosition(positions[1]!);
  const changed = [`${good}x`, ` ${good}`, good.toUpperCase()];
  for (const text of ["", "x", "7", "7.", "-7.100", "7.100.l.x.0", "9".repeat(40), ...changed])
    expect([text, readPosition(text)]).toEqual([text, undefined]);
});
