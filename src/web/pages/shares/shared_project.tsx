/** The public page of a shared project. */

import { getBranchDays } from "../../../operations/health/branch_days.ts";
import type { Html } from "../../../http/html.ts";
import type { SharedTarget } from "../../../schema/shares.ts";
import { selectSummaries } from "../../../store/execution_list.ts";
import { selectLastBuild } from "../../../store/overview.ts";
import { selectBranch, selectBranchState } from "../../../store/state.ts";
import { toDuration } from "../../../wording/numbers.ts";
import { executionName, executionNumber, lineName } from "../../../wording/execution_name.ts";
import { AgoCell, MarkCell, CardTable } from "../../components/list.tsx";
import { branchHeadline } from "../../components/project_state.tsx";
import { Mark } from "../../components/status.tsx";
import { Breakable, Commit } from "../../components/text.tsx";
import { TREND_DAYS, BranchTrends } from "../../components/trends.tsx";
import type { View } from "../../site/page.ts";
import { type SharedPageContext, publicOutcomeOf } from "./shared_execution.tsx";

const MAX_EXECUTIONS = 20;

async function loadProject({ projectId, defaultBranch }: SharedTarget, { sql, begin, now }: SharedPageContext) {
  const branch = await selectBranch(sql, projectId, defaultBranch, defaultBranch);
  const [state, last, days, executions] = await Promise.all([
    selectBranchState(sql, projectId, branch),
    selectLastBuild(sql, projectId, branch),
    getBranchDays(sql, begin, projectId, branch, { now, count: TREND_DAYS }),
    selectSummaries(sql, projectId, MAX_EXECUTIONS),
  ]);
  return { branch, state, last, days, executions: executions.slice(0, MAX_EXECUTIONS) };
}

type ProjectData = Awaited<ReturnType<typeof loadProject>>;

type TableProperties = Pick<ProjectData, "executions"> & { now: Date };

/** Unlike the table of the dashboard, it has no links. */
const PublicExecutions = ({ executions, now }: TableProperties): Html | null =>
  executions.length === 0 ? null : (
    <>
      <h2>Newest executions</h2>
      <CardTable
        caption="The newest executions"
        columns={["Status", "Execution", "Outcome", "Duration", "When"]}
        hidesHead
        scrolls
      >
        {executions.map((execution) => (
          <tr>
            <MarkCell status={execution.status} />
            <td>
              <b>{executionNumber(execution)}</b>{" "}
              {lineName(execution) === null ? null : (
                <code>
                  <Breakable text={lineName(execution)!} />
                </code>
              )}
            </td>
            <td>{publicOutcomeOf(execution)}</td>
            <td class="number wide">{execution.durationMs > 0 ? toDuration(execution.durationMs) : "–"}</td>
            <AgoCell at={execution.completedAt ?? execution.createdAt} now={now} />
          </tr>
        ))}
      </CardTable>
    </>
  );

function projectView({ projectName, defaultBranch }: SharedTarget, data: ProjectData, now: Date): View {
  const { branch, state, last, days, executions } = data;
  const headline = branchHeadline(branch, state, now);
  const body = (
    <>
      <h1>
        <Mark status={headline.status} word={false} /> {headline.text}
      </h1>
      <div class="meta">
        <span>
          <b>{projectName}</b>
        </span>
        {last ? (
          <span>
            {executionName(last)} {last.commit === null ? null : <Commit hash={last.commit} />} {publicOutcomeOf(last)}
            {last.durationMs > 0 ? ` in ${toDuration(last.durationMs)}` : null}
          </span>
        ) : null}
      </div>
      <BranchTrends branch={defaultBranch} days={days} now={now} />
      <PublicExecutions executions={executions} now={now} />
    </>
  );
  return { title: `${headline.text} · ${projectName}`, body, isShared: true };
}

export async function sharedProject(place: SharedTarget, context: SharedPageContext): Promise<View> {
  return projectView(place, await loadProject(place, context), context.now);
}
