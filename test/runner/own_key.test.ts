/** A runner asks with a key of its own as soon as its server gives it one. */

import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { type AskWithKey, askWithOwnKey } from "../../src/runner/own_key.ts";
import type { RunnerRequest } from "../../src/runner/protocol.ts";

const sync: RunnerRequest = { method: "POST", path: "/leases", body: "{}" };
const answer = (status: number, body: unknown = {}) => ({ status, text: JSON.stringify(body), headers: new Headers() });

/** A server that answers so; what it was asked, each with the key. */
function serverOf(reply: (path: string, key: string | undefined) => ReturnType<typeof answer>) {
  const asked: string[] = [];
  const ask: AskWithKey = async ({ path }, key) => {
    asked.push(`${path} ${key ?? "first"}`);
    return reply(path, key);
  };
  const server = askWithOwnKey(
    { name: "build-1", version: "1.4.0" },
    { ask, messageOf: ({ text }) => text },
    createLog("info", () => {}, false),
  );
  return { ...server, asked };
}

describe("a runner", () => {
  test("registers once, however much it asks at once, and asks with its own key", async () => {
    const server = serverOf((path) =>
      path === "/runners" ? answer(201, { key: "own", runner: "build-1" }) : answer(200),
    );
    await Promise.all([server.ask(sync), server.ask(sync)]);
    await server.ask(sync);
    expect(server.asked).toEqual(["/runners first", "/leases own", "/leases own", "/leases own"]);
  });

  test("gets another key when its own has ended, and asks again", async () => {
    let keys = 0;
    const server = serverOf((path, key) =>
      path === "/runners"
        ? answer(201, { key: `own ${++keys}`, runner: "build-1" })
        : answer(key === "own 1" && keys < 2 ? 401 : 200),
    );
    expect((await server.ask(sync)).status).toBe(200);
    expect(server.asked).toEqual(["/runners first", "/leases own 1", "/runners first", "/leases own 2"]);
  });

  test("is not given one key after the other where a new one is refused as well", async () => {
    const server = serverOf((path) =>
      path === "/runners" ? answer(201, { key: "own", runner: "build-1" }) : answer(401, "not for runners"),
    );
    expect(await server.ask(sync)).toMatchObject({ status: 401, text: '"not for runners"' });
    expect(server.asked).toEqual(["/runners first", "/leases own", "/runners first", "/leases own"]);
  });

  test("is told what its first key is refused for", async () => {
    const server = serverOf((path, key) =>
      path === "/runners" ? answer(401, "revoked") : answer(key === undefined ? 200 : 401),
    );
    expect(await server.ask(sync)).toMatchObject({ status: 401, text: '"revoked"' });
    expect(server.asked).toEqual(["/runners first"]);
  });

  test("waits and tries again where the server has no time for it", async () => {
    const answers = [answer(429), answer(503), answer(201, { key: "own", runner: "build-1" })];
    const server = serverOf((path) => (path === "/runners" ? answers.shift()! : answer(200)));
    expect((await server.ask(sync)).status).toBe(429);
    expect((await server.ask(sync)).status).toBe(503);
    expect((await server.ask(sync)).status).toBe(200);
  });
});
