import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const suite = (more: object) =>
  read({ stats: { testsRegistered: 1 }, results: [{ title: "s", fullFile: "/home/dev/a.spec.js", ...more }] });
const one = (more: object) => suite({ tests: [{ title: "a", err: {}, ...more }] });

test("a test has the same identity as in Mocha's JSON", () => {
  const err = {};
  const mocha = { title: "a", fullTitle: "s inner a", file: "/home/dev/a.spec.js", err };
  const old = read({ stats: {}, tests: [mocha], passes: [mocha], failures: [], pending: [] }).cases[0]!;
  const now = suite({ suites: [{ title: "inner", tests: [{ title: "a", state: "passed", err }] }] }).cases[0]!;
  expect([now.suite, now.name, now.file]).toEqual([old.suite, old.name, old.file]);
});

test("before version 4 one suite holds all", () => {
  const suites = { title: "", suites: [{ title: "s", tests: [{ title: "a", state: "failed", err: {} }], suites: [] }] };
  expect(inShort(read({ stats: { testsRegistered: 1, failures: 1 }, suites }))).toEqual(["failed failure: s > a"]);
});

describe("a test", () => {
  test.each([
    [{ state: "passed" }, "passed"],
    [{ pass: true }, "passed"],
    [{ state: "failed" }, "failed failure"],
    [{ fail: true }, "failed failure"],
    [{ state: "passed", err: { message: "no" } }, "failed failure"],
    [{ state: "failed", timedOut: true }, "failed timeout"],
    [{ state: "pending" }, "skipped"],
    [{ pending: true }, "skipped"],
    [{ state: null, skipped: true }, "skipped"],
    [{}, "skipped"],
  ])("that says %j is %s", (more, expected) => {
    expect(inShort(one(more))).toEqual([`${expected}: s > a`]);
  });

  test("of an unknown state failed, and the upload is warned", () => {
    const report = one({ state: "greenish" });
    expect(inShort(report)).toEqual(["failed failure: s > a"]);
    expect(report.warnings).toEqual(['The result "greenish" is unknown: 1 test case counted as failed']);
  });

  test("has the texts and files that addContext gives it", () => {
    const context = JSON.stringify(["a note", { title: "screen", value: "shots/a.png" }, { title: "total", value: 7 }]);
    expect(one({ state: "failed", context }).cases[0]).toMatchObject({
      output: "a note\ntotal: 7",
      attachments: [{ name: "screen", path: "shots/a.png" }],
    });
    expect(one({ state: "failed", context: '"https://example.com/a.png"' }).cases[0]).toMatchObject({
      output: "https://example.com/a.png",
    });
  });
});

test("a hook is a case only where it failed", () => {
  const hooks = {
    beforeHooks: [{ title: "h", state: "passed" }, { title: "i" }],
    afterHooks: [{ title: "j", fail: true }],
  };
  expect(inShort(suite(hooks))).toEqual(["failed failure: s > j"]);
});
