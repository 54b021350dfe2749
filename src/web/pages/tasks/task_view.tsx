/** The parts of the page of a task: its headline, its results and the end of its log. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import type { TaskAddress } from "../../../operations/executions/logs.ts";
import { stripAnsi } from "../../../rules/ansi.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { missingShardsOf, toShardList } from "../../../rules/shards.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { reasonOfTask } from "../../../wording/missing_runner.ts";
import { counted } from "../../../wording/numbers.ts";
import { slowerWords } from "../../../wording/slower.ts";
import { taskHeadline } from "../../../wording/task.ts";
import { Attachments } from "../../components/attachments.tsx";
import { FilterBar, FilterSelect, FilterText } from "../../components/filters.tsx";
import { Gates } from "../../components/gates.tsx";
import { Empty, Pager } from "../../components/list.tsx";
import { LogText } from "../../components/log.tsx";
import { SlowerTests } from "../../components/slower_tests.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { type View, type Page, page } from "../../site/page.ts";
import { executionPath, taskPath } from "../../site/paths.ts";
import { leaseTable } from "./attempts.tsx";
import { caseItem, machineFact } from "./cases.tsx";
import { STATUSES, type TaskData, type TaskQuery, loadTask, taskQuery } from "./load_task.ts";
import { uploadTable } from "./reports.tsx";

const MAX_WARNINGS = 20;

type TaskParts = { address: TaskAddress; path: Path; query: TaskQuery; data: TaskData; now: Date };

function warningsOf({ task, run }: TaskData): string[] {
  const missing = missingShardsOf(task);
  const reason = reasonOfTask(task);
  return [
    ...(missing.length > 0 && !hasEnded(task.status) ? [`Waiting for ${toShardList(missing)} of ${task.shards}`] : []),
    ...(reason === null ? [] : [reason]),
    ...(run?.outage ? ["Outage: almost all tests failed. The results do not count for the health of the tests"] : []),
    ...(run?.warnings ?? []),
  ];
}

function factsOf({ address, path, data, now }: TaskParts): Piece[] {
  const { execution, task, run } = data;
  return [
    <span>
      <a href={executionPath(address.projectId, address.executionId)}>
        <b>{executionName(execution)}</b>
      </a>
    </span>,
    execution.branch === null ? null : <code>{execution.branch}</code>,
    task.attempt > 1 ? <span>attempt {task.attempt}</span> : null,
    task.shards > 1 ? (
      <span>
        {task.shards - missingShardsOf(task).length} of {task.shards} shards
      </span>
    ) : null,
    run?.slower ? <span>slower than usual: {slowerWords(run.durationMs, run.slower)}</span> : null,
    run?.format ? <span>{run.format}</span> : null,
    run && run.exitCode !== null ? <span>exit code {run.exitCode}</span> : null,
    task.runner === null ? null : <span>run by {task.runner}</span>,
    run ? machineFact(run.ranOn) : null,
    task.completedAt === null ? null : (
      <span>
        ended <Ago at={task.completedAt} now={now} />
      </span>
    ),
    task.runner === null ? null : <a href={`${path}/log`}>log</a>,
  ];
}

function TaskState(parts: TaskParts): Html {
  const { address, data } = parts;
  const { task } = data;
  const warnings = warningsOf(data).slice(0, MAX_WARNINGS);
  return (
    <div data-region="state">
      <h1>
        <Mark status={task.status} word={false} /> <Breakable text={address.taskSlug} />: {taskHeadline(task)}
      </h1>
      <div class="meta">{factsOf(parts)}</div>
      {warnings.length > 0 ? (
        <div class={`message${task.status === "passed" ? "" : " bad"}`} role="note">
          <ul class="plain">
            {warnings.map((warning) => (
              <li>{stripAnsi(warning)}</li>
            ))}
          </ul>
        </div>
      ) : null}
      <Gates projectId={address.projectId} gates={data.gates} />
    </div>
  );
}

const SlowerThanUsual = ({ address: { projectId }, data: { slowerTests } }: TaskParts): Html | null =>
  slowerTests.length === 0 ? null : (
    <>
      <h2>
        Slower than usual <small>{counted(slowerTests[0]!.total, "test")}</small>
      </h2>
      <div class="card padded">
        <SlowerTests projectId={projectId} tests={slowerTests} ofTask />
      </div>
    </>
  );

const ResultFilters = ({ path, query: { q, status } }: TaskParts): Html => (
  <FilterBar path={path} isFiltered={q !== undefined || status !== undefined}>
    {[
      <FilterText label="Test" name="q" value={q} type="search" />,
      <FilterSelect
        label="Status"
        name="status"
        options={[["", "any"], ...STATUSES.map((one) => [one, one] as const)]}
        value={status}
      />,
    ]}
  </FilterBar>
);

function Results(parts: TaskParts): Html {
  const { address, path, query, data } = parts;
  const { task, results, next, filesOf, slowerOf } = data;
  const isSingle = query.case !== undefined;
  const hasResults = task.passed + task.failed + task.skipped > 0;
  const none = hasResults
    ? "No results match the filters."
    : task.attempt > 0
      ? "The report contains no individual results."
      : "No reports yet.";
  return (
    <>
      {isSingle ? (
        <p class="filters">
          <a class="button" href={path}>
            All cases of {address.taskSlug}
          </a>
        </p>
      ) : hasResults ? (
        <ResultFilters {...parts} />
      ) : null}
      {results.length > 0 ? (
        <div class="card">
          {results.map((row) =>
            caseItem(address, row, { files: filesOf(row), slower: slowerOf(row), isAlone: isSingle }),
          )}
        </div>
      ) : (
        <Empty>{none}</Empty>
      )}
      <Pager path={path} query={{ q: query.q, status: query.status, cursor: query.cursor }} cursor={next} />
    </>
  );
}

const LogTail = ({ path, data: { log } }: TaskParts): Html => (
  <div data-region="log">
    {log && log.text !== "" ? (
      <>
        <h2>
          End of the log{" "}
          <small>
            <a href={`${path}/log`}>full log</a>
          </small>
        </h2>
        <LogText text={log.text} name="End of the log" />
      </>
    ) : null}
  </div>
);

const RunFiles = ({ address: { projectId }, data: { files } }: TaskParts): Html | null =>
  files.length === 0 ? null : (
    <>
      <h2>
        Attachments <small>of the task as a whole</small>
      </h2>
      <div class="card padded">
        <Attachments projectId={projectId} files={files} hasTitle={false} />
      </div>
    </>
  );

function taskView(address: TaskAddress, query: TaskQuery, data: TaskData, now: Date): View {
  const { projectId, executionId, taskSlug } = address;
  const { task, leases, uploads } = data;
  const path: Path = taskPath(projectId, executionId, taskSlug);
  const parts: TaskParts = { address, path, query, data, now };
  const isOver = hasEnded(task.status);
  const isFirstPage = query.case === undefined && query.cursor === undefined;
  const body = (
    <>
      <TaskState {...parts} />
      <SlowerThanUsual {...parts} />
      <h2>
        Cases <small>failed first</small>
      </h2>
      {isOver ? (
        <Results {...parts} />
      ) : (
        <div data-region="cases">
          <Results {...parts} />
        </div>
      )}
      <LogTail {...parts} />
      <RunFiles {...parts} />
      {isFirstPage ? leaseTable(leases, path, now) : null}
      {isFirstPage ? uploadTable(uploads, task.shards > 1, now) : null}
    </>
  );
  return {
    title: `${taskSlug}: ${taskHeadline(task)}`,
    body,
    section: "executions",
    ...(isOver ? {} : { live: `${executionPath(projectId, executionId)}/live` }),
  };
}

export const tasks: Page[] = [
  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug",
    { access: "viewer", query: taskQuery },
    async ({ sql, project, params, query, now }) => {
      const address = { ...params, projectId: project.id };
      return taskView(address, query, await loadTask(sql, address, query), now);
    },
  ),
];
