/** Several searches for culprits that run at once: of the same range and of different ones; with a runner that this test plays. */

import { describe, expect, test } from "bun:test";
import { selectEarlierProbes } from "../../../src/store/culprit_evidence.ts";
import { updateRange } from "../../../src/store/culprit_searches.ts";
import { createPlayedSearches, hash, type Lease, range } from "../../played_searches.ts";

const {
  database,
  request,
  get,
  advance,
  sync,
  startSearches,
  foundEvents,
  finish,
  work,
  count,
  culpritOf,
  project,
  enterProject,
  waitForLock,
} = await createPlayedSearches();
const { pool } = database;

describe("searches of the same range", () => {
  test("run each probe once if one commit broke all tests, and list its commits once", async () => {
    const breaks = { adds: 7, prints: 7, sorts: 7 };
    const bugs = await startSearches(10, breaks);
    await work({ commits: 10, breaks });
    for (const bug of Object.values(bugs)) {
      expect(await culpritOf(bug)).toBe(hash(7));
      expect((await get(`/bug-reports/${bug}/culprit`)).summary).toMatch(
        /it failed there \d of \d times, on its parent/,
      );
    }
    const { executions, probes } = await count();
    expect(probes).toBe(3 * executions);
    expect(await count("commits")).toEqual({ executions: 1, probes: 3 });
  }, 60_000);

  test("need fewer executions than separate ones if several commits broke the tests", async () => {
    const breaks = { adds: 3, prints: 11 };
    const separate = { executions: 0 };
    for (const name of ["adds", "prints"] as const) {
      await enterProject();
      const bugs = await startSearches(14, breaks, [name]);
      await work({ commits: 14, breaks });
      expect(await culpritOf(bugs[name])).toBe(hash(breaks[name]));
      separate.executions += (await count()).executions;
    }
    await enterProject();
    const bugs = await startSearches(14, breaks);
    await work({ commits: 14, breaks, free: 2 });
    expect(await Promise.all([culpritOf(bugs["adds"]), culpritOf(bugs["prints"])])).toEqual([hash(3), hash(11)]);
    expect((await count()).executions).toBeLessThan(separate.executions);
    expect((await foundEvents()).map(({ bug }) => bug).toSorted()).toEqual(Object.values(bugs).toSorted());
  }, 60_000);

  test("run each commit once, however many tests one commit broke", async () => {
    const breaks = Object.fromEntries(Array.from({ length: 4 }, (_, at) => [`test${at + 10}`, 6]));
    const bugs = await startSearches(9, breaks);
    await work({ commits: 9, breaks });
    for (const bug of Object.values(bugs)) expect(await culpritOf(bug)).toBe(hash(6));
    const { executions, probes } = await count();
    expect(executions).toBeLessThanOrEqual(Math.ceil(probes / 4));
    const repeated = await pool`
      select from probe p join probe o using (project_id, culprit_search_id, commit)
      where p.project_id = ${project()} and p.kind = 'test' and p.execution_id < o.execution_id and p.ended_at > o.created_at`;
    expect(repeated).toHaveLength(0);
  }, 60_000);

  test("have a budget for the probes that are created for them, and join others beyond it", async () => {
    const breaks = { adds: 13, prints: 13 };
    const bugs = await startSearches(20, breaks, ["adds", "prints"], { prints: { maxProbes: 2 } });
    await work({ commits: 20, breaks });
    const search = await get(`/bug-reports/${bugs["prints"]}/culprit`);
    expect(search).toMatchObject({ verdict: "culprit", maxProbes: 2, culprit: { commit: hash(13) } });
    expect(search.probes.length).toBeGreaterThan(2);
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
    const cancelled = await request(`POST /bug-reports/${bugs["adds"]}/culprit/cancel`, {});
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
    const { probes } = await get(`/bug-reports/${bugs["prints"]}/culprit`);
    expect(probes).toMatchObject([{ executionId, result: expect.stringMatching(/passed|failed/) }]);
    await advance();
    const [next] = (await get(`/bug-reports/${bugs["prints"]}/culprit`)).probes.slice(-1);
    await request(`POST /bug-reports/${bugs["prints"]}/culprit/cancel`, {});
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
      [bugs["adds"], bugs["prints"]].map(async (bug) => (await get(`/bug-reports/${bug}/culprit`)).id),
    );
    // As if both bugs were of the first test.
    await pool`
      update probe set test_case = (select min(test_case) from probe where project_id = ${project()})
      where project_id = ${project()} and kind = 'test'`;
    const [{ testCase }] = await pool<[{ testCase: number }]>`
      select min(test_case) as "testCase" from probe where project_id = ${project()}`;
    const earlierOf = (searchId: string) =>
      selectEarlierProbes(pool, project(), { testCase, searchId, commits: range(10).map(({ hash }) => hash) });
    for (const id of searches) expect(await earlierOf(id)).toHaveLength(0);
    expect(await earlierOf(crypto.randomUUID())).toHaveLength(1);
  });

  test("that are cancelled at the same moment leave no shared probe behind", async () => {
    const breaks = { adds: 5, prints: 5 };
    const bugs = await startSearches(9, breaks);
    await advance();
    await Promise.all(Object.values(bugs).map((bug) => request(`POST /bug-reports/${bug}/culprit/cancel`, {})));
    expect(
      await pool`select from execution where project_id = ${project()} and probe and completed_at is null`,
    ).toHaveLength(0);
    expect(await pool`select from probe where project_id = ${project()} and ended_at is null`).toHaveLength(0);
  });

  test("share probes again after one was cancelled", async () => {
    const breaks = { adds: 5, prints: 5 };
    const bugs = await startSearches(9, breaks);
    await advance();
    await finish((await sync())[0], { commits: 9, breaks });
    await advance();
    const [{ executionId }] = (await get(`/bug-reports/${bugs["adds"]}/culprit`)).probes;
    expect((await request(`POST /executions/${executionId}/cancel`, {})).status).toBe(200);
    await work({ commits: 9, breaks });
    const { executions, probes } = await count();
    expect(probes).toBe(2 * executions);
    expect(await culpritOf(bugs["prints"])).toBe(hash(5));
  });

  test("run only the tests that are still wanted", async () => {
    const breaks = { adds: 5, prints: 5 };
    const bugs = await startSearches(9, breaks);
    await advance();
    await finish((await sync())[0], { commits: 9, breaks });
    await advance();
    await request(`POST /bug-reports/${bugs["adds"]}/culprit/cancel`, {});
    const [lease]: Lease[] = await sync();
    expect(lease!.only!.map(({ name }) => name)).toEqual(["prints"]);
  });

  test("make their steps also if another one cannot be loaded", async () => {
    const breaks = { adds: 5, prints: 5 };
    const bugs = await startSearches(9, breaks);
    await advance();
    await finish((await sync())[0], { commits: 9, breaks });
    await pool`
      update culprit_search set due_at = case when bug_report_id = ${bugs["adds"]!} then now() - interval '1 hour' else due_at end,
        commits = case when bug_report_id = ${bugs["prints"]!} then '[null]'::json else commits end
      where project_id = ${project()}`;
    await advance();
    expect((await get(`/bug-reports/${bugs["adds"]}/culprit`)).probes).toHaveLength(1);
    expect(await count()).toEqual({ executions: 1, probes: 1 });
  });

  test("take the commits of a listing that ends while they wait for it", async () => {
    const breaks = { adds: 5, prints: 7 };
    const { adds } = await startSearches(9, breaks, ["adds"]);
    await advance();
    const [listing] = await pool<
      { id: string }[]
    >`select execution_id as id from probe where project_id = ${project()}`;
    const { prints } = await startSearches(9, breaks, ["prints"]);
    const { step } = await database.begin(async (sql) => {
      await sql`select from execution where project_id = ${project()} and id = ${listing!.id} for update`;
      const step = advance();
      await waitForLock(sql);
      await updateRange(sql, project(), (await get(`/bug-reports/${adds}/culprit`)).id, range(10));
      await sql`
        update execution set status = 'passed', completed_at = now() where project_id = ${project()} and id = ${listing!.id}`;
      await sql`update probe set result = 'passed', ended_at = now() where project_id = ${project()}`;
      return { step };
    });
    await step;
    expect(await count("commits")).toEqual({ executions: 1, probes: 1 });
    expect((await get(`/bug-reports/${prints}/culprit`)).commitCount).toBe(9);
  });

  test("run their tests alone once one had no result beside another one", async () => {
    const breaks = { adds: 5, prints: 9 };
    const bugs = await startSearches(12, breaks);
    // The first test ends the process.
    await work({ commits: 12, breaks, reported: (names) => (names.length > 1 ? [] : names) });
    expect(await Promise.all([culpritOf(bugs["adds"]), culpritOf(bugs["prints"])])).toEqual([hash(5), hash(9)]);
    const shared = await pool`select from probe where project_id = ${project()} and kind = 'test' and number > 1`;
    expect(shared).toHaveLength(1);
  });
});

test("a commit that broke another test of the range is more probable", async () => {
  const breaks = { adds: 23, prints: 23 };
  const bugs = await startSearches(40, breaks, ["adds"]);
  await work({ commits: 40, breaks });
  const first = (await get(`/bug-reports/${bugs["adds"]}/culprit`)).probes.length;
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
  expect(await pool`select from culprit_search where project_id = ${project()}`).toHaveLength(2);
  expect(await foundEvents()).toHaveLength(1);
});
