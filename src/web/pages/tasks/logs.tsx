/** The log of a task: as a page, as plain text and as a file. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { plainText, Reply } from "../../../request/reply.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { text, uuid } from "../../../schema/fields.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { Empty } from "../../components/list.tsx";
import { LogLines, MAX_LOG_LINES, readLogLines } from "../../components/log.tsx";
import { Breakable } from "../../components/text.tsx";
import { type Page, type View, page, type ProjectContext } from "../../site/page.ts";
import { executionPath, taskPath } from "../../site/paths.ts";
import { type LogAddress, LogBar, LogFindings } from "./log_bar.tsx";
import {
  findTask,
  type LogEnd,
  numberOfFirstLine,
  readLog,
  type TaskAddress,
} from "../../../operations/executions/logs.ts";

/** Maximum number of bytes of a log on its page. */
const MAX_LOG_BYTES = 262_144;

const shard = v.optional(
  v.pipe(v.string(), v.regex(/^[1-9]\d{0,3}$/, "expected the number of a shard"), v.transform(Number)),
);
const lease = v.optional(uuid);
const noSearch = v.pipe(
  v.literal(""),
  v.transform(() => undefined),
);
const line = v.pipe(v.string(), v.regex(/^[1-9]\d{0,9}$/, "expected the number of a line"), v.transform(Number));
const logQuery = v.strictObject({
  shard,
  lease,
  search: v.optional(v.union([noSearch, text(200)])),
  match: v.optional(line),
});
const textQuery = v.strictObject({ shard, lease, download: v.optional(v.literal("yes", 'expected "yes"')) });

/** Links to the log of each shard; `shown` is the shard of the log on this page. */
const ShardTabs = ({ path, shards, shown }: { path: Path; shards: number; shown: number }): Html | null =>
  shards < 2 ? null : (
    <nav class="tabs top" aria-label="Shards">
      {Array.from({ length: shards }, (_, index) => index + 1).map((shard) => (
        <a href={`${path}?shard=${shard}`} aria-current={shard === shown ? "page" : undefined}>
          Shard {shard}
        </a>
      ))}
    </nav>
  );

/** Explains which part of the log is shown, and how its lines are numbered. */
function partOf(log: LogEnd, lines: readonly unknown[], firstLine: number | undefined): Html | null {
  const isLong = lines.length === MAX_LOG_LINES;
  if (log.offset === 0 && !isLong) return null;
  return (
    <p class="hint">
      {isLong ? `Last ${MAX_LOG_LINES.toLocaleString("en")} lines. ` : "Last 256 KiB. "}
      {firstLine === undefined ? "Line numbers count from the first line shown. " : ""}
      Search covers this part. Raw and Download have the last 1 MiB.
    </p>
  );
}

/** Returns the file name for a downloaded log, in characters that every file system accepts. */
function fileNameOf(taskSlug: string, shard: number | undefined): string {
  const name = taskSlug.replaceAll(/[^\w.-]+/g, "-").replaceAll(/^[-.]+|-+$/g, "");
  return `${name === "" ? "task" : name}${shard ? `-shard-${shard}` : ""}.log`;
}

type Context = ProjectContext & { params: Omit<TaskAddress, "projectId">; query: v.InferOutput<typeof logQuery> };

async function loadLog({ sql, project, params, query }: Context) {
  const key: TaskAddress = { ...params, projectId: project.id };
  const { execution, task } = await findTask(sql, key);
  const log = await readLog(sql, key, query, MAX_LOG_BYTES);
  const firstLine = log && (await numberOfFirstLine(sql, key.projectId, log));
  return { key, execution, task, log, firstLine };
}

type LogData = Awaited<ReturnType<typeof loadLog>>;

type ContentProperties = { data: LogData & { log: LogEnd }; address: LogAddress };

/** The search of the log, and its lines. */
function LogContent({ data: { key, task, log, firstLine }, address }: ContentProperties): Html {
  const lines = log.text === "" ? [] : readLogLines(log.text, firstLine ?? 1, address.search);
  return (
    <>
      <LogBar
        address={address}
        findings={<LogFindings address={address} lines={lines} />}
        isLive={!hasEnded(task.status) || !log.lease.isOver}
      />
      <div data-region="log">
        {partOf(log, lines, firstLine)}
        {lines.length > 0 ? <LogLines lines={lines} name={`Log of ${key.taskSlug}`} /> : <Empty>No output yet.</Empty>}
      </div>
    </>
  );
}

function logView({ query }: Context, data: LogData): View {
  const { key, execution, task, log } = data;
  const { projectId, executionId, taskSlug } = key;
  const path: Path = taskPath(projectId, executionId, taskSlug);
  const logPath: Path = `${path}/log`;
  const shown = query.shard ?? (log?.lease.shard || 1);
  const address: LogAddress = { ...query, path: logPath, shard: query.shard?.toString() };
  const body = (
    <>
      <h1>
        Log of <Breakable text={taskSlug} />
        {task.shards > 1 ? `, shard ${shown}` : null}
        {query.lease === undefined ? null : ", an earlier attempt"}
      </h1>
      <div class="meta">
        <a href={executionPath(projectId, executionId)}>
          <b>{executionName(execution)}</b>
        </a>
        <a href={path}>cases</a>
        {task.runner === null ? null : <span>run by {task.runner}</span>}
      </div>
      <ShardTabs path={logPath} shards={task.shards} shown={shown} />
      {log ? (
        <LogContent data={{ ...data, log }} address={address} />
      ) : (
        <div data-region="log">
          <Empty>No log. Logs are stored for tasks that Assay's runners run.</Empty>
        </div>
      )}
    </>
  );
  const isLive = execution.mode === "run" && (!hasEnded(task.status) || log?.lease.isOver === false);
  const live: Path = `${executionPath(projectId, executionId)}/live`;
  return { title: `Log of ${taskSlug}`, body, section: "executions", ...(isLive ? { live } : {}) };
}

export const taskLogs: Page[] = [
  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug/log",
    { access: "viewer", query: logQuery },
    async (context) => logView(context, await loadLog(context)),
  ),

  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug/log/text",
    { access: "viewer", query: textQuery },
    async ({ sql, project, params, query }) => {
      const key: TaskAddress = { ...params, projectId: project.id };
      await findTask(sql, key);
      const log = await readLog(sql, key, query, Number.MAX_SAFE_INTEGER);
      const { status, body, type } = plainText(200, log?.text ?? "");
      if (query.download === undefined) return new Reply(status, body, type);
      const name = fileNameOf(key.taskSlug, query.shard ?? log?.lease.shard);
      return new Reply(status, body, type, { "Content-Disposition": `attachment; filename="${name}"` });
    },
  ),
];
