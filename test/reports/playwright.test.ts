import { expect, test } from "bun:test";
import { inShort, read, readFixture } from "./reading.ts";

const report = (specs: unknown[], more = {}) => ({
  config: {},
  suites: [{ title: "a.spec.ts", file: "a.spec.ts", specs }],
  stats: {},
  errors: [],
  ...more,
});
const spec = (test: object, title = "t") => ({ title, file: "a.spec.ts", line: 3, tests: [test] });

test("a real report is read whole: retries, projects, expected failures, time-outs", () => {
  const found = readFixture("playwright_json.json");
  expect(inShort(found)).toEqual([
    "passed: one > outer <script> > passes 😀 @smoke",
    "passed: two > outer <script> > passes 😀 @smoke",
    "failed failure, 2 attempts: one > outer <script> > ansi red",
    "skipped: one > outer <script> > skipped",
    "passed flaky, 2 attempts: one > outer <script> > flaky",
    "passed: one > outer <script> > fails as expected",
    "failed timeout, 2 attempts: one > outer <script> > hangs",
    "passed: one > outer <script> > attaches",
  ]);
  expect(found.cases[2]).toMatchObject({
    file: "hostile.spec.ts",
    line: 4,
    message: "Error: expect(received).toBe(expected) // Object.is equality",
    stack: expect.stringContaining("hostile.spec.ts:4"),
  });
  expect(found.cases[0]).toMatchObject({ output: "some output\n", properties: { project: "one", tag: "smoke" } });
  expect(found.cases[4]!.message).toBe("Error: first time");
  expect(found.cases[7]!.properties).toMatchObject({ issue: "ABC-1" });
  expect(found).toMatchObject({ durationMs: expect.any(Number), completedAt: expect.any(Date), warnings: [] });
});

test("a file that does not load is a failed case of that file", () => {
  const { cases } = readFixture("playwright_load_error.json");
  expect(cases).toMatchObject([
    { name: "(file failed to load)", file: "broken.spec.ts", line: 1, kind: "error", message: "Error: load fails" },
  ]);
});

test("an error outside of all tests is a failed case", () => {
  const { cases } = read(report([], { errors: [{ message: "global set-up failed" }] }));
  expect(cases).toMatchObject([
    { name: "(error outside of tests)", status: "failed", message: "global set-up failed" },
  ]);
});

test("a project that has a name is the first suite, so that a second project changes no test", () => {
  const one = { projectName: "chromium", status: "expected", results: [{ status: "passed", duration: 1.6 }] };
  expect(read(report([spec(one)])).cases).toMatchObject([{ suite: "chromium", name: "t", durationMs: 2 }]);
  const unnamed = { ...one, projectName: "" };
  expect(read(report([spec(unnamed)])).cases).toMatchObject([{ suite: "", name: "t" }]);
});

test("a test that was interrupted or never ran to its end is failed, and one without results is what its status says", () => {
  const of = (test: object) => read(report([spec(test)])).cases[0];
  expect(of({ results: [{ status: "interrupted" }] })).toMatchObject({ status: "failed", kind: "error" });
  expect(of({ status: "skipped", results: [] })).toMatchObject({ status: "skipped", attempts: 1, durationMs: null });
  expect(of({ status: "toString", results: [{ status: "passed" }] })).toMatchObject({ status: "passed" });
});

test("an error outside of tests is called a load error only where it is one", () => {
  const found = readFixture("playwright_global_teardown.json");
  expect(inShort(found)).toEqual(["passed: a", "failed error: (global teardown failed)"]);
  expect(found.cases[1]).toMatchObject({ file: "gt.js", line: 1, message: "Error: teardown broke" });

  const errors = [{ message: "Error: x", location: { file: "/p/a.spec.ts", line: 2 } }];
  const config = { rootDir: "/p" };
  const passed = spec({ status: "expected", results: [{ status: "passed" }] });
  const names = (value: unknown) => read(value).cases.map(({ name }) => name);
  expect(names(report([passed], { config, errors }))).toEqual(["t", "(error outside of tests)"]);
  expect(names(report([], { config, errors }))).toEqual(["(file failed to load)"]);
  expect(names(report([], { config: { ...config, globalSetup: "/p/a.spec.ts" }, errors }))).toEqual([
    "(global setup failed)",
  ]);
});

test("a report of a version without stats is read whole", () => {
  const found = readFixture("playwright_without_stats.json");
  expect(found).toMatchObject({ format: "playwright", durationMs: null, warnings: [] });
  expect(inShort(found)).toEqual([
    "passed: cart > adds",
    "failed failure, 2 attempts: cart > rounds",
    "skipped: cart > vouchers",
    "passed: cart > expected to fail",
    "passed flaky, 2 attempts: cart > flaky",
  ]);
});
