/** Loads the page of a project. */

import { firstIdAt } from "../../../database/time_bounds.ts";
import { getBranchDays } from "../../../operations/health/branch_days.ts";
import { isGreen } from "../../../rules/branch_state.ts";
import { selectBrokenTests } from "../../../store/broken_tests.ts";
import { selectCommitsBetween } from "../../../store/commits.ts";
import { selectRegressedBugs } from "../../../store/bug_reports.ts";
import { selectForgivenDays } from "../../../store/gate.ts";
import { selectSummaries } from "../../../store/execution_list.ts";
import {
  selectBranchBuilds,
  selectGrid,
  selectLastBuild,
  selectNewFailures,
  selectTally,
} from "../../../store/overview.ts";
import { selectBranch, selectBranchState } from "../../../store/state.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import { TREND_DAYS, TREND_EXECUTIONS } from "../../components/trends.tsx";
import { MAX_ROWS_PER_KIND } from "./attention.tsx";
import { GRID_TESTS } from "./grid.tsx";
import { MAX_BROKEN_TESTS, MAX_RED_TASKS, rangeOf } from "./why_red.tsx";
import type { ProjectContext } from "../../site/page.ts";

const DAY_MS = 86_400_000;

const GRID_EXECUTIONS = 10;

/** Maximum number of executions on this page. */
const MAX_EXECUTIONS = 10;

const MAX_REGRESSED_BUGS = 3;
const MAX_FLAKY_TESTS = 3;
const MAX_SLOW_TESTS = 4;

export async function loadOverview({ sql, begin, project, now }: ProjectContext) {
  const { id, defaultBranch } = project;
  const week = firstIdAt(now.getTime() - 7 * DAY_MS);
  const branch = await selectBranch(sql, id, defaultBranch, defaultBranch);
  const from = new Date(now.getTime() - (TREND_DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
  const [state, last, tally, days, executions, branchExecutions, news, regressed, flaky, slowest, forgiven] =
    await Promise.all([
      selectBranchState(sql, id, branch),
      selectLastBuild(sql, id, branch),
      selectTally(sql, id),
      getBranchDays(sql, begin, id, branch, { now, count: TREND_DAYS }),
      selectSummaries(sql, id, MAX_EXECUTIONS - 1),
      selectBranchBuilds(sql, id, branch, TREND_EXECUTIONS),
      selectNewFailures(sql, id, branch, week, MAX_ROWS_PER_KIND),
      selectRegressedBugs(sql, id, MAX_REGRESSED_BUGS),
      selectTestCases(sql, id, { limit: MAX_FLAKY_TESTS, health: ["flaky"], sort: "flakeRate" }),
      selectTestCases(sql, id, { limit: MAX_SLOW_TESTS, sort: "p95Ms" }),
      selectForgivenDays(sql, id, from),
    ]);
  const gridExecutions = branchExecutions.slice(0, GRID_EXECUTIONS);
  const gridIds = gridExecutions.map((execution) => execution.id);
  const gridRows = await selectGrid(sql, id, gridIds, GRID_TESTS);
  const allRed = state.tasks.filter((task) => !isGreen(task));
  const redTasks = allRed.slice(0, MAX_RED_TASKS);
  const broken = await selectBrokenTests(sql, id, redTasks, MAX_BROKEN_TESTS);
  const ranges = new Set(broken.flatMap((test) => rangeOf(test) ?? []).slice(0, MAX_BROKEN_TESTS));
  const changes = await Promise.all(
    [...ranges].map(async (range) => {
      const [good = "", bad = ""] = range.split(" ");
      return [range, await selectCommitsBetween(sql, id, { good, bad })] as const;
    }),
  );
  return {
    branch,
    standing: { state, last, tally },
    days,
    forgiven,
    executions,
    branchExecutions,
    needs: { news, regressed, flaky: flaky.slice(0, MAX_FLAKY_TESTS) },
    slowest: slowest.slice(0, MAX_SLOW_TESTS),
    grid: { executions: gridExecutions, rows: gridRows },
    red: { tasks: redTasks, moreTasks: allRed.length - redTasks.length, tests: broken, changes: new Map(changes) },
  };
}

export type OverviewData = Awaited<ReturnType<typeof loadOverview>>;
