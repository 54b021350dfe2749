/** The log of a task on its way: by byte offset, in whole characters, and never more than it may hold. */

import { describe, expect, test } from "bun:test";
import { createMask } from "../../src/secrets/mask.ts";
import { createTaskLog } from "../../src/runner/task_log.ts";
import { createRandom } from "../random.ts";

const MIB = 1_048_576;
const log = (secrets: string[] = []) => createTaskLog(createMask(secrets));
const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("what is to be sent", () => {
  test("goes on from where the server is, again and again until it has it", () => {
    const one = log();
    expect(one.unsent(100)).toBeUndefined();
    one.write(bytesOf("hello "));
    one.write(bytesOf("world"));
    expect([one.unsent(100), one.unsentBytes()]).toEqual([{ offset: 0, text: "hello world" }, 11]);
    one.acknowledge(6);
    expect(one.unsent(100)).toEqual({ offset: 6, text: "world" });
    expect(one.unsent(3)).toEqual({ offset: 6, text: "wor" });
    // An answer that was overtaken by another.
    one.acknowledge(2);
    expect(one.unsent(100)).toEqual({ offset: 6, text: "world" });
    one.acknowledge(11);
    expect([one.unsent(100), one.unsentBytes()]).toEqual([undefined, 0]);
    one.write(bytesOf("!"));
    expect(one.unsent(100)).toEqual({ offset: 11, text: "!" });
  });

  test("is cut between characters, and a character that is not whole waits for its rest", () => {
    const one = log();
    const bytes = bytesOf("a€😀");
    one.write(bytes.slice(0, 2));
    expect(one.unsent(100)).toEqual({ offset: 0, text: "a" });
    one.write(bytes.slice(2, 6));
    expect(one.unsent(100)).toEqual({ offset: 0, text: "a€" });
    one.write(bytes.slice(6));
    expect(one.unsent(7)).toEqual({ offset: 0, text: "a€" });
    one.acknowledge(4);
    expect(one.unsent(7)).toEqual({ offset: 4, text: "😀" });
    one.write(bytes.slice(4, 6));
    one.end();
    expect(one.unsent(100)).toEqual({ offset: 4, text: "😀\ufffd" });
  });

  test("has no secret in it, and what might have been the beginning of one comes at the end", () => {
    const one = log(["secret-token"]);
    one.write(bytesOf("x secret-tok"));
    expect(one.unsent(100)).toEqual({ offset: 0, text: "x " });
    one.write(bytesOf("en y sec"));
    expect(one.unsent(100)).toEqual({ offset: 0, text: "x *** y " });
    one.end();
    expect(one.unsent(100)).toEqual({ offset: 0, text: "x *** y sec" });
  });

  test("is the last mebibyte where the server is further behind, from a whole character on", () => {
    const one = log();
    const line = "0123456789 € \n";
    const all = line.repeat(400_000);
    const bytes = bytesOf(all);
    for (let at = 0; at < bytes.length; at += 70_001) one.write(bytes.subarray(at, at + 70_001));
    const part = one.unsent(2 * MIB)!;
    expect([one.unsentBytes() <= MIB, one.unsentBytes() > MIB - 4]).toEqual([true, true]);
    expect(Buffer.from(bytes.subarray(part.offset)).equals(Buffer.from(part.text))).toBe(true);
    one.write(bytesOf("€".repeat(MIB)));
    const last = one.unsent(2 * MIB)!;
    expect(last.offset + Buffer.byteLength(last.text)).toBe(bytes.length + 3 * MIB);
    expect(last.text).toBe("€".repeat(Math.floor(MIB / 3)));
  });
});

test("its end is told with a failure, whatever the server has of it already", () => {
  const one = log();
  one.write(bytesOf("a".repeat(100_000)));
  one.write(bytesOf("end"));
  expect(one.tail(50_000)?.text).toBe(`${"a".repeat(49_997)}end`);
  one.acknowledge(100_003);
  expect(one.tail(50_000)).toEqual({ offset: 100_003 - 16_384, text: `${"a".repeat(16_381)}end` });
  expect(one.unsent(50_000)).toBeUndefined();
});

test("sent in parts of any size and acknowledged at any time, the server has it byte for byte", () => {
  const { integer, pick, chance } = createRandom(3);
  for (let round = 0; round < 50; round++) {
    const one = log();
    const text = Array.from({ length: 3_000 }, () => pick(["a", "\n", "ä", "€", "😀", "word "])).join("");
    const bytes = bytesOf(text);
    let [written, server] = [0, ""];
    let size = 0;
    while (size < bytes.length) {
      const more = integer(0, 400);
      one.write(bytes.subarray(written, written + more));
      written = Math.min(bytes.length, written + more);
      const part = one.unsent(integer(4, 600));
      if (!part || chance(0.2)) continue;
      expect(part.offset).toBeLessThanOrEqual(size);
      server += Buffer.from(part.text)
        .subarray(size - part.offset)
        .toString();
      size = Buffer.byteLength(server);
      if (chance(0.8)) one.acknowledge(size);
    }
    expect(server).toBe(text);
  }
});
