/** A report that was cut off is never read as a whole and green one, wherever the cut is: one report of each format. */

import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { isSilentBeginning, silentGreens } from "./reading.ts";

test.each(Object.entries(GREEN_REPORTS))("%s", (_, text) => {
  expect(silentGreens(Buffer.from(text))).toEqual([]);
});

/** Formats of which a file may hold the whole outputs of several processes, one after the other. */
const SEVERAL = {
  junit: "each has a root element",
  go_json: "each package has an end",
  go: "each package has an end",
  libtest: "each test binary has an end",
  cucumber_messages: "each run has an end",
  pytest_reportlog: "each session has an end",
  swift_testing: "each run has an end",
};

describe("two whole reports in one file are green only between the two", () => {
  test.each(Object.entries(SEVERAL))("%s: %s", (format) => {
    const first = `${GREEN_REPORTS[format]!.trimEnd()}\n`;
    const second = GREEN_REPORTS[format]!.replaceAll('"p"', '"q"').replace("example.com/a", "b");
    const both = Buffer.from(first + second);
    expect(silentGreens(both)).toEqual([first.length - 1, first.length]);
  });
});

test("TeamCity service messages that do not count their tests are green only between two of the outermost suites", () => {
  const suite = (name: string) =>
    `##teamcity[testSuiteStarted name='${name}']\n##teamcity[testStarted name='a']\n##teamcity[testFinished name='a']\n##teamcity[testSuiteFinished name='${name}']\n`;
  const first = suite("A");
  // "#" and "##" may be printed by anything.
  const positions = [-1, 0, 1, 2].map((offset) => first.length + offset);
  expect(silentGreens(Buffer.from(first + suite("B")))).toEqual(positions);
});

describe("the beginning of any report below a whole one is red", () => {
  const others = Object.entries(GREEN_REPORTS);
  test.each(["tap", "go", "go_json", "surefire", "teamcity", "junit"])("below %s", (name) => {
    const first = Buffer.from(GREEN_REPORTS[name]!);
    const silent = others.flatMap(([other, text]) =>
      [1, 5, 20, text.length * 0.1, text.length * 0.5, text.length * 0.95, text.trimEnd().length - 1]
        .map(Math.floor)
        .filter((position) => isSilentBeginning(first, Buffer.from(text).subarray(0, position)))
        .map((position) => `${other} cut at ${position}`),
    );
    expect(silent).toEqual([]);
  });
});
