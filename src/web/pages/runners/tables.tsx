/** The runners of a team and the tasks that wait for them. */

import type { Html } from "../../../http/html.ts";
import type { Role } from "../../../schema/accounts.ts";
import type { TeamRunner, Waiting } from "../../../store/runners.ts";
import { counted } from "../../../wording/numbers.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { CardTable, MarkCell } from "../../components/list.tsx";
import { ActionForm, Hidden } from "../../components/form.tsx";
import { Mark, Tag } from "../../components/status.tsx";
import { Ago, toExact, toSpan } from "../../components/text.tsx";
import type { PageContext } from "../../site/page.ts";
import { executionPath } from "../../site/paths.ts";

export const MAX_QUEUE = 50;

const labelTags = (labels: readonly string[]) =>
  labels.length === 0 ? (
    <span class="soft">no labels</span>
  ) : (
    labels.map((label) => (
      <>
        <Tag>{label}</Tag>{" "}
      </>
    ))
  );

const tasksOf = ({ taskSlugs, tasks }: Pick<Waiting, "taskSlugs" | "tasks">): string =>
  `${taskSlugs.join(", ")}${tasks > taskSlugs.length ? ` and ${tasks - taskSlugs.length} more` : ""}`;

/** Returns the runner that will take the waiting tasks of a project. */
function coming({ waiting, unserved, labels }: Waiting): Html {
  if (unserved === 0) return <>{labels.length > 0 ? "a runner with these labels" : "the next free runner"}</>;
  const assignee = unserved === waiting ? "nobody" : `no runner for ${unserved} of them`;
  return (
    <span class="failed">
      {assignee}: no online runner of the project {labels.length > 0 ? "has these labels" : "takes these tasks"}
    </span>
  );
}

export function queueTable(queue: readonly Waiting[], now: Date): Html {
  return (
    <CardTable
      caption="Waiting tasks by required labels"
      columns={[["Status", "hidden"], "Waiting", "Requires", ["Assigned to", "wide"], ["Since", "number"]]}
    >
      {queue.map((row) => (
        <tr>
          <MarkCell
            status={row.unserved > 0 ? "failed" : "queued"}
            word={row.unserved > 0 ? "no matching runner" : "waiting"}
          />
          <td class="long">
            <b>{counted(row.waiting, "task")}</b> in{" "}
            <a href={`/projects/${row.projectId}/executions?status=queued`}>{row.projectName}</a>{" "}
            <span class="small soft">{tasksOf(row)}</span>
            <span class="small narrow-only">{coming(row)}</span>
          </td>
          <td>{labelTags(row.labels)}</td>
          <td class="wide">{coming(row)}</td>
          <td class="number soft">
            <time datetime={row.since} title={toExact(row.since)}>
              {toSpan(now.getTime() - Date.parse(row.since))}
            </time>
          </td>
        </tr>
      ))}
    </CardTable>
  );
}

function doing(runner: TeamRunner): Html {
  const { leases, held, projectId, online } = runner;
  if (held === 0)
    return <span class="soft">{online && runner.free > 0 ? counted(runner.free, "free slot") : "–"}</span>;
  return (
    <>
      {leases.map((lease) => (
        <div>
          <a href={executionPath(projectId, lease.executionId)}>
            <b>{lease.taskSlug}</b>
            {lease.shard ? ` ${lease.shard.index}/${lease.shard.total}` : ""} of {executionName(lease.execution)}
          </a>
        </div>
      ))}
      {held > leases.length ? <div class="soft">and {held - leases.length} more</div> : null}
    </>
  );
}

/** Explains why a runner gets no tasks. */
const whyPaused = ({ paused }: TeamRunner, now: Date): Html | null =>
  paused && (
    <div class="small failed">
      Paused
      {paused.until === null ? null : (
        <> for {toSpan(Math.max(0, Date.parse(paused.until) - now.getTime()))} more</>
      )}: {paused.reason}
    </div>
  );

function pauseButton({ projectId, name, paused }: TeamRunner, { csrf, role }: Shown): Html | null {
  if (role === "viewer") return null;
  const fields = (
    <>
      <Hidden name="runner" value={name} />
      <Hidden name="paused" value={String(!paused)} />
    </>
  );
  const label = (
    <>
      {paused ? "Resume" : "Pause"}
      <span class="visually-hidden"> {name}</span>
    </>
  );
  return (
    <ActionForm
      action={`/projects/${projectId}/runners/pause`}
      csrf={csrf}
      label={label}
      kind="plain"
      fields={fields}
    />
  );
}

type Shown = Pick<PageContext, "csrf" | "now"> & { role: Role };

export function runnerTable(runners: readonly TeamRunner[], shown: Shown): Html {
  const { now } = shown;
  return (
    <CardTable
      caption="Runners of the team's projects"
      columns={[["Status", "hidden"], "Runner", ["Labels", "wide"], "Tasks", ["Last seen", "number"]]}
    >
      {runners.map((runner) => {
        const status = !runner.online ? "missing" : runner.paused ? "queued" : runner.held > 0 ? "running" : "passed";
        return (
          <tr>
            <td class="mark-cell">
              {runner.online ? (
                <Mark status={status} word={false} />
              ) : (
                <span class="mark missing" aria-hidden="true">
                  ○
                </span>
              )}
              <span class="visually-hidden">
                {runner.online ? (runner.held > 0 ? "busy" : runner.paused ? "paused" : "idle") : "offline"}
              </span>
            </td>
            <td class="long">
              <b>{runner.name}</b>{" "}
              <span class="small soft">
                {runner.projectName}
                {runner.taskSlugs === null
                  ? ""
                  : `, only ${runner.taskSlugs.slice(0, 8).join(", ")}${runner.taskSlugs.length > 8 ? ` and ${runner.taskSlugs.length - 8} more` : ""}`}
                {runner.online ? "" : ", offline"}
                {runner.version === null ? "" : `, Assay ${runner.version}`}
              </span>
            </td>
            <td class="wide">{labelTags(runner.labels)}</td>
            <td>
              {doing(runner)}
              {whyPaused(runner, now)}
            </td>
            <td class="number soft">
              <Ago at={runner.seenAt} now={now} />
              {pauseButton(runner, shown)}
            </td>
          </tr>
        );
      })}
    </CardTable>
  );
}
