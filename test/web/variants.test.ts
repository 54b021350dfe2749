/** Pages show variants of tasks: which tags a failure depends on, and how a test does in each variant. */

import { beforeAll, expect, test } from "bun:test";
import { createPages } from "./browser.ts";

const { own, look, report } = await createPages();
const base = own.path;
const WEBKIT = "browser:webkit";
const CHROMIUM = "browser:chromium";

const words = async (path: string): Promise<string> => {
  const { status, words } = await look("viewer", `${base}${path}`);
  expect([path, status]).toEqual([path, 200]);
  return words;
};

let executionId: string;
beforeAll(async () => {
  for (let build = 1; build <= 6; build++) {
    const of = { execution_key: String(build), commit: Bun.SHA256.hash(`${build}`, "hex").slice(0, 40) };
    await report("pp", { ...of, tag: CHROMIUM });
    const failed = await report("fp", { ...of, tag: WEBKIT, complete: "true" });
    executionId = failed.body.executionId;
  }
  await report("p", { execution_key: "lint", task_slug: "lint", complete: "true" });
});

const findCase = async (tag: string) =>
  (await own.list(`/test-cases?tag=${tag}`)).find(({ name }) => name === "case 0");

test("an execution says with which tags alone a test fails, and names its runs by their tags", async () => {
  const page = await words(`/executions/${executionId}`);
  expect(page).toContain("only with browser:webkit");
  expect(page).toContain("case 0 [browser:webkit]");
  expect(page).toContain("unit [browser:chromium]");
  const task = await words(`/executions/${executionId}/tasks/${encodeURIComponent("unit [browser:webkit]")}`);
  expect(task).toContain("case 0");
});

test("the page of a test compares its variants, and sums their results by tag", async () => {
  const [webkit, chromium] = [await findCase(WEBKIT), await findCase(CHROMIUM)];
  const { words: page, html } = await look("viewer", `${base}/tests/${webkit.id}`);
  expect(page).toContain("Broken on main");
  expect(page).toContain("only with browser:webkit");
  expect(page).toMatch(/Variants the last 50 results of each/);
  expect(page).toMatch(/healthy browser:chromium 6 0 .* broken browser:webkit 0 6 /);
  expect(page).toContain("By tag: browser:chromium 0 of 6 failed, browser:webkit 6 of 6 failed");
  expect(html).toContain(`href="${base}/tests/${chromium.id}"`);
  const sound = await words(`/tests/${chromium.id}`);
  expect(sound).toContain("Healthy: passed the last 6 times");
  expect(sound).not.toContain("only with");
});

test("a test of a task without variants is not compared", async () => {
  const [testCase] = await own.list("/test-cases?task_slug=lint");
  expect(await words(`/tests/${testCase.id}`)).not.toContain("Variants");
});

test("the bug of such a failure says with which tags it fails", async () => {
  const [bug] = await own.list("/bug-reports");
  const page = await words(`/bugs/${bug.id}`);
  expect(page).toMatch(/Newest failure .*, only with browser:webkit/);
  expect(page).toContain("unit [browser:webkit] › unit › case 0");
});

test("the lists of tests and executions are filtered by tag", async () => {
  const tests = await words(`/tests?q=tag:${WEBKIT}`);
  expect(tests).toContain("case 0 [browser:webkit]");
  expect(tests).not.toContain("case 1 [browser:chromium]");
  expect(await words(`/tests?q=tag:browser:firefox`)).toContain("No tests match the filters");
  const { html } = await look("viewer", `${base}/tests?q=tag:${WEBKIT}`);
  expect(html).toContain(`name="q" value="tag:${WEBKIT}"`);
  const executions = await words(`/executions?tag=${WEBKIT}`);
  expect(executions).toContain("Executions with browser:webkit");
  expect(executions).not.toContain("lint");
  expect(await words("/executions")).toContain("lint");
  for (const path of ["/tests", "/executions"])
    expect((await look("viewer", `${base}${path}?tag=webkit`)).status).toBe(400);
});

test("the grid of the project names the variant", async () => {
  expect(await words("")).toContain("case 0 [browser:webkit]");
});
