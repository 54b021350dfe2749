/** Who looks at the documentation, and for which project its examples are. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import type { Visitor } from "../../../request/visitors.ts";
import { uuid } from "../../../schema/fields.ts";
import { selectAutomations } from "../../../store/automations.ts";
import { selectBugReports } from "../../../store/bug_reports.ts";
import { selectEnvironments } from "../../../store/environments.ts";
import { selectExecutions } from "../../../store/execution_list.ts";
import { selectIntegrations } from "../../../store/integrations.ts";
import { selectTeamPlaces } from "../../../store/projects.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import type { ProjectPlace } from "../../site/page.ts";
import { toAddress } from "../../site/paths.ts";
import { type Operation, TAGS } from "./reference.ts";

const MAX_PROJECTS = 200;

/** What every page of this family knows of who looks at it. */
export type Here = {
  /** The address of the API. */
  api: string;
  /** To choose from. */
  projects: readonly ProjectPlace[];
  project: ProjectPlace | undefined;
  isSignedIn: boolean;
};

export const query = v.strictObject({ project: v.optional(uuid) });

export async function lookAround({
  sql,
  publicUrl,
  visitor,
  query,
}: {
  sql: Sql;
  publicUrl: string;
  visitor: Visitor | undefined;
  query: { project?: string | undefined };
}): Promise<Here> {
  const teams = (visitor?.teams ?? []).map(({ teamId }) => teamId);
  const projects = teams.length === 0 ? [] : await selectTeamPlaces(sql, teams, MAX_PROJECTS);
  return {
    api: `${publicUrl}/api/v1`,
    projects,
    // Whose it is not sees what anybody does.
    project: projects.find(({ id }) => id === query.project) ?? projects[0],
    isSignedIn: visitor !== undefined,
  };
}

/** Where there is a choice it stays the same on all pages. */
export const pathTo = ({ project, projects }: Here, tag?: string): Path =>
  toAddress(tag === undefined ? "/docs" : `/docs/${tag}`, {
    project: projects.length > 1 && project !== projects[0] ? project?.id : undefined,
  });

/** The newest thing of each kind, for lines that only read. */
export async function findIds(
  sql: Sql,
  { id, teamId }: ProjectPlace,
  wanted: ReadonlySet<string>,
): Promise<Record<string, string>> {
  const find = async <Row,>(name: string, select: () => Promise<readonly Row[]>): Promise<Row | undefined> =>
    wanted.has(name) ? (await select())[0] : undefined;
  const one = { limit: 1 };
  const [execution, testCase, bug, environment, integration, automation] = await Promise.all([
    find("executionId", () => selectExecutions(sql, id, 1, {})),
    find("testCaseId", () => selectTestCases(sql, id, one)),
    find("bugReportId", () => selectBugReports(sql, id, one)),
    find("environmentId", () => selectEnvironments(sql, teamId, 1, undefined)),
    find("integrationId", () => selectIntegrations(sql, teamId, one, undefined)),
    find("automationId", () => selectAutomations(sql, teamId, 1, undefined)),
  ]);
  const found = {
    executionId: execution?.id,
    taskSlug: execution?.tasks[0]?.slug,
    testCaseId: testCase?.id,
    bugReportId: bug?.id,
    environmentId: environment?.id,
    integrationId: integration?.id,
    automationId: automation?.id,
  };
  return Object.fromEntries(Object.entries(found).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

export const namesIn = ({ path }: Operation) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);

export const shell = (text: string): Html => (
  <div class="copied">
    <pre data-copy>{text}</pre>
  </div>
);

export const json = (value: unknown): Html => <pre>{JSON.stringify(value, null, 2)}</pre>;

/** Tells where this is, and leads to the rest. */
export const contents = (here: Here, current: string | undefined): Html => (
  <nav class="contents" aria-label="API">
    <a href={pathTo(here)} aria-current={current === undefined ? "page" : undefined}>
      Overview
    </a>{" "}
    {TAGS.map(({ name, title }) => (
      <a href={pathTo(here, name)} aria-current={current === name ? "page" : undefined}>
        {title}
      </a>
    ))}
  </nav>
);

/** Whose ids stand in the lines, and how to have another's. */
export function choice({ projects, project, isSignedIn }: Here, path: Path): Html {
  if (!isSignedIn)
    return (
      <p class="hint">
        The lines below take <code>ASSAY_PROJECT</code>, <code>ASSAY_KEY</code> and so on from the environment of your
        shell; <a href={`/login?${new URLSearchParams({ next: path }).toString()}`}>sign in</a> to have your own ids in
        them.
      </p>
    );
  if (!project) return <p class="hint">As soon as you have a project, its id stands in the lines below.</p>;
  const key = (
    <>
      The key is taken from <code>ASSAY_KEY</code>, that of the team from <code>ASSAY_TEAM_KEY</code>; see{" "}
      <a href={`/projects/${project.id}/settings`}>settings</a>.
    </>
  );
  if (projects.length === 1)
    return (
      <p class="hint">
        The lines below hold the ids of {project.name}. {key}
      </p>
    );
  return (
    <>
      <form class="filters" action={path}>
        <label>
          Ids of
          <select name="project">
            {projects.map(({ id, name, teamName }) => (
              <option value={id} selected={id === project.id}>
                {teamName} / {name}
              </option>
            ))}
          </select>
        </label>

        <button>Fill in</button>
      </form>
      <p class="hint">{key}</p>
    </>
  );
}
