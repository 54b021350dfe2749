/** All projects of the visitor: which are red, since when, and the cause. */

import type { Html } from "../../http/html.ts";
import { firstIdAt } from "../../database/time_bounds.ts";
import type { Sql } from "../../database/connect.ts";
import { isGreen } from "../../rules/branch_state.ts";
import { type ExecutionSummary, selectSummaries } from "../../store/execution_list.ts";
import { type LiveItemRow, selectLastBuild, selectNewFailures } from "../../store/overview.ts";
import { selectTeamProjectRefs } from "../../store/projects.ts";
import { selectBranch, selectBranchState } from "../../store/state.ts";
import { executionOutcome } from "../../wording/execution.ts";
import { counted } from "../../wording/numbers.ts";
import { redTaskWords } from "../../wording/task.ts";
import { executionName, executionNumber, lineName } from "../../wording/execution_name.ts";
import { Empty, MarkCell, CardTable } from "../components/list.tsx";
import { Mark } from "../components/status.tsx";
import { Strip } from "../components/strip.tsx";
import { Ago, toStateSpan } from "../components/text.tsx";
import { type Page, type PageContext, page, type ProjectRef, type View } from "../site/page.ts";
import { executionPath, taskPath } from "../site/paths.ts";

const STRIP_LENGTH = 30;
/** Number of branches whose new failures are listed, and maximum age in days of their executions. */
const MAX_FAILING_BRANCHES = 3;
const NEW_FAILURE_DAYS = 7;
/** Further projects are listed by name only. */
const MAX_ROWS = 24;
const MAX_PROJECTS = 200;

type State = Awaited<ReturnType<typeof selectBranchState>>;
type ProjectState = {
  project: ProjectRef;
  branch: string;
  state: State;
  last: ExecutionSummary | undefined;
  executions: readonly ExecutionSummary[];
  news: readonly LiveItemRow[];
};

async function loadProject(sql: Sql, project: ProjectRef, now: Date): Promise<ProjectState> {
  const { id, defaultBranch } = project;
  const week = firstIdAt(now.getTime() - NEW_FAILURE_DAYS * 86_400_000);
  const branch = await selectBranch(sql, id, defaultBranch, defaultBranch);
  const [state, last, executions, news] = await Promise.all([
    selectBranchState(sql, id, branch),
    selectLastBuild(sql, id, branch),
    selectSummaries(sql, id, STRIP_LENGTH - 1, { buildsOnly: true }),
    selectNewFailures(sql, id, branch, week, MAX_FAILING_BRANCHES),
  ]);
  return { project, branch: branch.branch, state, last, executions, news };
}

const statusOf = ({ state }: ProjectState) => state.state ?? "queued";

/** Returns "red for 2 days" or "no results". */
const since = ({ state }: ProjectState, now: Date): string =>
  state.state === null || state.since === null
    ? "no results"
    : `${state.state === "passed" ? "green" : "red"} for ${toStateSpan(now.getTime() - Date.parse(state.since), state.isLonger)}`;

/** The task that has been red on the default branch for longest, and the number of others. */
function Cause({ project, state: { tasks } }: ProjectState): Html | null {
  const [first, ...others] = tasks.filter((task) => !isGreen(task));
  if (!first) return null;
  return (
    <div class="small long">
      <a href={taskPath(project.id, first.lastExecutionId, first.slug)}>{first.slug}</a>{" "}
      <span class="failed">{redTaskWords(first)}</span>
      {others.length > 0 ? `, ${counted(others.length, "more red task")}` : null}
    </div>
  );
}

const NewFailures = ({ project, news }: ProjectState): Html => (
  <>
    {news.map((row) => (
      <div class="small long">
        <a href={executionPath(project.id, row.executionId)}>
          <code>{lineName(row)}</code> {executionNumber(row)}
        </a>{" "}
        <span class="failed">{counted(row.failures, "new failure")}</span>
      </div>
    ))}
  </>
);

function LastExecution({ project, last, now }: ProjectState & { now: Date }): Html {
  if (!last)
    return (
      <td class="number">
        <a href={`/projects/${project.id}/onboarding`}>Send the first report</a>
      </td>
    );
  return (
    <td class="number soft">
      <a href={executionPath(project.id, last.id)}>{executionName(last)}</a>{" "}
      <Ago at={last.completedAt ?? last.createdAt} now={now} />
    </td>
  );
}

function ProjectRow({ now, ...row }: ProjectState & { now: Date }): Html {
  const { project, executions } = row;
  const items = executions.toReversed().map((execution) => ({
    status: execution.repeatedStatus ?? execution.status,
    href: executionPath(project.id, execution.id),
    label: `${executionName(execution)}: ${executionOutcome(execution)}`,
  }));
  return (
    <tr>
      <MarkCell status={statusOf(row)} />
      <td class="long">
        <a href={`/projects/${project.id}`}>
          <b>{project.name}</b>
        </a>{" "}
        <span class="soft small">
          <code>{lineName(row)}</code> {since(row, now)}
        </span>
        <Cause {...row} />
        <NewFailures {...row} />
      </td>
      <td class="wide strip-cell">
        <Strip
          items={items}
          label={`The last ${counted(items.length, "execution")} of ${project.name}, newest right`}
        />
      </td>
      <LastExecution {...row} now={now} />
    </tr>
  );
}

/** Red projects come first, and projects without results last. */
const ORDER = ["failed", "passed", "queued"];

type TeamProperties = { team: { teamId: string; teamName: string; role: string }; rows: readonly Html[] };

const Team = ({ team: { teamId, teamName, role }, rows }: TeamProperties): Html => (
  <section data-region={teamId}>
    <h2>
      {teamName}{" "}
      <small>
        <a href={`/teams/${teamId}/settings`}>team settings</a>
      </small>
    </h2>
    {rows.length === 0 ? (
      <Empty
        action={
          role === "owner" ? (
            <a class="button main" href={`/teams/${teamId}/settings#projects`}>
              Create project
            </a>
          ) : undefined
        }
      >
        No projects yet.
      </Empty>
    ) : (
      <CardTable
        caption={`Projects of ${teamName}, red ones first`}
        columns={["Status", "Project", "Last executions", "Last execution"]}
        hidesHead
        kind="projects"
      >
        {rows}
      </CardTable>
    )}
  </section>
);

/** Returns a headline such as "4 of 7 projects are red". */
function headlineOf(states: readonly ProjectState[]): { status: string; text: string } {
  const known = states.filter(({ state }) => state.state !== null);
  const red = known.filter(({ state }) => state.state !== "passed").length;
  if (states.length === 0) return { status: "queued", text: "Projects" };
  if (known.length === 0) return { status: "queued", text: "No results yet" };
  if (red > 0)
    return {
      status: "failed",
      text:
        states.length === 1
          ? "The project is red"
          : `${red} of ${counted(states.length, "project")} ${red === 1 ? "is" : "are"} red`,
    };
  return {
    status: "passed",
    text:
      known.length === states.length
        ? states.length === 1
          ? "The project is green"
          : `All ${states.length} projects are green`
        : `${counted(known.length, "project")} green, ${states.length - known.length} without results`,
  };
}

type Context = Pick<PageContext, "sql" | "now" | "visitor">;

/** `states` has the first projects; further ones are listed by name only. */
async function loadHome({ sql, visitor, now }: Context) {
  const ids = visitor.teams.map(({ teamId }) => teamId);
  const projects = await selectTeamProjectRefs(sql, ids, MAX_PROJECTS);
  const states = new Map<string, ProjectState>();
  for (const project of projects.slice(0, MAX_ROWS)) states.set(project.id, await loadProject(sql, project, now));
  return { projects, states };
}

type HomeData = Awaited<ReturnType<typeof loadHome>>;

const NamedProject = ({ project: { id, name } }: { project: ProjectRef }): Html => (
  <tr>
    <td />
    <td colspan={3}>
      <a href={`/projects/${id}`}>{name}</a>
    </td>
  </tr>
);

/** Returns the rows of the projects of a team in their order. */
function rowsOf(teamId: string, { projects, states }: HomeData, now: Date): Html[] {
  const rank = ({ id }: ProjectRef) => {
    const state = states.get(id);
    return state ? ORDER.indexOf(statusOf(state)) : ORDER.length;
  };
  return projects
    .filter((project) => project.teamId === teamId)
    .toSorted((a, b) => rank(a) - rank(b))
    .map((project) => {
      const state = states.get(project.id);
      return state ? <ProjectRow {...state} now={now} /> : <NamedProject project={project} />;
    });
}

function homeView({ visitor: { teams }, now }: Context, data: HomeData): View {
  const headline = headlineOf([...data.states.values()]);
  const ownTeam = teams.find(({ role }) => role === "owner");
  const body = (
    <>
      <h1>
        {data.projects.length === 0 ? null : <Mark status={headline.status} word={false} />} {headline.text}
      </h1>
      {teams.length === 0 ? (
        <Empty>You are not a member of a team yet. Ask an owner for an invitation.</Empty>
      ) : (
        teams.map((team) => <Team team={team} rows={rowsOf(team.teamId, data, now)} />)
      )}
      {ownTeam === undefined ? null : (
        <p class="hint after">
          <a href={`/teams/${ownTeam.teamId}/settings#new-team`}>New team</a>
        </p>
      )}
    </>
  );
  return { title: headline.text, body };
}

export const home: Page[] = [
  page("/", { access: "account" }, async (context) => homeView(context, await loadHome(context))),
];
