import { describe, expect, test } from "bun:test";
import { inShort, read, readFixture } from "./reading.ts";

const report = (...testResults: unknown[]) => ({ numTotalTests: 1, testResults });
const file = (...assertionResults: unknown[]) => ({ name: "/a/b.test.js", status: "passed", assertionResults });
const one = (assertion: object) => read(report(file({ title: "t", ...assertion }))).cases[0]!;

test("a real report of Jest is read whole", () => {
  const found = readFixture("jest_json.json");
  expect(inShort(found)).toEqual([
    'passed: outer <script> > inner ]]> & "q" > passes 😀',
    'failed failure, 3 attempts: outer <script> > inner ]]> & "q" > ansi red',
    'skipped: outer <script> > inner ]]> & "q" > skipped',
    'skipped: outer <script> > inner ]]> & "q" > todo',
    'failed failure, 3 attempts: outer <script> > inner ]]> & "q" > nul \ufffd lone \ufffd',
    "passed flaky, 2 attempts: outer <script> > flaky",
    "failed timeout, 3 attempts: outer <script> > hangs",
    "failed error: (file failed to load)",
  ]);
  expect(found.cases[1]).toMatchObject({
    file: "/home/dev/project/j/hostile.test.cjs",
    message: "Error: expect(received).toEqual(expected) // deep equality",
    stack: expect.stringContaining("hostile.test.cjs:4"),
  });
  expect(found.cases[7]).toMatchObject({ file: "/home/dev/project/j/broken.test.cjs", message: "load fails" });
  expect(found.completedAt).toBeInstanceOf(Date);
});

test("a real report of Vitest is read whole", () => {
  const found = readFixture("vitest_json.json");
  expect(inShort(found)).toEqual([
    "failed error: (file failed to load)",
    "skipped: suite > never runs",
    "failed error: (file failed)",
    'passed: outer <script> > inner ]]> & "q" > passes 😀',
    'failed failure: outer <script> > inner ]]> & "q" > ansi red',
    'skipped: outer <script> > inner ]]> & "q" > skipped',
    'skipped: outer <script> > inner ]]> & "q" > todo',
    'failed failure: outer <script> > inner ]]> & "q" > nul \ufffd lone \ufffd',
    "passed flaky, 2 attempts: outer <script> > flaky",
    "failed failure: outer <script> > hangs",
  ]);
  expect(found.cases[8]!.message).toBe("Error: first time");
});

test.each(["pending", "skipped", "todo", "disabled"])("%s is skipped", (status) => {
  expect(one({ status })).toMatchObject({ status: "skipped", message: null });
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

  test("below Jest's coverage threshold", () => {
    const found = readFixture("jest_json_threshold.json");
    expect(inShort(found)).toEqual(["passed: adds", "failed error: (test run failed)"]);
    expect(found.cases[1]!.message).toBe(
      'The report says "success": false, but none of its test cases failed: it may be a coverage threshold',
    );
  });

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
