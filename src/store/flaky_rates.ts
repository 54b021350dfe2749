/** Counts how often the test cases of a project failed without a cause in the code, and stores the fitted rates. */

import type { TestCount } from "../rules/flaky_rates.ts";
import { type Sql, toNumberArray } from "../database/connect.ts";
import { isTrustedBuild } from "./predicates.ts";

/** The number of test cases with as many failures in as many results; none if the rates were fitted within the last hour. */
export const selectTestCounts = (sql: Sql, projectId: string) => sql<TestCount[]>`
  select failures::float8 as failures, results, count(*)::int as tests
  from (
    select h.runs as results, least(h.runs, round(coalesce(f.failures, 0)::numeric, 1)) as failures
    from case_health h left join (
      select one.test_case, sum(one.flaky) as failures
      from (
        select run_id, test_case, flaky from failure where project_id = ${projectId}
        union all
        select run_id, test_case, 1 from flake where project_id = ${projectId}
      ) one
      join test_run r on r.project_id = ${projectId} and r.id = one.run_id and ${isTrustedBuild(sql, sql`r`)}
      group by one.test_case
    ) f on f.test_case = h.test_case
    where h.project_id = ${projectId} and h.runs > 0 and not exists (
      select from project where id = ${projectId} and flaky_rates_at > now() - interval '1 hour')
  ) test
  group by failures, results`;

export const updateFlakyRates = (sql: Sql, projectId: string, shares: readonly number[]) => sql`
  update project set flaky_rates = ${toNumberArray(shares)}::real[], flaky_rates_at = now() where id = ${projectId}`;

/** Null: they were not fitted yet. */
export const selectFlakyRates = async (sql: Sql, projectId: string): Promise<number[] | null> => {
  const [row] = await sql<{ rates: number[] | null }[]>`
    select to_json(flaky_rates) as rates from project where id = ${projectId}`;
  return row?.rates ?? null;
};
