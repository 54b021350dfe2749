/** The dictionary of test cases. */

import { countOf, createDigestTable, type Digests, toDigests, toHexes } from "../rules/digest_table.ts";
import type { PlacedCase } from "../rules/identity.ts";
import { FIRST_UNTRUSTED_NUMBER } from "../rules/untrusted.ts";
import { toTestCaseId } from "../rules/test_case_id.ts";
import { compose, type Given } from "../database/compose.ts";
import { type Fragment, type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";
import { takeLock } from "../database/locks.ts";
import { agreesWithBuild, isInCatalogue, isTrustedBuild } from "./predicates.ts";

/** `identity` is 32 hexadecimal digits; `ownerList` is the list of owners by the ownership file. */
export type NewTestCase = PlacedCase & { identity: string; ownerList: string | null };

type State = {
  /** The highest number of the project at that moment. */
  last: number;
  /** Whether cases of the project are known by former places as well: two places of one report may then be one case. */
  hasAliases: boolean;
};

type KnownTestCases = State & {
  /** In the order that was asked for; null where there is no such case. */
  numbers: (number | null)[];
};

/** Test cases of a project by their identities, as the database tells them. */
type Dictionary = State & { identities: Buffer | null; numbers: Buffer | null };

/** From this number of look-ups on, reading the whole dictionary is cheaper, unless it is MAX_DICTIONARY_RATIO times larger. */
export const MANY = 5_000;
const MAX_DICTIONARY_RATIO = 4;

export async function selectTestCaseNumbers(sql: Sql, projectId: string, digests: Digests): Promise<KnownTestCases> {
  const count = countOf(digests);
  if (count < MANY) return await lookUp(sql, projectId, digests);
  const [nothing] = await LOOK_UP(sql, { project: projectId, identities: "{}" });
  if (nothing!.last === 0) return find(nothing!, digests);
  return await (nothing!.last <= MAX_DICTIONARY_RATIO * count ? readDictionary : lookUp)(sql, projectId, digests);
}

const LOOK_UP = compose<"project" | "identities", Dictionary>((sql, given) => {
  const wanted = sql`unnest(${given("identities")}::uuid[]) as wanted (identity)`;
  // An identity has an index of its own. Without statistics the planner might use that of the project and read all its cases.
  const isOwn = sql`(project_id = ${given("project")}) is true`;
  const known = sql`
    select identity, number from ${wanted} join test_case using (identity) where ${isOwn}
    union all
    select identity, number from ${wanted} join test_case_alias using (identity) where ${isOwn}`;
  return dictionaryOf(sql, given("project"), known);
});

async function lookUp(sql: Sql, projectId: string, digests: Digests): Promise<KnownTestCases> {
  // Sorted, so that the index is walked once and not searched for each.
  const identities = [...new Set(toHexes(digests))].sort();
  const [dictionary] = await LOOK_UP(sql, { project: projectId, identities: `{${identities.join(",")}}` });
  return find(dictionary!, digests);
}

async function readDictionary(sql: Sql, projectId: string, digests: Digests): Promise<KnownTestCases> {
  const [dictionary] = await sql<Dictionary[]>`${dictionaryOf(sql, projectId, allOf(sql, projectId))}`;
  return find(dictionary!, digests);
}

/** All test cases of a project and their former places. */
const allOf = (sql: Sql, projectId: string): Fragment => sql`
  select identity, number from test_case where project_id = ${projectId} and ${isInCatalogue(sql, sql`test_case`)}
  union all
  select identity, number from test_case_alias where project_id = ${projectId}`;

/** Returns one value instead of a row per case: for 100,000 cases the rows would cost more than the look-up. */
const dictionaryOf = (sql: Sql, projectId: Given, known: Fragment): Fragment => sql`
  select string_agg(uuid_send(identity), '') as identities, string_agg(int4send(number), '') as numbers,
    (select coalesce(max(number), 0) from test_case
      where project_id = ${projectId} and ${isInCatalogue(sql, sql`test_case`)}) as last,
    exists (select from test_case_alias where project_id = ${projectId}) as "hasAliases"
  from (${known}) known`;

function find({ identities, numbers, ...state }: Dictionary, digests: Digests): KnownTestCases {
  const known = toDigests(identities ?? Buffer.alloc(0));
  const table = createDigestTable(known);
  for (let place = countOf(known) - 1; place >= 0; place--) table.add(place);
  const found = Array.from({ length: countOf(digests) }, (_, index) => {
    const place = table.find(digests, index);
    return place === -1 ? null : numbers!.readInt32BE(place * 4);
  });
  return { ...state, numbers: found };
}

/** The identities, as 32 hexadecimal digits, of the places where these cases are by now. */
export const selectIdentities = async (
  sql: Sql,
  projectId: string,
  numbers: readonly number[],
): Promise<Map<number, string>> => {
  const rows = await sql<{ number: number; identity: string }[]>`
    select number, replace(identity::text, '-', '') as identity from test_case
    where project_id = ${projectId} and number = any(${toNumberArray(numbers)}::int[])`;
  return new Map(rows.map(({ number, identity }) => [number, identity]));
};

/** Deletes former identities that become cases of their own, in a transaction that holds the lock. */
export const deleteAliases = (sql: Tx, projectId: string, identities: readonly string[]) => sql`
  delete from test_case_alias where project_id = ${projectId} and identity = any(${toTextArray(identities)}::uuid[])`;

/** Uploads that add cases to one project, or move them, take turns until they commit. */
export const lockTestCases = (sql: Tx, projectId: string) => takeLock(sql, ["naming", projectId]);

/**
 * Adds missing cases, in a transaction that holds the lock, and returns the numbers of all in their order. `last` shows whether cases were
 * added since the look-up. If there are many, half of them are inserted through `pool` outside of the transaction, and stay even if it
 * fails, like other cases without results. `untrusted`: they are added apart from the catalogue.
 */
export async function insertTestCases(
  sql: Tx,
  pool: Sql,
  projectId: string,
  taskSlug: string,
  cases: readonly NewTestCase[],
  { last, untrusted = false }: { last: number; untrusted?: boolean },
): Promise<number[]> {
  const added = await selectLastNumber(sql, projectId, untrusted);
  const digestsOf = () => toDigests(Buffer.from(cases.map(({ identity }) => identity).join(""), "hex"));
  const numbers = added === last ? [] : (await selectTestCaseNumbers(sql, projectId, digestsOf())).numbers;
  const isFresh = (index: number) => (numbers[index] ?? null) === null;
  const fresh = cases.filter((_, index) => isFresh(index));
  // The lower half is visible before the transaction commits. The highest number must not be visible until all are.
  const aside = fresh.length < MANY || pool === sql ? 0 : fresh.length >> 1;
  const copies = await Promise.allSettled([
    copyTestCases(pool, projectId, taskSlug, fresh.slice(0, aside), added + 1),
    copyTestCases(sql, projectId, taskSlug, fresh.slice(aside), added + 1 + aside),
  ]);
  for (const copy of copies) if (copy.status === "rejected") throw copy.reason;
  let next = added;
  return cases.map((_, index) => (isFresh(index) ? ++next : numbers[index]!));
}

const selectLastNumber = async (sql: Sql, projectId: string, untrusted: boolean): Promise<number> => {
  const [row] = await sql<{ last: number | null }[]>`
    select max(number) as last from test_case
    where project_id = ${projectId} ${untrusted ? sql`` : sql`and ${isInCatalogue(sql, sql`test_case`)}`}`;
  const first = untrusted ? FIRST_UNTRUSTED_NUMBER : 1;
  return Math.max(first - 1, row!.last ?? 0);
};

const ESCAPES: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };
const escape = (text: string) =>
  /[\\\t\n\r]/.test(text) ? text.replace(/[\\\t\n\r]/g, (char) => ESCAPES[char]!) : text;

/** COPY is the fast way in; its stream takes portions, so that it never holds the whole. */
async function copyTestCases(
  sql: Sql,
  projectId: string,
  taskSlug: string,
  cases: readonly NewTestCase[],
  firstNumber: number,
): Promise<void> {
  if (cases.length === 0) return;
  const time = Date.now();
  const tail = `${escape(taskSlug)}\t${new Date(time).toISOString()}\n`;
  const copy = await sql`
    copy test_case (project_id, number, id, identity, suite, name, file, owner_list, task_slug, first_seen_at)
    from stdin`.writable();
  const ended = new Promise((resolve, reject) => copy.once("finish", resolve).once("error", reject));
  for (let start = 0; start < cases.length; start += 1_000) {
    const end = Math.min(start + 1_000, cases.length);
    let lines = "";
    for (let index = start; index < end; index++) {
      const { identity, suite, name, file, ownerList } = cases[index]!;
      const number = firstNumber + index;
      const id = toTestCaseId(Bun.randomUUIDv7("hex", time), number);
      const path = file === null ? "\\N" : escape(file);
      lines += `${projectId}\t${number}\t${id}\t${identity}\t${escape(suite)}\t${escape(name)}\t${path}\t${ownerList ?? "\\N"}\t${tail}`;
    }
    if (!copy.write(lines)) await Promise.race([new Promise((resolve) => copy.once("drain", resolve)), ended]);
  }
  copy.end();
  await ended;
}

/** The execution that results belong to, as far as it is known. */
export type ExecutionReference = {
  id: string | null;
  key: string | null;
  branch: string | null;
  commit: string | null;
};

export type KnownTestCase = PlacedCase & { identity: string; number: number };

/** Common table expressions, of which `there` has the numbers of the test cases that the run of the execution has. */
const casesOfExecution = (
  sql: Sql,
  projectId: string,
  taskSlug: string,
  execution: ExecutionReference,
): Fragment => sql`
  build as materialized (
    select id from execution where project_id = ${projectId} and id = ${execution.id}
    union
    select id from execution e
    where e.project_id = ${projectId} and e.key = ${execution.key} and ${isTrustedBuild(sql, sql`e`)}
      and ${agreesWithBuild(sql, sql`e`, execution)}
  ), there as materialized (
    select number from build cross join lateral (
      select id from test_run
      where project_id = ${projectId} and execution_id = build.id and task_slug = ${taskSlug} offset 0
    ) r cross join lateral (
      select test_cases from case_result where project_id = ${projectId} and run_id = r.id offset 0
    ) b, unnest(b.test_cases) as number
  )`;

/** Returns the numbers of the test cases that the run of a task has, if there is such a run. */
export const selectNumbersOfExecution = async (
  sql: Tx,
  projectId: string,
  taskSlug: string,
  execution: ExecutionReference,
): Promise<number[]> => {
  const rows = await sql<{ number: number }[]>`
    with ${casesOfExecution(sql, projectId, taskSlug, execution)} select distinct number from there`;
  return rows.map(({ number }) => number);
};

/** From this number of look-ups on, scanning all cases of the project is cheaper. */
const MIN_NAMES_TO_SCAN = 1_000;

/** Returns the cases of a task that have the suite and the name of one of `cases`, without those that the run of `execution` has. */
export async function selectNamesakes(
  sql: Tx,
  projectId: string,
  taskSlug: string,
  cases: readonly { suite: string; name: string }[],
  execution: ExecutionReference,
): Promise<KnownTestCase[]> {
  const wanted = sql`(
    select distinct * from unnest(
      ${toTextArray(cases.map(({ suite }) => suite))}::text[], ${toTextArray(cases.map(({ name }) => name))}::text[]
    ) as wanted (suite, name)) wanted`;
  const isWanted = sql`
    c.project_id = ${projectId} and ${isInCatalogue(sql, sql`c`)} and c.task_slug = ${taskSlug} and c.suite = wanted.suite and c.name = wanted.name`;
  const isFew = cases.length < MIN_NAMES_TO_SCAN;
  // After a first upload there are no statistics, and the planner would scan all cases for each one.
  if (!isFew) await sql`set local enable_nestloop = off`;
  const namesakes = await sql<KnownTestCase[]>`
  -- What the run has already is read once, each step from what the last one has found: as joins these would be left to the
  -- planner, which may read all results of the project, and that for each case.
  with ${casesOfExecution(sql, projectId, taskSlug, execution)}
  select c.number, replace(c.identity::text, '-', '') as identity, c.suite, c.name, c.file
  from ${wanted} ${
    isFew
      ? sql`
          cross join lateral (
            select * from test_case c
            where ${isWanted} and hashtext(c.suite) = hashtext(wanted.suite) and hashtext(c.name) = hashtext(wanted.name)
            offset 0
          ) c`
      : sql`join test_case c on ${isWanted}`
  }
  where not exists (select from there where there.number = c.number)`;
  if (!isFew) await sql`set local enable_nestloop = on`;
  return [...namesakes];
}

/** A stored test case that has one of the identities that were asked for, now or in a former place. */
type StoredTestCase = { number: number; file: string | null; isPlace: boolean };

/** The test cases of a project by their present identities (`isPlace`) and by all others, as 32 hexadecimal digits. */
export const selectTestCasesByIdentity = async (
  sql: Tx,
  projectId: string,
  identities: readonly string[],
): Promise<Map<string, StoredTestCase>> => {
  const wanted = sql`unnest(${toTextArray(identities)}::uuid[]) as wanted (identity)`;
  const rows = await sql<(StoredTestCase & { identity: string })[]>`
    select replace(identity::text, '-', '') as identity, number, file, true as "isPlace"
    from ${wanted} join test_case using (identity) where (project_id = ${projectId}) is true
    union all
    select replace(a.identity::text, '-', ''), c.number, c.file, false
    from ${wanted} join test_case_alias a using (identity) cross join lateral (
      select number, file from test_case where project_id = a.project_id and number = a.number offset 0
    ) c
    where (a.project_id = ${projectId}) is true`;
  return new Map(rows.map(({ identity, ...one }) => [identity, one]));
};

/** Inserts further identities of known cases, unless they are taken, in a transaction that holds the lock. */
export const insertAliases = (
  sql: Tx,
  projectId: string,
  aliases: readonly { identity: string; number: number }[],
) => sql`
  insert into test_case_alias (project_id, identity, number)
  select ${projectId}, identity, number from unnest(
    ${toTextArray(aliases.map(({ identity }) => identity))}::uuid[],
    ${toNumberArray(aliases.map(({ number }) => number))}::int[]
  ) as alias (identity, number)
  where not exists (select from test_case c where c.identity = alias.identity)
  on conflict (identity) do nothing`;

/** Gives known cases the identity and place that they have from now on; they stay known by the former identities. */
export const updateTestCasePlaces = (sql: Tx, projectId: string, places: readonly NumberedPlace[]) => sql`
  with moved as materialized (
    select * from unnest(
      ${toNumberArray(places.map(({ number }) => number))}::int[],
      ${toTextArray(places.map(({ identity }) => identity))}::uuid[],
      ${toTextArray(places.map(({ suite }) => suite))}::text[],
      ${toTextArray(places.map(({ name }) => name))}::text[],
      ${toTextArray(places.map(({ file }) => file))}::text[],
      ${toTextArray(places.map(({ ownerList }) => ownerList))}::uuid[]
    ) as moved (number, identity, suite, name, file, owner_list)
  ), former as (
    insert into test_case_alias (project_id, identity, number)
    select c.project_id, c.identity, c.number from test_case c join moved using (number)
    where c.project_id = ${projectId}
    on conflict (identity) do update set number = excluded.number
  )
  update test_case c set identity = moved.identity, suite = moved.suite, name = moved.name, file = moved.file,
    owner_list = moved.owner_list
  from moved
  where c.project_id = ${projectId} and c.number = moved.number`;

export type NumberedPlace = NewTestCase & { number: number };
