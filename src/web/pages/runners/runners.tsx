/** The page of the runners of a team. */

import * as v from "valibot";
import { notifyLeases } from "../../../database/signals.ts";
import { absent } from "../../../http/problem.ts";
import { booleanText, mayBeEmpty, text } from "../../../schema/fields.ts";
import { selectProjectsWithKeys } from "../../../store/projects.ts";
import {
  type TeamRunner,
  type Waiting,
  selectTeamQueue,
  selectTeamRunners,
  updateRunnerPause,
} from "../../../store/runners.ts";
import { counted } from "../../../wording/numbers.ts";
import { Empty, Pager } from "../../components/list.tsx";
import { Mark } from "../../components/status.tsx";
import { type Page, type View, page, type TeamContext } from "../../site/page.ts";
import { StartCommands } from "./start_commands.tsx";
import { MAX_QUEUE, queueTable, runnerTable } from "./tables.tsx";
import { action } from "../../site/action.ts";

const MAX_RUNNERS = 100;

const MAX_COMMANDS = 20;

/** Returns the headline: whether every waiting task has a runner. */
function runnersHeadline(queue: readonly Waiting[], runners: readonly TeamRunner[]): { status: string; text: string } {
  const waiting = queue.reduce((sum, row) => sum + row.waiting, 0);
  const unserved = queue.reduce((sum, row) => sum + row.unserved, 0);
  const online = runners.filter((runner) => runner.online);
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

const runnersQuery = v.strictObject({ cursor: mayBeEmpty(text(2_000)) });

type Context = TeamContext & { query: v.InferOutput<typeof runnersQuery> };

async function loadRunners({ sql, team, query, cursors }: Context) {
  const list = `runners ${team.id}`;
  const [projectId, ...name] = query.cursor === undefined ? [] : cursors.read(list, query.cursor);
  const after = projectId === undefined ? undefined : { projectId, name: name.join("\n") };
  const [found, queue, projects] = await Promise.all([
    selectTeamRunners(sql, team.id, MAX_RUNNERS, after),
    selectTeamQueue(sql, team.id, MAX_QUEUE),
    selectProjectsWithKeys(sql, team.id, MAX_COMMANDS),
  ]);
  const runners = found.slice(0, MAX_RUNNERS);
  const last = found.length > MAX_RUNNERS ? runners.at(-1) : undefined;
  return {
    runners,
    next: last && cursors.write(list, [last.projectId, last.name]),
    queue,
    projects: projects.slice(0, MAX_COMMANDS),
  };
}

type RunnersData = Awaited<ReturnType<typeof loadRunners>>;

function runnersView(context: Context, { runners, next, queue, projects }: RunnersData): View {
  const { team, role, csrf, query, now, publicUrl } = context;
  const headline = runnersHeadline(queue, runners);
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
            Queue <small>longest waiting first</small>
          </h2>
          {queueTable(queue, now)}
        </>
      )}
      <h2>
        Runners <small>a runner is offline if it has not polled for two minutes</small>
      </h2>
      {runners.length === 0 ? (
        <Empty>No runners yet. Start one as shown below.</Empty>
      ) : (
        runnerTable(runners, { csrf, now, role })
      )}
      <Pager path={`/teams/${team.id}/runners`} query={{ cursor: query.cursor && "" }} cursor={next} />
      <StartCommands teamId={team.id} projects={projects} queue={queue} publicUrl={publicUrl} />
    </>
  );
  return { title: headline.text, body, section: "runners" };
}

const runnersPage = page("/teams/:teamId/runners", { access: "viewer", query: runnersQuery }, async (context) =>
  runnersView(context, await loadRunners(context)),
);

const pauseForm = action(
  "/projects/:projectId/runners/pause",
  { access: "member", fields: v.strictObject({ runner: text(200), paused: booleanText }) },
  {
    act: async (sql, { project, fields: { runner, paused } }, _, { name }) => {
      if (!(await updateRunnerPause(sql, project.id, runner, paused ? `Paused by ${name}` : null))) absent();
      await notifyLeases(sql, project.id);
    },
    record: (_, { project, fields: { runner, paused } }) => ({
      action: paused ? "runner.paused" : "runner.resumed",
      subject: runner,
      details: { project: project.name },
    }),
    done: ({ team }) => `/teams/${team.id}/runners`,
  },
);

export const runners: Page[] = [runnersPage, pauseForm];
