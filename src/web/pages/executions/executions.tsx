/** The pages and forms of executions. */

import * as v from "valibot";
import type { Html } from "../../../http/html.ts";
import { absent } from "../../../http/problem.ts";
import { searchAbsentTests } from "../../../operations/executions/absent_tests.ts";
import { isAnswered } from "../../../operations/executions/reruns.ts";
import { hasEnded, progressOf, sumTasks } from "../../../rules/execution.ts";
import type { AbsentTests } from "../../../schema/absent_tests.ts";
import {
  selectExecution,
  selectExecutionNames,
  selectReruns,
  type TimedExecutionRow,
} from "../../../store/execution_list.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import { countFailures } from "../../../store/failures.ts";
import { selectShards } from "../../../store/shards.ts";
import { selectUsualDurations } from "../../../store/usual_durations.ts";
import { absentKinds } from "../../../wording/absent_tests.ts";
import { shownCaseTitle, shownTaskTitle } from "../../../wording/case_title.ts";
import { type HeadlineWord, executionHeadline, headlineText } from "../../../wording/execution.ts";
import { shortExecutionName } from "../../../wording/execution_name.ts";
import { toCount } from "../../../wording/numbers.ts";
import { failingHostOf, failingHostWords } from "../../../wording/machines.ts";
import { newTestWords } from "../../../wording/verification.ts";
import { causeCursor } from "../../components/causes.ts";
import { Empty, MarkCell, CardTable } from "../../components/list.tsx";
import { shareForm } from "../../components/share_parts.tsx";
import { Mark } from "../../components/status.tsx";
import { toSpan, Breakable } from "../../components/text.tsx";
import { type Page, type View, page, type ProjectContext } from "../../site/page.ts";
import { executionPath, testPath } from "../../site/paths.ts";
import { actionsOf, cancelForm, completeForm, deleteForm, rerunForm } from "./actions.tsx";
import { ChangeList, readChanges } from "./changes.tsx";
import { comparisonPage } from "./comparison.tsx";
import { failureSections } from "./failures.tsx";
import { readGates, TaskGates } from "./gates.tsx";
import { listPage } from "./list.tsx";
import { LiveLogEnd, readLiveLog } from "./live_log.tsx";
import { type ExecutionView, findFlakyTest, flakyWord, metaOf, toHtml } from "./meta.tsx";
import { ProbeNotice } from "./probe.tsx";
import { readBackground, readFailures } from "./read_failures.ts";
import { rerunsOf, waitingRerun } from "./rerun.tsx";
import { MAX_TASKS, taskTable } from "./task_table.tsx";

function AbsentTestsNotice({ projectId, absent }: { projectId: string; absent: AbsentTests }): Html | null {
  const kinds = absentKinds(absent);
  if (kinds.length === 0) return null;
  return (
    <div class="message" role="note">
      {kinds.map(({ sentence, tests: { count, testCases } }) => (
        <details class="bare">
          <summary>{sentence}</summary>
          <ul class="plain small">
            {testCases.map((test) => (
              <li>
                <a href={testPath(projectId, test.testCaseId)}>
                  <Breakable text={shownTaskTitle(test)} />
                </a>
              </li>
            ))}
            {count > testCases.length ? <li class="soft">{toCount(count - testCases.length)} more</li> : null}
          </ul>
        </details>
      ))}
    </div>
  );
}

const MARK_OF: Record<string, string> = { inconclusive: "incomplete" };

/** Shows nothing if no new test is run again. */
function NewTests({ projectId, execution }: { projectId: string; execution: TimedExecutionRow }): Html | null {
  const { newTests } = execution;
  if (newTests.length === 0) return null;
  // Verifications that need attention come first.
  const sorted = newTests.toSorted((a, b) => Number(b.failed > 0) - Number(a.failed > 0));
  return (
    <>
      <h2>
        New tests <small>run again after the execution; the results count nowhere else</small>
      </h2>
      <CardTable caption="New tests and their further runs">
        {sorted.map((test) => (
          <tr>
            <MarkCell status={MARK_OF[test.status] ?? test.status} />
            <td class="long">
              <a href={`${testPath(projectId, test.testCase.testCaseId)}#verifications`}>
                {shownCaseTitle(test.testCase)}
              </a>
            </td>
            <td class="long">{newTestWords(test)}</td>
          </tr>
        ))}
      </CardTable>
    </>
  );
}

type ProgressProperties = { execution: ExecutionRow; usual: ReadonlyMap<string, number>; now: Date };

/** Shows nothing for an execution that has ended or whose tasks are not known yet. */
function ExecutionProgress({ execution: { status, tasks }, usual, now }: ProgressProperties): Html | null {
  const progress = progressOf(status, tasks, usual, now.getTime());
  if (progress === null) return null;
  const { share, remainingMs } = progress;
  const percent = Math.floor(Math.min(0.99, share) * 100);
  return (
    <div class="progress">
      <progress max="100" value={percent} aria-label="Progress of the execution">
        {percent} %
      </progress>
      <span class="small soft">
        {remainingMs === null
          ? `${percent} % of tasks finished`
          : remainingMs === 0
            ? "taking longer than usual"
            : `about ${remainingMs < 60_000 ? `${Math.ceil(remainingMs / 1_000)} seconds` : toSpan(remainingMs)} left, estimated from recent runs of its tasks`}
      </span>
    </div>
  );
}

const executionQuery = v.strictObject({ cause_after: causeCursor, tasks: v.optional(v.literal("all")) });

type Context = ProjectContext & { params: { executionId: string }; query: v.InferOutput<typeof executionQuery> };

async function loadExecution({ sql, project, params: { executionId }, query, role }: Context) {
  const projectId = project.id;
  const selected = selectExecution(sql, projectId, executionId).then((found) => found ?? absent());
  const [execution, absentTests, counts, failures, shards] = await Promise.all([
    selected,
    selected.then((execution) => searchAbsentTests(sql, projectId, execution)),
    countFailures(sql, projectId, executionId),
    readFailures(sql, projectId, executionId, query.cause_after),
    selectShards(sql, projectId, executionId),
  ]);
  const isOver = hasEnded(execution.status);
  const shownTasks = execution.tasks.slice(0, MAX_TASKS).map(({ slug }) => slug);
  const [liveLog, changes, usual, names, reruns, isRerunnable, flakyTestId, gates, background] = await Promise.all([
    readLiveLog(sql, projectId, execution),
    readChanges(sql, projectId, execution),
    selectUsualDurations(sql, projectId, executionId, shownTasks),
    selectExecutionNames(sql, projectId, [execution.baselineId, execution.rerunOf]),
    isOver && execution.buildId === null ? selectReruns(sql, projectId, executionId) : [],
    isOver && !execution.probe && role !== "viewer" && isAnswered(sql, projectId, execution),
    findFlakyTest(sql, projectId, execution),
    readGates(sql, projectId, execution),
    readBackground(sql, projectId, execution, failures),
  ]);
  return {
    execution,
    counts,
    failures,
    liveLog,
    changes,
    usual,
    names,
    reruns,
    isRerunnable,
    flakyTestId,
    gates,
    absentTests,
    shards,
    background,
    // It explains failures outside of the code, and those that another execution of the commit does not have.
    failingHost:
      isOver && ((counts.incident ?? 0) > 0 || background.passes.size > 0)
        ? failingHostOf(shards, sumTasks(execution.tasks, "failed"))
        : undefined,
  };
}

type ExecutionData = Awaited<ReturnType<typeof loadExecution>>;

function toView({ project }: Context, { execution, counts, flakyTestId, names }: ExecutionData): ExecutionView {
  const baseline = execution.baselineId === null ? undefined : names.get(execution.baselineId);
  return {
    projectId: project.id,
    execution,
    counts,
    flakyTestId,
    baseline: baseline ? { text: shortExecutionName(baseline), href: executionPath(project.id, baseline.id) } : null,
    defaultBranch: project.defaultBranch,
  };
}

type StateProperties = {
  context: Context;
  data: ExecutionData;
  view: ExecutionView;
  headline: readonly HeadlineWord[];
};

function ExecutionState({ context, data, view, headline }: StateProperties): Html {
  const { project, params, role, csrf, publicUrl, now } = context;
  const { execution, names, reruns, usual, isRerunnable, failingHost } = data;
  const { id: projectId } = project;
  return (
    <div data-region="state">
      <div class="page-head">
        <h1>
          <Mark status={execution.status} word={false} /> {toHtml(headline)}
        </h1>
        {actionsOf({
          ...{ projectId, base: executionPath(projectId, execution.id), publicUrl, csrf, role, execution },
          share: shareForm({ csrf, role, project, params }),
          isRerunnable,
        })}
      </div>
      <div class="meta">
        {metaOf(projectId, view, names, now)}
        {rerunsOf(projectId, execution, reruns)}
      </div>
      {failingHost === undefined ? null : (
        <p class="after">{failingHostWords(failingHost, sumTasks(execution.tasks, "failed"))}.</p>
      )}
      <ExecutionProgress execution={execution} usual={usual} now={now} />
      <TaskGates projectId={projectId} executionId={execution.id} tasks={data.gates} />
      <AbsentTestsNotice projectId={projectId} absent={data.absentTests} />
    </div>
  );
}

const NoTasks = ({ isLive }: { isLive: boolean }): Html =>
  isLive ? (
    <div class="card empty" data-region="waiting">
      <p>Waiting for the first report.</p>
    </div>
  ) : (
    <Empty>No reports.</Empty>
  );

function executionView(context: Context, data: ExecutionData): View {
  const { project, params, query, publicUrl, now } = context;
  const { execution, failures, liveLog, changes, usual } = data;
  const { id: projectId, defaultBranch } = project;
  const { executionId } = params;
  const view = toView(context, data);
  const headline = executionHeadline({ ...view, flaky: flakyWord(view) });
  const isLive = !hasEnded(execution.status);
  const failingHost = data.failingHost?.host;
  const causeContext = { projectId, executionId, defaultBranch, isLive, failingHost, now };
  const body = (
    <>
      <ProbeNotice projectId={projectId} probe={execution.probeOf} />
      <ExecutionState context={context} data={data} view={view} headline={headline} />
      {waitingRerun({ projectId, publicUrl, execution })}
      <div data-region="failures">{failureSections(failures, view, data.background, causeContext, query)}</div>
      {isLive ? <LiveLogEnd projectId={projectId} executionId={executionId} log={liveLog} /> : null}
      <ChangeList projectId={projectId} execution={execution} changes={changes} />
      <div data-region="tasks">
        {taskTable(projectId, execution, { usual, shards: data.shards, showsAll: query.tasks === "all", now })}
      </div>
      <NewTests projectId={projectId} execution={execution} />
      {execution.tasks.length === 0 ? <NoTasks isLive={isLive} /> : null}
    </>
  );
  return {
    title: `${headlineText(headline)} · ${shortExecutionName(execution)}`,
    body,
    section: "executions",
    ...(isLive ? { live: `${executionPath(projectId, executionId)}/live` } : {}),
  };
}

const executionPage = page(
  "/projects/:projectId/executions/:executionId",
  { access: "viewer", query: executionQuery },
  async (context) => executionView(context, await loadExecution(context)),
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
