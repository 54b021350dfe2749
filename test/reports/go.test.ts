import { describe, expect, test } from "bun:test";
import type { ReportedCase } from "../../src/reports/report.ts";
import { read as readText } from "./reading.ts";

/** A text is a line as it is; events are of package "p" unless they say otherwise. */
const read = (...lines: (string | object)[]) =>
  readText(lines.map((line) => (typeof line === "string" ? line : JSON.stringify(withPackage(line)))).join("\n"));
const withPackage = (event: object) => ("ImportPath" in event ? event : { Action: "", Package: "p", ...event });
const on = (Test: string, Action: string, more: object = {}) => ({ Action, Test, ...more });
const pass = { Action: "pass" };
const fail = { Action: "fail", Elapsed: 0.1 };
const brief = ({ name, status, kind }: ReportedCase) => [name, status, kind];

describe("a test of Go", () => {
  test("is what its last attempt was, and flaky when only an earlier one failed", () => {
    const attempts = (...ends: string[]) =>
      read(...ends.flatMap((end) => [on("T", "run"), on("T", end, { Elapsed: 0.25 })]), pass).cases[0];
    expect(attempts("fail", "pass")).toMatchObject({ status: "passed", flaky: true, attempts: 2, durationMs: 250 });
    expect(attempts("pass", "fail")).toMatchObject({ status: "failed", flaky: false, attempts: 2 });
    expect(attempts("skip")).toMatchObject({ status: "skipped", attempts: 1 });
  });

  test("without an end shares the end of its package", () => {
    const end = (...ends: object[]) => read(on("T", "run"), ...ends).cases.map(brief);
    expect(end(pass)).toEqual([["T", "passed", null]]);
    expect(end(fail)).toEqual([["T", "failed", "error"]]);
    expect(end({ Action: "output", Output: "panic: test timed out after 1s\n" }, fail)).toEqual([
      ["T", "failed", "timeout"],
    ]);
  });

  test("without an end, yet with a result line in its output, ended so", () => {
    const told = (Output: string) => read(on("T", "run"), on("T", "output", { Output }), fail).cases[0];
    const passed = { status: "passed", durationMs: 250, output: "dots..." };
    expect(told("dots...--- PASS: T (0.25s)\n")).toMatchObject(passed);
    expect(told("--- PASS: Other (0.25s)\n")).toMatchObject({ status: "failed", durationMs: null });
  });

  test("has the message of its panic, of testify, or of the first line with a place", () => {
    const message = (...lines: string[]) =>
      read(...lines.map((line) => on("T", "output", { Output: `${line}\n` })), on("T", "fail"), fail).cases[0]!.message;
    expect(message("hello", "    a_test.go:4: boom", "    a_test.go:5: bang")).toBe("boom");
    expect(message("    a_test.go:4: ", "  Error Trace:\ta_test.go:4", "  Error:   \tNot equal:")).toBe("Not equal:");
    expect(message("    a_test.go:4: log", "panic: runtime error")).toBe("panic: runtime error");
    expect(message("=== RUN   T", "--- FAIL: T (0.00s)")).toBeNull();
  });

  test("keeps its attributes as properties", () => {
    const { cases } = read(on("T", "attr", { Key: "issue", Value: "7" }), on("T", "pass"), pass);
    expect(cases[0]!.properties).toEqual({ issue: "7" });
  });
});

describe("a package of Go", () => {
  test("is the report's suite when it is the only one", () => {
    expect(read(on("T", "pass"), pass).suite).toBe("p");
    expect(read(on("T", "pass"), pass, { Action: "pass", Package: "q" }).suite).toBeNull();
  });

  test("without tests is no test case", () => {
    expect(read({ Action: "skip" }).cases).toEqual([]);
  });

  test("that failed is a failed case only when none of its tests failed", () => {
    const output = { Action: "output", Output: "no database\n" };
    const [, fault] = read(on("T", "pass"), output, fail).cases;
    expect(fault).toMatchObject({ name: "(package failed)", kind: "error", message: "no database" });
    expect(read(on("T", "fail"), fail).cases.map(brief)).toEqual([["T", "failed", "failure"]]);
  });

  test("that did not finish is a failed case, beside the test that ran, and the report is partial", () => {
    const report = read(on("T", "run"), on("U", "run"), on("U", "pass"), '{"Action":"pa');
    expect(report.partial).toBe(true);
    expect(report.cases.map(brief)).toEqual([
      ["T", "failed", "error"],
      ["U", "passed", null],
      ["(package did not finish)", "failed", "error"],
    ]);
    expect(report.cases[0]!.message).toBe("It did not finish");
  });

  test("that did not build is a failed case with what the compiler says, as text", () => {
    const { cases } = read("# q [q.test]", "q/a.go:1: undefined: x", on("T", "pass"), pass, "FAIL\tq [build failed]");
    expect(cases[1]).toMatchObject({ suite: "q", name: "(build failed)", message: "q/a.go:1: undefined: x" });
    expect(read(pass, "FAIL\tq [setup failed]").cases[0]).toMatchObject({ suite: "q", name: "(setup failed)" });
  });

  test("that did not build is a failed case with what the compiler says, as events", () => {
    const lib = { ImportPath: "lib [p.test]" };
    const build = [
      { ...lib, Action: "build-output", Output: "# lib [p.test]\n" },
      { ...lib, Action: "build-output", Output: "lib/a.go:1: undefined: x\n" },
      { ...lib, Action: "build-fail" },
    ];
    const ends = [
      { Action: "start" },
      { Action: "output", Output: "FAIL\tp [build failed]\n" },
      { ...fail, FailedBuild: "lib [p.test]" },
    ];
    const message = "lib/a.go:1: undefined: x";
    expect(read(...build, ...ends).cases).toMatchObject([{ suite: "p", name: "(build failed)", message }]);
    expect(read(...build).cases).toMatchObject([{ suite: "lib", name: "(build failed)", message }]);
  });

  test.each([{ Action: "skip" }, pass])("that did not build is a failed case, though it ends with %j", (end) => {
    const covdata = [
      { ImportPath: "p", Action: "build-output", Output: 'go: no such tool "covdata"\n' },
      { ImportPath: "p", Action: "build-fail" },
      { ImportPath: "q [q.test]", Action: "build-fail" },
    ];
    expect(read(...covdata, { Action: "start" }, end).cases).toMatchObject([
      { suite: "p", name: "(build failed)", status: "failed", message: 'go: no such tool "covdata"' },
      { suite: "q", name: "(build failed)", status: "failed" },
    ]);
  });
});

test("hostile values neither crash nor hang", () => {
  const { cases } = read(
    on("__proto__", "pass", { Elapsed: "x", Time: {}, Output: 5 }),
    on("\0\ud800\u001b[31mred", "fail", { Elapsed: -1, Time: "never", Package: "constructor" }),
    { Action: "constructor", Test: "C" },
    { Action: "pass", Test: ["a"], Package: null },
    '{"Action":5,"Package":"p"}',
    "null",
  );
  expect(cases.slice(0, 2)).toMatchObject([
    { name: "__proto__", status: "passed", durationMs: null },
    { name: "C", status: "skipped" },
  ]);
  expect(cases.some(({ name }) => name === "\ufffd\ufffdred")).toBe(true);
  const long = `${" --- PASS: T (".repeat(20_000)}\t\t${"\n ".repeat(100_000)}a.go:`;
  read(on("T", "run"), ...Array.from({ length: 20 }, () => on("T", "output", { Output: long })), fail);
  const runs = Array.from({ length: 5000 }, (_, n) => on(`T${n}`, "run"));
  read(...runs, ...Array.from({ length: 5000 }, () => fail));
});
