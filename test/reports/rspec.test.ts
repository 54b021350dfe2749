import { describe, expect, test } from "bun:test";
import type { ReportedCase } from "../../src/reports/report.ts";
import { read as readJson } from "./reading.ts";

const read = (report: object) => readJson({ examples: [], summary_line: "", ...report });
const one = (example: object): ReportedCase =>
  read({ examples: [{ description: "a", full_description: "S a", status: "passed", ...example }] }).cases[0]!;

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
