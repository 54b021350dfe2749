/** How often a test case failed in each of the last weeks. */

import type { Sql } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { blockOf } from "../rules/merge.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import { isUntrustedCase, toStoredBlock } from "../rules/untrusted.ts";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** Maximum number of runs of a test case that are read. */
const MAX_RUNS_READ = 500;

/** Results that passed or failed, without outages. A pass after a failure in the same run is a failure here. */
export type CaseWeek = { results: number; failures: number };

/**
 * Returns the last weeks, the oldest first and the last one up to the end of today in UTC. Weeks before the newest runs that are read are
 * left out.
 */
export async function selectCaseWeeks(
  sql: Sql,
  projectId: string,
  id: string,
  { now, weeks }: { now: Date; weeks: number },
): Promise<CaseWeek[]> {
  const number = numberOfTestCase(id);
  const end = (Math.floor(now.getTime() / DAY_MS) + 1) * DAY_MS;
  const rows = await sql<(CaseWeek & { week: number; read: number; first: number })[]>`
    with looked as materialized (
      select b.run_id, substr(b.statuses, array_position(b.test_cases, ${number}::int), 1) as letter,
        floor((${end}::text::bigint - 1 - ('x' || left(replace(b.run_id::text, '-', ''), 12))::bit(48)::bigint)
          / ${String(WEEK_MS)}::text::numeric)::int as week
      from case_result b
      where b.project_id = ${projectId} and b.block = ${toStoredBlock(blockOf(number), isUntrustedCase(number))}
        and b.run_id >= ${firstIdAt(end - weeks * WEEK_MS)}::uuid
      order by b.run_id desc limit ${MAX_RUNS_READ}::int)
    select l.week, count(*)::int as results, (count(*) filter (where l.letter in ('f', 'F', 'P')))::int as failures,
      (select count(*)::int from looked) as read, (select max(week) from looked) as first
    from looked l, lateral (
      -- Looked up for each of them: a join would read all runs where the planner knows little of the tables.
      select r.outage from test_run r where r.project_id = ${projectId} and r.id = l.run_id offset 0) r
    where l.letter in ('p', 'P', 'f', 'F') and not r.outage
    group by l.week`;
  // The oldest week that was read is incomplete if there are more runs.
  const whole = rows[0] && rows[0].read === MAX_RUNS_READ ? rows[0].first : weeks;
  return Array.from({ length: Math.max(whole, 0) }, (_, index) => {
    const row = rows.find(({ week }) => week === whole - 1 - index);
    return { results: row?.results ?? 0, failures: row?.failures ?? 0 };
  });
}
