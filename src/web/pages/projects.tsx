/** A project at a glance: is its default branch green, what needs somebody, how has it been going. */

import type { Html, Path } from "../../http/html.ts";
import { getBranchDays } from "../../operations/health/branch_days.ts";
import { type BranchTask, isGreen } from "../../rules/branch_state.ts";
import { firstIdAt } from "../../database/moment.ts";
import {
  type GridRow,
  type NewsRow,
  type RedTaskRow,
  selectLastBuild,
  selectBranchBuilds,
  selectGrid,
  selectNewFailures,
  selectRedTasks,
  selectTally,
} from "../../store/overview.ts";
import { selectBranch, selectBranchState } from "../../store/state.ts";
import { type RegressedBug, selectRegressedBugs } from "../../store/bug_reports.ts";
import { selectTestCases } from "../../store/test_cases.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { redTaskWords } from "../../wording/task.ts";
import { firstLineOf } from "../../wording/first_line.ts";
import { type ExecutionSummary, selectSummaries } from "../../store/execution_list.ts";
import { bugPath, executionPath, taskPath, testPath } from "../site/paths.ts";
import { ExecutionTable, executionName } from "../components/execution_table.tsx";
import { type Page, page } from "../site/page.ts";
import { branchHeadline, summaryOf } from "../components/project_state.tsx";
import { Ago, Breakable, toDay, toPercent, toSpan } from "../components/text.tsx";
import { counted, toDuration } from "../../wording/numbers.ts";
import { Mark } from "../components/status.tsx";
import { TREND_DAYS, trendCharts } from "../components/trends.tsx";

const DAY_MS = 86_400_000;
const GRID_EXECUTIONS = 10;
const GRID_TESTS = 8;
/** The others are a page away. */
const BUILDS = 10;
/** Of what needs somebody so much is told, of each kind. */
const NEWS = 5;

type Needs = {
  branch: string;
  /** The tasks that keep the default branch red, and what they say. */
  red: readonly { task: BranchTask; said: RedTaskRow }[];
  /** The number of further ones. */
  moreRed: number;
  news: readonly NewsRow[];
  regressed: readonly RegressedBug[];
  flaky: Awaited<ReturnType<typeof selectTestCases>>;
};

function needsYou(projectId: string, { branch, red, moreRed, news, regressed, flaky }: Needs, now: Date): Html | null {
  const rows = [
    ...red.map(({ task: { slug, status, failed, since, isLonger }, said }) => (
      <tr>
        <td class="mark-cell">
          <Mark status="failed" />
        </td>
        <td class="long">
          <a href={taskPath(projectId, said.executionId, slug)}>
            <b>{executionName(said)}</b> <code>{branch}</code> {slug}: {redTaskWords({ status, failed })}
            {said.newFailures > 0 ? `, ${said.newFailures} new` : ""}
          </a>{" "}
          <span class="small soft">{firstLineOf(said.message ?? said.test)}</span>
        </td>
        <td class="number soft">
          red for {isLonger ? "more than " : ""}
          {toSpan(now.getTime() - Date.parse(since))}
        </td>
      </tr>
    )),
    moreRed === 0 ? null : (
      <tr>
        <td class="mark-cell">
          <Mark status="failed" />
        </td>
        <td class="long" colspan={2}>
          {counted(moreRed, "more red task")} of <code>{branch}</code>
        </td>
      </tr>
    ),
    ...news.map((row) => (
      <tr>
        <td class="mark-cell">
          <Mark status="failed" />
        </td>
        <td class="long">
          <a href={executionPath(projectId, row.executionId)}>
            <b>{executionName(row)}</b> <code>{row.branch}</code> {counted(row.failures, "new failure")}
          </a>{" "}
          <span class="small soft">{firstLineOf(row.message ?? row.test)}</span>
        </td>
        <td class="number soft">
          <Ago at={row.createdAt} now={now} />
        </td>
      </tr>
    )),
    ...regressed.map((bug) => (
      <tr>
        <td class="mark-cell">
          <span class="mark failed" aria-hidden="true">
            ▲
          </span>
          <span class="visually-hidden">regressed</span>
        </td>
        <td class="long">
          <a href={bugPath(projectId, bug.id)}>
            <b>Bug {bug.number}</b> came back: {bug.title}
          </a>{" "}
          <span class="small soft">
            {counted(bug.occurrences, "failure")}
            {bug.assignee === null ? "" : `, ${bug.assignee}`}
          </span>
        </td>
        <td class="number soft">{bug.lastSeenAt === null ? null : <Ago at={bug.lastSeenAt} now={now} />}</td>
      </tr>
    )),
    ...flaky.map((test) => (
      <tr>
        <td class="mark-cell">
          <Mark status="flaky" />
        </td>
        <td class="long">
          <a href={testPath(projectId, test.id)}>
            <Breakable text={`${test.taskSlug} › ${shownCaseTitle(test)}`} />
          </a>{" "}
          <span class="small soft">flaky, fails {toPercent(test.flakeRate)} of the time</span>
        </td>
        <td class="number soft">{test.flaky?.since ? <Ago at={test.flaky.since} now={now} /> : null}</td>
      </tr>
    )),
  ];
  return rows.every((row) => row === null) ? null : (
    <>
      <h2>Needs you</h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">What needs somebody</caption>
          <tbody>{rows}</tbody>
        </table>
      </div>
    </>
  );
}

const LETTERS: Record<string, string> = {
  p: "passed",
  P: "flaky",
  f: "failed",
  F: "failed",
  s: "skipped",
  S: "skipped",
};
const SHAPES: Record<string, string> = { passed: "●", flaky: "◐", failed: "✕", skipped: "–" };

/** Tests in rows, executions in columns, newest right. */
export function grid(projectId: string, rows: readonly GridRow[], builds: readonly ExecutionSummary[]): Html | null {
  if (rows.length === 0) return null;
  const columns = builds.toReversed();
  return (
    <div class="card scroll">
      <table class="grid">
        <caption class="visually-hidden">Tests that failed lately, by execution, newest right</caption>
        <thead>
          <tr>
            <th scope="col">Test</th>
            {columns.map((build) => (
              <th scope="col">
                <a href={executionPath(projectId, build.id)}>{shortNameOf(build)}</a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const cells = new Map(row.cells.map((cell) => [cell.executionId, cell]));
            return (
              <tr>
                <th scope="row">
                  <a href={testPath(projectId, row.testCaseId)}>
                    <span class="soft">
                      <Breakable text={row.suite || row.taskSlug} /> ›{" "}
                    </span>
                    <Breakable text={row.name} />
                  </a>
                </th>
                {columns.map((build) => {
                  const cell = cells.get(build.id);
                  if (!cell)
                    return (
                      <td>
                        <span class="soft" role="img" aria-label="not run">
                          ·
                        </span>
                      </td>
                    );
                  const status = LETTERS[cell.letter] ?? "skipped";
                  const label = `${status}${cell.durationMs === null ? "" : `, ${toDuration(cell.durationMs)}`}`;
                  const to = executionPath(projectId, build.id);
                  return (
                    <td>
                      <a class={`cell ${status}`} href={to} title={label} aria-label={label}>
                        {SHAPES[status]}
                      </a>
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** For the head of a narrow column. */
function shortNameOf(build: ExecutionSummary): string {
  const name = executionName(build).replace(/^#/, "");
  return build.key !== null && name.length <= 8 ? name : toDay(build.createdAt);
}

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
      selectSummaries(sql, id, BUILDS - 1),
      selectBranchBuilds(sql, id, branch, GRID_EXECUTIONS),
      selectNewFailures(sql, id, branch, week, NEWS),
      selectRegressedBugs(sql, id, 3),
      selectTestCases(sql, id, { limit: 4, health: ["flaky"], sort: "flakeRate" }),
      selectTestCases(sql, id, { limit: 4, sort: "p95Ms" }),
    ]);
    const headline = branchHeadline(branch, state, now);
    const rows = await selectGrid(
      sql,
      id,
      branchBuilds.map((build) => build.id),
      GRID_TESTS,
    );
    const allRed = state.tasks.filter((task) => !isGreen(task));
    const redTasks = allRed.slice(0, NEWS);
    const said = redTasks.length === 0 ? [] : await selectRedTasks(sql, id, redTasks);
    const red = said.map((row) => ({ task: redTasks.find(({ slug }) => slug === row.slug)!, said: row }));
    const needs = {
      branch: defaultBranch,
      red,
      moreRed: allRed.length - redTasks.length,
      news,
      regressed,
      flaky: flaky.slice(0, 3),
    };
    const base: Path = `/projects/${id}`;
    const body = (
      <>
        {" "}
        <div data-region="state">
          <h1>
            <Mark status={headline.status} word={false} /> {headline.text}
          </h1>
          <div class="meta">{summaryOf(id, { state, last, tally }, now)}</div>
        </div>
        {builds.length === 0 ? (
          <div class="card empty">
            <p>No report has arrived yet.</p>
            <p>
              <a class="button main" href={`${base}/onboarding`}>
                Send the first one
              </a>
            </p>
          </div>
        ) : null}{" "}
        {trendCharts(
          defaultBranch,
          days,
          now,
          (day) => `${base}/executions?branch=${encodeURIComponent(defaultBranch)}&day=${day}`,
        )}
        <div data-region="needs">{needsYou(id, needs, now)}</div>
        {rows.length === 0 ? null : (
          <>
            <h2>
              What failed lately <small>tests × executions of {defaultBranch}, newest right; a dot: not run</small>
            </h2>
            {grid(id, rows, branchBuilds)}
          </>
        )}{" "}
        {builds.length === 0 ? null : (
          <>
            <h2>
              Executions{" "}
              <small>
                <a href={`${base}/executions`}>all, with filters</a>
              </small>
            </h2>
            <div data-region="executions">
              <ExecutionTable projectId={id} executions={builds} now={now} caption="The newest executions" />
            </div>
          </>
        )}{" "}
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
                <caption class="visually-hidden">The slowest tests</caption>
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
