/** Which tests are called flaky, and with which counts: outcomes of histories. */

import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let own: Asking;
let project: { project: string; key: string };
beforeEach(async () => {
  project = await addProject(acme);
  own = createAsking(ask, project);
});

const TESTS = 20;
let build = 0;
/** A report of tests in files of their own, in which these fail. */
const reportOf = (failing: readonly number[], message = "expected 2 items, got 1") => {
  const cases = Array.from({ length: TESTS }, (_, index) => {
    const failure = failing.includes(index) ? `<failure message="${message}"/>` : "";
    return `<testcase name="case ${index}" classname="s${index}">${failure}</testcase>`;
  });
  return `<testsuite name="s">${cases.join("")}</testsuite>`;
};
const commit = () => (++build).toString(16).padStart(12, "c");
/** A build of the default branch with a commit of its own in which these tests fail. */
const onMain = (failing: readonly number[] = []) =>
  own.uploadReport(reportOf(failing), `branch=main&commit=${commit()}`);
const onPull = (number: number, failing: readonly number[], message?: string) =>
  own.uploadReport(reportOf(failing, message), `branch=b${number}&pull_request=${number}&commit=${commit()}`);
const tests = async (query = ""): Promise<any[]> => await own.list(`/test-cases?limit=100${query}`);
const first = async () => (await tests())[0];
const flakyNames = async () => (await tests("&health=flaky")).map(({ name }) => name);

describe("a rate", () => {
  test("is failures divided by results: one failure in 14 builds of one commit is 1 of 14", async () => {
    for (let run = 0; run < 14; run++)
      await own.upload(run === 4 ? "fp" : "pp", `branch=x&commit=abcdef0&execution_key=${run}`);
    expect(await first()).toMatchObject({ flakeFailures: 1, flakeResults: 14, flakeRate: 0.0714 });
  });

  test("counts what was put down to changes before anyone knew: a test that fails 4 of 25 times by itself", async () => {
    const failing = [3, 9, 14, 21];
    for (let run = 0; run < 25; run++) await onMain(failing.includes(run) ? [0] : []);
    expect(await first()).toMatchObject({ health: "flaky", flakeFailures: 4, flakeResults: 25, flakeRate: 0.16 });
    expect((await first()).flaky.signs).toEqual(["unexplained"]);
  });

  test("counts a retried run once", async () => {
    for (let run = 0; run < 10; run++) {
      const query = `branch=x&execution_key=${run}&commit=${run}abcdef`;
      if (run === 2 || run === 7) await own.upload("fp", query);
      await own.upload("pp", query);
    }
    expect(await first()).toMatchObject({ health: "flaky", flakeFailures: 2, flakeResults: 10, failures: 0 });
    expect((await first()).flaky.signs).toEqual(["retry"]);
  });
});

describe("no flaky test", () => {
  test.each(["connect ECONNREFUSED 10.0.0.7:5432", "Timed out", "expected true to be false"])(
    "is made by a bad machine: its failures are its own (%s)",
    async (message) => {
      for (let run = 0; run < 6; run++) await onMain();
      for (let run = 0; run < 6; run++) {
        const failing = Array.from({ length: 9 }, (_, index) => (3 * run + 2 * index) % TESTS);
        const query = `branch=b${run}&pull_request=${run}&commit=${commit()}`;
        await own.uploadReport(reportOf(failing, message), `${query}&execution_key=bad${run}`);
        // The same commit on another machine.
        await own.uploadReport(reportOf([]), `${query}&execution_key=good${run}`);
        expect(await flakyNames()).toEqual([]);
      }
      for (let run = 0; run < 3; run++) await onMain();
      expect(await flakyNames()).toEqual([]);
    },
  );

  test("is one that was broken on main for a day and was mended", async () => {
    for (let run = 0; run < 10; run++) await onMain();
    for (let run = 0; run < 12; run++) {
      await onMain([0]);
      expect((await first()).health).toBe(run < 4 ? "healthy" : "broken");
    }
    for (let run = 0; run < 5; run++) await onMain();
    expect(await first()).toMatchObject({ health: "healthy", flaky: null, failures: 12, flakeFailures: 0 });
  });

  test("is one that several pull requests have broken, each with its change", async () => {
    for (let run = 0; run < 12; run++) {
      await onMain();
      if (run % 6 === 5) for (let again = 0; again < 3; again++) await onPull(run, [0]);
    }
    expect(await first()).toMatchObject({ health: "healthy", flaky: null });
  });

  test("is one that pull requests break again and again in the same words", async () => {
    for (let run = 0; run < 12; run++) await onMain();
    for (let number = 1; number <= 6; number++) {
      await onPull(number, [0], "openapi.json is out of date");
      await onMain();
    }
    expect(await flakyNames()).toEqual([]);
  });

  test("is one that passes on retry in a build whose other task shows that the machine was the cause", async () => {
    for (let run = 0; run < 3; run++) await onMain();
    const send = (letters: string, task: string) =>
      own.upload(letters, `branch=x&pull_request=9&commit=abcdef9&execution_key=bad&task_slug=${task}`);
    for (const task of ["contract", "e2e"]) await send(task === "e2e" ? "ffpppp" : "fffffffpp", task);
    for (const task of ["contract", "e2e"]) await send(task === "e2e" ? "pppppp" : "ppppppppp", task);
    expect(await flakyNames()).toEqual([]);
  });
});

test("a flaky test that is mended stops being called flaky, and both are events", async () => {
  for (let run = 0; run < 20; run++) await onMain(run % 4 === 3 ? [0] : []);
  expect(await first()).toMatchObject({ health: "flaky", flakeFailures: 5, flakeResults: 20 });
  let passes = 0;
  while ((await first()).health === "flaky" && passes < 100) {
    await onMain();
    passes++;
  }
  expect(passes).toBeGreaterThanOrEqual(20);
  expect(await first()).toMatchObject({ health: "healthy", flaky: null, flakeFailures: 5 });
  expect(passes).toBeLessThan(100);
  const events = await database.pool`
    select type, data->'testCase'->'flakeFailures' as failures from event
    where project_id = ${project.project} and type like 'test_case.%' order by id`;
  expect(events.map(({ type }) => type)).toEqual(["test_case.became_flaky", "test_case.recovered"]);
});
