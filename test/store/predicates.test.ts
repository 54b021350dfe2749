/** The conditions that statements share are those of the partial indexes: otherwise the planner could not use the indexes. */

import { expect, test } from "bun:test";
import type { Fragment } from "../../src/database/connect.ts";
import { isBroken } from "../../src/store/health.ts";
import { agreesWithBuild, isActiveQuarantine, isLiveBug } from "../../src/store/predicates.ts";
import { createHarness } from "../harness.ts";

const { database } = await createHarness();
const { pool: sql } = database;

/** The nodes of the plan, if scans of the whole table are avoided wherever possible. */
const planOf = (statement: Fragment): Promise<string> =>
  database.begin(async (tx) => {
    await tx`set local enable_seqscan = off`;
    return JSON.stringify(await tx`explain (format json) ${statement}`);
  });

test("the index of live bugs serves the condition of live bugs", async () => {
  const plan = await planOf(
    sql`select severity, regressed from bug_report b where project_id = gen_random_uuid() and ${isLiveBug(sql, sql`b`)}`,
  );
  expect(plan).toContain("bug_report_live");
});

test("the index of broken test cases serves the condition of broken test cases", async () => {
  const plan = await planOf(
    sql`select test_case from case_health h where project_id = gen_random_uuid() and ${isBroken(sql)}`,
  );
  expect(plan).toContain("case_health_broken");
});

test("a bug is live until it is settled or merged", async () => {
  const rows = await sql<{ status: string; isLive: boolean }[]>`
    select status, ${isLiveBug(sql, sql`b`)} as "isLive"
    from (values (1, 'open', null), (2, 'in_progress', null), (3, 'resolved', null), (4, 'ignored', null), (5, 'open', 7))
      as b (place, status, merged_into) order by place`;
  expect(rows.map(({ status, isLive }) => [status, isLive])).toEqual([
    ["open", true],
    ["in_progress", true],
    ["resolved", false],
    ["ignored", false],
    ["open", false],
  ]);
});

test("a quarantine is active until it expires, and one without an end always is", async () => {
  const rows = await sql<{ isActive: boolean }[]>`
    select ${isActiveQuarantine(sql, sql`q`)} as "isActive"
    from (values (1, null), (2, now() + interval '1 hour'), (3, now() - interval '1 hour')) as q (place, until) order by place`;
  expect(rows.map(({ isActive }) => isActive)).toEqual([true, true, false]);
});

test("an execution agrees with a build wherever both sides know branch and commit", async () => {
  const rows = await sql<{ agrees: boolean }[]>`
    select ${agreesWithBuild(sql, sql`e`, { branch: "main", commit: "0123456" })} as agrees
    from (values (1, 'main', null, '0123456789'), (2, null, null, null), (3, 'main', null, null), (4, 'other', null, null),
      (5, null, null, '6543210'), (6, null, 'queue', null), (7, null, 'main', null))
      as e (place, branch, queue_ref, commit) order by place`;
  expect(rows.map(({ agrees }) => agrees)).toEqual([true, true, true, false, false, false, true]);
});
