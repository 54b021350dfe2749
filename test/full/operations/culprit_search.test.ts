/** From the uploads that open bugs to the names of the commits that broke the tests: a scripted repository and real runners. */

import { afterAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../../../src/log.ts";
import { advanceSearches } from "../../../src/work/culprits.ts";
import { reclaimLeases } from "../../../src/work/reclaim.ts";
import { createAsking } from "../../asking.ts";
import { createAutomating } from "../../automating.ts";
import { createHarness, until } from "../../harness.ts";
import { createPlace, removePlace } from "../../places.ts";
import { startProbeRunner } from "../../probing.ts";

const harness = await createHarness();
const { url, ask, acme, database } = harness;
const { pool } = database;
const { automate, handle } = createAutomating(harness, acme);
const { project, get, list, call, send } = createAsking(ask, acme);
const log = createLog("debug", () => {}, false);

const COMMITS = 64;
/** The numbers of the commits that break the price and the stock, and of those that do not build. */
const PRICE_BREAKS = 23;
const STOCK_BREAKS = 45;
const UNBUILDABLE = [5, 12, 13, 33, 40, 58];

const place = createPlace("culprit");
afterAll(() => removePlace(place));
const repository = join(place, "repository");
/** While there is `hold`, a probe of the second runner creates `held` and does not end. */
const [hold, held] = [join(place, "hold"), join(place, "held")];
/** Its length says how often the test of the stock has run: the test fails in every sixth run for no reason. */
const counter = join(place, "stock-runs");

/** The test of the price leaves a file that git ignores, and fails if it finds it. */
const FILES = {
  ".gitignore": "*.db\n",
  "price.test.ts": `
    import { existsSync, writeFileSync } from "node:fs";
    import { expect, test } from "bun:test";
    import { price } from "./price.ts";
    test("adds the fee", () => {
      const isFirst = !existsSync("orders.db");
      writeFileSync("orders.db", "");
      expect(isFirst ? price(100) : 0).toBe(105);
    });`,
  "stock.test.ts": `
    import { appendFileSync, statSync } from "node:fs";
    import { expect, test } from "bun:test";
    import { stock } from "./stock.ts";
    test("reserves", () => {
      appendFileSync(${JSON.stringify(counter)}, "x");
      const isUnlucky = statSync(${JSON.stringify(counter)}).size % 6 === 0;
      expect(isUnlucky ? -1 : stock(3)).toBe(2);
    });`,
  "clock.test.ts": `
    import { expect, test } from "bun:test";
    test("is in time", () => expect(process.env["LATE"]).toBeUndefined());`,
};

async function run(command: string[], cwd: string, environment: Record<string, string> = {}): Promise<string> {
  const env = { PATH: process.env["PATH"]!, HOME: place, GIT_CONFIG_GLOBAL: "/dev/null", ...environment };
  const child = Bun.spawn(command, { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return output.trim();
}

/** Makes the commits; returns their hashes, by their numbers. */
async function createRepository(): Promise<string[]> {
  const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`;
  const commits = Array.from({ length: COMMITS }, (_, number) => {
    const files = {
      ...FILES,
      "price.ts": `export const price = (net: number) => net + ${number >= PRICE_BREAKS ? 6 : 5};`,
      "stock.ts": `export const stock = (count: number) => count - ${number >= STOCK_BREAKS ? 2 : 1};`,
      "build.sh": UNBUILDABLE.includes(number) ? "exit 2" : "exit 0",
      "notes.txt": String(number),
    };
    const changes = Object.entries(files).map(([name, text]) => `M 100644 inline ${name}\n${data(text)}`);
    const author = number === STOCK_BREAKS ? "Grace" : "Ada";
    return `commit refs/heads/main\ncommitter ${author} <a@example.com> ${1_700_000_000 + number} +0000\n${data(`change ${number}`)}${changes.join("")}`;
  });
  await run(["git", "init", "-q", "-b", "main", repository], place);
  const load = Bun.spawn(["git", "fast-import", "--quiet"], { cwd: repository, stdin: new Blob([commits.join("\n")]) });
  expect(await load.exited).toBe(0);
  return (await run(["git", "rev-list", "--reverse", "main"], repository)).split("\n");
}

/** Runs the whole suite on a commit and uploads its report, as CI does. */
async function build(commit: string, environment: Record<string, string> = {}): Promise<void> {
  await run(["git", "checkout", "-q", commit], repository);
  await run(["git", "clean", "-fdxq"], repository);
  const reporter = ["--reporter=junit", "--reporter-outfile=../report.xml"];
  await run([process.execPath, "test", ...reporter], repository, environment);
  const body = await Bun.file(join(place, "report.xml")).text();
  const { status } = await send(body, { task_slug: "unit", branch: "main", commit, complete: "true" });
  expect(status).toBe(201);
}

const bugOf = async (name: string) => {
  const [{ id }] = await list(`/test-cases?q=${encodeURIComponent(name)}`);
  return (await list(`/bug-reports?test_case_id=${id}`))[0];
};

test("two runners, one of which is killed, find the two commits that broke two tests", async () => {
  const hashes = await createRepository();
  const task = {
    checkout: { git: repository, build: "sh ./build.sh" },
    command: `${process.execPath} test --reporter=junit --reporter-outfile=report.xml`,
    rerun: `${process.execPath} test {bun} --reporter=junit --reporter-outfile=report.xml`,
    report: "report.xml",
  };
  const holding = { ...task, rerun: `if [ -e ${hold} ]; then touch ${held}; tail -f /dev/null; fi; ${task.rerun}` };
  const start = (name: string, unit: object) =>
    startProbeRunner({ url, project: acme, tasks: { unit }, args: ["--name", name], isProcess: name === "second" });
  const [first, second] = await Promise.all([start("first", task), start("second", holding)]);
  await until(async () => (await get("/runners")).data.length === 2, 30);
  const action = { type: "find_culprit", maxProbes: 60 };
  await automate({ trigger: { event: "bug_report.opened" }, actions: [action] });

  await build(hashes[0]!);
  // The test of the clock fails and passes on one commit: it is flaky.
  await build(hashes[0]!, { LATE: "1" });
  await build(hashes[0]!);
  await build(hashes.at(-1)!, { LATE: "1" });
  await handle();

  const [price, stock, clock] = [await bugOf("adds the fee"), await bugOf("reserves"), await bugOf("is in time")];
  expect(await get(`/bug-reports/${price.id}`)).toMatchObject({ culprit: { status: "running", commit: null } });
  const isFlaky = { status: 400, body: { error: { message: expect.stringContaining("its test is flaky") } } };
  expect(await call("POST", `/bug-reports/${clock.id}/culprit`, {})).toMatchObject(isFlaky);

  // What probes must leave as it is.
  const others = async () =>
    await Promise.all(
      ["/executions", "/test-runs", "/test-cases", "/state", "/trends", "/bug-reports"].map((path) => get(path)),
    );
  const before = await others();
  const ended = async () => {
    const [{ count }] = await pool<[{ count: number }]>`
      select count(*)::int as count from probe where project_id = ${project} and ended_at is not null and kind = 'test'`;
    return count;
  };
  await until(async () => {
    await advanceSearches(database, undefined, undefined, log);
    return (await ended()) >= 4;
  }, 60);
  // It holds a lease, which nobody else gets before the runner has been silent for long.
  await Bun.write(hold, "");
  await until(async () => {
    await advanceSearches(database, undefined, undefined, log);
    const running =
      await pool`select from lease where project_id = ${project} and runner = 'second' and status = 'running'`;
    return existsSync(held) && running.length > 0;
  }, 60);
  second.kill();
  await pool`
    update lease set expires_at = now() - interval '1 second'
    where project_id = ${project} and runner = 'second' and status in ('offered', 'running')`;
  await reclaimLeases(database);
  expect(
    await pool`select from lease where project_id = ${project} and runner = 'second' and status = 'lost'`,
  ).toHaveLength(1);
  await until(async () => {
    await advanceSearches(database, undefined, undefined, log);
    return (await pool`select from culprit_search where project_id = ${project} and status = 'running'`).length === 0;
  }, 90);

  const found = await Promise.all([price, stock].map(({ id }) => get(`/bug-reports/${id}/culprit`)));
  expect(
    found.map(({ status, verdict, commitCount, culprit, parent }) => {
      return [status, verdict, commitCount, culprit?.commit, culprit?.author, culprit?.files, parent?.commit];
    }),
  ).toEqual([
    [
      "completed",
      "culprit",
      COMMITS - 1,
      hashes[PRICE_BREAKS],
      "Ada",
      ["notes.txt", "price.ts"],
      hashes[PRICE_BREAKS - 1],
    ],
    [
      "completed",
      "culprit",
      COMMITS - 1,
      hashes[STOCK_BREAKS],
      "Grace",
      ["notes.txt", "stock.ts"],
      hashes[STOCK_BREAKS - 1],
    ],
  ]);
  for (const { summary, culprit, probes } of found) {
    expect(summary).toMatch(
      /^\w{10} by (Ada|Grace) broke it: it failed there \d of \d times, on its parent \w{10} it passed \d of \d times$/,
    );
    expect(
      probes.filter(({ commit, result }: any) => commit === culprit.commit && result === "failed").length,
    ).toBeGreaterThanOrEqual(2);
  }
  // Both tests ran together on the first commits, and the commits were listed once.
  const shared = await pool`select from probe where project_id = ${project} and kind = 'test' and number > 1`;
  expect(shared.length).toBeGreaterThan(0);
  expect(
    await pool`select distinct execution_id from probe where project_id = ${project} and kind = 'commits'`,
  ).toHaveLength(1);
  expect(await others()).toEqual(before);
  const events = await pool`
    select data -> 'culprit' ->> 'commit' as commit, data -> 'bugReport' ->> 'id' as bug from event
    where project_id = ${project} and type = 'bug_report.culprit_found' order by data -> 'culprit' ->> 'author'`;
  expect([...events]).toEqual([
    { commit: hashes[PRICE_BREAKS], bug: price.id },
    { commit: hashes[STOCK_BREAKS], bug: stock.id },
  ] as never);
  expect(await get(`/bug-reports/${stock.id}`)).toMatchObject({
    culprit: { status: "completed", verdict: "culprit", commit: hashes[STOCK_BREAKS], author: "Grace" },
  });
  expect(await first.stop()).toBe(0);
}, 240_000);
