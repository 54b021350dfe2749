import { describe, expect, test } from "bun:test";
import { readReport } from "../../src/reports/read.ts";
import type { ReportedCase } from "../../src/reports/report.ts";

const readBytes = (bytes: Uint8Array, format?: string) =>
  readReport([{ name: "a.json", bytes }], { maxInflatedBytes: 2 ** 24, ...(format ? { format } : {}) });
const readText = (text: string, format?: string) => readBytes(new TextEncoder().encode(text), format);
const read = (report: object) => readText(JSON.stringify({ examples: [], summary_line: "", ...report }));
const one = (example: object): ReportedCase =>
  read({ examples: [{ description: "a", full_description: "S a", status: "passed", ...example }] }).cases[0]!;
const fixture = (name: string) => Bun.file(`${import.meta.dir}/../fixtures/${name}.json`).bytes();

test("what RSpec writes is read whole", async () => {
  const report = readBytes(await fixture("rspec_json"));
  expect(report).toMatchObject({ format: "rspec", suite: null, partial: false, warnings: [] });
  expect(report.durationMs).toBeGreaterThan(50);
  expect(report.cases.map(({ name, status, kind }) => [name, status, kind])).toEqual([
    ['a "quote" & <script> ]]> 😀', "passed", null],
    ["fails", "failed", "failure"],
    ["errors", "failed", "error"],
    ["pends", "skipped", null],
    ["is fixed but pending", "failed", "failure"],
    ["skips", "skipped", null],
    ["todo", "skipped", null],
    ["is expected to eq 1", "passed", null],
    ["times out", "failed", "timeout"],
    ["fails twice", "failed", "failure"],
    ["refuses", "passed", null],
  ]);
  expect(report.cases[2]).toMatchObject({
    suite: "Shop",
    file: "./spec/shop_spec.rb",
    line: 4,
    message: "boom red",
    stack: expect.stringMatching(/^ArgumentError\nboom red\n\/home\/dev\/project\/spec\/shop_spec.rb:4:in/),
  });
  expect(report.cases[3]!.message).toBe("not yet");
  expect(report.cases[10]!.suite).toBe("Shop #refund without a receipt");
});

test("a file that does not load is a failed case", async () => {
  expect(readBytes(await fixture("rspec_json_load_error"))).toMatchObject({
    warnings: [],
    cases: [{ name: "(file failed to load)", file: "./spec/broken_spec.rb", kind: "error", message: "cannot load" }],
  });
});

describe("errors outside of examples", () => {
  const summary = { errors_outside_of_examples_count: 1 };

  test("are failed cases, with what RSpec says of them", () => {
    const hook = "\nAn error occurred in a `before(:suite)` hook.\nFailure/Error: x\n\nKeyError:\n  no database\n";
    expect(read({ summary, messages: ["Run options: x", hook] }).cases).toMatchObject([
      { name: "(error outside of examples)", file: null, status: "failed", kind: "error", message: "no database" },
    ]);
  });

  test("are a failed case without any word of them, too", () => {
    expect(read({ summary }).cases).toMatchObject([{ name: "(error outside of examples)", message: null }]);
  });

  test("do not make the declared totals disagree", () => {
    expect(read({ summary: { ...summary, example_count: 0, failure_count: 0 } }).warnings).toEqual([]);
    expect(read({ summary: { example_count: 2, failure_count: 1 } }).warnings).toEqual([
      "The report declares 2 tests, 1 failed, but its test cases are 0 tests, 0 failed",
    ]);
  });
});

describe("an example", () => {
  test("has its groups as the suite where the full description tells them", () => {
    expect(one({})).toMatchObject({ suite: "S", name: "a" });
    expect(one({ full_description: "other" })).toMatchObject({ suite: "", name: "a" });
    expect(one({ description: "" })).toMatchObject({ suite: "", name: "S a" });
  });

  test("of unknown status is skipped, but failed when it has an exception", () => {
    expect(one({ status: "odd" }).status).toBe("skipped");
    expect(one({ status: null, exception: { class: "E" } })).toMatchObject({ status: "failed", message: "E" });
  });

  test("whose duration is not told has none", () => {
    expect(one({ run_time: 0.0125 }).durationMs).toBe(13);
    expect(one({ run_time: null }).durationMs).toBeNull();
  });
});

test("hostile values neither crash nor hang", () => {
  const { cases } = readText(`{"summary_line":1,"__proto__":{"x":1},"messages":{},"summary":{"duration":1e400,
    "errors_outside_of_examples_count":1e400},"examples":[null,5,{"description":"\\u0000\\ud800","full_description":[],
    "status":"failed","line_number":1e400,"run_time":-1,"exception":{"message":{},"backtrace":[1,null,"\\u001b[31mx"]}}]}`);
  expect(cases.map(({ name }) => name)).toEqual(["(no name)", "(no name)", "\ufffd\ufffd"]);
  expect(cases[2]).toMatchObject({ line: null, durationMs: null, stack: "1\nx" });
  const start = performance.now();
  const blank = `An error occurred while loading a${" ".repeat(200_000)}b\n${"A::".repeat(100_000)}${"\n ".repeat(100_000)}`;
  read({ summary: { errors_outside_of_examples_count: 1 }, messages: [blank, blank] });
  expect(performance.now() - start).toBeLessThan(1000);
});

test("what has no list of examples is refused", () => {
  expect(() => readText("{}", "rspec")).toThrow('Cannot read "examples" is not a list');
});

test("failures that are declared and not shown are one", () => {
  expect(read({ examples: [], summary: { failure_count: 2 }, summary_line: "" }).cases).toMatchObject([
    {
      name: "(failure without a test case)",
      message: "The report declares 2 failed, but none of its test cases failed",
    },
  ]);
});
