/**
 * The same test has the same identity in the JUnit XML and in the JSON of its tool. The fixtures in `same_tests/` are what
 * Jest 30.5 with jest-junit 17.0, Vitest 4.1, Mocha 11.7 with mocha-junit-reporter 2.2 and Playwright 1.65 wrote of the same
 * sources; the absolute path of the project was replaced by /home/ci/work/shop, the host's name by ci, and long stacks were
 * cut.
 */

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { ReportedCase } from "../../src/reports/report.ts";
import { normalizeFile } from "../../src/rules/identity.ts";
import { read } from "./reading.ts";

/** The cases of a report that was written in a workspace of a CI system that Assay knows. */
const casesOf = (name: string): ReportedCase[] => {
  const text = readFileSync(`${import.meta.dir}/../fixtures/same_tests/${name}`, "utf8");
  return read(text.replaceAll("/home/ci/work/shop", "/home/runner/work/shop/shop")).cases;
};

type Identity = [suite: string, name: string, file: string | null];

const identityOf = ({ suite, name, file }: ReportedCase): Identity => [suite, name, file && normalizeFile(file)];
const sorted = (identities: Identity[]) =>
  [...new Set(identities.map((identity) => JSON.stringify(identity)))].sort().map((line): Identity => JSON.parse(line));
const identities = (name: string) => sorted(casesOf(name).map(identityOf));

test.each([
  ["jest.json", "jest_separated.xml"],
  ["mocha.json", "mocha_xunit.xml"],
  ["playwright.json", "playwright.xml"],
  ["playwright_projects.json", "playwright_projects.xml"],
  ["playwright_projects.json", "playwright_projects_named.xml"],
])("%s and %s name the same tests", (json, junit) => {
  expect(identities(json).length).toBeGreaterThan(14);
  expect(identities(junit)).toEqual(identities(json));
});

test("Vitest's reports do, but for a hook that fails: its JSON does not tell in which suite", () => {
  const hook: Identity = ["", "with a broken hook", "tests/hooks.test.mjs"];
  const file: Identity = ["", "(file failed)", "tests/hooks.test.mjs"];
  expect(identities("vitest.json")).toContainEqual(file);
  expect(identities("vitest.xml")).toEqual(
    sorted([...identities("vitest.json").filter((one) => !Bun.deepEquals(one, file)), hook]),
  );
  expect(identities("vitest.xml")).toContainEqual(["cart > with a discount > 10", "9 items", "tests/cart.test.mjs"]);
  expect(identities("vitest.xml")).toContainEqual(["", "(file failed to load)", "tests/broken.test.mjs"]);
});

test.each(["mocha.xml", "mocha_switched.xml"])(
  "Mocha's JSON and %s do, but for the file of a test outside of all suites",
  (junit) => {
    // mocha-junit-reporter leaves tests out that were not run.
    const ran = casesOf("mocha.json").filter(({ status }) => status !== "skipped");
    const expected = ran.map((one) => identityOf(one.suite === "" ? { ...one, file: null } : one));
    expect(identities(junit)).toEqual(sorted(expected));
  },
);

describe("jest-junit's default joins the titles with blanks", () => {
  const named = ({ suite, name, file }: { suite: string; name: string; file: string | null }) =>
    JSON.stringify([suite, name, file && normalizeFile(file)]);

  test.each(["jest_default.xml", "jest_with_files.xml"])(
    "so that the JSON says which name a test has in %s",
    (junit) => {
      const known = new Set(casesOf("jest.json").flatMap((one) => [named(one), ...(one.otherNames ?? []).map(named)]));
      const cases = casesOf(junit);
      expect(cases.length).toBeGreaterThan(14);
      expect(cases.map(named).filter((name) => !known.has(name))).toEqual([]);
    },
  );

  test("and every suite of the file is called after the first: it is no part of the name", () => {
    expect(identities("jest_default.xml")).toContainEqual(["", "x y z w", null]);
    expect(identities("jest_default.xml")).toContainEqual(["", "stands alone", null]);
  });
});

describe("what only looks like a tool's report", () => {
  const names = (xml: string) => read(xml).cases.map(({ suite, name, file }) => [suite, name, file]);

  test("is read as before", () => {
    const one = (root: string, suite: string, attributes: string) =>
      `<testsuites ${root}><testsuite ${suite}><testcase ${attributes}/></testsuite></testsuites>`;
    expect(names(one('name="mine"', 'name="a.test.js"', 'name="a &gt; b" classname="a.test.js"'))).toEqual([
      ["", "a > b", "a.test.js"],
    ]);
    expect(names(one('name="vitest tests"', 'name="s"', 'name="a &gt; b" classname="other"'))).toEqual([
      ["s > other", "a > b", null],
    ]);
    expect(names(one('name="" id=""', 'name="a.ts" hostname="h"', 'name="a › b" classname="a.ts"'))).toEqual([
      ["", "a › b", "a.ts"],
    ]);
    expect(names(one('name="Mocha Tests"', 'name="s"', 'name="a" classname="b"'))).toEqual([["s > b", "a", null]]);
  });

  test("a test without a name has none", () => {
    const playwright = 'errors="0" failures="0" id="" name="" skipped="0" tests="1" time="0"';
    for (const root of ['name="vitest tests"', 'name="jest tests"', 'name="Mocha Tests"', playwright])
      for (const name of ["", " ", " &gt; ", " › "])
        expect(() =>
          read(
            `<testsuites ${root}><testsuite name="a.ts"><testcase name="${name}" classname="a.ts"/></testsuite></testsuites>`,
          ),
        ).not.toThrow();
  });
});
