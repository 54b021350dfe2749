/** The page of a project. */

import { firstIdAt } from "../../../database/time_bounds.ts";
import type { Path } from "../../../http/html.ts";
import { getBranchDays } from "../../../operations/health/branch_days.ts";
import { isGreen } from "../../../rules/branch_state.ts";
import { selectBrokenTests } from "../../../store/broken_tests.ts";
import { selectRegressedBugs } from "../../../store/bug_reports.ts";
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
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { toDuration } from "../../../wording/numbers.ts";
import { ExecutionTable } from "../../components/execution_table.tsx";
import { branchHeadline, summaryOf } from "../../components/project_state.tsx";
import { Mark } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { TREND_DAYS, TREND_EXECUTIONS, BranchTrends } from "../../components/trends.tsx";
import { type Page, page } from "../../site/page.ts";
import { executionPath, testPath } from "../../site/paths.ts";
import { MAX_ROWS_PER_KIND, needsAttention } from "./attention.tsx";
import { GRID_TESTS, grid } from "./grid.tsx";
import { MAX_BROKEN_TESTS, MAX_RED_TASKS, WhyRed } from "./why_red.tsx";

const DAY_MS = 86_400_000;

const GRID_EXECUTIONS = 10;

/** Maximum number of executions on this page. */
const MAX_EXECUTIONS = 10;

export const projects: Page[] = [
  page("/projects/:projectId", { access: "viewer" }, async ({ sql, begin, project, now }) => {
    const { id, defaultBranch } = project;
    const week = firstIdAt(now.getTime() - 7 * DAY_MS);
    const branch = await selectBranch(sql, id, defaultBranch, defaultBranch);
    const [state, last, tally, days, builds, branchBuilds, news, regressed, flaky, slowest] = await Promise.all([
      selectBranchState(sql, id, branch),
      selectLastBuild(sql, id, branch),
      selectTally(sql, id),
      getBranchDays(sql, begin, id, branch, { now, count: TREND_DAYS }),
      selectSummaries(sql, id, MAX_EXECUTIONS - 1),
      selectBranchBuilds(sql, id, branch, TREND_EXECUTIONS),
      selectNewFailures(sql, id, branch, week, MAX_ROWS_PER_KIND),
      selectRegressedBugs(sql, id, 3),
      selectTestCases(sql, id, { limit: 4, health: ["flaky"], sort: "flakeRate" }),
      selectTestCases(sql, id, { limit: 4, sort: "p95Ms" }),
    ]);
    const headline = branchHeadline(branch, state, now);
    const gridBuilds = branchBuilds.slice(0, GRID_EXECUTIONS);
    const rows = await selectGrid(
      sql,
      id,
      gridBuilds.map((build) => build.id),
      GRID_TESTS,
    );
    const allRed = state.tasks.filter((task) => !isGreen(task));
    const redTasks = allRed.slice(0, MAX_RED_TASKS);
    const broken = await selectBrokenTests(sql, id, redTasks, MAX_BROKEN_TESTS);
    const base: Path = `/projects/${id}`;
    const body = (
      <>
        <div data-region="state">
          <h1>
            <Mark status={headline.status} word={false} /> {headline.text}
          </h1>
          <div class="meta">{summaryOf(id, { state, last, tally })}</div>
        </div>
        {builds.length === 0 ? (
          <div class="card empty">
            <p>No reports yet.</p>
            <p>
              <a class="button main" href={`${base}/onboarding`}>
                Send the first report
              </a>
            </p>
          </div>
        ) : null}
        <div data-region="needs">
          <WhyRed
            projectId={id}
            branch={branch.branch}
            tasks={redTasks}
            moreTasks={allRed.length - redTasks.length}
            tests={broken}
            now={now}
          />
          {needsAttention(id, { news, regressed, flaky: flaky.slice(0, 3) }, now)}
        </div>
        <BranchTrends
          branch={branch.branch}
          days={days}
          executions={branchBuilds}
          now={now}
          dayHref={(day) => `${base}/executions?branch=${encodeURIComponent(defaultBranch)}&day=${day}`}
          executionHref={(execution) => executionPath(id, execution)}
        />
        {rows.length === 0 ? null : (
          <>
            <h2>
              Recent failures{" "}
              <small>tests × executions of {defaultBranch}, newest on the right; a dot means not run</small>
            </h2>
            {grid(id, rows, gridBuilds)}
          </>
        )}
        {builds.length === 0 ? null : (
          <>
            <h2>
              Executions{" "}
              <small>
                <a href={`${base}/executions`}>all executions</a>
              </small>
            </h2>
            <div data-region="executions">
              <ExecutionTable projectId={id} executions={builds} now={now} caption="The newest executions" />
            </div>
          </>
        )}
        {slowest.some(({ p95Ms }) => p95Ms !== null) ? (
          <>
            <h2>
              Slowest tests{" "}
              <small>
                <a href={`${base}/tests?sort=p95Ms`}>all</a>
              </small>
            </h2>
            <div class="card">
              <table>
                <caption class="visually-hidden">Slowest tests</caption>
                <thead>
                  <tr>
                    <th scope="col">Test</th>
                    <th scope="col" class="number">
                      95th percentile
                    </th>
                    <th scope="col" class="number wide">
                      Average
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {slowest.slice(0, 4).map((test) => (
                    <tr>
                      <td class="long">
                        <a href={testPath(id, test.id)}>
                          <Breakable text={shownCaseTitle(test)} />
                        </a>
                      </td>
                      <td class="number">{test.p95Ms === null ? "–" : toDuration(test.p95Ms)}</td>
                      <td class="number soft wide">{test.averageMs === null ? "–" : toDuration(test.averageMs)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </>
        ) : null}
      </>
    );
    return { title: headline.text, body, section: "overview", live: `${base}/live` };
  }),
];
