/** A task of an execution: its cases, what was uploaded, what it printed. */

import * as v from "valibot";
import type { Html, Piece, Path } from "../../../http/html.ts";
import { absent } from "../../../http/problem.ts";
import { stripAnsi } from "../../../rules/ansi.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { machineText } from "../../../rules/ran_on.ts";
import { taskHeadline } from "../../../wording/task.ts";
import { missingShardsOf, toShardList } from "../../../rules/shards.ts";
import { numberOfTestCase } from "../../../rules/test_case_id.ts";
import { text, uuid } from "../../../schema/fields.ts";
import type { RanOn } from "../../../schema/test_runs.ts";
import { type CaseResultRow, selectCaseResults } from "../../../store/case_results.ts";
import { selectTestRun, selectUploadsOfRun, type UploadRow } from "../../../store/test_runs.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { executionPath, taskPath, testPath, toAddress } from "../../site/paths.ts";
import { executionName } from "../../components/execution_table.tsx";
import { Evidence, FULL, type Measure, firstPlainLine } from "../../components/failure.tsx";
import { type Page, page } from "../../site/page.ts";
import { type TaskPlace, findTask, leaseTable, logBox, readLeases, readLog } from "./logs.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { counted, toDuration } from "../../../wording/numbers.ts";
import { Mark, Tag } from "../../components/status.tsx";
import { Pager } from "../../components/pager.tsx";

const PAGE = 50;
const UPLOADS = 50;
/** Of the log below the cases, in bytes. */
const TAIL = 8_192;

/** Of one result, which has a page for itself. */
const WHOLE: Measure = { isWhole: true, message: 1_000_000, stackLines: 200, diffLines: 200, output: 1_000_000 };

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
      v.check((value) => CURSOR.test(value), "expected a place that this page has told"),
    ),
  ),
});

const letterOf = ({ status, flaky }: CaseResultRow) => (flaky ? "flaky" : status);

/** A result that failed opens in place; the others are a line. */
function caseItem(place: TaskPlace, row: CaseResultRow, isAlone: boolean): Html {
  const { projectId, executionId, taskSlug } = place;
  const said = firstPlainLine(row.message) || firstPlainLine(row.stack);
  const hasMore = said !== "" || (row.output ?? "") !== "";
  const status = letterOf(row);
  const took = row.durationMs === null ? "–" : toDuration(row.durationMs);
  const file =
    row.file === null ? null : (
      <span>
        <Breakable text={row.file} />
        {row.line === null ? null : `:${row.line}`}
      </span>
    );
  // Where a passing test ran is not worth a line.
  const host =
    row.host === null || letterOf(row) === "passed" ? null : (
      <span>
        on <Breakable text={row.host} />
      </span>
    );
  const whole = toAddress(taskPath(projectId, executionId, taskSlug), { case: row.testCaseId });
  const properties = Object.entries(row.properties ?? {});
  const links = (
    <p class="small">
      <a href={testPath(projectId, row.testCaseId)}>This test over time</a>
      {isAlone ? null : (
        <>
          {" "}
          · <a href={whole}>The whole of it</a>
        </>
      )}
    </p>
  );
  if (!hasMore && !isAlone)
    return (
      <div class="failure-line">
        <span>
          <Mark status={status} />
        </span>
        <span class="long">
          <a href={testPath(projectId, row.testCaseId)}>
            <Breakable text={shownCaseTitle(row)} />
          </a>
          {host === null ? null : (
            <>
              {" "}
              <span class="small soft">{host}</span>
            </>
          )}
        </span>
        <span class="small soft">{took}</span>
      </div>
    );
  return (
    <details class="failure" id={`r${row.number}`} open={isAlone}>
      <summary>
        <span>
          <Mark status={status} />
        </span>{" "}
        <span class="long">
          <Breakable text={shownCaseTitle(row)} />
          <span class="small soft dots">
            {said === "" ? null : <span>{said}</span>}
            {file}
            {host}
          </span>
        </span>{" "}
        <span>
          {row.attempt > 1 ? <Tag>{`attempt ${row.attempt}`}</Tag> : null}{" "}
          {row.kind === null || row.kind === "failure" ? null : <Tag kind="failed">{row.kind}</Tag>}
        </span>
        <span class="small soft">{took}</span>
      </summary>
      <div class="evidence">
        <Evidence said={row} measure={isAlone ? WHOLE : FULL} title="" />{" "}
        {isAlone && properties.length > 0 ? (
          <div>
            <h3>Properties</h3>
            <dl class="facts">
              {properties.map(([name, value]) => (
                <>
                  <dt>{name}</dt>
                  <dd class="long">{value}</dd>
                </>
              ))}
            </dl>
          </div>
        ) : null}
        <div>{links}</div>
      </div>
    </details>
  );
}

/** Where the latest uploads ran: a single machine is named, several are counted, and the table of uploads names each. */
function machineFact(ranOn: readonly RanOn[]): Html | null {
  const names = [...new Set(ranOn.map(machineText))].filter(Boolean);
  if (names.length === 0) return null;
  return <span>ran on {names.length === 1 ? <Breakable text={names[0]!} /> : counted(names.length, "machine")}</span>;
}

function uploadTable(uploads: readonly UploadRow[], isSharded: boolean, now: Date): Html | null {
  if (uploads.length === 0) return null;
  const hasMachines = uploads.some((upload) => machineText(upload) !== "");
  return (
    <>
      <h2>
        Uploads{" "}
        <small>{uploads.length < UPLOADS ? counted(uploads.length, "report") : `the last ${UPLOADS} reports`}</small>
      </h2>
      <div class="card scroll">
        <table>
          <caption class="visually-hidden">Reports of this task, the newest attempt first</caption>
          <thead>
            <tr>
              <th scope="col">Attempt</th>
              {isSharded ? <th scope="col">Shard</th> : null}
              <th scope="col">Format</th>
              {hasMachines ? <th scope="col">Ran on</th> : null}
              <th scope="col" class="number">
                Exit code
              </th>
              <th scope="col" class="number">
                When
              </th>
            </tr>
          </thead>
          <tbody>
            {uploads.map((upload) => (
              <tr>
                <td>
                  {upload.number}
                  {upload.partial ? (
                    <>
                      {" "}
                      <Tag>partial</Tag>
                    </>
                  ) : null}
                </td>
                {isSharded ? <td>{upload.shard === 0 ? "all" : upload.shard}</td> : null}
                <td class="soft">{upload.format}</td>
                {hasMachines ? (
                  <td class="soft">
                    <Breakable text={machineText(upload) || "–"} />
                  </td>
                ) : null}
                <td class="number soft">{upload.exitCode ?? "–"}</td>
                <td class="number soft">
                  <Ago at={upload.receivedAt} now={now} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export const tasks: Page[] = [
  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug",
    { access: "viewer", query: taskQuery },
    async ({ sql, project, params, query, now }) => {
      const place: TaskPlace = { ...params, projectId: project.id };
      const { projectId, executionId, taskSlug } = place;
      const [{ execution, task }, run] = await Promise.all([
        findTask(sql, place),
        selectTestRun(sql, projectId, executionId, taskSlug),
      ]);
      const { status, q, cursor } = query;
      const filter = {
        limit: query.case === undefined ? PAGE : 1,
        q,
        status: status === "flaky" ? ("passed" as const) : status,
        flaky: status === "flaky" ? true : undefined,
        testCase: query.case === undefined ? undefined : numberOfTestCase(query.case),
        after: CURSOR.exec(cursor ?? "")?.slice(1),
      };
      const isOver = hasEnded(task.status);
      const [rows, uploads, log, leases] = await Promise.all([
        run ? selectCaseResults(sql, projectId, run.id, filter) : [],
        run ? selectUploadsOfRun(sql, projectId, run.id, UPLOADS) : [],
        task.runner === null ? undefined : readLog(sql, place, {}, TAIL),
        task.runner === null ? [] : readLeases(sql, place),
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
        ...(missing.length > 0 && !isOver ? [`Waits for ${toShardList(missing)} of ${task.shards}`] : []),
        ...(task.reason === null ? [] : [task.reason]),
        ...(run?.outage
          ? ["Nearly everything failed: an outage, which blames nobody and is not remembered of the tests"]
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
              </label>{" "}
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
              </label>{" "}
              <button>Filter</button>
              {q || status ? (
                <a class="button" href={path}>
                  Clear
                </a>
              ) : null}
            </form>
          ) : null}{" "}
          {shown.length > 0 ? (
            <div class="card">{shown.map((row) => caseItem(place, row, query.case !== undefined))}</div>
          ) : (
            <div class="card empty">
              <p>
                {total > 0
                  ? "No case matches."
                  : task.attempt > 0
                    ? "The report tells no single cases."
                    : "Nothing has come yet."}
              </p>
            </div>
          )}{" "}
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
            Cases <small>failed ones first</small>
          </h2>
          {isOver ? cases : <div data-region="cases">{cases}</div>}
          <div data-region="log">
            {log && log.text !== "" ? (
              <>
                <h2>
                  End of the log{" "}
                  <small>
                    <a href={`${path}/log`}>more of it</a>
                  </small>
                </h2>
                {logBox(log.text, "End of the log")}
              </>
            ) : null}
          </div>
          {query.case === undefined && cursor === undefined ? leaseTable(leases, path, now) : null}{" "}
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
