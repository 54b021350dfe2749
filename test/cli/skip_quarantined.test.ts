/** Tests that jobs leave out because of their quarantine: `assay upload --skip-quarantined`, `assay quarantined`, and the runs without them. */

import { describe, expect, test } from "bun:test";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createAsking } from "../asking.ts";
import { createFolder, start, variablesOf } from "../commands.ts";
import { createHarness } from "../harness.ts";
import { createUploads } from "../uploads.ts";

const harness = await createHarness();
const { acme, addProject, ask, url, database } = harness;
const { upload } = await createUploads(harness);

/** Called like Jest, it runs the tests of the file "tests" whose names match the pattern of `-t`. */
const JEST = `#!/bin/sh
echo "$*" > arguments; pattern=; [ "$1" = -t ] && pattern=$2
cases=$(grep -P -- "$pattern" tests | sed 's|.*|<testcase name="&"/>|')
echo "<testsuite name=\\"\\">$cases</testsuite>" > r.xml
`;

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

/** A project whose default branch has run the tests a, b (1) and c, and a folder with the tool. */
async function prepare() {
  const project = await addProject(acme);
  const own = createAsking(ask, project);
  const folder = createFolder({ jest: JEST, tests: "a\nb (1)\nc\n" });
  chmodSync(join(folder, "jest"), 0o755);
  const run = (branch: string, ...args: string[]) =>
    upload(project, ["r.xml", "--task", "unit", "--branch", branch, ...args, "--", "./jest"], { folder });
  await run("main");
  const idOf = async (name: string) => (await own.list(`/test-cases?q=${encodeURIComponent(name)}`))[0].id as string;
  const quarantine = async (name: string, given: object = {}) =>
    await own.call("PATCH", `/test-cases/${await idOf(name)}`, {
      quarantine: { reason: "#12", until: inDays(10), skip: true, ...given },
    });
  const quarantined = (...args: string[]) =>
    start(["quarantined", ...args], { cwd: folder, env: variablesOf(url, project) }).ended;
  const last = async () => {
    const [{ id }] = await own.list("/executions?branch=topic");
    return await own.get(`/executions/${id}/test-runs/unit`);
  };
  return { project, own, folder, run, quarantine, quarantined, last };
}

describe("a test that its quarantine says to skip", () => {
  test("is left out of the command, and is not missing in the run", async () => {
    const { run, quarantine, last, folder } = await prepare();
    await quarantine("b (1)");
    const { code, errors } = await run("topic", "--skip-quarantined");
    expect([code, errors]).toEqual([
      0,
      expect.stringMatching(/^assay: 1 test is left out because of quarantine\nPASSED unit: 2 passed/),
    ]);
    expect(readFileSync(join(folder, "arguments"), "utf8")).toBe("-t ^(?!\\s*(?:b\\s+\\(1\\))\\s*$)\n");
    expect(await last()).toMatchObject({ verdict: "passed", missing: { count: 0 }, newlySkipped: { count: 0 } });
  });

  test("runs again when its quarantine has ended, and is missing from then on if it does not", async () => {
    const { run, quarantine, last, project } = await prepare();
    await quarantine("b (1)");
    await database.pool`update quarantine set until = now() where project_id = ${project.project}`;
    const { errors } = await run("topic", "--skip-quarantined");
    expect(errors).toStartWith("PASSED unit: 3 passed");
    const again = await prepare();
    await again.quarantine("b (1)", { skip: false });
    await again.run("topic", "--skip-quarantined");
    expect(await last()).toMatchObject({ passed: 3 });
    await Bun.write(join(again.folder, "tests"), "a\nc\n");
    await again.run("topic");
    expect((await again.last()).missing).toMatchObject({ count: 1, testCases: [{ name: "b (1)" }] });
  });

  test("needs an end within thirty days", async () => {
    const { quarantine, own } = await prepare();
    for (const until of [null, inDays(31)]) {
      const { status, body } = await quarantine("a", { until });
      const message = 'Cannot read "quarantine.until": a test that is skipped needs an end within 30 days';
      expect([status, body.error.message]).toEqual([400, message]);
    }
    expect((await quarantine("a")).body.quarantine).toMatchObject({ skip: true });
    expect((await own.list("/test-cases?skip=true")).map(({ name }: any) => name)).toEqual(["a"]);
    expect(await own.list("/test-cases?skip=false")).toHaveLength(2);
    // Another quarantine of the same test says anew whether it runs.
    expect((await quarantine("a", { skip: undefined, until: null })).body.quarantine).toMatchObject({ skip: false });
  });

  test("runs where the command has no place for the words, and the job says so", async () => {
    const { quarantine, project, folder } = await prepare();
    await quarantine("a");
    const args = ["r.xml", "--task", "unit", "--skip-quarantined", "--"];
    const shell = await upload(project, [...args, "sh", "-c", "make 2>/dev/null; ./jest"], { folder });
    expect(shell.errors).toStartWith("assay: 1 test is left out");
    const own = await upload(project, [...args, "./jest", "-t", "a"], { folder });
    expect(own.errors).toStartWith("assay: No test is left out: the command of the task has its own -t");
    const other = await upload(project, [...args, "sh", "jest"], { folder });
    expect(other.errors).toStartWith("assay: No test is left out: the command runs no tool whose way");
  });
});

test("assay quarantined lists them, and prints the arguments of a tool", async () => {
  const { quarantine, quarantined } = await prepare();
  expect(await quarantined()).toEqual({ code: 0, output: "", errors: "" });
  await quarantine("a");
  await quarantine("c", { skip: false });
  const line = `unit: a, until ${inDays(10).slice(0, 10)}: #12\n`;
  expect(await quarantined("--task", "unit")).toEqual({ code: 0, output: line, errors: "" });
  expect((await quarantined("--task", "other")).output).toBe("");
  expect((await quarantined("--format", "jest")).output).toBe("-t '^(?!\\s*(?:a)\\s*$)'\n");
  const files = await quarantined("--format", "pytest");
  expect([files.output, files.errors]).toEqual(["\n", '"a" runs: "a" is no test that can be selected\n']);
  expect(JSON.parse((await quarantined("--json")).output)).toMatchObject([{ name: "a", taskSlug: "unit" }]);
  expect((await quarantined("--format", "cypress")).code).toBe(2);
  expect((await quarantined("--format", "make")).errors).toContain("--format: expected one of jest,");
});
