/** The catalogue: test cases with their records and histories. */

import { blockOf, toStatus } from "../rules/merge.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { CaseStatus } from "../schema/fields.ts";
import type { TestCondition } from "../rules/test_search.ts";
import type { FlakySign, TestCase, TestCasePatch, TestCaseResult, TestCaseSort } from "../schema/test_cases.ts";
import { type Fragment, type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";
import { isOwnedBy, ownersJson } from "./owners.ts";
import { flakeResultsOf, healthOf, isBroken, isFlaky } from "./health.ts";
import { isActiveQuarantine, isInCatalogue } from "./predicates.ts";
import { isUntrustedCase, toStoredBlock } from "../rules/untrusted.ts";
import { readVariant } from "../rules/variants.ts";
import { matchTestCases, requiresSortKey } from "./test_case_filter.ts";

export type TestCaseRow = TestCase & {
  number: number;
  /** The owner was set by hand. */
  isOwnerSet: boolean;
  /** The sort key as text of full precision; null if the list is not sorted by a key. */
  key: string | null;
};

type TestCaseQuery = {
  limit: number;
  /** All of them must be met. Default: none. */
  conditions?: readonly TestCondition[] | undefined;
  sort?: TestCaseSort | undefined;
  /** The place of the page before: the last case's key (or "") and number. */
  after?: string[] | undefined;
};

/** The columns of `case_health` that a list is sorted by, greatest first; cases without a value come last, in their own order. */
const SORT_COLUMNS = {
  flakeRate: { column: "flake_rate", type: "real", none: "h.flake_rate is null or h.flake_rate <= 0" },
  failures: { column: "failures", type: "int", none: "h.failures is null or h.failures <= 0" },
  p95Ms: { column: "p95_ms", type: "int", none: "h.p95_ms is null" },
  lastRunAt: { column: "last_run_day", type: "date", none: "h.last_run_day is null" },
} as const;

const columns = (sql: Sql) => sql`
  c.number, c.id, c.task_slug as "taskSlug", c.suite, c.name, c.file, ${healthOf(sql)} as health,
  h.last_status as "lastStatus", h.last_run_at as "lastRunAt", h.last_passed_at as "lastPassedAt",
  h.last_failed_at as "lastFailedAt", coalesce(h.runs, 0) as runs,
  coalesce(h.failures, 0) as failures, round(coalesce(h.flake_rate, 0)::numeric, 4)::float8 as "flakeRate",
  coalesce(h.flake_failures, 0) as "flakeFailures", ${flakeResultsOf(sql)} as "flakeResults",
  coalesce(${isFlaky(sql)}, false) as "isFlaky", h.flaky_since as "flakySince", h.flaky_at as "flakyAt",
  coalesce(h.flaky_signs, '') as "flakySigns",
  (h.total_ms / nullif(h.timed, 0))::int as "averageMs", h.p95_ms as "p95Ms", ${ownersJson(sql, sql`c`)} as owners, c.owner is not null as "isOwnerSet",
  c.sample,
  q.reason as "quarantineReason", q.until as "quarantineUntil", q.created_at as "quarantineCreatedAt",
  q.automation as "quarantineAutomation", q.skip as "quarantineSkip"`;

type FlatRow = Omit<TestCaseRow, "quarantine" | "flaky" | "sample" | "owner" | "tags"> & {
  sample: boolean;
  isFlaky: boolean;
  flakySince: string | null;
  flakyAt: string | null;
  flakySigns: string;
  quarantineReason: string | null;
  quarantineUntil: string | null;
  quarantineCreatedAt: string | null;
  quarantineAutomation: string | null;
  quarantineSkip: boolean | null;
};

/** The letters of `case_health.flaky_signs`. */
const SIGNS: Record<string, FlakySign> = { r: "retry", c: "same_commit", u: "unexplained" };

function toRow(flat: FlatRow): TestCaseRow {
  const { quarantineReason, quarantineUntil, quarantineCreatedAt, quarantineAutomation, quarantineSkip, ...others } =
    flat;
  const { sample, ...flakyRow } = others;
  const { isFlaky, flakySince, flakyAt, flakySigns, ...row } = flakyRow;
  return {
    ...row,
    tags: readVariant(row.taskSlug).tags,
    owner: row.owners[0] ?? null,
    ...(sample ? { sample } : {}),
    flaky: isFlaky
      ? { since: flakySince, lastSeenAt: flakyAt, signs: Array.from(flakySigns, (letter) => SIGNS[letter]!) }
      : null,
    quarantine:
      quarantineReason === null
        ? null
        : {
            reason: quarantineReason,
            until: quarantineUntil,
            skip: quarantineSkip!,
            createdAt: quarantineCreatedAt!,
            automation: quarantineAutomation,
          },
  };
}

/** Returns one row more than `limit`. */
export async function selectTestCases(sql: Sql, projectId: string, query: TestCaseQuery): Promise<TestCaseRow[]> {
  const { limit, sort, after, conditions = [] } = query;
  const matches = await matchTestCases(sql, projectId, conditions, sort !== undefined);
  const [key, number] = [after?.[0] ?? "", Number(after?.[1] ?? 0)];
  if (sort === undefined) return await select(null, null, number, limit + 1);
  const keyed = after && key === "" ? [] : await select(sort, after ? key : null, number, limit + 1);
  if (keyed.length > limit) return keyed;
  if (requiresSortKey(conditions, sort)) return keyed;
  const rest = await select(null, null, after && key === "" ? number : 0, limit + 1 - keyed.length, sort);
  return [...keyed, ...rest];

  /** Selects cases with the sort key after (`beyond`, `number`), or by number, without cases that have the key of `without`. */
  async function select(
    by: TestCaseSort | null,
    beyond: string | null,
    number: number,
    rows: number,
    without: TestCaseSort | null = null,
  ): Promise<TestCaseRow[]> {
    const order = by && SORT_COLUMNS[by];
    const found = await sql<FlatRow[]>`
      select ${columns(sql)}, ${order ? sql`h.${sql(order.column)}::text` : sql`null`} as key
      ${
        // If sorted by health, its index comes first; otherwise that of the cases.
        order
          ? sql`from case_health h join test_case c on c.project_id = h.project_id and c.number = h.test_case`
          : // Told twice where the page begins, so that whichever way they are joined both begin there.
            sql`from test_case c left join case_health h on h.project_id = c.project_id and h.test_case = c.number
              and h.test_case > ${number}`
      }
      left join quarantine q on q.project_id = c.project_id and q.test_case = c.number
        and ${isActiveQuarantine(sql, sql`q`)}
      where c.project_id = ${projectId} ${order ? sql`and h.project_id = ${projectId}` : sql``}
        ${order ? sql`and not (${sql.unsafe(order.none)})` : sql`and c.number > ${number} and ${isInCatalogue(sql, sql`c`)}`}
        ${order && beyond !== null ? sql`and (h.${sql(order.column)}, h.test_case) < (${beyond}::text::${sql.unsafe(order.type)}, ${number})` : sql``}
        ${without ? sql`and (${sql.unsafe(SORT_COLUMNS[without].none)})` : sql``}
        ${matches}
      order by ${order ? sql`h.${sql(order.column)} desc, h.test_case desc` : sql`c.number`} limit ${rows}`;
    return found.map(toRow);
  }
}

/** Maximum number of broken, and of flaky tests that are searched for those of an owner. */
const MAX_UNHEALTHY = 1_000;

/** Returns broken and flaky tests of one of these owners, broken ones first, at most `limit`. */
export async function selectUnhealthyOf(
  sql: Sql,
  projectId: string,
  owners: readonly string[],
  limit: number,
): Promise<TestCaseRow[]> {
  const those = (condition: Fragment) => sql`
    (select * from case_health h where h.project_id = ${projectId} and ${condition} limit ${MAX_UNHEALTHY}::int)`;
  const found = await sql<FlatRow[]>`
    select ${columns(sql)}, null as key
    from (${those(isBroken(sql))} union all ${those(sql`${isFlaky(sql)} and not ${isBroken(sql)}`)}) h
    cross join lateral (
      select * from test_case c where c.project_id = ${projectId} and c.number = h.test_case offset 0) c
    left join quarantine q on q.project_id = c.project_id and q.test_case = c.number and ${isActiveQuarantine(sql, sql`q`)}
    where ${isOwnedBy(sql, projectId, sql`c`, owners)}
    order by ${isBroken(sql)} desc, h.flake_rate desc, c.number limit ${limit}::int`;
  return found.map(toRow);
}

export const selectTestCase = async (sql: Sql, projectId: string, id: string): Promise<TestCaseRow | undefined> => {
  const [row] = await sql<FlatRow[]>`
    select ${columns(sql)}, null as key
    from test_case c
    left join case_health h on h.project_id = c.project_id and h.test_case = c.number
    left join quarantine q on q.project_id = c.project_id and q.test_case = c.number
      and ${isActiveQuarantine(sql, sql`q`)}
    where c.project_id = ${projectId} and c.number = ${numberOfTestCase(id)} and c.id = ${id}`;
  return row && toRow(row);
};

export type TestCaseName = { number: number; id: string; suite: string; name: string };

/** Returns the names of those of the test cases that exist. */
export const selectTestCaseNames = (sql: Sql, projectId: string, ids: readonly string[]) => sql<TestCaseName[]>`
  select number, id, suite, name from test_case
  where project_id = ${projectId} and ${isInCatalogue(sql, sql`test_case`)} and number = any(${toNumberArray(ids.map(numberOfTestCase))}::int[])
    and id = any(${toTextArray(ids)}::uuid[])`;

/** Changes all of the test cases, or none if some of them do not exist. `changed` counts those that differ now. */
export async function updateTestCases(
  sql: Tx,
  projectId: string,
  ids: readonly string[],
  { owner, quarantine }: TestCasePatch,
): Promise<{ absent: string[] } | { changed: number }> {
  // In one order, so that two who want the same ones do not wait for each other.
  const found = await sql<{ number: number; id: string }[]>`
    select number, id from test_case
    where project_id = ${projectId} and ${isInCatalogue(sql, sql`test_case`)} and number = any(${toNumberArray(ids.map(numberOfTestCase))}::int[])
      and id = any(${toTextArray(ids)}::uuid[])
    order by number for no key update`;
  const there = new Set(found.map(({ id }) => id));
  const absent = ids.filter((id) => !there.has(id));
  if (absent.length > 0) return { absent };
  const numbers = toNumberArray(found.map(({ number }) => number));
  const changed = new Set<number>();
  const note = (rows: readonly { number: number }[]) => rows.forEach(({ number }) => changed.add(number));
  if (owner !== undefined)
    note(
      await sql<{ number: number }[]>`
        update test_case set owner = ${owner}
        where project_id = ${projectId} and number = any(${numbers}::int[]) and owner is distinct from ${owner}::text
        returning number`,
    );
  if (quarantine === null)
    note(
      await sql<{ number: number }[]>`
        with ended as (
          delete from quarantine where project_id = ${projectId} and test_case = any(${numbers}::int[])
          returning test_case, until)
        select test_case as number from ended where ${isActiveQuarantine(sql, sql`ended`)}`,
    );
  else if (quarantine)
    note(
      await sql<{ number: number }[]>`
        insert into quarantine as q (project_id, test_case, reason, until, skip)
        select ${projectId}, number, ${quarantine.reason}, ${quarantine.until ?? null}, ${quarantine.skip ?? false}
        from unnest(${numbers}::int[]) as number
        on conflict (project_id, test_case) do update set
          reason = excluded.reason, until = excluded.until, automation = null, skip = excluded.skip,
          created_at = case when q.until <= now() then now() else q.created_at end
        where (q.reason, q.until, q.automation, q.skip)
          is distinct from (excluded.reason, excluded.until, null, excluded.skip)
        returning test_case as number`,
    );
  return { changed: changed.size };
}

export type HistoryRow = TestCaseResult & { runId: string };

export type HistoryQuery = {
  limit: number;
  status?: CaseStatus | undefined;
  branch?: string | undefined;
  /** The run that the page before ended with. */
  after?: string | undefined;
};

export type HistoryPage = {
  /** At most `limit` rows. */
  rows: HistoryRow[];
  /** The run that the next page begins behind; undefined at the end. */
  last: string | undefined;
};

const LETTERS: Record<CaseStatus, string> = { passed: "pP", failed: "fF", skipped: "sS" };
const FIRST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const LAST_ID = "00000000-0000-0000-0000-000000000000";

/** Returns results, newest run first. With a filter at most `lookedAt` results are read, so a page that is not full may have a next one. */
export const selectHistory = async (
  sql: Sql,
  projectId: string,
  id: string,
  { limit, status, branch, after = FIRST_ID }: HistoryQuery,
  lookedAt: number,
): Promise<HistoryPage> => {
  const number = numberOfTestCase(id);
  const place = sql`b.project_id = ${projectId} and b.block = ${toStoredBlock(blockOf(number), isUntrustedCase(number))} and b.run_id < ${after}`;
  const isFiltered = status !== undefined || branch !== undefined;
  // Returns the last two ids: that of the last result read, and one more if there are any left.
  const bound = isFiltered
    ? sql`(select array_agg(run_id) from (
        select b.run_id from case_result b where ${place} order by b.run_id desc offset ${lookedAt - 1} limit 2) ids)`
    : sql`null::uuid[]`;
  const rows = await sql<
    (Omit<HistoryRow, "status" | "flaky" | "runId"> & { letter: string; runId: string | null; bound: string | null })[]
  >`
    with looked as materialized (select ${bound} as ids)
    select h.run_id as "runId", r.execution_id as "executionId", r.task_slug as "taskSlug", h.letter,
      h.duration as "durationMs", h.attempt, e.branch, e.commit, r.outage, d.message, r.completed_at as "completedAt",
      case when l.ids[2] is not null then l.ids[1] end as bound
    from looked l
    left join lateral (
      select b.run_id, substr(b.statuses, place, 1) as letter, b.durations[place] as duration,
        coalesce(b.attempts[place], 1)::int as attempt
      from case_result b, lateral array_position(b.test_cases, ${number}::int) as place
      where ${place} and b.run_id >= coalesce(l.ids[1], ${LAST_ID}::uuid) and place is not null
        ${status === undefined ? sql`` : sql`and b.statuses ~ ${`[${LETTERS[status]}]`} and position(substr(b.statuses, place, 1) in ${LETTERS[status]}) > 0`}
        ${
          // One by one: whatever the planner thinks of the branch, results are read in order until the page is full.
          branch === undefined
            ? sql``
            : sql`and (
                select e.branch from test_run r join execution e on e.project_id = r.project_id and e.id = r.execution_id
                where r.project_id = b.project_id and r.id = b.run_id) = ${branch}`
        }
      order by b.run_id desc limit ${limit + 1}
    ) h on true
    -- Looked up for each: a join may read all runs where the planner knows little of the tables.
    left join lateral (select * from test_run where project_id = ${projectId} and id = h.run_id offset 0) r on true
    left join lateral (select * from execution where project_id = ${projectId} and id = r.execution_id offset 0) e on true
    left join lateral (
      select message from case_detail
      where project_id = ${projectId} and run_id = h.run_id and test_case = ${number} and attempt = h.attempt offset 0
    ) d on true
    order by h.run_id desc`;
  const found = rows.flatMap(({ letter, runId, bound: _, ...row }) =>
    runId === null ? [] : [{ ...row, runId, status: toStatus(letter), flaky: letter === "P" }],
  );
  const shown = found.slice(0, limit);
  return { rows: shown, last: found.length > limit ? shown.at(-1)!.runId : (rows[0]?.bound ?? undefined) };
};
