/** The trend: how a project's runs have been doing, day by day. */

import { route, type Route } from "../request/route.ts";
import { trendFilter, projectTrends as answer, type Trends } from "../schema/trends.ts";
import { selectTrends, type TrendRow } from "../store/trends.ts";

const DAY_MS = 86_400_000;

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** Every day has its figures, those without runs, too. */
function fill(days: readonly string[], rows: readonly TrendRow[]): Trends["days"] {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  return days.map((day) => {
    const {
      executions = 0,
      runs = 0,
      passed = 0,
      failed = 0,
      p50Ms = null,
      p95Ms = null,
      flaky = 0,
      forgiven = 0,
      testFailures = 0,
      infrastructureFailures = 0,
    } = byDay.get(day) ?? {};
    const passRate = runs === 0 ? null : Math.round((passed / runs) * 10_000) / 10_000;
    return {
      day,
      executions,
      runs,
      passed,
      failed,
      passRate,
      p50Ms,
      p95Ms,
      flaky,
      forgiven,
      testFailures,
      infrastructureFailures,
    };
  });
}

export const trends: Route[] = [
  route(
    "GET /projects/:projectId/trends",
    {
      summary: "Get runs, pass rate, duration and flakiness by day and task",
      description:
        "Figures of completed runs of all branches or of one, by the day in UTC on which they were completed. Days " +
        "without runs are included with zeros. Sums do not include sample data.",
      example: { query: { days: "30", branch: "main" } },
      query: trendFilter,
      answer,
    },
    async ({ sql, params, query }) => {
      const now = Date.now();
      const days = Array.from({ length: query.days }, (_, index) => dayOf(now - (query.days - 1 - index) * DAY_MS));
      const range = { from: days[0]!, to: dayOf(now + DAY_MS) };
      const rows = await selectTrends(sql, params.projectId, { ...query, ...range });
      const tasks = Map.groupBy(
        rows.filter(({ taskSlug }) => taskSlug !== null),
        ({ taskSlug, sample }) => JSON.stringify([taskSlug, sample]),
      );
      return {
        days: fill(
          days,
          rows.filter(({ taskSlug }) => taskSlug === null),
        ),
        tasks: [...tasks.values()].map((rows) => ({
          taskSlug: rows[0]!.taskSlug!,
          ...(rows[0]!.sample ? { sample: true as const } : {}),
          days: fill(days, rows).map(({ executions: _, ...day }) => day),
        })),
      };
    },
  ),
];
