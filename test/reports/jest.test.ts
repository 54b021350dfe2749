import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const report = (...testResults: unknown[]) => ({ numTotalTests: 1, testResults });
const file = (...assertionResults: unknown[]) => ({ name: "/a/b.test.js", status: "passed", assertionResults });
const one = (assertion: object) => read(report(file({ title: "t", ...assertion }))).cases[0]!;

test.each(["pending", "skipped", "todo", "disabled"])("%s is skipped", (status) => {
  expect(one({ status })).toMatchObject({ status: "skipped", message: null });
});

test("a timeout is one in Vitest 3 too, which does not say so", () => {
  const failureMessages = ["Error: STACK_TRACE_ERROR\n    at task (x.js:1:1)"];
  expect(one({ status: "failed", failureMessages })).toMatchObject({
    kind: "timeout",
    message: "Error: Test timed out",
  });
});

test("a status that is not known counts as skipped, and a warning names it", () => {
  const found = read(report(file({ title: "t", status: "vanished" })));
  expect(found.cases[0]!.status).toBe("skipped");
  expect(found.warnings).toEqual(['The status "vanished" is not known and counts as skipped']);
});

test("a file that failed though its tests passed is a failed case of its own", () => {
  const failed = { ...file({ title: "t", status: "passed" }), status: "failed", message: "  ● hooks › x\n\n    broke" };
  expect(inShort(read(report(failed)))).toEqual(["passed: t", "failed error: (file failed)"]);
  expect(read(report(failed)).cases[1]!.message).toBe("broke");
});

describe("a run that says of itself what none of its tests shows has failed", () => {
  const briefs = (value: unknown) => read(value).cases.map(({ name, status, message }) => [name, status, message]);
  const green = file({ title: "t", status: "passed" });

  test("and once only, where a test or a file of it failed", () => {
    const failed = file({ title: "t", status: "failed" });
    expect(briefs({ ...report(failed), success: false, numFailedTests: 1 })).toHaveLength(1);
    expect(briefs({ ...report({ ...green, status: "failed" }), success: false })).toHaveLength(2);
    expect(briefs({ ...report(green), success: true })).toHaveLength(1);
  });
});

test("the results that Jest hands to a processor are read", () => {
  const processed = {
    testFilePath: "/a/b.test.js",
    testResults: [{ title: "t", status: "failed", failureMessages: ["no"] }],
  };
  expect(read(report(processed)).cases).toMatchObject([
    { name: "t", file: "/a/b.test.js", status: "failed", message: "no" },
  ]);
});
