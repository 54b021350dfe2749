/** Many items take linear time as well: a report may hold 200,000 test cases, all of one name. */

import { expect, test } from "bun:test";
import { readReport } from "../../../src/reports/read.ts";
import { identify, identifyOtherNames } from "../../../src/rules/identity.ts";
import { planShards } from "../../../src/rules/plan.ts";
import { findRenamed } from "../../../src/rules/rename.ts";
import { isSteep } from "./growth.ts";

const read = (report: string) =>
  readReport([{ name: "report", bytes: new TextEncoder().encode(report) }], { maxInflatedBytes: 2 ** 28 });
const casesIn = (folder: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ suite: "s", name: "n", file: `${folder}/${index}.ts` }));

/** What is done with so many items. */
const WORK: Record<string, (count: number) => unknown> = {
  "cases of one name in other files": (count) => findRenamed(casesIn("a", count), casesIn("b", count), new Set(), true),
  "cases of one name in files of one name": (count) => {
    const inFolders = (root: string) =>
      Array.from({ length: count }, (_, index) => ({ suite: "s", name: "n", file: `${root}/${index}/a.ts` }));
    findRenamed(inFolders("a"), inFolders("b"), new Set(), true);
  },
  "cases of one name in absolute files": (count) =>
    findRenamed(casesIn("/home/ci/a", count), casesIn("a", count), new Set(), true),
  "other names of cases": (count) =>
    identifyOtherNames(
      "p",
      "t",
      casesIn("a", count).map((one) => ({
        ...one,
        reportedName: { ...one, name: "f" },
        otherNames: [{ ...one, file: null }],
      })),
      [...Array(count).keys()],
    ),
  "equal cases": (count) =>
    identify(
      "p",
      "t",
      Array.from({ length: count }, () => ({ suite: "s", name: "n", file: "f" })),
    ),
  "files to plan": (count) =>
    planShards(
      casesIn("a", count).map(({ file }) => ({ file, ms: 1 })),
      1_000,
    ),
  "JUnit cases": (count) => read(`<testsuite>${'<testcase name="a"/>'.repeat(count)}</testsuite>`),
  "JUnit suites": (count) =>
    read(`<testsuites>${'<testsuite name="a" tests="3"><testcase name="a"/></testsuite>'.repeat(count)}</testsuites>`),
  "failures of a JUnit case": (count) =>
    read(`<testsuite><testcase name="a">${'<failure message="a">b</failure>'.repeat(count)}</testcase></testsuite>`),
  "JUnit properties": (count) =>
    read(
      `<testsuite><testcase name="a"><properties>${'<property name="a" value="b"/>'.repeat(count)}</properties></testcase></testsuite>`,
    ),
  "TAP points": (count) => read(`TAP version 13\n${"not ok 1 a\n".repeat(count)}1..${count}`),
  "TeamCity tests": (count) => read("##teamcity[testStarted name='a']\n".repeat(count)),
  "Go output": (count) =>
    read(
      '{"Action":"output","Package":"p","Test":"T","Output":"x\\n"}\n'.repeat(count) +
        '{"Action":"fail","Package":"p","Test":"T"}',
    ),
};

test.each(Object.entries(WORK))("%s", async (_, work) => {
  // Many objects cost more where they do not fit into the caches: a larger factor tells that from quadratic time.
  expect(
    await isSteep(
      () => work(7_500),
      () => work(30_000),
      { factor: 4 },
    ),
  ).toBe(false);
});
