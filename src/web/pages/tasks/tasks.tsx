/** A task of an execution: its results, reports and log. */

import * as v from "valibot";
import type { Path, Piece } from "../../../http/html.ts";
import { absent } from "../../../http/problem.ts";
import { stripAnsi } from "../../../rules/ansi.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { missingShardsOf, toShardList } from "../../../rules/shards.ts";
import { numberOfTestCase } from "../../../rules/test_case_id.ts";
import { text, uuid } from "../../../schema/fields.ts";
import { selectCaseResults } from "../../../store/case_results.ts";
import { selectTestRun, selectUploadsOfRun } from "../../../store/test_runs.ts";
import { taskHeadline } from "../../../wording/task.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { Pager } from "../../components/pager.tsx";
import { LogText } from "../../components/log.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { type Page, page } from "../../site/page.ts";
import { executionPath, taskPath } from "../../site/paths.ts";
import { caseItem, machineFact } from "./cases.tsx";
import { leaseTable, readLeases } from "./attempts.tsx";
import { findTask, readLog, type TaskAddress } from "../../../operations/executions/logs.ts";
import { MAX_UPLOADS, uploadTable } from "./reports.tsx";

const PAGE_SIZE = 50;

/** Size of the end of the log below the results, in bytes. */
const TAIL_BYTES = 8_192;

const STATUSES = ["failed", "flaky", "passed", "skipped"] as const;

const CURSOR = /^([01])\.(\d{1,9})$/;

const optionalText = (max: number) =>
  v.optional(
    v.union([
      v.pipe(
        v.literal(""),
        v.transform(() => undefined),
      ),
      text(max),
    ]),
  );

const taskQuery = v.strictObject({
  status: v.optional(
    v.union([
      v.pipe(
        v.literal(""),
        v.transform(() => undefined),
      ),
      v.picklist(STATUSES, "expected a status"),
    ]),
  ),
  q: optionalText(200),
  case: v.optional(uuid),
  cursor: v.optional(
    v.pipe(
      v.string(),
      v.check((value) => CURSOR.test(value), "expected a link of this page"),
    ),
  ),
});

export const tasks: Page[] = [
  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug",
    { access: "viewer", query: taskQuery },
    async ({ sql, project, params, query, now }) => {
      const key: TaskAddress = { ...params, projectId: project.id };
      const { projectId, executionId, taskSlug } = key;
      const [{ execution, task }, run] = await Promise.all([
        findTask(sql, key),
        selectTestRun(sql, projectId, executionId, taskSlug),
      ]);
      const { status, q, cursor } = query;
      const filter = {
        limit: query.case === undefined ? PAGE_SIZE : 1,
        q,
        status: status === "flaky" ? ("passed" as const) : status,
        flaky: status === "flaky" ? true : undefined,
        testCase: query.case === undefined ? undefined : numberOfTestCase(query.case),
        after: CURSOR.exec(cursor ?? "")?.slice(1),
      };
      const isOver = hasEnded(task.status);
      const [rows, uploads, log, leases] = await Promise.all([
        run ? selectCaseResults(sql, projectId, run.id, filter) : [],
        run ? selectUploadsOfRun(sql, projectId, run.id, MAX_UPLOADS) : [],
        task.runner === null ? undefined : readLog(sql, key, {}, TAIL_BYTES),
        task.runner === null ? [] : readLeases(sql, key),
      ]);
      const shown = rows
        .slice(0, filter.limit)
        .filter((row) => query.case === undefined || row.testCaseId === query.case);
      if (query.case !== undefined && shown.length === 0) absent();
      const path: Path = taskPath(projectId, executionId, taskSlug);
      const total = task.passed + task.failed + task.skipped;
      const last = shown.at(-1);
      const missing = missingShardsOf(task);
      const warnings = [
        ...(missing.length > 0 && !isOver ? [`Waiting for ${toShardList(missing)} of ${task.shards}`] : []),
        ...(task.reason === null ? [] : [task.reason]),
        ...(run?.outage
          ? ["Outage: almost all tests failed. The results do not count for the health of the tests"]
          : []),
        ...(run?.warnings ?? []),
      ];
      const facts: Piece[] = [
        <span>
          <a href={executionPath(projectId, executionId)}>
            <b>{executionName(execution)}</b>
          </a>
        </span>,
        execution.branch === null ? null : <code>{execution.branch}</code>,
        task.attempt > 1 ? <span>attempt {task.attempt}</span> : null,
        task.shards > 1 ? (
          <span>
            {task.shards - missing.length} of {task.shards} shards
          </span>
        ) : null,
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
      const cases = (
        <>
          {query.case !== undefined ? (
            <p class="filters">
              <a class="button" href={path}>
                All cases of {taskSlug}
              </a>
            </p>
          ) : total > 0 ? (
            <form class="filters" method="get" action={path}>
              <label>
                Test
                <input type="search" name="q" value={q} maxlength={200} />
              </label>

              <label>
                Status
                <select name="status">
                  <option value="">any</option>
                  {STATUSES.map((value) => (
                    <option value={value} selected={value === status}>
                      {value}
                    </option>
                  ))}
                </select>
              </label>

              <button>Filter</button>
              {q || status ? (
                <a class="button" href={path}>
                  Clear
                </a>
              ) : null}
            </form>
          ) : null}
          {shown.length > 0 ? (
            <div class="card">{shown.map((row) => caseItem(key, row, query.case !== undefined))}</div>
          ) : (
            <div class="card empty">
              <p>
                {total > 0
                  ? "No results match the filters."
                  : task.attempt > 0
                    ? "The report contains no individual results."
                    : "No reports yet."}
              </p>
            </div>
          )}
          <Pager
            path={path}
            query={{ q, status, cursor }}
            cursor={
              rows.length > filter.limit && last && query.case === undefined ? `${last.rank}.${last.number}` : undefined
            }
          />
        </>
      );
      const title = `${taskSlug}: ${taskHeadline(task)}`;
      const body = (
        <>
          <div data-region="state">
            <h1>
              <Mark status={task.status} word={false} /> <Breakable text={taskSlug} />: {taskHeadline(task)}
            </h1>
            <div class="meta">{facts}</div>
            {warnings.length > 0 ? (
              <div class={`message${task.status === "passed" ? "" : " bad"}`} role="note">
                <ul class="plain">
                  {warnings.slice(0, 20).map((warning) => (
                    <li>{stripAnsi(warning)}</li>
                  ))}
                </ul>
              </div>
            ) : null}
          </div>
          <h2>
            Cases <small>failed first</small>
          </h2>
          {isOver ? cases : <div data-region="cases">{cases}</div>}
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
          {query.case === undefined && cursor === undefined ? leaseTable(leases, path, now) : null}
          {query.case === undefined && cursor === undefined ? uploadTable(uploads, task.shards > 1, now) : null}
        </>
      );
      return {
        title,
        body,
        section: "executions",
        ...(isOver ? {} : { live: `${executionPath(projectId, executionId)}/live` }),
      };
    },
  ),
];
