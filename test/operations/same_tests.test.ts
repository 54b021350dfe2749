/** The results of one test stay those of one test when its reports change their format. */

import { beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";
import { type ReportedCase } from "../../src/reports/report.ts";
import { read } from "../reports/reading.ts";

const { ask, acme, addProject, database } = await createHarness();
const { pool } = database;

let project: string;
let key: string;
beforeEach(async () => ({ project, key } = await addProject(acme)));

/** What the tools wrote in /home/ci/work/shop, which is no workspace that Assay knows. */
const textOf = (name: string) => readFileSync(`${import.meta.dir}/../fixtures/same_tests/${name}`, "utf8");

async function upload(body: string) {
  expect((await createAsking(ask, { project, key }).send(body)).status).toBe(201);
}

const titleOf = ({ suite, name }: { suite: string; name: string }) =>
  [suite, name].filter(Boolean).join(" ").replaceAll(" > ", " ");

/** The stored tests, as far as they have had results, with the number of these. */
const stored = async () => {
  const rows = await pool<{ suite: string; name: string; file: string | null; results: number }[]>`
    select suite, name, file, count(r.run_id)::int as results from test_case c
    left join (select run_id, unnest(test_cases) as number from case_result where project_id = ${project}) r using (number)
    where c.project_id = ${project} group by c.number, suite, name, file order by c.number`;
  return [...rows];
};

/** The titles of the tests that two reports share, when each title is that of one test; without what is no test. */
const sharedTitles = (one: readonly ReportedCase[], other: readonly ReportedCase[]) => {
  const uniqueIn = (cases: readonly ReportedCase[]) =>
    new Set([...Map.groupBy(cases, titleOf)].flatMap(([title, { length }]) => (length === 1 ? [title] : [])));
  const [a, b] = [uniqueIn(one), uniqueIn(other)];
  return [...a].filter((title) => b.has(title) && !title.startsWith("("));
};

describe.each([
  ["vitest.json", "vitest.xml"],
  ["jest.json", "jest_separated.xml"],
  ["jest.json", "jest_with_files.xml"],
  ["jest.json", "jest_default.xml"],
  ["mocha.json", "mocha.xml"],
  ["mocha.json", "mocha_xunit.xml"],
  ["playwright.json", "playwright.xml"],
  ["playwright_projects.json", "playwright_projects.xml"],
])("%s and %s", (json, junit) => {
  test.each([
    ["the JSON first", [json, junit, json, junit]],
    ["the JUnit XML first", [junit, json, junit, json]],
  ])("are of the same tests, %s", async (_, names) => {
    for (const name of names) await upload(textOf(name));
    const rows = await stored();
    const shared = sharedTitles(read(textOf(json)).cases, read(textOf(junit)).cases);
    expect(shared.length).toBeGreaterThan(9);
    const counts = (title: string) => rows.filter((row) => titleOf(row) === title).map(({ results }) => results);
    expect(shared.filter((title) => !Bun.deepEquals(counts(title), [4]))).toEqual([]);
    // Where files tell two tests of one title apart, neither has results of the other.
    for (const { results } of rows) expect(results).toBeLessThanOrEqual(4);
  });
});

test("the place within the repository is kept beside the absolute one, whichever comes first", async () => {
  for (const names of [
    ["vitest.json", "vitest.xml"],
    ["vitest.xml", "vitest.json"],
  ]) {
    ({ project, key } = await addProject(acme));
    for (const name of [...names, ...names]) await upload(textOf(name));
    const cart = (await stored()).filter(({ name }) => name === "adds an item");
    expect(cart.map(({ file, results }) => [file, results]).sort()).toEqual([
      ["tests/admin/cart.test.mjs", 4],
      ["tests/cart.test.mjs", 4],
    ]);
  }
});

test("tests of one title in two files stay two, also where one format leaves out the file", async () => {
  for (const name of ["jest.json", "jest_default.xml", "jest.json", "jest_with_files.xml", "jest_separated.xml"]) {
    await upload(textOf(name));
    const rows = (await stored()).filter(
      (row) => row.file !== null && ["same title", "adds an item"].includes(row.name),
    );
    const places = rows.map(({ suite, name, file }) => [suite, name, file!.replace("/home/ci/work/shop/", "")]).sort();
    expect(places).toEqual([
      ["", "same title", "tests/admin/cart.test.cjs"],
      ["", "same title", "tests/cart.test.cjs"],
      ["cart", "adds an item", "tests/admin/cart.test.cjs"],
      ["cart", "adds an item", "tests/cart.test.cjs"],
    ]);
  }
});

test("a retried upload and a test that is added later change nothing of that", async () => {
  const [json, junit] = [textOf("jest.json"), textOf("jest_default.xml")];
  await Promise.all([json, junit, json, junit].map(upload));
  const before = await stored();
  await upload(junit.replace(/(<testcase classname="x y z w")/, '<testcase classname="new one" name="new one"/>$1'));
  const added = (await stored()).filter(({ name }) => !before.some((row) => row.name === name));
  expect(added.map(({ name, results }) => [name, results])).toEqual([["new one", 1]]);
});

test("names that one report shares among many tests make none of them another", async () => {
  const assertion = (title: string, ...ancestorTitles: string[]) => ({ title, ancestorTitles, status: "passed" });
  const jest = (...assertionResults: unknown[]) =>
    JSON.stringify({
      numTotalTests: assertionResults.length,
      numRuntimeErrorTestSuites: 0,
      testResults: [{ name: "/x/a.test.js", status: "passed", assertionResults }],
    });
  await upload(jest(assertion("c", "a", "b"), assertion("b c", "a"), assertion("a b c")));
  const xml =
    '<testsuites name="jest tests"><testsuite name="a"><testcase classname="a b c" name="a b c"/></testsuite></testsuites>';
  await upload(xml);
  const rows = await stored();
  // It has exactly the name of the third, and its file is not told.
  expect(rows.map(({ suite, name, results }) => [suite, name, results])).toEqual([
    ["a > b", "c", 1],
    ["a", "b c", 1],
    ["", "a b c", 2],
  ]);
});
