import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { fixtureBytes, inShort, read } from "./reading.ts";

const green = GREEN_REPORTS.cucumber_messages!;
const lines = green.split("\n");
/** The report of one scenario with these results of its only step, one for each attempt. */
const run = (...statuses: string[]) => attempts(statuses.map((status) => [["t1", status]]));
const attempts = (all: [step: string, status: string][][], success = false, steps: object[] = [STEP]) =>
  [
    ...lines.slice(0, 2),
    { testCase: { id: "c", pickleId: "p1", testSteps: steps } },
    ...all.flatMap((results, n) => [
      { testCaseStarted: { id: `a${n}`, testCaseId: "c", attempt: n } },
      ...results.map(([testStepId, status]) => ({
        testStepFinished: {
          testCaseStartedId: `a${n}`,
          testStepId,
          testStepResult: { status, message: `${status} ${n}` },
        },
      })),
      { testCaseFinished: { testCaseStartedId: `a${n}`, willBeRetried: n < all.length - 1 } },
    ]),
    { testRunFinished: { success } },
  ]
    .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
    .join("\n");
const STEP = { id: "t1", pickleStepId: "s1" };

test("a scenario has the same identity as in Cucumber JSON", () => {
  const [step] = [{ keyword: "When ", name: "x", result: { status: "passed" } }];
  const old = read([{ uri: "a.feature", name: "F", elements: [{ id: "f;a", line: 3, name: "a", steps: [step] }] }]);
  const document = { gherkinDocument: { uri: "a.feature", feature: { name: "F", children: [] } } };
  const now = read(lines.toSpliced(1, 0, JSON.stringify(document)).join("\n"));
  const identity = ({ suite, name, file }: (typeof now.cases)[number]) => ({ suite, name, file });
  expect(identity(now.cases[0]!)).toEqual(identity(old.cases[0]!));
});

describe("a scenario", () => {
  test.each([
    ["PASSED", "passed"],
    ["FAILED", "failed failure"],
    ["AMBIGUOUS", "failed error"],
    ["UNDEFINED", "failed error"],
    ["PENDING", "failed error"],
    ["SKIPPED", "skipped"],
    ["UNKNOWN", "skipped"],
  ])("with a step that is %s is %s", (status, expected) => {
    expect(inShort(read(run(status)))[0]).toBe(`${expected}: a`);
  });

  test("with a step without a result is skipped, and the upload is warned", () => {
    const report = read(attempts([[["t1", "PASSED"]]], true, [STEP, { id: "t2", pickleStepId: "s2" }]));
    expect(inShort(report)).toEqual(["skipped: a"]);
    expect(report.warnings).toEqual(["1 scenario with a step without a result counted as skipped"]);
  });

  test("that is retried is flaky after a failure, and fails with its last attempt", () => {
    expect(inShort(read(run("FAILED", "PASSED").replace('"success":false', '"success":true')))).toEqual([
      "passed flaky, 2 attempts: a",
    ]);
    expect(inShort(read(run("PASSED", "FAILED")))).toEqual(["failed failure, 2 attempts: a"]);
  });

  test("with hooks alone did not test anything", () => {
    expect(inShort(read(attempts([[["h", "PASSED"]]], true, [{ id: "h", hookId: "h1" }])))).toEqual(["skipped: a"]);
  });

  test("that did not finish failed", () => {
    const text = run("PASSED").replace(/\{"testCaseFinished".*\n/, "");
    expect(read(text).cases).toMatchObject([
      { status: "failed", kind: "error", message: "The scenario did not finish" },
    ]);
  });
});

test("a test case that is declared twice keeps its failure, and an attempt after one without an end is another", () => {
  const declared = JSON.stringify({ testCase: { id: "c", pickleId: "p1", testSteps: [STEP] } });
  const [end, ...others] = run("FAILED").split("\n").toReversed();
  expect(inShort(read([...others.toReversed(), declared, end].join("\n")))).toEqual(["failed failure: a"]);
  const unfinished = run("FAILED", "PASSED").replace(/\{"testCaseFinished".*\n/, "");
  expect(inShort(read(unfinished))[0]).toBe("passed flaky, 2 attempts: a");
});

test("hooks around the run and features that do not load are failures", () => {
  const hook = { testRunHookFinished: { result: { status: "FAILED", message: "Error: no database\n at x" } } };
  const source = { uri: "features/broken.feature", location: { line: 3 } };
  const broken = { parseError: { source, message: "(3:1): expected: #EOF" } };
  const report = read(lines.toSpliced(-1, 0, JSON.stringify(hook), JSON.stringify(broken)).join("\n"));
  expect(report.cases.slice(2)).toMatchObject([
    { name: "(hook failed)", status: "failed", message: "Error: no database" },
    { name: "(file failed to load)", file: "features/broken.feature", line: 3, message: "(3:1): expected: #EOF" },
  ]);
});

test("runs one after the other are each judged", () => {
  const broken = run("FAILED");
  expect(inShort(read(`${green}\n${broken}`))).toEqual(["passed: a", "passed: b", "failed failure: a"]);
  expect(read(`${broken.slice(0, broken.lastIndexOf("\n"))}\n${green}`).partial).toBe(true);
});

test("a run that broke off is not green, wherever it did", () => {
  const text = new TextDecoder().decode(fixtureBytes("cucumber_messages.ndjson"));
  const report = read(text.slice(0, text.indexOf('{"testRunFinished"')));
  expect(report.partial).toBe(true);
  expect(report.cases.at(-1)).toMatchObject({ name: "(run did not finish)", status: "failed" });
});
