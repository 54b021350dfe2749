/** The page of the runners of a team. */

import * as v from "valibot";
import { notifyLeases } from "../../../database/signals.ts";
import { absent } from "../../../http/problem.ts";
import { text } from "../../../schema/fields.ts";
import { selectProjectsWithKeys } from "../../../store/projects.ts";
import {
  type TeamRunner,
  type Waiting,
  selectTeamQueue,
  selectTeamRunners,
  updateRunnerPause,
} from "../../../store/runners.ts";
import { counted } from "../../../wording/numbers.ts";
import { Pager } from "../../components/pager.tsx";
import { Mark, Tag } from "../../components/status.tsx";
import { idAndNameCursor } from "../../site/cursor.ts";
import { type Page, SeeOther, form, page } from "../../site/page.ts";
import { write } from "../../site/write.ts";
import { MAX_QUEUE, queueTable, runnerTable } from "./tables.tsx";

const MAX_RUNNERS = 100;

const MAX_COMMANDS = 20;

/** Returns the headline: whether every waiting task has a runner. */
function runnersHeadline(queue: readonly Waiting[], runners: readonly TeamRunner[]): { status: string; text: string } {
  const waiting = queue.reduce((sum, row) => sum + row.waiting, 0);
  const unserved = queue.reduce((sum, row) => sum + row.unserved, 0);
  const online = runners.filter(({ isThere }) => isThere);
  const atWork = online.filter(({ held }) => held > 0).length;
  if (unserved > 0)
    return {
      status: "failed",
      text: `${counted(unserved, "task")} without a matching runner online`,
    };
  if (runners.length === 0) return { status: "queued", text: "No runners yet" };
  if (online.length === 0) return { status: "queued", text: "No runners online, no tasks waiting" };
  const text = `${counted(online.length, "runner")} online, ${atWork} busy`;
  return {
    status: "passed",
    text: waiting > 0 ? `${text}, ${counted(waiting, "task")} waiting` : `${text}, no tasks waiting`,
  };
}

const runnersPage = page(
  "/teams/:teamId/runners",
  { access: "viewer", query: v.strictObject({ cursor: v.optional(idAndNameCursor) }) },
  async ({ sql, team, role, csrf, query, now, publicUrl }) => {
    const after = query.cursor && { projectId: query.cursor.id, name: query.cursor.name };
    const [found, queue, projects] = await Promise.all([
      selectTeamRunners(sql, team.id, MAX_RUNNERS, after),
      selectTeamQueue(sql, team.id, MAX_QUEUE),
      selectProjectsWithKeys(sql, team.id, MAX_COMMANDS),
    ]);
    const rows = found.slice(0, MAX_RUNNERS);
    const last = found.length > MAX_RUNNERS ? rows.at(-1) : undefined;
    const headline = runnersHeadline(queue, rows);
    // A task without a matching runner says which labels are missing.
    const missing = new Map(queue.filter(({ unserved }) => unserved > 0).map((row) => [row.projectId, row]));
    const ordered = projects
      .slice(0, MAX_COMMANDS)
      .sort((a, b) => Number(missing.has(b.id)) - Number(missing.has(a.id)));
    const body = (
      <>
        <h1>
          <Mark status={headline.status} word={false} /> {headline.text}
        </h1>
        <p class="meta">
          <span>Runners of the projects of {team.name}. A runner takes tasks of the project whose key it uses.</span>
        </p>
        {queue.length === 0 ? null : (
          <>
            <h2>
              The queue <small>longest waiting first</small>
            </h2>
            {queueTable(queue, now)}
          </>
        )}
        <h2>
          Runners <small>a runner is offline if it has not polled for two minutes</small>
        </h2>
        {rows.length === 0 ? (
          <div class="card empty">
            <p>No runners yet. Start one as shown below.</p>
          </div>
        ) : (
          runnerTable(rows, { csrf, now, role })
        )}

        <Pager
          path={`/teams/${team.id}/runners`}
          query={{ cursor: query.cursor && "" }}
          cursor={last && `${last.projectId} ${last.name}`}
        />
        <h2 id="start">
          Start a runner <small>on your own machine, next to assay.yaml, which defines the tasks</small>
        </h2>
        {ordered.length === 0 ? (
          <div class="card empty">
            <p>
              No projects yet: <a href={`/teams/${team.id}/settings#projects`}>create one</a> first.
            </p>
          </div>
        ) : (
          <div class="card">
            {ordered.map((project, index) => {
              const labels = missing.get(project.id)?.labels ?? [];
              return (
                <details class="fold" open={index === 0}>
                  <summary>
                    For {project.name}
                    {missing.has(project.id) ? (
                      <>
                        {" "}
                        <Tag kind="failed">missing</Tag>
                      </>
                    ) : null}
                  </summary>
                  <pre data-copy>
                    export ASSAY_URL={publicUrl} ASSAY_PROJECT={project.id}
                    {"\n"}export ASSAY_KEY_FILE=assay.key{"\n"}assay runner --config assay.yaml --concurrency 2
                    {labels.length > 0 ? ` --labels ${labels.join(",")}` : ""}
                  </pre>
                  <p class="hint">
                    assay.key contains the key of the project
                    {project.leading === null ? (
                      <>
                        , which has none yet: <a href={`/projects/${project.id}/settings`}>generate one</a>
                      </>
                    ) : (
                      <>
                        {" "}
                        (<code>{project.leading}…</code>)
                      </>
                    )}
                    .
                  </p>
                </details>
              );
            })}
          </div>
        )}
      </>
    );
    return { title: headline.text, body, section: "runners" };
  },
);

const pauseForm = form(
  "/projects/:projectId/runners/pause",
  { access: "member", fields: v.strictObject({ runner: text(200), paused: v.picklist(["true", "false"]) }) },
  async (context) => {
    const { project, team, fields } = context;
    const paused = fields.paused === "true";
    await write(
      context,
      "member",
      async (sql, { name }) => {
        if (!(await updateRunnerPause(sql, project.id, fields.runner, paused ? `Paused by ${name}` : null))) absent();
        await notifyLeases(sql, project.id);
      },
      () => ({
        action: paused ? "runner.paused" : "runner.resumed",
        subject: fields.runner,
        details: { project: project.name },
      }),
    );
    return new SeeOther(`/teams/${team.id}/runners`);
  },
);

export const runners: Page[] = [runnersPage, pauseForm];
