import { describe, expect, test } from "bun:test";
import type { ReportedCase } from "../../src/reports/report.ts";
import { read } from "./reading.ts";

const feature = (...elements: unknown[]) => read([{ uri: "file:features/a.feature", name: "F", elements }]).cases;
const step = (status: string, more: object = {}) => ({ keyword: "When ", name: "s", result: { status, ...more } });
const scenario = (...steps: unknown[]) => ({ type: "scenario", id: "f;a", line: 3, name: "a", steps });
const brief = ({ name, status, kind }: ReportedCase) => [name, status, kind];

describe("a scenario", () => {
  test("with a step without a result is skipped, and the upload is warned", () => {
    const unknown = [{ keyword: "When ", name: "s" }, step(""), step("unknown"), step("UNKNOWN"), { result: {} }];
    const elements = unknown.map((one, line) => ({ ...scenario(step("passed"), one), line }));
    const { cases, warnings } = read([{ uri: "a.feature", name: "F", elements }]);
    expect(cases.map(({ status }) => status)).toEqual(unknown.map(() => "skipped"));
    expect(warnings).toEqual(["5 scenarios with a step without a result counted as skipped"]);
    expect(feature(scenario(step("unknown"), step("failed")))[0]!.status).toBe("failed");
  });

  test("is skipped when a step was skipped and none failed, or when there is none", () => {
    expect(feature(scenario(step("passed"), step("skipped")))[0]!.status).toBe("skipped");
    expect(feature(scenario(step("failed"), step("skipped")))[0]!.status).toBe("failed");
    expect(feature(scenario())[0]!.status).toBe("skipped");
  });

  test("fails with the hooks around it and around its steps", () => {
    const hook = (message: string) => [{ result: { status: "failed", error_message: message } }];
    const scenarios = {
      b: { ...scenario(step("skipped")), before: hook("b") },
      a: { ...scenario(step("passed")), after: hook("a") },
      s: scenario({ ...step("passed"), after: hook("s") }),
    };
    for (const [message, one] of Object.entries(scenarios))
      expect(feature(one)[0]).toMatchObject({ kind: "error", message });
  });

  test("fails with the background before it, which is no case of its own", () => {
    const background = (status: string) => ({ type: "background", name: "bg", steps: [step(status)] });
    const other = { ...scenario(step("passed")), id: "f;b", name: "b" };
    const cases = feature(background("failed"), scenario(step("skipped")), background("passed"), other);
    expect(cases.map(brief)).toEqual([
      ["a", "failed", "failure"],
      ["b", "passed", null],
    ]);
  });

  test("lasts as long as its steps, in nanoseconds, or unknown", () => {
    const steps = [step("passed", { duration: 1_600_000 }), step("passed", { duration: 2e6 }), step("passed")];
    expect(feature(scenario(...steps))[0]!.durationMs).toBe(4);
    expect(feature(scenario(step("passed")))[0]!.durationMs).toBeNull();
  });

  test("that is written again was retried: a pass after a failure is flaky, else the failure stays", () => {
    const runs = (...statuses: string[]) => feature(...statuses.map((status) => scenario(step(status))));
    expect(runs("failed", "passed")).toMatchObject([{ status: "passed", flaky: true, attempts: 2 }]);
    expect(runs("passed", "failed")).toMatchObject([{ status: "failed", flaky: false, attempts: 2 }]);
    expect(runs("failed", "skipped")).toMatchObject([{ status: "failed", attempts: 2 }]);
    expect(runs("failed", "passed", "passed")).toMatchObject([{ status: "passed", flaky: true, attempts: 3 }]);
  });

  test("of Java tells when it ran, its output and its attachments", () => {
    const embeddings = [{ mime_type: "image/png", data: "cG5n", name: "shot.png" }];
    const told = { ...step("passed", { duration: 1e9 }), output: ["one", "two"], embeddings };
    const start = { ...scenario(told), start_timestamp: "2026-01-02T03:04:05.000Z" };
    const report = read([{ uri: "a.feature", elements: [start] }]);
    expect(report.completedAt).toEqual(new Date("2026-01-02T03:04:06.000Z"));
    const attachments = [{ name: "shot.png" }];
    expect(report.cases[0]).toMatchObject({ output: "one\ntwo", properties: null, attachments });
  });
});
