/** What the tests of readers share: a report from a value or a fixture, and its cases in short. */

import { readFileSync } from "node:fs";
import { readReport } from "../../src/reports/read.ts";
import type { Report } from "../../src/reports/report.ts";

/** Texts as they are, values as JSON; several make one upload. */
export const read = (...contents: unknown[]): Report =>
  readReport(
    contents.map((content, index) => ({
      name: `${index}`,
      bytes: new TextEncoder().encode(typeof content === "string" ? content : JSON.stringify(content)),
    })),
    { maxInflatedBytes: 2 ** 26 },
  );

export const readFixture = (name: string): Report =>
  read(readFileSync(`${import.meta.dir}/../fixtures/${name}`, "utf8"));

/** A line per case: "failed timeout, 2 attempts: suite > name". */
export const inShort = ({ cases }: Report): string[] =>
  cases.map(({ status, kind, flaky, attempts, suite, name }) => {
    const words = [status, kind, flaky && "flaky"].filter(Boolean).join(" ");
    return `${words}${attempts > 1 ? `, ${attempts} attempts` : ""}: ${[suite, name].filter(Boolean).join(" > ")}`;
  });

/** How many failures reports of the corpus tell of outside of the test cases that its `expected.json` counts. */
export const FAULTS: Record<string, number> = {
  // Its root declares a failure, and its only case that did not pass says success="Turue".
  "EnricoMi__publish-unit-test-result-action/nunit__nunit3__jenkins__NUnit-multinamespace.xml": 1,
  // Its root declares 9 failures, and the file was cut down to passed ones.
  "inorton__junit2html/junit-testrun.xml": 1,
  // Suites with an error of their own.
  "jenkinsci__junit-plugin/junit-report-6700.xml": 1,
  "jenkinsci__junit-plugin/junit-report-nested-testsuites.xml": 1,
};
