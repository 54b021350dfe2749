import { describe, expect, test } from "bun:test";
import type { ReportedCase } from "../../src/reports/report.ts";
import { read } from "./reading.ts";

const ctrf = (...tests: unknown[]) => ({ reportFormat: "CTRF", results: { tool: { name: "t" }, summary: {}, tests } });
const one = (test: object): ReportedCase => read(ctrf({ name: "a", status: "passed", duration: 5, ...test })).cases[0]!;

describe("a CTRF report", () => {
  test.each([
    ["passed", undefined, "passed", null],
    ["failed", undefined, "failed", "failure"],
    ["failed", "timedOut", "failed", "timeout"],
    ["failed", "broken", "failed", "error"],
    ["timedOut", undefined, "failed", "timeout"],
    ["skipped", undefined, "skipped", null],
    ["pending", undefined, "skipped", null],
    ["other", undefined, "skipped", null],
  ])("status %p with raw status %p", (status, rawStatus, expected, kind) => {
    const result = one({ status, rawStatus });
    expect([result.status, result.kind as string | null]).toEqual([expected as ReportedCase["status"], kind]);
    expect(result.properties).toEqual(["pending", "other", "timedOut"].includes(status) ? { status } : null);
  });

  test("a status of no meaning counts as skipped, with a warning", () => {
    const { cases, warnings } = read(ctrf({ name: "a", status: "fine" }, { name: "b" }));
    expect(cases.map(({ status }) => status)).toEqual(["skipped", "skipped"]);
    expect(warnings).toContain('The status "fine" is not one of CTRF and counts as skipped');
  });

  test("a passed test that was retried is flaky unless the report denies it", () => {
    expect(one({ retries: 1 }).flaky).toBe(true);
    expect(one({ retries: 1, flaky: false }).flaky).toBe(false);
    expect(one({ retryAttempts: [{ status: "failed" }] })).toMatchObject({ flaky: true, attempts: 2 });
    expect(one({ retries: 1, status: "failed", flaky: true })).toMatchObject({ flaky: false, attempts: 2 });
  });

  test("attempts and the list of suites are taken as far as they make sense, and labels whatever they are called", () => {
    expect(one({ retries: 1e300, suite: ["a", null, {}] })).toMatchObject({ attempts: 1001, suite: "a" });
    const labels = JSON.parse('{"__proto__":"x","constructor":"y"}') as object;
    expect(Object.entries(one({ tags: "t", labels }).properties!)).toEqual([
      ["tag", "t"],
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
  });

  test("start and stop may be seconds", () => {
    expect(one({ duration: undefined, start: 1795210330, stop: 1795210333 }).durationMs).toBe(3000);
    expect(one({ duration: undefined, start: 1795210330130, stop: 1795210330150 }).durationMs).toBe(20);
    expect(one({ duration: undefined, start: 0, stop: 5 }).durationMs).toBeNull();
  });
});
