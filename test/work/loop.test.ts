import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { startLoop } from "../../src/work/loop.ts";
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
