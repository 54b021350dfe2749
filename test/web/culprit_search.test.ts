/** The page of a bug while a search for its commit runs, and what is shown of its end. */

import { expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { advanceSearches } from "../../src/work/culprits.ts";
import { insertFoundSearch } from "../culprit_searches.ts";
import { until } from "../harness.ts";
import { createPages } from "./browser.ts";

const { acme, own, look, fill, report, database, people, url } = await createPages();
const { pool } = database;

const bugOf = async (name: string) => {
  await report("p", { execution_key: `${name} good`, commit: "1111111", branch: "main" }, name);
  const { body } = await report(
    "f",
    { execution_key: `${name} bad`, commit: "2222222", branch: "main", says: `${name} is wrong` },
    name,
  );
  return body.bugReports[0].id as string;
};
const pageOf = (bug: string) => `/projects/${acme.project}/bugs/${bug}`;

test("offers a search to members, and says why it cannot begin", async () => {
  const bug = await bugOf("price");
  const { html } = await look("member", pageOf(bug));
  expect(html).toContain("Find the commit");
  expect((await look("viewer", pageOf(bug))).html).not.toContain("Find the commit");
  const refused = await fill("member", `${pageOf(bug)}/culprit`, {});
  expect([refused.status, refused.words]).toEqual([
    400,
    expect.stringContaining("Cannot run the test case alone: no runner that was seen within the last hour"),
  ]);
  const runner = { runner: "r", taskSlugs: ["unit"], probeSlugs: ["unit"], free: 0 };
  await own.post("/leases", runner);
  expect((await fill("member", `${pageOf(bug)}/culprit`, {})).status).toBe(303);
  await advanceSearches(
    database,
    undefined,
    undefined,
    createLog("debug", () => {}, false),
  );
  const running = await look("member", pageOf(bug));
  expect(running.words).toContain("searching, 0 probes, at most 30 of its own");
  expect(running.words).toContain("Listing the commits after 1111111 up to 2222222");
  expect(running.words).toContain("The list of the commits waits for a free runner");
  expect(running.html).toContain(`data-live="${pageOf(bug)}/live"`);
  expect((await fill("member", `${pageOf(bug)}/culprit/cancel`, {})).status).toBe(303);
  const cancelled = await look("member", pageOf(bug));
  expect(cancelled.words).toContain("Cancelled");
  expect(cancelled.html).not.toContain("data-live");
  expect(cancelled.html).toContain("Search again");
  const audited = await pool`select action from audit_entry where action like 'culprit%' order by id`;
  expect(audited.map(({ action }) => action)).toEqual(["culprit_search.started", "culprit_search.cancelled"]);
});

test("names a commit with its files and its probes, each with a link to its log", async () => {
  const bug = await bugOf("stock");
  await insertFoundSearch(database, { project: acme.project, bugReportId: bug });
  const { words, html } = await look("viewer", pageOf(bug));
  expect(words).toContain("completed, 5 commits, 5 probes");
  expect(words).toMatch(
    /\w{10} by Ada broke it: it failed there 2 of 2 times, on its parent \w{10} it passed 2 of 2 times/,
  );
  expect(words).toContain("Round prices to cents Ada, 2026-01-31 src/cart/3.ts package.json");
  expect(words).toMatch(/Update the packages Grace ● passed ● passed –/);
  expect(words).toMatch(/Round prices to cents Ada ✕ failed ✕ failed 99 %/);
  expect(words).toMatch(/Speed up Grace – does not build –/);
  const probes = await pool`select execution_id as id from probe where project_id = ${acme.project} and kind = 'test'`;
  for (const { id } of probes) expect(html).toContain(`/projects/${acme.project}/executions/${id}/tasks/unit"`);
});

test("the page of a probe has the result of its test case, or of those of all searches that share it", async () => {
  const bug = await bugOf("fee");
  const id = await insertFoundSearch(database, { project: acme.project, bugReportId: bug });
  const probes = await pool<{ id: string; isShared: boolean; other: string }[]>`
    select execution_id as id, count(*) > 1 as "isShared", max(c.name) filter (where p.number = 2) as other
    from probe p join test_case c on c.project_id = p.project_id and c.number = p.test_case
    where execution_id in (select execution_id from probe where culprit_search_id = ${id} and result = 'failed')
    group by execution_id order by execution_id`;
  expect(probes.map(({ isShared }) => isShared)).toEqual([true, false]);
  const pageOf = (id: string) => look("viewer", `/projects/${acme.project}/executions/${id}`);
  expect((await pageOf(probes[1]!.id)).words).toContain("this execution runs fee alone, at one commit. It failed.");
  const { words } = await pageOf(probes[0]!.id);
  expect(words).toContain("this execution runs 2 test cases at one commit");
  expect(words).toMatch(new RegExp(`fee: It failed\\. ?${probes[0]!.other}: It passed\\.`));
});

test("is told of each change of a search, and only of that", async () => {
  const bug = await bugOf("tax");
  const id = await insertFoundSearch(database, { project: acme.project, bugReportId: bug });
  const headers = { cookie: `assay_session=${people.member.token}` };
  const response = await fetch(`${url}${pageOf(bug)}/live`, { headers });
  const heard = { text: "" };
  const decoder = new TextDecoder();
  void (async () => {
    for await (const chunk of response.body!) heard.text += decoder.decode(chunk as Uint8Array);
  })().catch(() => {});
  const newsOf = () => heard.text.split("event: news").length - 1;
  // The page may be older than the stream.
  await until(() => newsOf() === 1);
  await pool`update culprit_search set status = 'cancelled' where id = ${id}`;
  await until(() => newsOf() === 2);
});
