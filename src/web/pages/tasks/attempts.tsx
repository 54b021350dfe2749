/** The attempts of runners at a task, if one of them did not finish it. */

import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import { stripAnsi } from "../../../rules/ansi.ts";
import type { LeaseStatus, RunLease } from "../../../schema/run_leases.ts";
import { selectLeasesOfRun } from "../../../store/lease_logs.ts";
import { selectRunId } from "../../../store/test_runs.ts";
import type { TaskAddress } from "../../../operations/executions/logs.ts";
import { AgoCell, CardTable } from "../../components/list.tsx";

const MAX_LEASES = 50;

/** Returns the leases that runners had of the task, oldest first. */
export async function readLeases(sql: Sql, { projectId, executionId, taskSlug }: TaskAddress): Promise<RunLease[]> {
  const runId = await selectRunId(sql, projectId, executionId, taskSlug);
  return runId === undefined
    ? []
    : (await selectLeasesOfRun(sql, projectId, runId, { limit: MAX_LEASES })).slice(0, MAX_LEASES);
}

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

/** Shows the attempts of runners if one of them did not finish the task. */
export function leaseTable(leases: readonly RunLease[], path: Path, now: Date): Html | null {
  if (!leases.some(({ status }) => ["lost", "infrastructure", "timed_out"].includes(status))) return null;
  return (
    <>
      <h2>
        Attempts <small>oldest first</small>
      </h2>
      <CardTable caption="Runners that took the task" columns={["Runner", "End", ["Began", "number"]]}>
        {leases.map(({ id, runner, shard, status, reason, startedAt }) => (
          <tr>
            <td class="long">
              <b>{runner}</b>
              {shard
                ? [
                    " ",
                    <span class="soft">
                      shard {shard.index}/{shard.total}
                    </span>,
                  ]
                : null}{" "}
              <a href={`${path}/log?lease=${id}`}>log</a>
            </td>
            <td class="long">
              {LEASE_WORDS[status]}
              {reason === null ? null : <span class="small soft">{stripAnsi(reason)}</span>}
            </td>
            <AgoCell at={startedAt} now={now} />
          </tr>
        ))}
      </CardTable>
    </>
  );
}
