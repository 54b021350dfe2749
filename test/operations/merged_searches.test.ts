/** Searches for culprits of bugs that are merged or cancelled meanwhile; with a runner that this test plays. */

import { describe, expect, test } from "bun:test";
import { mergeBugs } from "../../src/operations/bugs/bug_reports.ts";
import { createPlayedSearches, hash } from "../played_searches.ts";

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
  waitForLock,
} = await createPlayedSearches();
const { pool } = database;

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
    await request(`POST /bug-reports/${bugs["adds"]}/merge`, { into: prints });
    const moved = await get(`/bug-reports/${prints}/culprit`);
    expect(moved).toMatchObject({ bugReportId: prints, culprit: { commit: hash(3) } });
    expect(moved.probes.filter(({ result }: { result: string }) => result === "failed").length).toBeGreaterThan(1);
    expect((await request(`GET /bug-reports/${bugs["adds"]}/culprit`)).status).toBe(404);
    await request(`POST /bug-reports/${bugs["sorts"]}/merge`, { into: prints });
    expect(await culpritOf(prints)).toBe(hash(3));
    expect(await culpritOf(bugs["sorts"])).toBe(hash(5));
  });

  test("its proven commit is that of the other one if the searches of that one have proven none", async () => {
    const breaks = { adds: 3, sorts: 5 };
    const bugs = await startSearches(9, breaks, ["adds"]);
    await work({ commits: 9, breaks });
    // Another search, which is newer, has too few probes.
    const { sorts } = await startSearches(9, breaks, ["sorts"], { sorts: { maxProbes: 1 } });
    await work({ commits: 9, breaks });
    expect(await get(`/bug-reports/${sorts}/culprit`)).toMatchObject({ verdict: "undecided", reason: "budget" });
    await request(`POST /bug-reports/${bugs["adds"]}/merge`, { into: sorts! });
    expect(await culpritOf(sorts)).toBe(hash(3));
    expect((await get(`/bug-reports/${sorts}`)).culprit).toMatchObject({ verdict: "culprit", commit: hash(3) });
    expect((await get(`/bug-reports/${bugs["adds"]}/culprit`)).verdict).toBe("undecided");
  });

  test("its search joins no probes any more", async () => {
    const breaks = { adds: 5, prints: 5, sorts: 5 };
    const bugs = await startSearches(9, breaks, ["adds", "prints"]);
    await advance();
    await finish((await sync())[0], { commits: 9, breaks });
    const [{ id }] = (await get("/test-cases?q=sorts")).data;
    const into = (await get(`/bug-reports?test_case_id=${id}`)).data[0].id;
    expect((await request(`POST /bug-reports/${bugs["prints"]}/merge`, { into })).status).toBe(200);
    await pool`
      update culprit_search set due_at = now() - interval '1 hour'
      where project_id = ${project()} and bug_report_id = ${bugs["adds"]!}`;
    await advance();
    expect(await count()).toEqual({ executions: 1, probes: 1 });
  });

  test("while its search ends, the search is cancelled and there is no event", async () => {
    const breaks = { adds: 3, prints: 7 };
    const { adds } = await startSearches(9, breaks, ["adds"]);
    await work({ commits: 9, breaks });
    expect(await foundEvents()).toHaveLength(1);
    // As if its last step were yet to come.
    await pool`delete from event where project_id = ${project()} and type = 'bug_report.culprit_found'`;
    await pool`
      update culprit_search set status = 'running', verdict = null, culprit = null, ended_at = null, due_at = now()
      where project_id = ${project()}`;
    const [{ id }] = (await get("/test-cases?q=prints")).data;
    const prints = (await get(`/bug-reports?test_case_id=${id}`)).data[0];
    const { step } = await database.begin(async (sql) => {
      await mergeBugs(sql, project(), adds!, prints.id);
      const step = advance();
      await waitForLock(sql);
      return { step };
    });
    await step;
    expect(await get(`/bug-reports/${adds}/culprit`)).toMatchObject({
      ...{ status: "cancelled", verdict: null, culprit: null },
      summary: `Cancelled: the bug report was merged into number ${prints.number}`,
    });
    expect(await foundEvents()).toHaveLength(0);
  });
});

test("a search that is cancelled locks its bug report only after the search, as a step does", async () => {
  const breaks = { adds: 3 };
  const { adds } = await startSearches(9, breaks);
  await advance();
  const { cancelled } = await database.begin(async (sql) => {
    await sql`select from culprit_search where project_id = ${project()} for update`;
    const cancelled = request(`POST /bug-reports/${adds}/culprit/cancel`, {});
    await waitForLock(sql);
    await sql`select from bug_report where project_id = ${project()} and id = ${adds!} for no key update nowait`;
    return { cancelled };
  });
  expect((await cancelled).status).toBe(200);
});
