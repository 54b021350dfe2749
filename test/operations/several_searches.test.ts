/** Several searches for culprits: of the same range, of the same bug, and of bugs that are merged; with a runner that this test plays. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { selectEarlierProbes } from "../../src/store/culprit_evidence.ts";
import { advanceSearches } from "../../src/work/culprits.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();
const { pool } = database;
const log = createLog("debug", () => {}, false);

let place: { project: string; key: string };
beforeEach(async () => {
  place = await addProject(acme);
});

const request = (target: string, body?: object | string) => {
  const [method, path] = target.split(" ") as [string, string];
  return ask(`${method} /projects/${place.project}${path}`, { key: place.key, ...(body ? { body } : {}) });
};
const get = async (path: string) => (await request(`GET ${path}`)).body;
const advance = () => advanceSearches(database, undefined, undefined, log);

const hash = (at: number) => `a${at.toString(16).padStart(39, "0")}`;
const range = (commits: number) =>
  Array.from({ length: commits }, (_, at) => ({
    ...{ hash: hash(at), author: "Ada", date: "2026-01-31T10:00:00+01:00" },
    ...{ subject: `change ${at}`, files: [`file-${at}.ts`] },
  }));

const NAMES = ["adds", "prints", "sorts"] as const;
type Name = (typeof NAMES)[number];
/** Where each test breaks; the others pass. */
type Breaks = Partial<Record<Name, number>>;

const report = (names: readonly Name[], at: number, breaks: Breaks) =>
  `<testsuite name="cart">${names
    .map((name) => {
      const failure = at >= (breaks[name] ?? Infinity) ? `<failure message="the ${name} is wrong"/>` : "";
      return `<testcase classname="${name}" name="${name}">${failure}</testcase>`;
    })
    .join("")}</testsuite>`;

const SYNC = { runner: "r", taskSlugs: ["unit"], probeSlugs: ["unit"] };
const sync = async (free = 1) => {
  const { leases } = (await request("POST /leases", { ...SYNC, free })).body;
  const held = leases.map(({ id }: { id: string }) => ({ id }));
  if (held.length > 0) await request("POST /leases", { ...SYNC, free: 0, held });
  return leases;
};

/** Builds the last of so many commits after the good one, and starts searches for the bugs of these tests; returns the bugs. */
async function startSearches(commits: number, breaks: Breaks, names = Object.keys(breaks) as Name[]) {
  const upload = async (at: number) => {
    const path = `POST /test-runs?task_slug=unit&branch=main&commit=${hash(at)}&complete=true`;
    return (await request(path, report(NAMES, at, breaks))).body;
  };
  await upload(0);
  await upload(commits);
  await sync();
  const bugs: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const [testCase] = (await get(`/test-cases?q=${name}`)).data;
    const [bug] = (await get(`/bug-reports?test_case_id=${testCase.id}`)).data;
    bugs[name] = bug.id;
    expect((await request(`POST /bug-reports/${bug.id}/culprit`, {})).status).toBe(201);
  }
  return bugs;
}

const foundEvents = () => pool<{ bug: string }[]>`
  select data -> 'bugReport' ->> 'id' as bug from event
  where project_id = ${place.project} and type = 'bug_report.culprit_found'`;

type Lease = { id: string; execution: { commit: string }; only?: { name: Name }[]; commits?: object };
type Work = {
  commits: number;
  breaks: Breaks;
  /** The test cases of which a report has results, of those that run together. */
  reported?: (names: Name[]) => Name[];
  free?: number;
};

async function finish(lease: Lease, { commits, breaks, reported = (names) => names }: Work): Promise<void> {
  if (lease.commits) return void (await request(`POST /leases/${lease.id}/commits`, { commits: range(commits + 1) }));
  const at = Number.parseInt(lease.execution.commit.slice(1), 16);
  const names = reported(lease.only!.map(({ name }) => name));
  const body = report(names, at, breaks);
  const path = `POST /test-runs?lease_id=${lease.id}&exit_code=${body.includes("failure") ? 1 : 0}&allow_empty=true`;
  expect((await request(path, body)).status).toBe(201);
}

/** Works until the searches have ended. */
async function work(given: Work): Promise<void> {
  for (;;) {
    await advance();
    const leases: Lease[] = await sync(given.free);
    if (leases.length === 0) return;
    for (const lease of leases) await finish(lease, given);
  }
}

/** The number of executions, and of probes over all searches. */
async function count(kind = "test") {
  const [row] = await pool<[{ executions: number; probes: number }]>`
    select count(distinct execution_id)::int as executions, count(*)::int as probes from probe
    where project_id = ${place.project} and kind = ${kind}`;
  return { ...row };
}

const culpritOf = async (bug: string | undefined) => (await get(`/bug-reports/${bug}/culprit`)).culprit?.commit;

describe("searches of the same range", () => {
  test("run each probe once if one commit broke all tests, and list its commits once", async () => {
    const breaks = { adds: 13, prints: 13, sorts: 13 };
    const bugs = await startSearches(20, breaks);
    await work({ commits: 20, breaks });
    for (const bug of Object.values(bugs)) {
      expect(await culpritOf(bug)).toBe(hash(13));
      expect((await get(`/bug-reports/${bug}/culprit`)).summary).toMatch(
        /it failed there \d of \d times, on its parent/,
      );
    }
    const { executions, probes } = await count();
    expect(probes).toBe(3 * executions);
    expect(await count("commits")).toEqual({ executions: 1, probes: 3 });
  }, 60_000);

  test("need fewer executions than separate ones if several commits broke the tests", async () => {
    const breaks = { adds: 5, prints: 20 };
    const separate = { executions: 0 };
    for (const name of ["adds", "prints"] as const) {
      place = await addProject(acme);
      const bugs = await startSearches(24, breaks, [name]);
      await work({ commits: 24, breaks });
      expect(await culpritOf(bugs[name])).toBe(hash(breaks[name]));
      separate.executions += (await count()).executions;
    }
    place = await addProject(acme);
    const bugs = await startSearches(24, breaks);
    await work({ commits: 24, breaks, free: 2 });
    expect(await Promise.all([culpritOf(bugs.adds), culpritOf(bugs.prints)])).toEqual([hash(5), hash(20)]);
    expect((await count()).executions).toBeLessThan(separate.executions);
    expect((await foundEvents()).map(({ bug }) => bug).toSorted()).toEqual(Object.values(bugs).toSorted());
  }, 60_000);

  test("keep a shared probe that one of them no longer wants, until the last one cancels it", async () => {
    const breaks = { adds: 5, prints: 5 };
    const bugs = await startSearches(9, breaks);
    await advance();
    const [listing] = await sync();
    await finish(listing, { commits: 9, breaks });
    await Promise.all([advance(), advance(), advance()]);
    const [lease, ...others]: Lease[] = await sync(4);
    expect(others).toEqual([]);
    expect(lease!.only!.map(({ name }) => name)).toEqual(["adds", "prints"]);
    const cancelled = await request(`POST /bug-reports/${bugs.adds}/culprit/cancel`, {});
    expect(cancelled.body.probes).toMatchObject([{ result: "no_result", endedAt: expect.any(String) }]);
    const { executionId } = cancelled.body.probes[0];
    expect(await get(`/executions/${executionId}`)).toMatchObject({
      ...{ status: "running", completedAt: null },
      probe: {
        testCase: { name: "adds" },
        tests: [
          { testCase: { name: "adds" }, result: "no_result" },
          { testCase: { name: "prints" }, result: null },
        ],
      },
    });
    await finish(lease!, { commits: 9, breaks });
    const { probes } = await get(`/bug-reports/${bugs.prints}/culprit`);
    expect(probes).toMatchObject([{ executionId, result: expect.stringMatching(/passed|failed/) }]);
    await advance();
    const [next] = (await get(`/bug-reports/${bugs.prints}/culprit`)).probes.slice(-1);
    await request(`POST /bug-reports/${bugs.prints}/culprit/cancel`, {});
    expect((await get(`/executions/${next.executionId}`)).status).toBe("cancelled");
  });

  test("count a shared result of one test case once", async () => {
    const breaks = { adds: 5, prints: 5 };
    const bugs = await startSearches(9, breaks);
    // The listing and the first probe.
    for (let step = 0; step < 2; step++) {
      await advance();
      const [lease] = await sync();
      await finish(lease, { commits: 9, breaks });
    }
    const searches = await Promise.all(
      [bugs.adds, bugs.prints].map(async (bug) => (await get(`/bug-reports/${bug}/culprit`)).id),
    );
    // As if both bugs were of the first test.
    await pool`
      update probe set test_case = (select min(test_case) from probe where project_id = ${place.project})
      where project_id = ${place.project} and kind = 'test'`;
    const [{ testCase }] = await pool<[{ testCase: number }]>`
      select min(test_case) as "testCase" from probe where project_id = ${place.project}`;
    const earlierOf = (searchId: string) =>
      selectEarlierProbes(pool, place.project, { testCase, searchId, commits: range(10).map(({ hash }) => hash) });
    for (const id of searches) expect(await earlierOf(id)).toHaveLength(0);
    expect(await earlierOf(crypto.randomUUID())).toHaveLength(1);
  });

  test("that are cancelled at the same moment leave no shared probe behind", async () => {
    const breaks = { adds: 5, prints: 5 };
    const bugs = await startSearches(9, breaks);
    await advance();
    await Promise.all(Object.values(bugs).map((bug) => request(`POST /bug-reports/${bug}/culprit/cancel`, {})));
    expect(
      await pool`select from execution where project_id = ${place.project} and probe and completed_at is null`,
    ).toHaveLength(0);
    expect(await pool`select from probe where project_id = ${place.project} and ended_at is null`).toHaveLength(0);
  });

  test("run their tests alone once one had no result beside another one", async () => {
    const breaks = { adds: 5, prints: 13 };
    const bugs = await startSearches(20, breaks);
    // The first test ends the process.
    await work({ commits: 20, breaks, reported: (names) => (names.length > 1 ? [] : names) });
    expect(await Promise.all([culpritOf(bugs.adds), culpritOf(bugs.prints)])).toEqual([hash(5), hash(13)]);
    const shared = await pool`select from probe where project_id = ${place.project} and kind = 'test' and number > 1`;
    expect(shared).toHaveLength(1);
  });
});

test("a commit that broke another test of the range is more probable", async () => {
  const breaks = { adds: 23, prints: 23 };
  const bugs = await startSearches(40, breaks, ["adds"]);
  await work({ commits: 40, breaks });
  const first = (await get(`/bug-reports/${bugs.adds}/culprit`)).probes.length;
  const { prints } = await startSearches(40, breaks, ["prints"]);
  await work({ commits: 40, breaks });
  const { culprit, probes } = await get(`/bug-reports/${prints}/culprit`);
  expect(culprit.commit).toBe(hash(23));
  expect(probes.length).toBeLessThan(first);
}, 60_000);

test("a repeated search that finds the same commit again is no event", async () => {
  const breaks = { adds: 3 };
  const { adds } = await startSearches(9, breaks);
  await work({ commits: 9, breaks });
  expect(await foundEvents()).toHaveLength(1);
  await request(`POST /bug-reports/${adds}/culprit`, {});
  await work({ commits: 9, breaks });
  expect(await get(`/bug-reports/${adds}/culprit`)).toMatchObject({ verdict: "culprit", culprit: { commit: hash(3) } });
  expect(await pool`select from culprit_search where project_id = ${place.project}`).toHaveLength(2);
  expect(await foundEvents()).toHaveLength(1);
});

describe("when a bug is merged into another one", () => {
  test("its running search is cancelled with its probes", async () => {
    const breaks = { adds: 3, prints: 7 };
    const { adds, prints } = await startSearches(9, breaks, ["adds"]).then(async ({ adds }) => {
      const [{ id }] = (await get("/test-cases?q=prints")).data;
      return { adds, prints: (await get(`/bug-reports?test_case_id=${id}`)).data[0] };
    });
    await advance();
    expect((await request(`POST /bug-reports/${adds}/merge`, { into: prints.id })).status).toBe(200);
    await advance();
    expect(await get(`/bug-reports/${adds}/culprit`)).toMatchObject({
      ...{ status: "cancelled", verdict: null },
      summary: `Cancelled: the bug report was merged into number ${prints.number}`,
    });
    expect(await sync()).toEqual([]);
    expect((await request(`GET /bug-reports/${prints.id}/culprit`)).status).toBe(404);
  });

  test("its proven commit is that of the other one, unless that one was searched for itself", async () => {
    const breaks = { adds: 3, prints: 7, sorts: 5 };
    const bugs = await startSearches(9, breaks, ["adds", "sorts"]);
    await work({ commits: 9, breaks });
    const [{ id }] = (await get("/test-cases?q=prints")).data;
    const prints = (await get(`/bug-reports?test_case_id=${id}`)).data[0].id;
    await request(`POST /bug-reports/${bugs.adds}/merge`, { into: prints });
    const moved = await get(`/bug-reports/${prints}/culprit`);
    expect(moved).toMatchObject({ bugReportId: prints, culprit: { commit: hash(3) } });
    expect(moved.probes.filter(({ result }: { result: string }) => result === "failed").length).toBeGreaterThan(1);
    expect((await request(`GET /bug-reports/${bugs.adds}/culprit`)).status).toBe(404);
    await request(`POST /bug-reports/${bugs.sorts}/merge`, { into: prints });
    expect(await culpritOf(prints)).toBe(hash(3));
    expect(await culpritOf(bugs.sorts)).toBe(hash(5));
  });
});
