import { expect, test } from "bun:test";
import { createLog } from "../src/log.ts";
import { createKey } from "../src/secrets/keys.ts";

test("an event is one JSON line from its level on, an error with its code", () => {
  const lines: string[] = [];
  const log = createLog("info", (line) => lines.push(line), false);
  log.debug("not this");
  log.info("request", { status: 200, path: "/a\nb" });
  log.error("failed", { error: Object.assign(new Error("oh"), { code: "57P01", parameters: ["secret"] }) });
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[0]!)).toEqual({
    time: expect.any(String),
    level: "info",
    message: "request",
    status: 200,
    path: "/a\nb",
  });
  const { error } = JSON.parse(lines[1]!);
  expect(error).toEqual({ name: "Error", message: "oh", code: "57P01", stack: expect.any(String) });
  expect(lines.join()).not.toContain("secret");
});

test("on a terminal it is text", () => {
  const lines: string[] = [];
  createLog("debug", (line) => lines.push(line), true).warn("careful", { port: 1 });
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d WARN careful port=1$/);
});

test("a key is masked, wherever in an event it stands", () => {
  const key = createKey("project").key;
  for (const isTerminal of [false, true]) {
    const lines: string[] = [];
    const log = createLog("info", (line) => lines.push(line), isTerminal);
    log.warn(`Refused ${key}`, { path: `/a/${key}`, deep: { text: [key] }, error: new Error(`No ${key}`) });
    expect(lines.join()).not.toContain(key);
    expect(lines.join()).toContain(`${key.slice(0, 17)}…`);
  }
});
