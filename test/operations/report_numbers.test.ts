/** Kept numbers of test cases are those that a look-up would find, whatever has become of the names meanwhile. */

import { expect, test } from "bun:test";
import { createKeptReports, lookUpNumbers } from "../../src/operations/ingest/test_case_cache.ts";
import { prepareReport } from "../../src/operations/ingest/prepare.ts";
import { readReport } from "../../src/reports/read.ts";
import type { Digests } from "../../src/rules/digest_table.ts";
import type { Sql, Tx } from "../../src/database/connect.ts";
import { caseIndexVersionOf } from "../../src/store/case_index_version.ts";
import { deleteSample } from "../../src/store/onboarding.ts";
import {
  deleteAliases,
  type NumberedPlace,
  selectTestCaseNumbers,
  updateTestCasePlaces,
} from "../../src/store/test_case_names.ts";
import { createHarness } from "../harness.ts";
import { isFull } from "../depth.ts";

const { ask, acme, database, addProject } = await createHarness();
const { pool } = database;

/** A report of cases, each of them named by its file and its name. */
const report = (...cases: string[]): string => {
  const all = cases.map((one) => one.split(" ") as [string, string]);
  return `<testsuite name="unit">${all.map(([file, name]) => `<testcase name="${name}" classname="unit" file="${file}"/>`).join("")}</testsuite>`;
};
const upload = async (key: string, project: string, body: string) => {
  const { status } = await ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body });
  expect(status).toBe(201);
};
function digestsOf(project: string, body: string): Digests {
  const read = readReport([{ name: "report.xml", bytes: new TextEncoder().encode(body) }], { maxInflatedBytes: 1e6 });
  const parameters = { task_slug: "unit", allow_empty: false, complete: false };
  return prepareReport(project, read, parameters, Bun.SHA256.hash(body, "hex")).identified.digests;
}
const versionOf = async (project: string): Promise<string> => {
  const [row] = await pool<{ version: string }[]>`select ${caseIndexVersionOf(pool, project)} as version`;
  return row!.version;
};
/** The pool, and how many statements it has been given. */
function counted() {
  const asked = { count: 0 };
  const sql = new Proxy(pool, {
    get(target, name) {
      if (name === "unsafe") asked.count++;
      return Reflect.get(target, name);
    },
  });
  return { sql: sql as Sql, asked };
}

test("a report that comes again asks for nothing, whatever has been added meanwhile", async () => {
  const { project, key } = await addProject(acme);
  const kept = createKeptReports();
  const both = report("a.ts one", "a.ts two");
  await upload(key, project, both);
  const { sql, asked } = counted();
  const digests = digestsOf(project, both);
  const look = async () => await lookUpNumbers(sql, project, [digests, digests], kept)(await versionOf(project));
  expect(await look()).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(asked.count).toBe(1);
  await upload(key, project, report("a.ts one", "a.ts two", "a.ts three", "b.ts four"));
  expect(await look()).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(asked.count).toBe(1);
});

test("of several reports those are looked up that are not kept, and those that are not whole are not kept", async () => {
  const { project, key } = await addProject(acme);
  const kept = createKeptReports();
  await upload(key, project, report("a.ts one", "a.ts two"));
  const { sql, asked } = counted();
  const [known, partly, other] = [report("a.ts one"), report("a.ts two", "a.ts three"), report("a.ts two")].map(
    (body) => digestsOf(project, body),
  ) as [Digests, Digests, Digests];
  const version = await versionOf(project);
  expect(await lookUpNumbers(sql, project, [known, partly], kept)(version)).toEqual([[1], undefined]);
  expect(await lookUpNumbers(sql, project, [other, known], kept)(version)).toEqual([[2], [1]]);
  expect(await lookUpNumbers(sql, project, [known, other], kept)(version)).toEqual([[1], [2]]);
  expect(asked.count).toBe(2);
  await upload(key, project, report("a.ts two", "a.ts three"));
  expect(await lookUpNumbers(sql, project, [partly], kept)(version)).toEqual([[2, 3]]);
});

test("a former place that is a case of its own again is known by its new number", async () => {
  const { project, key } = await addProject(acme);
  const kept = createKeptReports();
  const [before, after] = [report("old/a.ts one"), report("new/a.ts one")];
  await upload(key, project, before);
  await upload(key, project, after);
  const look = async (body: string) =>
    await lookUpNumbers(pool, project, [digestsOf(project, body)], kept)(await versionOf(project));
  expect([await look(before), await look(after)]).toEqual([[[1]], [[1]]]);
  // It was copied and not moved.
  await upload(key, project, report("old/a.ts one", "new/a.ts one"));
  expect([await look(before), await look(after)]).toEqual([[[2]], [[1]]]);
});

test("cases that are gone are not known", async () => {
  const { project, key } = await addProject(acme);
  const kept = createKeptReports();
  const body = report("a.ts one");
  await upload(key, project, body);
  const look = async () =>
    await lookUpNumbers(pool, project, [digestsOf(project, body)], kept)(await versionOf(project));
  expect(await look()).toEqual([[1]]);
  await pool`update test_case set sample = true where project_id = ${project}`;
  expect(await look()).toEqual([[1]]);
  await database.begin((sql) => deleteSample(sql, project));
  expect(await look()).toEqual([undefined]);
});

test("what is added leaves the version as it is, what takes a name from a case changes it", async () => {
  const { project, key } = await addProject(acme);
  await upload(key, project, report("old/a.ts one", "b.ts two"));
  await upload(key, project, report("new/a.ts one", "b.ts two"));
  const changes = async (change: () => PromiseLike<unknown>) => {
    const before = await versionOf(project);
    await change();
    return (await versionOf(project)) !== before;
  };
  expect(await changes(() => upload(key, project, report("b.ts two", "b.ts three")))).toBe(false);
  expect(await changes(() => pool`update test_case set owner = 'web' where project_id = ${project}`)).toBe(false);
  const inTransaction = (work: (sql: Tx) => PromiseLike<unknown>) =>
    database.begin(async (sql) => void (await work(sql)));
  const selectPlaces = () => pool<NumberedPlace[]>`
    select number, replace(identity::text, '-', '') as identity, suite, name, file, owner_list as "ownerList" from test_case
    where project_id = ${project} order by number`;
  const [first, second] = await selectPlaces();
  const identity = () => crypto.randomUUID().replaceAll("-", "");
  const move = (place: NumberedPlace, to: string) => () =>
    inTransaction((sql) => updateTestCasePlaces(sql, project, [{ ...place, identity: to }]));
  expect(await changes(move(first!, identity()))).toBe(false);
  // An alias that names the first case is an alias of the second one from now on.
  await pool`
    insert into test_case_alias (project_id, identity, number) values (${project}, ${second!.identity}, 1)`;
  expect(await changes(move(second!, identity()))).toBe(true);
  expect(await changes(() => inTransaction((sql) => deleteAliases(sql, project, [identity()])))).toBe(false);
  expect(await changes(() => inTransaction((sql) => deleteAliases(sql, project, [first!.identity])))).toBe(true);
  expect(await changes(() => inTransaction((sql) => deleteSample(sql, project)))).toBe(false);
  await pool`update test_case set sample = true where project_id = ${project} and number = 1`;
  expect(await changes(() => inTransaction((sql) => deleteSample(sql, project)))).toBe(true);
});

test("a place that becomes a case of its own waits for nobody who has the project's row, as who makes a key does", async () => {
  const { project, key } = await addProject(acme);
  await upload(key, project, report("old/a.ts one"));
  await upload(key, project, report("new/a.ts one"));
  const before = await versionOf(project);
  await database.begin(async (sql) => {
    await sql`select from project where id = ${project} for no key update`;
    await upload(key, project, report("old/a.ts one", "new/a.ts one"));
  });
  expect(await versionOf(project)).not.toBe(before);
});

test("the version is of this database alone: a copy, or what takes its place, has another", async () => {
  const version = await versionOf(acme.project);
  const [here] = await pool<{ oid: string; started: string }[]>`
    select oid::text, extract(epoch from pg_postmaster_start_time())::text as started
    from pg_database where datname = current_database()`;
  expect(version.split(" ")).toContain(here!.oid);
  expect(version.split(" ")).toContain(here!.started);
  await pool`update project set name = name where id = ${acme.project}`;
  expect(await versionOf(acme.project)).not.toBe(version);
});

test.skipIf(!isFull)("they are what a look-up finds, through hundreds of moves, copies and returns", async () => {
  const { project, key } = await addProject(acme);
  const kept = createKeptReports();
  const files = ["a.ts", "b.ts", "src/a.ts", "src/b.ts"];
  const names = ["one", "two", "three"];
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const bodies: string[] = [];
  for (let round = 0; round < 120; round++) {
    const some = Array.from({ length: 1 + random(3) }, () => files[random(files.length)]!);
    const cases = [...new Set(some)].flatMap((file) => names.slice(random(2)).map((name) => `${file} ${name}`));
    bodies.push(report(...cases));
    await upload(key, project, bodies.at(-1)!);
    const digests = Array.from({ length: 4 }, () => digestsOf(project, bodies[random(bodies.length)]!));
    const found = await lookUpNumbers(pool, project, digests, kept)(await versionOf(project));
    for (const [place, one] of digests.entries()) {
      const { numbers } = await selectTestCaseNumbers(pool, project, one);
      const isWhole = !numbers.includes(null) && new Set(numbers).size === numbers.length;
      expect(found[place]).toEqual(isWhole ? (numbers as number[]) : undefined);
    }
  }
});

test("the newest are kept, and of another project nothing is known", () => {
  // A report is as large as 32 cases and its own.
  const kept = createKeptReports(2 * 32 + 10);
  const listOf = (count: number, word: number): Digests => new Uint32Array(4 * count).fill(word);
  const keep = (word: number, count: number) =>
    kept.keep("p", { digests: listOf(count, word), numbers: [word], version: "v" });
  const has = (word: number, count: number) => kept.find("p", listOf(count, word)) !== undefined;
  keep(1, 4);
  keep(2, 4);
  expect([has(1, 4), has(2, 4), has(1, 3)]).toEqual([true, true, false]);
  expect(kept.find("q", listOf(4, 1))).toBeUndefined();
  // The first was asked for last but one.
  keep(3, 4);
  expect([has(1, 4), has(2, 4), has(3, 4)]).toEqual([false, true, true]);
  expect(has(2, 4)).toBe(true);
  keep(3, 4);
  keep(4, 4);
  expect([has(2, 4), has(3, 4), has(4, 4)]).toEqual([false, true, true]);
  keep(5, 43);
  expect([has(3, 4), has(4, 4), has(5, 43)]).toEqual([false, false, false]);
});
