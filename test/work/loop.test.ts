import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { startLoop } from "../../src/work/loop.ts";
import { until } from "../harness.ts";

const lines: string[] = [];
const log = createLog("debug", (line) => lines.push(line), false);

describe("a loop", () => {
  test("comes again after each round, and a round that fails is told and is not the last", async () => {
    let rounds = 0;
    const loop = startLoop("fails at times", 1, log, async () => {
      if (++rounds % 2) throw new Error(`round ${rounds}`);
    });
    await until(() => rounds > 4);
    await loop.stop();
    expect(lines.filter((line) => line.includes(`Loop \\"fails at times\\" failed`)).length).toBeGreaterThan(1);
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
