import { expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

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
