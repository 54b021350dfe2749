/** A later attempt replaces what it repeats, and nothing else: histories over HTTP, and what run, state and bugs make of them. */

import { describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();
const fresh = async () => createAsking(ask, await addProject(acme), "t");

const FIRST = "branch=main&execution_key=b&exit_code=1";
const SECOND = "branch=main&execution_key=b&exit_code=0&complete=true";

const testcase = (attributes: string, inner = "") => `<testcase ${attributes}>${inner}</testcase>`;
const suite = (attributes: string, ...cases: string[]) => `<testsuite ${attributes}>${cases.join("")}</testsuite>`;
const failed = (message: string) => `<failure message="${message}"/>`;
const jestFile = (name: string, statuses: Record<string, string>, message = "") => ({
  ...{ name, message, status: message === "" ? "passed" : "failed", startTime: 1, endTime: 2 },
  assertionResults: Object.entries(statuses).map(([title, status]) => {
    const failureMessages = status === "failed" ? [`Error: ${title}`] : [];
    return { ancestorTitles: ["s"], title, fullName: `s ${title}`, status, duration: 1, failureMessages };
  }),
});
const jest = (...files: ReturnType<typeof jestFile>[]) => {
  const results = files.flatMap(({ assertionResults }) => assertionResults);
  const count = (wanted: string) => results.filter(({ status }) => status === wanted).length;
  return JSON.stringify({
    ...{ numTotalTests: results.length, numPassedTests: count("passed"), numFailedTests: count("failed") },
    ...{
      numPendingTests: count("pending"),
      numRuntimeErrorTestSuites: files.filter(({ message }) => message !== "").length,
    },
    ...{ success: files.every(({ status }) => status === "passed"), startTime: 1, testResults: files },
  });
};
const playwright = (suites: unknown[], errors: unknown[]) =>
  JSON.stringify({
    config: { rootDir: "/w" },
    suites,
    errors,
    stats: { startTime: "2026-01-01T00:00:00Z", duration: 1 },
  });
const spec = {
  ...{ title: "shop.spec.ts", file: "shop.spec.ts" },
  specs: [
    {
      ...{ title: "pays", ok: true, file: "shop.spec.ts", line: 1 },
      tests: [{ projectName: "chromium", status: "expected", results: [{ status: "passed", retry: 0, duration: 1 }] }],
    },
  ],
};

const pytest = (...cases: string[]) => `<testsuites>${suite('name="pytest"', ...cases)}</testsuites>`;
const HOOK = 'name="Basket &quot;before all&quot; hook: connects" classname="&quot;before all&quot; hook: connects"';
const mocha = (...cases: string[]) =>
  `<testsuites name="Mocha Tests">${suite('name="Basket" file="/w/test/basket.js"', ...cases)}</testsuites>`;
const vitest = (...cases: string[]) =>
  `<testsuites name="vitest tests">${suite('name="a.test.ts"', ...cases)}</testsuites>`;
const unittest = (...cases: string[]) => suite('name="unittest"', ...cases);

/** What failed outside of a test, and what a later attempt reports of the same place. */
const OUTSIDE: [kind: string, first: string, second: string, other: string][] = [
  [
    "a hook of Mocha",
    mocha(testcase(HOOK, failed("ECONNREFUSED"))),
    mocha(testcase('name="Basket sums" classname="sums"')),
    `<testsuites name="Mocha Tests">${suite('name="Other" file="/w/test/other.js"', testcase('name="Other sums" classname="sums"'))}</testsuites>`,
  ],
  [
    "a file that did not load in Jest",
    jest(jestFile("/w/a.test.js", {}, "Test suite failed to run"), jestFile("/w/b.test.js", { b: "passed" })),
    jest(jestFile("/w/a.test.js", { a: "passed" })),
    jest(jestFile("/w/b.test.js", { b: "passed" })),
  ],
  [
    "an import of Vitest",
    vitest(testcase('classname="a.test.ts" name="a.test.ts"', failed("Cannot find package"))),
    vitest(testcase('classname="a.test.ts" name="sums"')),
    `<testsuites name="vitest tests">${suite('name="b.test.ts"', testcase('classname="b.test.ts" name="sums"'))}</testsuites>`,
  ],
  [
    "a collection of pytest",
    pytest(testcase('classname="" name="unit.test_basket"', '<error message="collection failure">No module</error>')),
    pytest(testcase('classname="unit.test_basket" name="test_sum"')),
    pytest(testcase('classname="unit.test_other" name="test_sum"')),
  ],
  [
    "a class of unittest",
    unittest(testcase('classname="" name="setUpClass (tests.test_db.DbTest)"', '<error message="refused"/>')),
    unittest(testcase('classname="tests.test_db.DbTest" name="test_reads"')),
    unittest(testcase('classname="tests.test_db.OtherTest" name="test_reads"')),
  ],
  [
    "@BeforeAll of JUnit 5",
    suite(
      'name="com.acme.StockTest"',
      testcase('name="" classname="com.acme.StockTest"', '<error message="no container"/>'),
    ),
    suite('name="com.acme.StockTest"', testcase('name="counts" classname="com.acme.StockTest"')),
    suite('name="com.acme.StockTestOther"', testcase('name="counts" classname="com.acme.StockTestOther"')),
  ],
  [
    "the web server of Playwright",
    playwright([], [{ message: "Error: Timed out waiting 60000ms from config.webServer." }]),
    playwright([spec], []),
    "",
  ],
  [
    "a build of Go",
    "FAIL\tacme.test/stock [build failed]\nFAIL\n",
    "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tacme.test/stock\t0.007s\n",
    "=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \tacme.test/other\t0.007s\n",
  ],
];

const openBugs = async (place: Asking) =>
  (await place.list("/bug-reports")).filter(({ status }) => status === "open").length;

describe.each(OUTSIDE)("%s that failed", (_, first, second, other) => {
  test("is replaced by an attempt that runs tests of the same place, and no bug stays open", async () => {
    const place = await fresh();
    const red = await place.uploadReport(first, FIRST);
    expect(red).toMatchObject({ verdict: "failed", failed: 1 });
    const run = await place.uploadReport(second, SECOND);
    expect(run).toMatchObject({ verdict: "passed", status: "passed", failed: 0, attempt: 2 });
    expect(run.warnings).toEqual([expect.stringMatching(/ failed in attempt 1, outside of a test$/)]);
    expect(await place.get("/state")).toMatchObject({ state: "passed" });
    expect(await openBugs(place)).toBe(0);
  });

  test("stays red after an attempt of another place", async () => {
    if (other === "") return;
    const place = await fresh();
    await place.uploadReport(first, FIRST);
    expect(await place.uploadReport(other, SECOND)).toMatchObject({ verdict: "failed", failed: 1 });
    expect(await openBugs(place)).toBe(1);
  });

  test("is replaced by a rerun of the same place only", async () => {
    const place = await fresh();
    const { executionId } = await place.uploadReport(first, `${FIRST}&complete=true`);
    for (const [body, verdict] of [
      [other, "failed"],
      [second, "passed"],
    ] as const) {
      if (body === "") continue;
      const { id } = await place.post(`/executions/${executionId}/rerun`, {});
      expect(await place.uploadReport(body, `execution_id=${id}&exit_code=0&complete=true`)).toMatchObject({ verdict });
      expect(await place.get("/state")).toMatchObject({ state: verdict });
    }
    expect(await openBugs(place)).toBe(0);
  });
});

test("what a later attempt reports as skipped keeps its earlier result", async () => {
  const place = await fresh();
  const names = Array.from({ length: 50 }, (_, index) => `t${index}`);
  const of = (status: (name: string) => string) =>
    jest(jestFile("/w/a.test.js", Object.fromEntries(names.map((name) => [name, status(name)]))));
  await place.uploadReport(
    of((name) => (name === "t7" || name === "t8" ? "failed" : "passed")),
    FIRST,
  );
  const one = await place.uploadReport(
    of((name) => (name === "t7" ? "passed" : "pending")),
    SECOND.replace("&complete=true", ""),
  );
  expect(one).toMatchObject({ verdict: "failed", passed: 49, failed: 1, skipped: 0, flaky: 1 });
  const both = await place.uploadReport(
    of((name) => (name === "t8" ? "passed" : "pending")),
    SECOND,
  );
  expect(both).toMatchObject({ verdict: "passed", passed: 50, failed: 0, skipped: 0, flaky: 2 });
});
