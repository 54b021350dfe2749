import { expect, test } from "bun:test";
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

test("any value may be of any type", () => {
  for (const odd of [null, 1, "x", [], {}, [null], [[1]]]) {
    expect(() => read({ numTotalTests: odd, testResults: odd })).not.toThrow();
    expect(() => read(report(odd, file(odd)))).not.toThrow();
  }
  expect(one({ status: "passed", invocations: 1e9, duration: -1 })).toMatchObject({ attempts: 1000, durationMs: null });
});
