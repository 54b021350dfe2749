/** The executions of a commit, by whichever length of its name it is asked for. */

import { expect, test } from "bun:test";
import { executionsOfCommit } from "../../src/store/commits.ts";
import { toTextArray } from "../../src/database/connect.ts";
import { createHarness } from "../harness.ts";

const { database, acme } = await createHarness();
const { pool } = database;

const SHA = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432";
const counted = (n: number): string => String(n).padStart(12, "0");
const COMMITS = [
  SHA,
  SHA.toUpperCase(),
  ...[7, 8, 12, 39].map((length) => SHA.slice(0, length)),
  SHA.slice(0, 6),
  `${SHA.slice(0, 7)}0`,
  `${SHA.slice(0, 10)}-dirty`,
  `${SHA}${SHA.slice(0, 24)}`,
  `${SHA}${SHA}`,
  "main",
  "releases-1",
  "releases-2",
  "release",
  // More than begin alike by chance.
  ...Array.from({ length: 50 }, (_, n) => counted(n)),
];

test("are those that are the same, and no others, also where many begin alike or are no hashes", async () => {
  await pool`
    insert into execution (project_id, id, status, trigger, branch, commit, timeout_minutes, created_at)
    select ${acme.project}, gen_random_uuid(), 'running', 'upload', 'main', commit, 30, now()
    from unnest(${toTextArray(COMMITS)}::text[]) as commit`;
  const asked = [...COMMITS, "0000000", "000000000", "", "f", "absent", `${SHA.slice(0, 20)}ff`];
  const rows = await pool<{ given: string; found: string[]; wanted: string[] }[]>`
    select given,
      (select coalesce(json_agg(e.commit order by e.commit collate "C", e.id), '[]')
        from (${executionsOfCommit(pool, acme.project, pool`given`)}) same join execution e using (id)) as found,
      (select coalesce(json_agg(commit order by commit collate "C", id), '[]') from execution
        where project_id = ${acme.project} and is_same_commit(commit, given)) as wanted
    from unnest(${toTextArray(asked)}::text[]) as given`;
  expect(rows.map(({ found }) => found)).toEqual(rows.map(({ wanted }) => wanted));
  const of = (commit: string) => rows.find(({ given }) => given === commit)!.found;
  expect(of(SHA)).toHaveLength(7);
  expect(of("0000000")).toHaveLength(50);
  expect([of("releases-1"), of("f"), of("")]).toEqual([["releases-1"], [], []]);
});
