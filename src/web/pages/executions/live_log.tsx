/** The end of the log of the running task. */

import type { Sql } from "../../../database/connect.ts";
import type { Html } from "../../../http/html.ts";
import { readLog } from "../../../operations/executions/logs.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import { LogText } from "../../components/log.tsx";
import { taskPath } from "../../site/paths.ts";

/** Size in bytes. */
const TAIL_BYTES = 4_096;

type LiveLog = { taskSlug: string; text: string; others: number };

/** Returns the log of the first running task, or undefined if no runner runs any. */
export async function readLiveLog(
  sql: Sql,
  projectId: string,
  { id, mode, tasks }: ExecutionRow,
): Promise<LiveLog | undefined> {
  if (mode !== "run") return undefined;
  const running = tasks.filter(({ status, runner }) => status === "running" && runner !== null);
  const [first] = running;
  if (!first) return undefined;
  const log = await readLog(sql, { projectId, executionId: id, taskSlug: first.slug }, {}, TAIL_BYTES);
  return { taskSlug: first.slug, text: log?.text ?? "", others: running.length - 1 };
}

type LiveLogProperties = { projectId: string; executionId: string; log: LiveLog | undefined };

export const LiveLogEnd = ({ projectId, executionId, log }: LiveLogProperties): Html => (
  <div data-region="log">
    {log ? (
      <>
        <h2>
          Log of {log.taskSlug}{" "}
          <small>
            <a href={`${taskPath(projectId, executionId, log.taskSlug)}/log`}>full log</a>
            {log.others > 0 ? `; logs of ${log.others} more running tasks are linked below` : ""}
          </small>
        </h2>
        {log.text === "" ? (
          <p class="soft">No output yet.</p>
        ) : (
          <LogText text={log.text} name={`Log of ${log.taskSlug}`} />
        )}
      </>
    ) : null}
  </div>
);
