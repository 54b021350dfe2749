/** Runners of a team's projects and what they do, what waits for one, and how to start another. */

import * as v from "valibot";
import { write } from "../site/write.ts";
import type { Html } from "../../http/html.ts";
import { absent } from "../../http/problem.ts";
import type { Role } from "../../schema/accounts.ts";
import { text, uuid } from "../../schema/fields.ts";
import { notifyLeases } from "../../database/signals.ts";
import {
  updateRunnerPause,
  selectTeamQueue,
  selectTeamRunners,
  type TeamRunner,
  type Waiting,
} from "../../store/runners.ts";
import { selectProjectsWithKeys } from "../../store/projects.ts";
import { executionPath } from "../site/paths.ts";
import { executionName } from "../components/execution_table.tsx";
import { ActionForm } from "../components/form.tsx";
import { type Page, type PageContext, SeeOther, form, page } from "../site/page.ts";
import { Ago, toExact, toSpan } from "../components/text.tsx";
import { counted } from "../../wording/numbers.ts";
import { Mark, Tag } from "../components/status.tsx";
import { Pager } from "../components/pager.tsx";

const MAX_RUNNERS = 100;
const MAX_QUEUE = 50;
const MAX_COMMANDS = 20;

/** Where the next page begins: the last runner's project and name. */
const after = v.pipe(
  v.string("expected the address of a next page"),
  v.transform((value) => /^([0-9a-f-]{36}) ([^]{1,200})$/.exec(value)),
  v.check((match) => match === null || v.is(uuid, match[1]), "expected the address of a next page"),
  v.transform((match) => (match === null ? undefined : { projectId: match[1]!, name: match[2]! })),
);

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

/** The answer first: does everything that waits have somebody who will come for it. */
function runnersHeadline(queue: readonly Waiting[], runners: readonly TeamRunner[]): { status: string; text: string } {
  const waiting = queue.reduce((sum, row) => sum + row.waiting, 0);
  const unserved = queue.reduce((sum, row) => sum + row.unserved, 0);
  const there = runners.filter(({ isThere }) => isThere);
  const atWork = there.filter(({ held }) => held > 0).length;
  if (unserved > 0)
    return {
      status: "failed",
      text: `${counted(unserved, "task")} wait${unserved === 1 ? "s" : ""} for a runner that is not there`,
    };
  if (runners.length === 0) return { status: "queued", text: "No runner has asked for work yet" };
  if (there.length === 0) return { status: "queued", text: "No runner is there, and nothing waits for one" };
  const text = `${counted(there.length, "runner")}, ${atWork} at work`;
  return {
    status: "passed",
    text: waiting > 0 ? `${text}, ${counted(waiting, "task")} waiting` : `${text}, nothing waits`,
  };
}

const tasksOf = ({ taskSlugs, tasks }: Pick<Waiting, "taskSlugs" | "tasks">): string =>
  `${taskSlugs.join(", ")}${tasks > taskSlugs.length ? ` and ${tasks - taskSlugs.length} more` : ""}`;

/** Who will come for what waits, in words. */
function coming({ waiting, unserved, labels }: Waiting): Html {
  if (unserved === 0)
    return <>{labels.length > 0 ? "a runner that has these labels" : "the next runner that is free"}</>;
  const whom = unserved === waiting ? "nobody" : `nobody for ${unserved} of them`;
  return (
    <span class="failed">
      {whom}: no runner of the project that is there {labels.length > 0 ? "has these labels" : "takes these tasks"}
    </span>
  );
}

function queueTable(queue: readonly Waiting[], now: Date): Html {
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">What waits, by the labels that it asks for</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="visually-hidden">Status</span>
            </th>
            <th scope="col">Waiting</th>
            <th scope="col">Asks for</th>
            <th scope="col" class="wide">
              Who will come
            </th>
            <th scope="col" class="number">
              Since
            </th>
          </tr>
        </thead>
        <tbody>
          {queue.map((row) => (
            <tr>
              <td class="mark-cell">
                <Mark status={row.unserved > 0 ? "failed" : "queued"} word={false} />
                <span class="visually-hidden">{row.unserved > 0 ? "nobody comes" : "waits"}</span>
              </td>
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
        </tbody>
      </table>
    </div>
  );
}

function doing(runner: TeamRunner): Html {
  const { leases, held, projectId, isThere } = runner;
  if (held === 0) return <span class="soft">{isThere ? `nothing; could begin ${runner.free}` : "nothing"}</span>;
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

/** Why it gets no tasks. */
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
      <input type="hidden" name="runner" value={name} />
      <input type="hidden" name="paused" value={String(!paused)} />
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

function runnerTable(runners: readonly TeamRunner[], shown: Shown): Html {
  const { now } = shown;
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">Runners of the team's projects</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="visually-hidden">Status</span>
            </th>
            <th scope="col">Runner</th>
            <th scope="col" class="wide">
              Labels
            </th>
            <th scope="col">Doing</th>
            <th scope="col" class="number">
              Seen
            </th>
          </tr>
        </thead>
        <tbody>
          {runners.map((runner) => {
            const status = !runner.isThere
              ? "missing"
              : runner.paused
                ? "queued"
                : runner.held > 0
                  ? "running"
                  : "passed";
            return (
              <tr>
                <td class="mark-cell">
                  {runner.isThere ? (
                    <Mark status={status} word={false} />
                  ) : (
                    <span class="mark missing" aria-hidden="true">
                      ○
                    </span>
                  )}
                  <span class="visually-hidden">
                    {runner.isThere
                      ? runner.held > 0
                        ? "at work"
                        : runner.paused
                          ? "paused"
                          : "waits for work"
                      : "not there"}
                  </span>
                </td>
                <td class="long">
                  <b>{runner.name}</b>{" "}
                  <span class="small soft">
                    {runner.projectName}
                    {runner.taskSlugs === null
                      ? ""
                      : `, only ${runner.taskSlugs.slice(0, 8).join(", ")}${runner.taskSlugs.length > 8 ? ` and ${runner.taskSlugs.length - 8} more` : ""}`}
                    {runner.isThere ? "" : ", not there"}
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
        </tbody>
      </table>
    </div>
  );
}

export const runners: Page[] = [
  page(
    "/teams/:teamId/runners",
    { access: "viewer", query: v.strictObject({ cursor: v.optional(after) }) },
    async ({ sql, team, role, csrf, query, now, publicUrl }) => {
      const [found, queue, projects] = await Promise.all([
        selectTeamRunners(sql, team.id, MAX_RUNNERS, query.cursor),
        selectTeamQueue(sql, team.id, MAX_QUEUE),
        selectProjectsWithKeys(sql, team.id, MAX_COMMANDS),
      ]);
      const rows = found.slice(0, MAX_RUNNERS);
      const last = found.length > MAX_RUNNERS ? rows.at(-1) : undefined;
      const headline = runnersHeadline(queue, rows);
      // What nobody comes for says which runner is missing.
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
            <span>Runners of the projects of {team.name}: each takes tasks of one project, whose key it has.</span>
          </p>
          {queue.length === 0 ? null : (
            <>
              <h2>
                The queue <small>what waits longest first</small>
              </h2>
              {queueTable(queue, now)}
            </>
          )}
          <h2>
            Runners <small>seen: when it last asked; one that has not for two minutes is not there</small>
          </h2>
          {rows.length === 0 ? (
            <div class="card empty">
              <p>No runner has asked for work in the projects of this team. Start one, as below.</p>
            </div>
          ) : (
            runnerTable(rows, { csrf, now, role })
          )}{" "}
          <Pager
            path={`/teams/${team.id}/runners`}
            query={{ cursor: query.cursor && "" }}
            cursor={last && `${last.projectId} ${last.name}`}
          />
          <h2 id="start">
            Start a runner <small>on a machine of yours, beside the assay.yaml that says what tasks mean there</small>
          </h2>
          {ordered.length === 0 ? (
            <div class="card empty">
              <p>
                There is no project yet: <a href={`/teams/${team.id}/settings#projects`}>create one</a> first.
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
                      assay.key holds the key of the project
                      {project.leading === null ? (
                        <>
                          , which has none yet: <a href={`/projects/${project.id}/settings`}>generate it</a>
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
  ),

  form(
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
  ),
];
