import { expect, test } from "bun:test";
import { read } from "./reading.ts";

const report = (specs: unknown[], more = {}) => ({
  config: {},
  suites: [{ title: "a.spec.ts", file: "a.spec.ts", specs }],
  stats: {},
  errors: [],
  ...more,
});
const spec = (test: object, title = "t") => ({ title, file: "a.spec.ts", line: 3, tests: [test] });

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
