/** What a task has printed, and which runners have had it. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { absent } from "../../../http/problem.ts";
import { plainText } from "../../../request/reply.ts";
import { stripAnsi } from "../../../rules/ansi.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { joinLog } from "../../../rules/log_parts.ts";
import { uuid } from "../../../schema/fields.ts";
import type { LeaseStatus, RunLease } from "../../../schema/leases.ts";
import type { Sql } from "../../../database/connect.ts";
import { type ExecutionRow, type TaskRow } from "../../../store/executions.ts";
import { selectLeasesOfRun, selectLogLease, selectLogTail } from "../../../store/lease_logs.ts";
import { selectRunId } from "../../../store/test_runs.ts";
import { selectExecution } from "../../../store/execution_list.ts";
import { executionPath, taskPath, toAddress } from "../../site/paths.ts";
import { executionName } from "../../components/execution_table.tsx";
import { Terminal } from "../../components/terminal.tsx";
import { type Page, page } from "../../site/page.ts";
import { Ago, Breakable } from "../../components/text.tsx";

/** Of the log on its own page, in bytes. */
const LOG = 262_144;
const LEASES = 50;

export type TaskPlace = { projectId: string; executionId: string; taskSlug: string };

export async function findTask(
  sql: Sql,
  { projectId, executionId, taskSlug }: TaskPlace,
): Promise<{ execution: ExecutionRow; task: TaskRow }> {
  const execution = (await selectExecution(sql, projectId, executionId)) ?? absent();
  const task = execution.tasks.find(({ slug }) => slug === taskSlug) ?? absent();
  return { execution, task };
}

const shard = v.optional(
  v.pipe(v.string(), v.regex(/^[1-9]\d{0,3}$/, "expected the number of a shard"), v.transform(Number)),
);
const logQuery = v.strictObject({ shard, lease: v.optional(uuid) });

/** Whoever may follow a log of a task, and what it is called there. */
type Log = { text: string; isCut: boolean; isOver: boolean };

/** Without either it is the newest. */
type Which = { shard?: number | undefined; lease?: string | undefined };

/** The end of what a task, or a shard of it, has printed; undefined: nobody has run it for us. */
export async function readLog(sql: Sql, place: TaskPlace, which: Which, bytes: number): Promise<Log | undefined> {
  const { projectId, executionId, taskSlug } = place;
  const runId = await selectRunId(sql, projectId, executionId, taskSlug);
  const lease =
    runId === undefined
      ? undefined
      : await selectLogLease(sql, projectId, runId, { shard: which.shard, leaseId: which.lease });
  if (!lease && which.lease !== undefined) absent();
  if (!lease) return undefined;
  const from = Math.max(0, lease.logBytes - bytes);
  const { text, offset } = joinLog(await selectLogTail(sql, projectId, lease, bytes), from);
  // It may begin within a line, or within a character.
  const whole = offset === 0 ? text : text.slice(text.indexOf("\n") + 1);
  return { text: whole, isCut: offset > 0, isOver: lease.isOver };
}

/** Who has had the task: of many the first. */
export async function readLeases(sql: Sql, { projectId, executionId, taskSlug }: TaskPlace): Promise<RunLease[]> {
  const runId = await selectRunId(sql, projectId, executionId, taskSlug);
  return runId === undefined
    ? []
    : (await selectLeasesOfRun(sql, projectId, runId, { limit: LEASES })).slice(0, LEASES);
}

/** The changes of the status of a bug, newest first. */
const LEASE_WORDS: Record<LeaseStatus, string> = {
  queued: "waiting",
  offered: "assigned",
  running: "runs",
  reported: "reported",
  failed: "failed",
  cancelled: "cancelled",
  lost: "lost",
  returned: "returned",
  infrastructure: "could not run it",
  timed_out: "timed out",
};

/** Who had the task before, where one of them did not end it. */
export function leaseTable(leases: readonly RunLease[], path: Path, now: Date): Html | null {
  if (!leases.some(({ status }) => ["lost", "infrastructure", "timed_out"].includes(status))) return null;
  return (
    <>
      <h2>
        Attempts <small>oldest first</small>
      </h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">Runners that took the task</caption>
          <thead>
            <tr>
              <th scope="col">Runner</th>
              <th scope="col">End</th>
              <th scope="col" class="number">
                Began
              </th>
            </tr>
          </thead>
          <tbody>
            {leases.map(({ id, runner, shard, status, reason, startedAt }) => (
              <tr>
                <td class="long">
                  <b>{runner}</b>
                  {shard ? (
                    <>
                      {" "}
                      <span class="soft">
                        shard {shard.index}/{shard.total}
                      </span>
                    </>
                  ) : null}{" "}
                  <a href={`${path}/log?lease=${id}`}>log</a>
                </td>
                <td class="long">
                  {LEASE_WORDS[status]}
                  {reason === null ? null : <span class="small soft">{stripAnsi(reason)}</span>}
                </td>
                <td class="number soft">{startedAt === null ? "never" : <Ago at={startedAt} now={now} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export const logBox = (text: string, name: string): Html => (
  <div class="log" data-tail tabindex={0} role="region" aria-label={name}>
    <pre>
      <Terminal text={text} />
    </pre>
  </div>
);

export const taskLogs: Page[] = [
  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug/log",
    { access: "viewer", query: logQuery },
    async ({ sql, project, params, query }) => {
      const place: TaskPlace = { ...params, projectId: project.id };
      const { execution, task } = await findTask(sql, place);
      const log = await readLog(sql, place, query, LOG);
      const path: Path = taskPath(project.id, place.executionId, place.taskSlug);
      const shards = Array.from({ length: task.shards > 1 ? task.shards : 0 }, (_, index) => index + 1);
      const of = query.shard === undefined ? "" : `, shard ${query.shard}`;
      const isLive = !hasEnded(task.status) || log?.isOver === false;
      const text = toAddress(`${path}/log/text`, { shard: query.shard?.toString(), lease: query.lease });
      const body = (
        <>
          <h1>
            Log of <Breakable text={place.taskSlug} />
            {of}
            {query.lease === undefined ? null : ", an earlier attempt"}
          </h1>
          <div class="meta">
            <a href={executionPath(project.id, place.executionId)}>
              <b>{executionName(execution)}</b>
            </a>
            <a href={path}>cases</a>
            {log ? <a href={text}>as text</a> : null}
            {task.runner === null ? null : <span>run by {task.runner}</span>}
          </div>
          {shards.length > 0 ? (
            <nav class="tabs top" aria-label="Shards">
              {shards.map((shard) => (
                <a href={`${path}/log?shard=${shard}`} aria-current={shard === query.shard ? "page" : undefined}>
                  Shard {shard}
                </a>
              ))}
            </nav>
          ) : null}
          <div data-region="log">
            {log?.isCut ? <p class="hint">Last 256 KiB. The text version has the last 1 MiB.</p> : null}
            {log && log.text !== "" ? (
              logBox(log.text, `Log of ${place.taskSlug}`)
            ) : (
              <div class="card empty">
                <p>{log ? "No output yet." : "No log. Logs are stored for tasks that Assay's runners run."}</p>
              </div>
            )}
          </div>
        </>
      );
      return {
        title: `Log of ${place.taskSlug}`,
        body,
        section: "executions",
        ...(isLive && execution.mode === "run" ? { live: `${executionPath(project.id, place.executionId)}/live` } : {}),
      };
    },
  ),

  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug/log/text",
    { access: "viewer", query: logQuery },
    async ({ sql, project, params, query }) => {
      const place: TaskPlace = { ...params, projectId: project.id };
      await findTask(sql, place);
      const log = await readLog(sql, place, query, Number.MAX_SAFE_INTEGER);
      return plainText(200, log?.text ?? "");
    },
  ),
];
