/** What the tests of readers share: a report from a value or a fixture, and its cases in short. */

import { readFileSync } from "node:fs";
import { readReport } from "../../src/reports/read.ts";
import { type Report, ReportError } from "../../src/reports/report.ts";

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

/**
 * Returns those positions, by default all, at which the beginning of a report is read as whole and green although something
 * of it is lost: there must be none.
 */
export function silentGreens(
  whole: Uint8Array,
  positions = Array.from({ length: whole.length }, (_, position) => position),
): number[] {
  const readBytes = (bytes: Uint8Array) => readReport([{ name: "cut", bytes }], { maxInflatedBytes: 2 ** 26 });
  const hasFailed = ({ cases, countsOnly }: Report) =>
    cases.some(({ status }) => status === "failed") || (countsOnly?.failed ?? 0) > 0;
  const all = readBytes(whole.slice());
  return positions.filter((position) => {
    try {
      const found = readBytes(whole.slice(0, position));
      const isLess = found.cases.length < all.cases.length || hasFailed(all);
      return isLess && !found.partial && !hasFailed(found);
    } catch (error) {
      if (error instanceof ReportError) return false;
      throw error;
    }
  });
}

export const fixtureBytes = (name: string): Uint8Array => readFileSync(`${import.meta.dir}/../fixtures/${name}`);

/** Returns the XML once with each of its attributes, and each of its texts, replaced by each of several odd values. */
export function* oddXml(xml: string): Generator<string> {
  const odd = ["", "-1", "NaN", "1e999", "__proto__", "constructor", "true", "9".repeat(400), "\u{1f680}"];
  for (const found of xml.matchAll(/="([^"]*)"|>([^<]*)</g)) {
    const [text] = found;
    const [before, after] = [xml.slice(0, found.index), xml.slice(found.index + text.length)];
    for (const value of odd) yield before + (text.startsWith("=") ? `="${value}"` : `>${value}<`) + after;
  }
}

const ODD_VALUES = [null, 1, -1, 1e400, "x", "", "__proto__", true, [], {}, [null], [[1]], { length: 9 }];

/** Returns the JSON document, or the JSON lines, once with each of its values replaced by an odd one. */
export function* oddJson(text: string): Generator<string> {
  const lines =
    text.startsWith("[") || text.split("\n")[1]?.startsWith("{") !== true ? [text] : text.trimEnd().split("\n");
  let turn = 0;
  for (const [index, line] of lines.entries()) {
    const root = { value: JSON.parse(line) };
    const open: Record<string, unknown>[] = [root];
    for (let node = open.pop(); node; node = open.pop())
      for (const key of Object.keys(node)) {
        const value = node[key];
        node[key] = ODD_VALUES[turn++ % ODD_VALUES.length];
        yield lines.with(index, JSON.stringify(root.value)).join("\n");
        node[key] = value;
        if (typeof value === "object" && value !== null) open.push(value as Record<string, unknown>);
      }
  }
}

/** Reads each text, and fails with anything but a ReportError. */
export function expectRefusals(texts: Iterable<string>): void {
  for (const text of texts)
    try {
      read(text);
    } catch (error) {
      if (!(error instanceof ReportError)) throw error;
    }
}
