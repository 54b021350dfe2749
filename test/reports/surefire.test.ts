/** The text of Maven Surefire: versions, and what must not be green. */

import { describe, expect, test } from "bun:test";
import { readReport } from "../../src/reports/read.ts";
import { inShort, read, refusalOf } from "./reading.ts";

const BAR = "-------------------------------------------------------";
const printed = (...lines: string[]) => read([BAR, " T E S T S", BAR, ...lines].join("\n"));

test("versions before 3 name the class behind the test, and print no levels", () => {
  const report = printed(
    "Running com.acme.CartTest",
    "Tests run: 3, Failures: 1, Errors: 1, Skipped: 0, Time elapsed: 1,234.5 sec <<< FAILURE!",
    "adds(com.acme.CartTest)  Time elapsed: 0.25 sec  <<< FAILURE!",
    "java.lang.AssertionError: expected:<1> but was:<2>",
    "\tat com.acme.CartTest.adds(CartTest.java:7)",
    "",
    "hangs[0](com.acme.CartTest)  Time elapsed: 0.1 sec  <<< ERROR!",
    "org.junit.runners.model.TestTimedOutException: test timed out after 20 milliseconds",
    "",
    "Results :",
    "",
    "Failed tests:   adds(com.acme.CartTest): expected:<1> but was:<2>",
    "",
    "Tests run: 3, Failures: 1, Errors: 1, Skipped: 0",
  );
  expect(inShort(report)).toEqual([
    "passed: com.acme.CartTest > (passed test 1)",
    "failed failure: com.acme.CartTest > adds",
    "failed timeout: com.acme.CartTest > hangs[0]",
  ]);
  expect(report.cases[1]).toMatchObject({ durationMs: 250, message: "expected:<1> but was:<2>" });
  expect(report.partial).toBe(false);
});

describe("what broke off is not green", () => {
  const SET = "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in A";
  const TOTAL = ["Results:", "", "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0"];

  test("without the total of a run, the counts of a file, or the end of the build", () => {
    expect(printed("Running A", SET, ...TOTAL).partial).toBe(false);
    expect(printed("Running A", SET).partial).toBe(true);
    expect(printed(SET, ...TOTAL, BAR, " T E S T S", BAR).partial).toBe(true);
    expect(read(`${BAR}\nTest set: A\n${BAR}\n${SET}\n${BAR}\nTest set: B\n${BAR}\n`).partial).toBe(true);
    const build = ["[INFO] Scanning for projects...", BAR, " T E S T S", BAR, SET, ...TOTAL];
    expect(read(build.join("\n")).partial).toBe(true);
    expect(read([...build, "[INFO] BUILD SUCCESS"].join("\n")).partial).toBe(false);
  });

  test("a build that failed although its tests passed is red, with its reason", () => {
    const reason = "[ERROR] Failed to execute goal compile on project b: Compilation failure";
    expect(printed(SET, ...TOTAL, "[INFO] BUILD FAILURE", reason, "[ERROR] more").cases).toMatchObject([
      { status: "passed" },
      { status: "failed", name: "(build failed)", message: reason.slice("[ERROR] ".length) },
    ]);
  });

  test("failures that are counted are there, whether they are named or not", () => {
    const counted = "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE! - in A";
    expect(inShort(read(counted))).toEqual(["passed: A > (passed test 1)", "failed failure: A > (failed test 1)"]);
    const total = ["Results:", "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0"];
    expect(inShort(printed(SET, ...total)).at(-1)).toBe("failed error: (failure without a test case)");
  });

  test("a class that began and has no result is red, whatever stands before it", () => {
    const begun = "[INFO] Running com.acme.CartTest";
    const message = "com.acme.CartTest began and has no result";
    for (const lines of [
      ["Running A", SET, begun],
      [begun, "Running com.acme.PriceTest", SET.replace(/A$/, "com.acme.PriceTest")],
      [BAR, " T E S T S", BAR, "Running A", SET, ...TOTAL, "[INFO] --- failsafe:3.2.5:integration-test ---", begun],
      [BAR, " T E S T S", BAR, "Running A", SET, begun, ...TOTAL, "[INFO] BUILD SUCCESS"],
    ]) {
      const { cases, partial } = read(lines.join("\n"));
      expect([partial, cases.at(-1)]).toMatchObject([true, { name: "(test run did not finish)", message }]);
    }
    const printedLines = ["Running migrations", "[INFO] Running Checkstyle", "Running build.sh"];
    expect(printed("Running A", ...printedLines, SET, ...TOTAL, ...printedLines).partial).toBe(false);
  });

  test("totals and a compilation are, without a heading or the end of the build", () => {
    const total = "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0";
    const sets = `Running com.acme.CartTest\n${total}\n${SET.replace(/A$/, "com.acme.CartTest")}`;
    expect(inShort(read(sets))).toEqual(["passed: com.acme.CartTest > (passed test 1)"]);
    expect(inShort(read(`${sets}\n${total}`)).at(-1)).toBe("failed error: (failure without a test case)");
    const compilation = printed(SET, ...TOTAL, "[ERROR] COMPILATION ERROR : ");
    expect(compilation.cases.at(-1)).toMatchObject({ name: "(build failed)", message: "Compilation error" });
  });

  test("more tests than are kept, or without names, are refused before they are made", () => {
    const counted = (tests: number, failed: number) =>
      `Tests run: ${tests}, Failures: ${failed}, Errors: 0, Skipped: 0, Time elapsed: 1 s - in A\n`;
    const refused = (limit: string) =>
      `it counts more than ${limit} tests that it does not name: send the files TEST-*.xml of Surefire, which name all tests`;
    expect(refusalOf(counted(1, 999_999_999))).toBe(refused("1,000 failed"));
    expect(refusalOf(counted(600, 600).repeat(2))).toBe(refused("1,000 failed"));
    expect(refusalOf(counted(199_999, 0).repeat(14))).toBe(refused("20,000 passed or skipped"));
    expect(refusalOf(counted(19_000, 500))).toBe("accepted");
    const files = Array.from({ length: 50 }, () => counted(20_000, 0));
    expect(() => read(...files)).toThrow("together they have more than 200,000 cases");
    const mixed = `${counted(20_000, 0)}TAP version 13\n1..1\nok 1 - a\n`.repeat(200);
    expect(refusalOf(mixed)).toStartWith("it holds too many reports one after");
  });
});

test("two modules may have a class of the same name", () => {
  const module = (failed: number) => [
    ...[BAR, " T E S T S", BAR, "Running A"],
    `Tests run: 1, Failures: ${failed}, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in A`,
    ...["Results:", `Tests run: 1, Failures: ${failed}, Errors: 0, Skipped: 0`],
  ];
  expect(inShort(read([...module(0), ...module(1)].join("\n")))).toEqual([
    "passed: A > (passed test 1)",
    "failed failure: A > (failed test 1)",
  ]);
});

test("the text of a class is left out where its XML is sent with it", () => {
  const xml = '<testsuite name="A"><testcase classname="A" name="a"/></testsuite>';
  const text = `${BAR}\nTest set: A\n${BAR}\nTests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in A\n`;
  const files = { "x/TEST-A.xml": xml, "x/A.txt": text, "x/B.txt": text.replace(/\bA\b/g, "B") };
  const report = readReport(
    Object.entries(files).map(([name, content]) => ({ name, bytes: Buffer.from(content) })),
    { maxInflatedBytes: 1_000_000 },
  );
  expect(inShort(report)).toEqual(["passed: A > a", "passed: B > (passed test 1)"]);
});
