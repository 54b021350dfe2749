/** Loads the page of a project. */

import { firstIdAt } from "../../../database/time_bounds.ts";
import { getBranchDays } from "../../../operations/health/branch_days.ts";
import { isGreen } from "../../../rules/branch_state.ts";
import { selectBrokenTests } from "../../../store/broken_tests.ts";
import { selectUrgentBugs } from "../../../store/bug_reports.ts";
import { selectForgivenDays } from "../../../store/gate.ts";
import {
  selectGrid,
  selectLastBuild,
  selectNewFailures,
  selectOverviewBuilds,
  selectTally,
} from "../../../store/overview.ts";
import { selectBranch, selectBranchState } from "../../../store/state.ts";
import { selectTestCases, selectUnhealthyOf } from "../../../store/test_cases.ts";
import { readCommitRanges } from "../../components/commit_ranges.ts";
import { TREND_DAYS } from "../../components/trends.tsx";
import { MAX_BRANCH_HEADS } from "./branches.tsx";
import { GRID_TESTS } from "./grid.tsx";
import { MAX_BROKEN_TESTS, MAX_RED_TASKS } from "./why_red.tsx";
import type { ProjectContext } from "../../site/page.ts";

const DAY_MS = 86_400_000;

const GRID_EXECUTIONS = 10;
/** The statuses of executions that have an outcome. */
const isOver = new Set(["passed", "failed", "timed_out"]);

/** Maximum number of the newest executions, which are shown by commit. */
const MAX_EXECUTIONS = 16;

const MAX_BUILDS = { newest: MAX_EXECUTIONS, ofBranch: GRID_EXECUTIONS, heads: MAX_BRANCH_HEADS };

const MAX_URGENT_BUGS = 3;
const MAX_OWN_TESTS = 5;
const MAX_FLAKY_TESTS = 3;
const MAX_NEW_FAILURES = 5;

export async function loadOverview({ sql, begin, project, visitor, now }: ProjectContext) {
  const { id, defaultBranch } = project;
  const week = firstIdAt(now.getTime() - 7 * DAY_MS);
  const branch = await selectBranch(sql, id, defaultBranch, defaultBranch);
  const from = new Date(now.getTime() - (TREND_DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
  // Owners and assignees are names or addresses.
  const me = [visitor.email, visitor.name];
  const [state, tally, days, builds, news, bugs, own, flaky, forgiven] = await Promise.all([
    selectBranchState(sql, id, branch),
    selectTally(sql, id),
    getBranchDays(sql, begin, id, branch, { now, count: TREND_DAYS }),
    selectOverviewBuilds(sql, id, branch, MAX_BUILDS),
    selectNewFailures(sql, id, branch, week, MAX_NEW_FAILURES),
    selectUrgentBugs(sql, id, me, MAX_URGENT_BUGS),
    selectUnhealthyOf(sql, id, me, MAX_OWN_TESTS),
    selectTestCases(sql, id, {
      limit: MAX_OWN_TESTS + MAX_FLAKY_TESTS,
      conditions: [{ field: "health", is: ["flaky"] }],
      sort: "flakeRate",
    }),
    selectForgivenDays(sql, id, from),
  ]);
  const { newest: executions, ofBranch: gridExecutions, heads } = builds;
  const last = gridExecutions.find(({ status }) => isOver.has(status)) ?? (await selectLastBuild(sql, id, branch));
  const gridIds = gridExecutions.map((execution) => execution.id);
  const gridRows = await selectGrid(sql, id, gridIds, GRID_TESTS);
  const allRed = state.tasks.filter((task) => !isGreen(task));
  const redTasks = allRed.slice(0, MAX_RED_TASKS);
  const broken = await selectBrokenTests(sql, id, redTasks, MAX_BROKEN_TESTS);
  const commitsOf = await readCommitRanges(sql, id, broken);
  const isMine = new Set(own.map((test) => test.id));
  const isShown = new Set(broken.map(({ testCaseId }) => testCaseId));
  return {
    branch,
    standing: { state, last, tally },
    days,
    forgiven,
    executions,
    branches: { heads, news },
    needs: {
      own: own.filter((test) => test.health !== "broken" || !isShown.has(test.id)),
      flaky: flaky.filter((test) => !isMine.has(test.id)).slice(0, MAX_FLAKY_TESTS),
      bugs,
    },
    grid: { executions: gridExecutions, rows: gridRows },
    red: { me, tasks: redTasks, moreTasks: allRed.length - redTasks.length, tests: broken, commitsOf },
  };
}

export type OverviewData = Awaited<ReturnType<typeof loadOverview>>;
