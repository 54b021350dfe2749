/** Tests of the baseline that did not run: histories over HTTP, and what answer, page, text and gate say of them. */

import { describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createFolder, run as runCommand, variablesOf } from "../commands.ts";
import { createHarness } from "../harness.ts";
import { createBrowser } from "../web/browser.ts";

const harness = await createHarness();
const { ask, acme, addProject, url } = harness;

const WHOLE = 200;
const MAIN = "branch=main&complete=true&exit_code=0";
const TOPIC = "branch=topic&pull_request=7&complete=true";

type Letter = "p" | "f" | "s";
const INNER: Record<Letter, string> = { p: "", f: '<failure message="Timeout waiting for #pay"/>', s: "<skipped/>" };
/** A report of the tests from 0 on; `letterOf` null: the report does not have it. */
const report = (letterOf: (index: number) => Letter | null, count = WHOLE): string =>
  `<testsuite name="shop">${Array.from({ length: count }, (_, index) => {
    const letter = letterOf(index);
    return letter === null ? "" : `<testcase classname="shop" name="test ${index}">${INNER[letter]}</testcase>`;
  }).join("")}</testsuite>`;

const whole = report(() => "p");
/** One failure, and nothing after ten tests. */
const stopped = report((index) => (index === 3 ? "f" : index < 10 ? "p" : null));
const skipped = report((index) => (index === 3 ? "f" : index < 10 ? "p" : "s"));

/** A project in which main has run all tests, and test 3 is in quarantine. */
async function fresh(): Promise<Asking> {
  const place = createAsking(ask, await addProject(acme), "e2e");
  await place.uploadReport(whole, MAIN);
  const { id } = (await place.list("/test-cases?q=test%203")).find(({ name }) => name === "test 3");
  await place.patch(`/test-cases/${id}`, { quarantine: { reason: "times out" } });
  return place;
}

const NONE = { count: 0, testCases: [] };

describe("a run that stopped after ten of 200 tests", () => {
  test.each([
    ["missing", "newlySkipped", stopped, "190 tests of the baseline did not run: shop > test 10, shop > test 11"],
    ["newlySkipped", "missing", skipped, "190 tests of the baseline are newly skipped: shop > test 10, shop > test 11"],
  ] as const)("(%s) says so, and no gate forgives its failure", async (kind, other, bytes, sentence) => {
    const place = await fresh();
    for (const gate of ["quarantine", "new"]) {
      const run = await place.uploadReport(bytes, `${TOPIC}&exit_code=1&gate=${gate}&execution_key=${gate}`);
      expect(run[kind]).toMatchObject({ count: 190 });
      expect(run[kind].testCases).toHaveLength(10);
      expect(run[other]).toEqual(NONE);
      const reasons = [`e2e: ${sentence.split(":")[0]}`];
      expect(run.gate).toMatchObject({ pass: false, reasons, forgivenCount: 1 });
      expect(await place.get(`/executions/${run.executionId}/verdict?gate=${gate}`)).toMatchObject({
        pass: false,
        reasons,
      });
      expect(await place.get(`/executions/${run.executionId}/verdict?gate=${gate}&gate_missing=95`)).toMatchObject({
        pass: true,
      });
      expect((await place.get(`/executions/${run.executionId}/failures`))[kind]).toEqual(run[kind]);
      expect((await place.get(`/executions/${run.executionId}/test-runs/e2e`))[kind]).toEqual(run[kind]);
    }
    const { text } = await place.send(bytes, `${TOPIC}&exit_code=1`, { accept: "text/plain" });
    expect(text).toContain(sentence);
    expect(text).toContain("and 180 more");
  });

  test("says so in the terminal and on its page", async () => {
    const place = await fresh();
    const line = /^190 tests of the baseline did not run: shop > test 10, .* and 180 more$/m;
    const cwd = createFolder({ "report.xml": stopped });
    const args = ["upload", "report.xml", "--task", "e2e", "--branch", "topic", "--pull-request", "7", "--complete"];
    const given = { cwd, env: variablesOf(url, place) };
    expect((await runCommand(args, given)).output).toMatch(line);
    const why = await runCommand(["why", "--pull-request", "7"], {
      env: { ...variablesOf(url, place), COLUMNS: "400" },
    });
    expect(why.output).toContain("190 tests of the baseline did not run: shop > test 10");
    const member = await createBrowser(harness, { team: acme.team, role: "member" });
    const [{ id }] = await place.list("/executions?branch=topic");
    const page = await member.get(`/projects/${place.project}/executions/${id}`);
    expect(page.html).toContain("190 tests of the baseline did not run");
    const usage = await runCommand([...args, "--gate", "new", "--gate-missing", "many"], given);
    expect([usage.code, usage.errors]).toEqual([
      2,
      expect.stringContaining('--gate-missing: expected a percentage from 0 to 100, got "many"'),
    ]);
    const gated = await runCommand([...args, "--gate", "quarantine", "--exit-code", "1"], given);
    expect([gated.code, gated.errors]).toEqual([
      1,
      expect.stringContaining("Stays red: e2e: 190 tests of the baseline did not run"),
    ]);
    const loose = [...args, "--gate", "quarantine", "--gate-missing", "95", "--exit-code", "1"];
    expect((await runCommand(loose, given)).code).toBe(0);
  });

  test("is forgiven where the gate allows that share, and not below it", async () => {
    const place = await fresh();
    const most = report((index) => (index === 3 ? "f" : index < 196 ? "p" : null));
    for (const percent of [1, 2]) {
      const gate = `gate=new&gate_missing=${percent}&execution_key=${percent}`;
      const run = await place.uploadReport(most, `${TOPIC}&exit_code=1&${gate}`);
      expect(run.gate.pass).toBe(percent === 2);
      // Two percent that did not run, without a sign that the run stopped, are no news.
      expect(run.missing).toEqual(NONE);
    }
    const { status, body } = await place.send(most, `${TOPIC}&gate=new&gate_missing=101`);
    expect([status, body.error.message]).toEqual([
      400,
      'Cannot read "gate_missing": expected an integer from 0 to 100, got "101"',
    ]);
  });

  test("is no baseline of what it has not run", async () => {
    const place = await fresh();
    await place.uploadReport(stopped, `${MAIN.replace("exit_code=0", "exit_code=1")}`);
    const next = await place.uploadReport(stopped, `${TOPIC}&exit_code=1&gate=quarantine`);
    expect(next.missing).toMatchObject({ count: 190 });
    expect(next.gate.pass).toBe(false);
    expect((await place.uploadReport(whole, `${TOPIC}&exit_code=0`)).missing).toEqual(NONE);
  });

  test("is told whatever the share, if its last test failed", async () => {
    const place = await fresh();
    const late = report((index) => (index === 196 ? "f" : index < 196 ? "p" : null));
    expect((await place.uploadReport(late, `${TOPIC}&exit_code=1`)).missing).toMatchObject({ count: 3 });
  });
});

test("a green run with half of the tests says what did not run, and passes", async () => {
  const place = await fresh();
  const half = report((index) => (index < 100 ? "p" : null));
  const run = await place.uploadReport(half, `${TOPIC}&exit_code=0&gate=new`);
  expect(run).toMatchObject({ verdict: "passed", missing: { count: 100 }, gate: { pass: true } });
});

test("tests that three green builds of main do not have were removed", async () => {
  const place = await fresh();
  const fewer = report((index) => (index < 100 ? "p" : null));
  const counts: number[] = [];
  for (let build = 0; build < 4; build++) counts.push((await place.uploadReport(fewer, MAIN)).missing.count);
  expect(counts).toEqual([100, 100, 100, 0]);
});

test("the shards of a run and a rerun of it are compared with the baseline together", async () => {
  const place = await fresh();
  const part = (from: number, to: number) => report((index) => (index >= from && index < to ? "p" : null));
  const query = (shard: number) => `${TOPIC}&execution_key=s&shard=${shard}/2`.replace("&complete=true", "");
  expect((await place.uploadReport(part(0, 100), query(1))).missing).toEqual(NONE);
  const last = await place.uploadReport(part(100, 150), `${query(2)}&complete=true`);
  expect(last.missing).toMatchObject({ count: 50 });
  const { id } = await place.post(`/executions/${last.executionId}/rerun`, {});
  const rerun = await place.uploadReport(part(150, 200), `execution_id=${id}&complete=true`);
  expect(rerun.missing).toEqual(NONE);
});

test("a shard that reports one of 200 tests is judged by its own failures until all shards are in", async () => {
  const place = await fresh();
  const one = report((index) => (index === 3 ? "f" : null));
  const topic = TOPIC.replace("&complete=true", "");
  const run = await place.uploadReport(one, `${topic}&shard=1/2&exit_code=1&gate=quarantine&execution_key=a`);
  expect(run).toMatchObject({ missing: NONE, gate: { pass: true } });
});
