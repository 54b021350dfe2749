/** The dictionary of test cases. */

import { type Sql, toTextArray } from "./connect.ts";

export type NewTestCase = { identity: string; suite: string; name: string; file: string | null };

/** The numbers of the identities (32 hexadecimal digits each), in their order; null where there is no such case. */
async function selectNumbers(sql: Sql, projectId: string, identities: readonly string[]): Promise<(number | null)[]> {
  // One value instead of a row per case: at 100,000 cases the rows would cost more than the look-up.
  const [row] = await sql<{ numbers: string }[]>`
    select string_agg(coalesce(c.number::text, ''), ',' order by wanted.place) as numbers
    from unnest(${`{${identities.join(",")}}`}::uuid[]) with ordinality as wanted (identity, place)
    left join test_case c on c.project_id = ${projectId} and c.identity = wanted.identity`;
  return row!.numbers.split(",").map((number) => (number === "" ? null : Number(number)));
}

/** The numbers of all these cases, in their order; cases that are new are added. */
export async function upsertTestCases(
  sql: Sql,
  projectId: string,
  taskSlug: string,
  cases: readonly NewTestCase[],
): Promise<number[]> {
  if (cases.length === 0) return [];
  const identities = cases.map(({ identity }) => identity);
  const numbers = await selectNumbers(sql, projectId, identities);
  const fresh = cases.filter((_, index) => numbers[index] === null);
  if (fresh.length === 0) return numbers as number[];
  const now = Date.now();
  // Another upload may add the same cases at this moment: whoever is second keeps the first one's numbers. The lock
  // keeps the two from waiting for each other's rows crosswise.
  await sql`
    with turn as materialized (select pg_advisory_xact_lock(hashtextextended(${projectId}::text, 0)))
    insert into test_case (project_id, id, identity, task_slug, suite, name, file, first_seen_at)
    select ${projectId}, id, identity, ${taskSlug}, suite, name, file, ${new Date(now).toISOString()}
    from turn, unnest(
      ${`{${fresh.map(() => Bun.randomUUIDv7("hex", now)).join(",")}}`}::uuid[],
      ${`{${fresh.map(({ identity }) => identity).join(",")}}`}::uuid[],
      ${toTextArray(fresh.map(({ suite }) => suite))}::text[],
      ${toTextArray(fresh.map(({ name }) => name))}::text[],
      ${toTextArray(fresh.map(({ file }) => file))}::text[]
    ) as fresh (id, identity, suite, name, file)
    on conflict (project_id, identity) do nothing`;
  const added = await selectNumbers(
    sql,
    projectId,
    fresh.map(({ identity }) => identity),
  );
  let next = 0;
  return numbers.map((number) => number ?? added[next++]!);
}
