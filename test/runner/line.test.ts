/** How a runner bears what a server answers: what its project may ask for is shared with others. */

import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { backoffMs, createLine, RunnerError } from "../../src/runner/line.ts";
import type { RunnerRequest } from "../../src/runner/protocol.ts";

const asking: RunnerRequest = { method: "POST", path: "/leases", body: "{}" };
const answer = (status: number, headers: Record<string, string> = {}, text = "{}") => ({
  ...{ status, text, headers: new Headers(headers) },
});
type Answer = ReturnType<typeof answer> | Error;

/** A line to a server that answers these, one after the other. */
function lineTo(...answers: Answer[]) {
  const lines: string[] = [];
  const line = createLine(
    {
      ask: async () => {
        const next = answers.shift()!;
        if (next instanceof Error) throw next;
        return next;
      },
      messageOf: ({ text }) => text,
    },
    createLog("info", (line) => lines.push(JSON.parse(line).message), false),
  );
  return { ...line, lines };
}

const budget = (limit: number, remaining: number, seconds: number) => ({
  "X-RateLimit-Limit": String(limit),
  "X-RateLimit-Remaining": String(remaining),
  "X-RateLimit-Reset": String(Math.ceil(Date.now() / 1000) + seconds),
});

describe("a refused request", () => {
  test("closes the line for as long as the server says, by Retry-After first", async () => {
    const line = lineTo(answer(429, { ...budget(60, 0, 50), "Retry-After": "7" }));
    expect(await line.ask(asking)).toBeUndefined();
    expect(line.waitMs()).toBeGreaterThan(6_900);
    expect(line.waitMs()).toBeLessThanOrEqual(8_000);
  });

  test("by the time of the reset where there is no other, and never for longer than a window", async () => {
    const line = lineTo(answer(429, budget(60, 0, 30)));
    await line.ask(asking);
    expect(line.waitMs()).toBeGreaterThan(28_000);
    const wrong = lineTo(answer(429, budget(60, 0, 86_400)));
    await wrong.ask(asking);
    expect(wrong.waitMs()).toBeLessThanOrEqual(66_000);
    const silent = lineTo(answer(429));
    await silent.ask(asking);
    expect(silent.waitMs()).toBeGreaterThan(500);
  });

  test("of a key is the end", async () => {
    const line = lineTo(answer(401, {}, "This key was revoked"));
    expect(line.ask(asking)).rejects.toThrow(new RunnerError("The server refuses the key: This key was revoked"));
  });
});

test("what is left of the requests says whether a task may be taken, and how far apart requests are", async () => {
  const told = async (limit: number, remaining: number, seconds = 40) => {
    const line = lineTo(answer(200, budget(limit, remaining, seconds)));
    await line.ask(asking);
    return [line.shortMs() > 0, line.spacingMs()];
  };
  expect(await told(60, 59)).toEqual([false, 200]);
  expect(await told(60, 20)).toEqual([false, 1_000]);
  expect(await told(60, 3)).toEqual([false, 3_000]);
  expect(await told(60, 2)).toEqual([true, 3_000]);
  // A small limit is used up to the last request.
  expect(await told(4, 1)).toEqual([false, 3_000]);
  expect(await told(4, 0)).toEqual([true, 3_000]);
  // Without a limit.
  expect(await told(0, 0)).toEqual([false, 200]);
});

test("an outage is told when it begins and when it ends, however long it is", async () => {
  const away = new Error("Cannot reach it");
  const line = lineTo(away, answer(502, {}, "gateway"), away, answer(200), answer(200), answer(500), answer(404));
  const statuses: unknown[] = [];
  for (let at = 0; at < 7; at++) statuses.push((await line.ask(asking))?.status);
  expect(statuses).toEqual([undefined, undefined, undefined, 200, 200, undefined, 404]);
  expect(line.lines).toEqual([
    ...[
      "The server does not respond",
      "The server responds again",
      "The server does not respond",
      "The server responds again",
    ],
  ]);
});

test("failures are waited for longer and longer, up to ten seconds or a little more", () => {
  for (let failures = 1; failures < 40; failures++) {
    const usual = Math.min(500 * 2 ** (failures - 1), 10_000);
    expect(backoffMs(failures)).toBeGreaterThanOrEqual(0.75 * usual);
    expect(backoffMs(failures)).toBeLessThanOrEqual(1.25 * usual);
  }
});

test("requests of a minute are kept for syncs, which are made until the limit", async () => {
  const limit = 10;
  const asked: string[] = [];
  const line = createLine(
    {
      ask: async ({ path }) => {
        asked.push(path);
        return answer(200, budget(limit, limit - asked.length, 60));
      },
      messageOf: ({ text }) => text,
    },
    createLog("info", () => {}, false),
  );
  // The first answer tells the limit; half of a small one is kept.
  for (let made = 0; made < 5; made++) await line.ask({ method: "POST", path: "/test-runs?lease_id=1" });
  const upload = line.ask({ method: "POST", path: "/test-runs?lease_id=2" });
  for (let made = 0; made < 5; made++) await line.ask(asking);
  expect(Bun.peek.status(upload)).toBe("pending");
  expect(asked.filter((path) => path === "/leases")).toHaveLength(5);
  const sync = line.ask(asking);
  await Promise.resolve();
  expect([Bun.peek.status(sync), asked.length]).toEqual(["pending", limit]);
});
