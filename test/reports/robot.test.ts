import { describe, expect, test } from "bun:test";
import { isSuite, readRobot } from "../../src/reports/robot.ts";
import { divide } from "../../src/reports/xml_divide.ts";
import { inShort, read } from "./reading.ts";

const total = (pass: number, fail: number, skip = 0) =>
  `<statistics><total><stat pass="${pass}" fail="${fail}" skip="${skip}">All Tests</stat></total><tag></tag>` +
  `<suite><stat name="Shop" id="s1" pass="${pass}" fail="${fail}" skip="${skip}">Shop</stat></suite></statistics><errors></errors>`;
const run = (inner: string, statistics: string, generator = "Robot 7.1 (Python 3.12.3 on linux)") =>
  `<?xml version="1.0" encoding="UTF-8"?>
<robot generator="${generator}" generated="2024-01-31T12:00:00.000000" rpa="false" schemaversion="5">${inner}${statistics}</robot>`;
const status = (name: string, text = "") =>
  `<status status="${name}" start="2024-01-31T12:00:00.100000" elapsed="0.250">${text}</status>`;
const suite = (name: string, inner: string, outcome = "PASS", text = "") =>
  `<suite id="s" name="${name}" source="/app/tests/${name}.robot">${inner}${status(outcome, text)}</suite>`;
const one = (name: string, outcome = "PASS", text = "", inner = "") =>
  `<test id="t" name="${name}" line="3">${inner}${status(outcome, text)}</test>`;
const teardown = (outcome: string) => `<kw name="Clean Up" type="TEARDOWN">${status(outcome)}</kw>`;

test("version 4 tells skipped tests, with their reason", () => {
  const report = read(run(suite("Shop", one("Later", "SKIP", "*HTML* not &lt;b&gt;here&lt;/b&gt;")), total(0, 0, 1)));
  expect(report.cases[0]).toMatchObject({ status: "skipped", message: "not <b>here</b>" });
  expect(report.warnings).toEqual([]);
});

test("a suite that is only made of several sources is no part of the tests' names", () => {
  const made = `<suite id="s1" name="Cart &amp; Order">${suite("Cart", one("Adds"))}${suite("Order", one("Ships"))}${status("PASS")}</suite>`;
  expect(inShort(read(run(made, total(2, 0))))).toEqual(["passed: Cart > Adds", "passed: Order > Ships"]);
});

describe("a suite's teardown that failed", () => {
  const inner = one("Adds") + one("Breaks", "FAIL", "no") + one("Later", "SKIP");
  const failedIn = (generator?: string) =>
    read(
      run(
        suite(
          "Shop",
          suite("Order", one("Ships")) +
            suite("Cart", inner + teardown("FAIL"), "FAIL", "Suite teardown failed:\nno database"),
          "FAIL",
        ),
        total(1, 2, 1),
        generator,
      ),
    );

  test("fails all of its tests, as Robot Framework counts them, and no others", () => {
    const report = failedIn();
    expect(inShort(report)).toEqual([
      "passed: Shop > Order > Ships",
      "failed error: Shop > Cart > Adds",
      "failed failure: Shop > Cart > Breaks",
      "skipped: Shop > Cart > Later",
    ]);
    expect(report.warnings).toEqual([]);
    expect(report.cases[1]!.message).toBe("Parent suite teardown failed:\nno database");
  });

  test("is not counted again in what rebot has written", () => {
    expect(failedIn("Rebot 7.1 (Python 3.12.3 on linux)").cases[1]!.status).toBe("passed");
  });
});

describe("no silent green", () => {
  test("without statistics the run broke off", () => {
    const report = read(run(suite("Shop", one("Adds")), ""));
    expect(report.partial).toBe(true);
    expect(inShort(report)).toEqual(["passed: Shop > Adds", "failed error: (test run did not finish)"]);
  });

  test("what is cut off is read up to the last whole test", () => {
    const text = run(suite("Shop", one("Adds") + one("Ships", "FAIL", "no")), total(1, 1));
    const report = read(text.slice(0, text.indexOf("Ships") + 20));
    expect(report.partial).toBe(true);
    expect(inShort(report)).toEqual(["passed: Shop > Adds", "failed error: (test run did not finish)"]);
    expect(report.warnings[0]).toStartWith("The report is broken at line 2: ");
  });

  test("a suite that failed without a failed test is a failed case", () => {
    const report = read(run(suite("Shop", one("Adds"), "FAIL", "no database"), total(1, 0)));
    expect(inShort(report)).toEqual(["passed: Shop > Adds", "failed error: (suite failed)"]);
    expect(report.cases[1]!.message).toBe("no database");
  });

  test("statistics that disagree are a warning, errors of the run too", () => {
    const errors = `<errors><msg time="" level="WARN">w</msg><msg time="" level="ERROR">Importing library 'X' failed\nTrace</msg></errors>`;
    const report = read(run(suite("Shop", one("Adds")), total(2, 0).replace("<errors></errors>", errors)));
    expect(report.warnings).toEqual([
      "The report declares 2 passed, 0 failed, 0 skipped, but its test cases are 1 passed, 0 failed, 0 skipped",
      "Robot Framework tells of 1 error, the first: Importing library 'X' failed",
    ]);
  });

  test("a test without a status did not finish", () => {
    const report = read(run(suite("Shop", `<test name="Adds"></test>`), total(0, 1)));
    expect(report.cases[0]).toMatchObject({ status: "failed", kind: "error", message: "It did not finish" });
  });
});

test("a large document is read in parts as it is whole", () => {
  const inner = (name: string, outcome: string) =>
    suite(
      name,
      one("Adds") + one("Breaks", "FAIL", "no") + one("Ships") + teardown(outcome),
      "FAIL",
      "Suite teardown failed:\nno",
    );
  const text = run(
    suite("Shop", suite("A", inner("B", "FAIL") + inner("C", "PASS")) + suite("D", inner("E", "PASS")), "FAIL"),
    total(4, 5),
  );
  const whole = readRobot([{ root: Bun.XML.parse(text, { compact: false }), depth: 0, open: 0 }]);
  expect(whole.warnings).toEqual([]);
  for (const characters of [1, 200, 1_000]) {
    const parts = [...divide(text, isSuite, { part: { characters, elements: 1_000_000 } })];
    expect(parts.length).toBeGreaterThan(1);
    expect(readRobot(parts)).toEqual(whole);
  }
});
