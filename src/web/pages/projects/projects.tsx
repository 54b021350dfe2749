/** The page of a project. */

import type { Html, Path } from "../../../http/html.ts";
import { Empty, FirstReportLink } from "../../components/list.tsx";
import { ExecutionTable } from "../../components/execution_table.tsx";
import { branchHeadline, summaryOf } from "../../components/project_state.tsx";
import { Mark } from "../../components/status.tsx";
import { BranchTrends } from "../../components/trends.tsx";
import { type Page, type ProjectContext, type ProjectRef, type View, page } from "../../site/page.ts";
import { Branches } from "./branches.tsx";
import { grid } from "./grid.tsx";
import { type OverviewData, loadOverview } from "./load_overview.ts";
import { NeedsAttention } from "./needs.tsx";
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
        <ExecutionTable
          projectId={id}
          executions={executions}
          now={now}
          caption="The newest executions by commit"
          byCommit
        />
      </div>
    </>
  );

function overviewView({ project, role, csrf, now }: ProjectContext, data: OverviewData): View {
  const { id } = project;
  const { branch, standing, days, forgiven, executions, branches, needs, red } = data;
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
        <NeedsAttention projectId={id} csrf={role === "viewer" ? undefined : csrf} needs={needs} now={now} />
      </div>
      <div data-region="branches">
        <Branches projectId={id} {...branches} now={now} />
      </div>
      <RecentFailures project={project} data={data} />
      <NewestExecutions project={project} executions={executions} now={now} />
      <BranchTrends branch={branch.branch} days={days} forgiven={forgiven} now={now} />
    </>
  );
  return { title: headline.text, body, section: "overview", live: `${base}/live` };
}

export const projects: Page[] = [
  page("/projects/:projectId", { access: "viewer" }, async (context) =>
    overviewView(context, await loadOverview(context)),
  ),
];
