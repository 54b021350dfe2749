import { expect, test } from "bun:test";
import { inShort, read, readFixture } from "./reading.ts";

test("a real report is read whole, and a hook that fails is a failure", () => {
  const found = readFixture("mocha_json.json");
  expect(inShort(found)).toEqual([
    "passed: outer <script> > passes 😀",
    "failed failure: outer <script> > ansi red",
    "skipped: outer <script> > skipped",
    "skipped: outer <script> > pending",
    "failed failure: outer <script> > nul \ufffd lone \ufffd",
    "passed flaky, 2 attempts: outer <script> > flaky",
    "failed timeout: outer <script> > hangs",
    'failed failure: outer <script> hooked > "before all" hook for "never runs"',
  ]);
  expect(found.cases[0]).toMatchObject({ file: "/home/dev/project/m/hostile.spec.cjs" });
  expect(found).toMatchObject({ durationMs: expect.any(Number), completedAt: expect.any(Date), warnings: [] });
});

test("two tests of one name are told apart by what they say themselves", () => {
  const [good, bad] = [
    { title: "a", fullTitle: "s a", err: {} },
    { title: "a", fullTitle: "s a", err: { message: "no" } },
  ];
  const found = read({ stats: {}, tests: [good, bad], passes: [good], failures: [bad], pending: [] });
  expect(inShort(found)).toEqual(["passed: s > a", "failed failure: s > a"]);
});

test("a failure that says nothing fails every test of its name that says nothing either", () => {
  const one = { title: "a", fullTitle: "s a", err: {} };
  const loud = { ...one, err: { message: "no" } };
  const found = read({ stats: {}, tests: [one, loud], passes: [], failures: [one, loud], pending: [] });
  expect(inShort(found)).toEqual(["failed failure: s > a", "failed failure: s > a"]);
});
