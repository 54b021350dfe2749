/** Wall time and machine time of runs and executions: pages, API, figures of days and trends tell the same. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";
import { createBrowser } from "../web/browser.ts";
import { toDuration } from "../../src/wording/numbers.ts";
import { createRandom } from "../random.ts";
import { isFull } from "../depth.ts";

const harness = await createHarness();
const { ask, acme, addProject, database } = harness;
const { get: open } = await createBrowser(harness, { team: acme.team, role: "member" });

let asking: ReturnType<typeof createAsking>;
let project: string;
async function begin(): Promise<void> {
  asking = createAsking(ask, await addProject(acme));
  ({ project } = asking);
}
beforeEach(begin);

/** Seconds from a moment that is over. */
const START = Date.now() - 3_600_000;
const at = (seconds: number) => new Date(START + seconds * 1_000).toISOString();

type Report = { task?: string; seconds: number; start?: number | null; shard?: string; more?: string };

async function upload({ task = "unit", seconds, start = null, shard, more = "" }: Report, build = "build") {
  const times = start === null ? "" : `timestamp="${at(start)}"`;
  // Reports that differ in nothing would be one.
  const name = crypto.randomUUID();
  const query = `task_slug=${task}&execution_key=${build}&branch=main${shard ? `&shard=${shard}` : ""}${more}`;
  const cases = `<testcase name="${name}" time="${seconds}"/>`;
  const { status, body } = await asking.send(`<testsuite ${times} time="${seconds}">${cases}</testsuite>`, query);
  expect(status).toBe(201);
  return body;
}
const get = (path: string) => asking.get(path);
const timesOf = ({ durationMs, machineTimeMs }: Record<string, number>) => [
  durationMs! / 1_000,
  machineTimeMs! / 1_000,
];

describe("three shards of ten seconds", () => {
  const shards = (starts: (number | null)[]) =>
    starts.map((start, index) => ({ start, shard: `${index + 1}/${starts.length}` }));

  test.each([
    ["side by side take ten", [0, 0, 0], 10],
    ["that begin later take until the last has ended", [0, 4, 8], 18],
    ["one after the other take thirty", [0, 10, 20], 30],
    ["that do not tell when they began take as long as the longest", [null, null, null], 10],
  ])("%s", async (_, starts, seconds) => {
    let last: any;
    for (const shard of shards(starts)) last = await upload({ ...shard, seconds: 10 });
    expect(last.durationMs).toBe(seconds * 1_000);
    const { executionId } = last;
    expect(timesOf(await get(`/executions/${executionId}/test-runs/unit`))).toEqual([seconds, 30]);
    expect(timesOf(await get(`/executions/${executionId}`))).toEqual([seconds, 30]);
    expect(timesOf((await get("/executions")).data[0])).toEqual([seconds, 30]);
    const { days } = await get("/trends?days=2");
    expect(days.at(-1).p50Ms ?? days.at(-2).p50Ms).toBe(seconds * 1_000);
  });

  test("and a retry of one, minutes later, take that in addition", async () => {
    for (const shard of shards([0, 0, 0])) await upload({ ...shard, seconds: 10 });
    const { executionId } = await upload({ start: 600, shard: "2/3", seconds: 5 });
    expect(timesOf(await get(`/executions/${executionId}/test-runs/unit`))).toEqual([15, 35]);
    expect(timesOf(await get(`/executions/${executionId}`))).toEqual([15, 35]);
  });
});

describe("an execution takes", () => {
  test.each([
    ["as long as tasks side by side", [0, 2], 32],
    ["as long as tasks one after the other", [0, 40], 70],
    ["as long as the longest where they do not tell", [null, null], 30],
    ["at least as long as one that does not tell", [0, null], 30],
  ])("%s", async (_, [unit, e2e], seconds) => {
    await upload({ task: "unit", seconds: 20, start: unit! });
    const { executionId } = await upload({ task: "e2e", seconds: 30, start: e2e!, more: "&complete=true" });
    expect(timesOf(await get(`/executions/${executionId}`))).toEqual([seconds, 50]);
    const took = toDuration(seconds * 1_000);
    const page = await open(`/projects/${project}/executions/${executionId}`);
    expect(page.words).toContain(`2 passed in ${took}`);
    expect(page.words).toContain(`machine time ${toDuration(50_000)}`);
    expect((await open(`/projects/${project}/executions`)).words).toContain(took);
    expect((await open(`/projects/${project}`)).words).toContain(took);
  });

  test("no machine time of its own where it is the wall time", async () => {
    const { executionId } = await upload({ seconds: 20, start: 0, more: "&complete=true" });
    expect((await open(`/projects/${project}/executions/${executionId}`)).words).not.toContain("machine time");
  });

  test.skipIf(!isFull)("a time that nobody could wait for, where reports claim it", async () => {
    await upload({ task: "e2e", seconds: 1, start: 0 });
    const days = Array.from({ length: 50_000 }, () => '<testcase name="a" time="2000000"/>').join("");
    const claim = (number: number, more = "") =>
      asking.send(
        `<testsuite timestamp="${at(number)}">${days}</testsuite>`,
        `task_slug=e2e&execution_key=build&branch=main${more}`,
      );
    for (let number = 1; number <= 2; number++) expect((await claim(number)).status).toBe(201);
    const { body, status } = await claim(3, "&complete=true");
    expect(status).toBe(201);
    // As a thousand of them would have made it.
    await database.pool`update test_run set duration_ms = 1e17 where execution_id = ${body.executionId}`;
    expect((await get(`/executions/${body.executionId}`)).durationMs).toBe(1e17);
    for (const path of ["", "/executions", `/executions/${body.executionId}`])
      expect((await open(`/projects/${project}${path}`)).status).toBe(200);
  });
});

test.each([1, 2, 3])("shards tell the same in whichever order they arrive (%i)", async (seed) => {
  const { chance, integer } = createRandom(seed, "durations");
  const shards = Array.from({ length: 6 }, (_, index) => ({
    seconds: integer(0, 50),
    start: chance(0.7) ? integer(0, 300) : null,
    shard: `${index + 1}/6`,
  }));
  const timesAfter = async (uploads: readonly Report[]) => {
    await begin();
    let executionId = "";
    for (const report of uploads) ({ executionId } = await upload(report));
    return timesOf(await get(`/executions/${executionId}`));
  };
  const known = shards.flatMap(({ start, seconds }) => (start === null ? [] : [{ start, end: start + seconds }]));
  const span = Math.max(...known.map(({ end }) => end)) - Math.min(...known.map(({ start }) => start));
  const all = shards.map(({ seconds }) => seconds);
  const expected = [Math.max(span, ...all), all.reduce((sum, seconds) => sum + seconds, 0)];
  expect(await timesAfter(shards)).toEqual(expected);
  expect(await timesAfter(shards.toReversed())).toEqual(expected);
});
