/** The pages and forms of executions. */

import * as v from "valibot";
import type { Path } from "../../../http/html.ts";
import { absent } from "../../../http/problem.ts";
import { isAnswered } from "../../../operations/executions/reruns.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { selectExecution, selectExecutionNames, selectReruns } from "../../../store/execution_list.ts";
import { countFailures } from "../../../store/failures.ts";
import { selectUsualDurations } from "../../../store/usual_durations.ts";
import { executionHeadline, headlineText } from "../../../wording/execution.ts";
import { shortExecutionName } from "../../../wording/execution_name.ts";
import { causeCursor } from "../../components/causes.ts";
import { shareForm } from "../../components/share_parts.tsx";
import { Mark } from "../../components/status.tsx";
import { type Page, page } from "../../site/page.ts";
import { executionPath } from "../../site/paths.ts";
import { actionsOf, cancelForm, completeForm, deleteForm, rerunForm } from "./actions.tsx";
import { ChangeList, readChanges } from "./changes.tsx";
import { comparisonPage } from "./comparison.tsx";
import { failureSections } from "./failures.tsx";
import { listPage } from "./list.tsx";
import { LiveLogEnd, readLiveLog } from "./live_log.tsx";
import { type ExecutionView, findFlakyTest, flakyWord, metaOf, toHtml } from "./meta.tsx";
import { ExecutionProgress } from "./progress.tsx";
import { readFailures } from "./read_failures.ts";
import { rerunsOf, waitingRerun } from "./rerun.tsx";
import { MAX_TASKS, taskTable } from "./task_table.tsx";

const executionPage = page(
  "/projects/:projectId/executions/:executionId",
  {
    access: "viewer",
    query: v.strictObject({ cause_after: causeCursor, tasks: v.optional(v.literal("all")) }),
  },
  async ({ sql, project, params, query, role, csrf, now, publicUrl }) => {
    const { id: projectId, defaultBranch } = project;
    const { executionId } = params;
    const [found, counts, failures] = await Promise.all([
      selectExecution(sql, projectId, executionId),
      countFailures(sql, projectId, executionId),
      readFailures(sql, projectId, executionId, query.cause_after),
    ]);
    const execution = found ?? absent();
    const isOver = hasEnded(execution.status);
    const [liveLog, changes, usual, names, reruns, canRepeat] = await Promise.all([
      readLiveLog(sql, projectId, execution),
      readChanges(sql, projectId, execution),
      selectUsualDurations(
        sql,
        projectId,
        executionId,
        execution.tasks.slice(0, MAX_TASKS).map(({ slug }) => slug),
      ),
      selectExecutionNames(sql, projectId, [execution.baselineId, execution.rerunOf]),
      isOver && execution.buildId === null ? selectReruns(sql, projectId, executionId) : [],
      isOver && role !== "viewer" && isAnswered(sql, projectId, execution),
    ]);
    const baseline = execution.baselineId === null ? undefined : names.get(execution.baselineId);
    const view: ExecutionView = {
      projectId,
      execution,
      counts,
      flakyTestId: await findFlakyTest(sql, projectId, execution),
      baseline: baseline ? { text: shortExecutionName(baseline), href: executionPath(projectId, baseline.id) } : null,
      defaultBranch,
    };
    const words = executionHeadline({ ...view, flaky: flakyWord(view) });
    const isLive = !hasEnded(execution.status);
    const base: Path = executionPath(projectId, executionId);
    const causeContext = { projectId, executionId, defaultBranch, isLive, now };
    const body = (
      <>
        <div data-region="state">
          <div class="page-head">
            <h1>
              <Mark status={execution.status} word={false} /> {toHtml(words)}
            </h1>
            {actionsOf({
              ...{ projectId, base, publicUrl, csrf, role, execution },
              share: shareForm({ csrf, role, project, params }),
              isRerunnable: canRepeat,
            })}
          </div>
          <div class="meta">
            {metaOf(projectId, view, names, now)}
            {rerunsOf(projectId, execution, reruns)}
          </div>
          <ExecutionProgress execution={execution} usual={usual} now={now} />
        </div>
        {waitingRerun({ projectId, publicUrl, execution })}
        <div data-region="failures">{failureSections(failures, view, causeContext, query)}</div>
        {isLive ? <LiveLogEnd projectId={projectId} executionId={executionId} log={liveLog} /> : null}
        <div data-region="tasks">
          {taskTable(projectId, execution, { usual, showsAll: query.tasks === "all", now })}
        </div>
        <ChangeList projectId={projectId} execution={execution} changes={changes} />
        {execution.tasks.length === 0 && !isLive ? (
          <div class="card empty">
            <p>No reports.</p>
          </div>
        ) : null}
        {execution.tasks.length === 0 && isLive ? (
          <div class="card empty" data-region="waiting">
            <p>Waiting for the first report.</p>
          </div>
        ) : null}
      </>
    );
    return {
      title: `${headlineText(words)} · ${shortExecutionName(execution)}`,
      body,
      section: "executions",
      ...(isLive ? { live: `${base}/live` } : {}),
    };
  },
);

export const executions: Page[] = [
  listPage,
  executionPage,
  comparisonPage,
  rerunForm,
  completeForm,
  cancelForm,
  deleteForm,
];
