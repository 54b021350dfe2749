/** The impact of a bug is counted again after every write that changes its status or its occurrences. */

import { expect, test } from "bun:test";
import { countDueImpacts } from "../../src/store/bug_evidence.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, database } = await createHarness({ ownDatabase: true });
const { pool } = database;
const path = `/projects/${acme.project}/bug-reports`;

/** The titles of the bugs that are counted next. */
async function due(): Promise<string[]> {
  const rows = await pool<
    { title: string }[]
  >`select title from bug_report where impact_due_at is not null order by title`;
  return rows.map(({ title }) => title);
}

async function settle(): Promise<void> {
  await countDueImpacts(pool, new Date(Date.now() + 1_000));
  expect(await due()).toEqual([]);
}

test("a new bug, another status and a merge are counted, a new title is not", async () => {
  const open = async (title: string): Promise<string> =>
    (await ask(`POST ${path}`, { key: acme.key, body: { title } })).body.id;
  const [first, second] = [await open("first"), await open("second")];
  expect(await due()).toEqual(["first", "second"]);
  await settle();
  await ask(`PATCH ${path}/${first}`, { key: acme.key, body: { severity: "minor" } });
  expect(await due()).toEqual([]);
  await ask(`PATCH ${path}/${first}`, { key: acme.key, body: { status: "resolved" } });
  expect(await due()).toEqual(["first"]);
  await settle();
  await ask(`POST ${path}/${first}/merge`, { key: acme.key, body: { into: second } });
  expect(await due()).toEqual(["first", "second"]);
});
