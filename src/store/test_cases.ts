/** The dictionary of test cases. */

import type { Sql } from "./connect.ts";

/** `identity` is 32 hexadecimal digits. */
export type NewTestCase = { identity: string; suite: string; name: string; file: string | null };

export type KnownTestCases = {
  /** In the order that was asked for; null where there is no such case. */
  numbers: (number | null)[];
  /** The highest number of the project at that moment. */
  last: number;
};

export async function selectTestCaseNumbers(
  sql: Sql,
  projectId: string,
  identities: readonly string[],
): Promise<KnownTestCases> {
  // One value instead of a row per case: at 100,000 cases the rows would cost more than the look-up.
  const [row] = await sql<{ numbers: string | null; last: number }[]>`
    select
      (select coalesce(max(number), 0) from test_case where project_id = ${projectId}) as last,
      string_agg(coalesce(c.number::text, ''), ',' order by wanted.place) as numbers
    from unnest(${`{${identities.join(",")}}`}::uuid[]) with ordinality as wanted (identity, place)
    left join test_case c on c.project_id = ${projectId} and c.identity = wanted.identity`;
  const numbers = row!.numbers?.split(",") ?? [];
  return { numbers: numbers.map((number) => (number === "" ? null : Number(number))), last: row!.last };
}

/**
 * In a transaction: adds the cases that are not there, and answers the numbers of all in their order. Uploads that add
 * cases to one project at once take turns; `last` tells whether somebody has had one since the cases were looked up.
 */
export async function insertTestCases(
  sql: Sql,
  projectId: string,
  taskSlug: string,
  cases: readonly NewTestCase[],
  last: number,
): Promise<number[]> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${projectId}::text, 0))`;
  const identities = cases.map(({ identity }) => identity);
  const added = await selectLastNumber(sql, projectId);
  const numbers = added === last ? [] : (await selectTestCaseNumbers(sql, projectId, identities)).numbers;
  const isFresh = (index: number) => (numbers[index] ?? null) === null;
  await copyTestCases(
    sql,
    projectId,
    taskSlug,
    cases.filter((_, index) => isFresh(index)),
    added + 1,
  );
  let next = added;
  return cases.map((_, index) => (isFresh(index) ? ++next : numbers[index]!));
}

const selectLastNumber = async (sql: Sql, projectId: string): Promise<number> => {
  const [row] = await sql<{ last: number }[]>`
    select coalesce(max(number), 0) as last from test_case where project_id = ${projectId}`;
  return row!.last;
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
  const now = new Date();
  const tail = `${escape(taskSlug)}\t${now.toISOString()}\n`;
  const copy = await sql`
    copy test_case (project_id, number, id, identity, suite, name, file, task_slug, first_seen_at) from stdin`.writable();
  const ended = new Promise((resolve, reject) => copy.once("finish", resolve).once("error", reject));
  for (let start = 0; start < cases.length; start += 1_000) {
    const lines = cases.slice(start, start + 1_000).map(({ identity, suite, name, file }, index) => {
      const id = Bun.randomUUIDv7("hex", now.getTime());
      const path = file === null ? "\\N" : escape(file);
      return `${projectId}\t${firstNumber + start + index}\t${id}\t${identity}\t${escape(suite)}\t${escape(name)}\t${path}\t${tail}`;
    });
    if (!copy.write(lines.join(""))) await Promise.race([new Promise((resolve) => copy.once("drain", resolve)), ended]);
  }
  copy.end();
  await ended;
}
