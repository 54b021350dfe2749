import { expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const check = (name: string, passes: number, fails: number) => ({ name, path: `::${name}`, id: name, passes, fails });
const group = (checks: unknown, groups: unknown = []) => ({ name: "cart", path: "::cart", id: "c", checks, groups });

test("each check and threshold of handleSummary is a test case", () => {
  const report = read({
    root_group: { ...group([check("home", 3, 0)], [group([check("status is 200", 45, 45)])]), name: "" },
    state: { testRunDurationMs: 1234.5 },
    metrics: {
      iterations: { type: "counter", values: { count: 90 } },
      http_req_duration: {
        values: { avg: 12.5, "p(95)": 300 },
        thresholds: { "p(95)<200": { ok: false }, "avg<100": { ok: true } },
      },
    },
  });
  expect(inShort(report)).toEqual([
    "passed: checks > home",
    "failed failure: checks > cart > status is 200",
    "failed failure: thresholds > http_req_duration: p(95)<200",
    "passed: thresholds > http_req_duration: avg<100",
  ]);
  const [, failed, crossed] = report.cases;
  expect([failed!.message, crossed!.message]).toEqual([
    "Failed 45 of 90 times",
    "The threshold was crossed: avg=12.5 p(95)=300",
  ]);
  expect(report.durationMs).toBe(1235);
});

test("--summary-export has objects, and true where a threshold was crossed", () => {
  const report = read({
    root_group: { ...group({ home: check("home", 9, 1) }, { cart: group({ ok: check("ok", 1, 0) }, {}) }), name: "" },
    metrics: { checks: { value: 0.9, passes: 10, fails: 1, thresholds: { "rate>0.8": false, "rate>0.95": true } } },
  });
  expect(inShort(report)).toEqual([
    "passed: checks > home",
    "passed: checks > cart > ok",
    "passed: thresholds > checks: rate>0.8",
    "failed failure: thresholds > checks: rate>0.95",
  ]);
  expect(report.cases[0]!.output).toBe("Failed 1 of 10 times");
});

test("a check without numbers is a failure", () => {
  const report = read({ root_group: { ...group([{ name: "home" }]), name: "" }, metrics: {} });
  expect(inShort(report)).toEqual(["failed error: checks > home"]);
});
