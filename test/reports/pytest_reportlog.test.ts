import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { inShort, read, readFixture } from "./reading.ts";

const green = GREEN_REPORTS.pytest_reportlog!;
const phase = (when: string, outcome: string, more: object = {}) => ({
  ...{
    $report_type: "TestReport",
    nodeid: "t.py::a",
    location: ["t.py", 0, "a"],
    when,
    outcome,
    duration: 0.1,
    ...more,
  },
});
const session = (events: object[], exitstatus: unknown = 0) =>
  [{ $report_type: "SessionStart" }, ...events, { $report_type: "SessionFinish", exitstatus }]
    .map((event) => JSON.stringify(event))
    .join("\n");
const run = (...outcomes: [when: string, outcome: string, more?: object][]) =>
  read(session(outcomes.map(([when, outcome, more]) => phase(when, outcome, more))));

test("a report log names the same tests as the JSON of the run", () => {
  const identities = (name: string) =>
    readFixture(name).cases.map(({ suite, name, file, line }) => [suite, name, file, line]);
  expect(identities("pytest_reportlog.ndjson")).toEqual(identities("pytest_json.json"));
});

describe("a test", () => {
  const whole = (outcome: string, more: object = {}): [string, string, object?][] => [
    ["setup", "passed"],
    ["call", outcome, more],
    ["teardown", "passed"],
  ];
  test.each([
    ["passed", {}, "passed"],
    ["failed", {}, "failed failure"],
    ["skipped", {}, "skipped"],
    ["skipped", { wasxfail: "known" }, "skipped"],
    ["passed", { wasxfail: "" }, "passed"],
  ])("whose call is %s, %j, is %s", (outcome, more, expected) => {
    expect(inShort(run(...whole(outcome, more)))[0]).toBe(`${expected}: t > a`);
  });

  test("fails with its set-up and its teardown", () => {
    expect(inShort(run(["setup", "failed"], ["teardown", "passed"]))).toEqual(["failed error: t > a"]);
    expect(inShort(run(["setup", "passed"], ["call", "passed"], ["teardown", "failed"]))).toEqual([
      "failed error: t > a",
    ]);
  });

  test("that was not called, or not torn down, did not finish", () => {
    for (const phases of [whole("passed").slice(0, 2), whole("passed").toSpliced(1, 1)])
      expect(run(...phases).cases).toMatchObject([
        { status: "failed", kind: "error", message: "The test did not finish" },
      ]);
  });

  test("fails with a subtest, which is no case of its own", () => {
    const subtest = (outcome: string) =>
      phase("call", outcome, { $report_type: "SubtestReport", longrepr: "assert 1 == 2" });
    const all = (outcome: string) => [
      phase("setup", "passed"),
      subtest(outcome),
      phase("call", "passed"),
      phase("teardown", "passed"),
    ];
    expect(inShort(read(session(all("failed"), 1)))).toEqual(["failed failure: t > a"]);
    expect(inShort(read(session(all("passed"))))).toEqual(["passed: t > a"]);
  });

  test("that runs again after its end is another case, and a rerun an attempt", () => {
    expect(inShort(run(...whole("passed"), ...whole("failed")))).toEqual(["passed: t > a", "failed failure: t > a"]);
    expect(inShort(run(["setup", "passed"], ["call", "rerun", { longrepr: "no" }], ...whole("passed")))).toEqual([
      "passed flaky, 2 attempts: t > a",
    ]);
  });
});

test("a subtest with an unknown result fails its test", () => {
  const subtest = (outcome: string) => ({ ...phase("call", outcome), $report_type: "SubTestReport" });
  const found = (outcome: string) =>
    read(session([phase("setup", "passed"), subtest(outcome), phase("call", "passed"), phase("teardown", "passed")]));
  expect(inShort(found("passed"))).toEqual(["passed: t > a"]);
  expect(inShort(found("greenish"))).toEqual(["failed failure: t > a"]);
  expect(found("greenish").warnings).toEqual(['The result "greenish" is unknown: 1 test case counted as failed']);
});

test("a session that did not exit well is not green", () => {
  for (const exitstatus of [1, 2, 3, null, "0"])
    expect(
      read(session([phase("setup", "skipped"), phase("teardown", "passed")], exitstatus)).cases.at(-1)!.status,
    ).toBe("failed");
});

test("a session that did not finish is a failure, also before another one", () => {
  const cut = green.slice(0, green.lastIndexOf("\n"));
  for (const text of [cut, `${cut}\n${green}`]) {
    const found = read(text);
    expect(found.partial).toBe(true);
    expect(inShort(found)).toContain("failed error: (session did not finish)");
  }
});
