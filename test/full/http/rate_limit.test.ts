/** The shared rate limit between real processes. */

import { closeSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, expect, test } from "bun:test";
import { createSharedRateLimitFile, openSharedRateLimit } from "../../../src/http/shared_rate_limit.ts";
import { until } from "../../harness.ts";

test("processes that ask at once, of which some are killed in the middle, admit exactly the limit between them", async () => {
  const file = createSharedRateLimitFile(2 ** 20, [tmpdir()]);
  afterAll(() => closeSync(file));
  const words = new Int32Array(Bun.mmap(`/dev/fd/${file}`, { shared: true }).buffer);
  const source = new URL("../../../src/http/", import.meta.url).pathname;
  const { forget } = openSharedRateLimit(file, 99);
  /** Asks until it is refused a thousand times in a row. */
  const start = (self: number) => {
    const code = `
      import { openSharedRateLimit } from "${source}shared_rate_limit.ts";
      import { createRateLimit } from "${source}rate_limit.ts";
      const limiter = createRateLimit(100_000, () => 1_000, () => 0, openSharedRateLimit(3, ${self}));
      let [admitted, refused] = [0, 0];
      for (let at = ${self}; refused < 1_000; at++)
        if (limiter.admit("key " + (at % 4)).admitted) [admitted, refused] = [admitted + 1, 0];
        else refused++;
      console.log(admitted);`;
    const child = Bun.spawn([process.execPath, "-e", code], { stdio: ["ignore", "pipe", "inherit", file] });
    return { self, child, text: new Response(child.stdout).text() };
  };
  const victims = [start(1), start(2)];
  const others = [start(3), start(4)];
  for (const { self, child } of victims) {
    const before = words[1]!;
    await until(() => words[1]! > before + 20_000, 20);
    child.kill("SIGKILL");
    await child.exited;
    forget(self);
  }
  const told = await Promise.all(others.map(async ({ text }) => Number(await text)));
  expect(await Promise.all(others.map(({ child }) => child.exited))).toEqual([0, 0]);
  expect(words[1]).toBe(400_000);
  // What the victims were admitted counts as well, and they have told nobody.
  const sum = told[0]! + told[1]!;
  expect(sum).toBeGreaterThan(100_000);
  expect(sum).toBeLessThan(400_000);
});
