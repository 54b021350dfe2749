/** The impact of a bug is counted again after every write that changes its status or its occurrences. */

import { expect, test } from "bun:test";
import { countDueImpacts } from "../../src/store/bug_evidence.ts";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, database } = await createHarness({ ownDatabase: true });
const { pool } = database;
const { post, patch } = createAsking(ask, acme);

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
  const open = async (title: string): Promise<string> => (await post("/bug-reports", { title })).id;
  const [first, second] = [await open("first"), await open("second")];
  expect(await due()).toEqual(["first", "second"]);
  await settle();
  await patch(`/bug-reports/${first}`, { severity: "minor" });
  expect(await due()).toEqual([]);
  await patch(`/bug-reports/${first}`, { status: "resolved" });
  expect(await due()).toEqual(["first"]);
  await settle();
  await post(`/bug-reports/${first}/merge`, { into: second });
  expect(await due()).toEqual(["first", "second"]);
});
