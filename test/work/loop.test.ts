import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { type Item, startLoop, takeAll } from "../../src/work/loop.ts";
import { until } from "../harness.ts";

const lines: string[] = [];
const log = createLog("debug", (line) => lines.push(line), false);

describe("a loop", () => {
  test("comes again after each round; failures in a row are logged once, and their end", async () => {
    let rounds = 0;
    const loop = startLoop("fails at times", 1, log, async () => {
      rounds++;
      if (rounds <= 3) throw new Error("the database is unavailable");
      if (rounds === 4) throw new Error("another reason");
      if (rounds === 7) throw new Error("the database is unavailable");
    });
    await until(() => rounds > 8);
    await loop.stop();
    const own = lines.map((line) => JSON.parse(line)).filter(({ message }) => message.includes('"fails at times"'));
    expect(own.map(({ message, failures, error }) => [message, failures, error?.message])).toEqual([
      ['Loop "fails at times" failed; it continues', 1, "the database is unavailable"],
      ['Loop "fails at times" failed; it continues', 4, "another reason"],
      ['Loop "fails at times" works again', 4, undefined],
      ['Loop "fails at times" failed; it continues', 1, "the database is unavailable"],
      ['Loop "fails at times" works again', 1, undefined],
    ]);
  });

  test("has one round at a time, and its stop waits for it, telling it to take up nothing more", async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    let mayGoOn = true;
    const loop = startLoop("slow", 1, log, async (goOn) => {
      most = Math.max(most, ++running);
      await held;
      mayGoOn = goOn();
      running--;
    });
    await until(() => running === 1);
    let stopped = false;
    const stopping = loop.stop().then(() => (stopped = true));
    await Bun.sleep(0);
    expect(stopped).toBe(false);
    letGo();
    await stopping;
    expect([most, running, mayGoOn]).toEqual([1, 0, false]);
  });
});

describe("an item that cannot be done", () => {
  const item: Item = { loop: "delivery", id: "1", about: {} };
  /** What PostgreSQL answers when the time of a statement is over. */
  const stall = Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" });

  /** Fails once with `error`, having failed so often before; answers whether it was given up. */
  async function isGivenUp(error: Error, state: { tries: number; stalls: number }): Promise<boolean> {
    let given = false;
    let isFirst = true;
    const work = {
      failing: "Cannot do it",
      async next(take: (item: Item) => void) {
        if (!isFirst) return false;
        isFirst = false;
        take(item);
        throw error;
      },
      postpone: async () => state,
      giveUp: async () => (given = true),
    };
    // It postpones the item itself, so that no database is queried.
    await takeAll(undefined as never, work, log);
    return given;
  }

  test("because the database has no time for it is given up after the thirtieth time", async () => {
    expect(await isGivenUp(stall, { tries: 0, stalls: 29 })).toBe(false);
    expect(await isGivenUp(stall, { tries: 0, stalls: 30 })).toBe(true);
  });

  test("because of an error is given up after the eighth time", async () => {
    expect(await isGivenUp(new Error("of ours"), { tries: 7, stalls: 29 })).toBe(false);
    expect(await isGivenUp(new Error("of ours"), { tries: 8, stalls: 0 })).toBe(true);
  });
});
