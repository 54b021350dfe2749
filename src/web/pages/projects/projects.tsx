/** The page of a project. */

import type { Html, Path } from "../../../http/html.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { toDuration } from "../../../wording/numbers.ts";
import { Empty, FirstReportLink, CardTable } from "../../components/list.tsx";
import { ExecutionTable } from "../../components/execution_table.tsx";
import { branchHeadline, summaryOf } from "../../components/project_state.tsx";
import { Mark } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { BranchTrends } from "../../components/trends.tsx";
import { type Page, type ProjectRef, type View, page } from "../../site/page.ts";
import { executionPath, testPath } from "../../site/paths.ts";
import { needsAttention } from "./attention.tsx";
import { grid } from "./grid.tsx";
import { type OverviewData, loadOverview } from "./load_overview.ts";
import { WhyRed } from "./why_red.tsx";

const RecentFailures = ({ project, data }: { project: ProjectRef; data: OverviewData }): Html | null =>
  data.grid.rows.length === 0 ? null : (
    <>
      <h2>
        Recent failures{" "}
        <small>tests × executions of {project.defaultBranch}, newest on the right; a dot means not run</small>
      </h2>
      {grid(project.id, data.grid.rows, data.grid.executions)}
    </>
  );

type ExecutionsProperties = { project: ProjectRef; executions: OverviewData["executions"]; now: Date };

const NewestExecutions = ({ project: { id }, executions, now }: ExecutionsProperties): Html | null =>
  executions.length === 0 ? null : (
    <>
      <h2>
        Executions{" "}
        <small>
          <a href={`/projects/${id}/executions`}>all executions</a>
        </small>
      </h2>
      <div data-region="executions">
        <ExecutionTable projectId={id} executions={executions} now={now} caption="The newest executions" />
      </div>
    </>
  );

function SlowestTests({
  project: { id },
  tests,
}: {
  project: ProjectRef;
  tests: OverviewData["slowest"];
}): Html | null {
  if (tests.every(({ p95Ms }) => p95Ms === null)) return null;
  return (
    <>
      <h2>
        Slowest tests{" "}
        <small>
          <a href={`/projects/${id}/tests?sort=p95Ms`}>all</a>
        </small>
      </h2>
      <CardTable
        caption="Slowest tests"
        columns={["Test", ["95th percentile", "number"], ["Average", "number", "wide"]]}
      >
        {tests.map((test) => (
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
      </CardTable>
    </>
  );
}

function overviewView(project: ProjectRef, data: OverviewData, now: Date): View {
  const { id, defaultBranch } = project;
  const { branch, standing, days, forgiven, executions, branchExecutions, needs, red, slowest } = data;
  const base: Path = `/projects/${id}`;
  const headline = branchHeadline(branch, standing.state, now);
  const body = (
    <>
      <div data-region="state">
        <h1>
          <Mark status={headline.status} word={false} /> {headline.text}
        </h1>
        <div class="meta">{summaryOf(id, standing)}</div>
      </div>
      {executions.length === 0 ? <Empty action={<FirstReportLink projectId={id} />}>No reports yet.</Empty> : null}
      <div data-region="needs">
        <WhyRed projectId={id} branch={branch.branch} {...red} now={now} />
        {needsAttention(id, needs, now)}
      </div>
      <BranchTrends
        branch={branch.branch}
        days={days}
        forgiven={forgiven}
        executions={branchExecutions}
        now={now}
        dayHref={(day) => `${base}/executions?branch=${encodeURIComponent(defaultBranch)}&day=${day}`}
        executionHref={(execution) => executionPath(id, execution)}
      />
      <RecentFailures project={project} data={data} />
      <NewestExecutions project={project} executions={executions} now={now} />
      <SlowestTests project={project} tests={slowest} />
    </>
  );
  return { title: headline.text, body, section: "overview", live: `${base}/live` };
}

export const projects: Page[] = [
  page("/projects/:projectId", { access: "viewer" }, async (context) =>
    overviewView(context.project, await loadOverview(context), context.now),
  ),
];
