/** The visitor of the documentation, and the project whose ids the examples contain. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import type { Visitor } from "../../../request/visitors.ts";
import { uuid } from "../../../schema/fields.ts";
import { selectNewestAttachment } from "../../../store/attachments.ts";
import { selectAutomations } from "../../../store/automations.ts";
import { selectBugReports } from "../../../store/bug_reports.ts";
import { selectEnvironments } from "../../../store/environments.ts";
import { selectExecutions } from "../../../store/execution_list.ts";
import { selectInfrastructureRules } from "../../../store/infrastructure_rules.ts";
import { selectIntegrations } from "../../../store/integrations.ts";
import { selectTeamProjectRefs } from "../../../store/projects.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import { FilterSelect } from "../../components/filters.tsx";
import type { Choice } from "../../components/form.tsx";
import type { ProjectRef } from "../../site/page.ts";
import { toAddress } from "../../site/paths.ts";
import { type Operation, TAGS } from "./reference.ts";

const MAX_PROJECTS = 200;

/** The data of every page of the documentation. */
export type DocsContext = {
  /** The base URL of the API. */
  api: string;
  /** The projects to choose from. */
  projects: readonly ProjectRef[];
  project: ProjectRef | undefined;
  isSignedIn: boolean;
};

export const query = v.strictObject({ project: v.optional(uuid) });

export async function loadContext({
  sql,
  publicUrl,
  visitor,
  query,
}: {
  sql: Sql;
  publicUrl: string;
  visitor: Visitor | undefined;
  query: { project?: string | undefined };
}): Promise<DocsContext> {
  const teams = (visitor?.teams ?? []).map(({ teamId }) => teamId);
  const projects = teams.length === 0 ? [] : await selectTeamProjectRefs(sql, teams, MAX_PROJECTS);
  return {
    api: `${publicUrl}/api/v1`,
    projects,
    // Without access to the chosen project, the examples use the visitor's first one.
    project: projects.find(({ id }) => id === query.project) ?? projects[0],
    isSignedIn: visitor !== undefined,
  };
}

/** Keeps the chosen project in the links of all pages. */
export const pathTo = ({ project, projects }: DocsContext, tag?: string): Path =>
  toAddress(tag === undefined ? "/docs" : `/docs/${tag}`, {
    project: projects.length > 1 && project !== projects[0] ? project?.id : undefined,
  });

/** Returns the newest object of each kind, for examples that only read. */
export async function findIds(
  sql: Sql,
  { id, teamId }: ProjectRef,
  wanted: ReadonlySet<string>,
): Promise<Record<string, string>> {
  const find = async <Row,>(name: string, select: () => Promise<readonly Row[]>): Promise<Row | undefined> =>
    wanted.has(name) ? (await select())[0] : undefined;
  const one = { limit: 1 };
  const [execution, attachment, testCase, bug, environment, rule, integration, automation] = await Promise.all([
    find("executionId", () => selectExecutions(sql, id, 1, {})),
    find("attachmentId", () => selectNewestAttachment(sql, id)),
    find("testCaseId", () => selectTestCases(sql, id, one)),
    find("bugReportId", () => selectBugReports(sql, id, one)),
    find("environmentId", () => selectEnvironments(sql, teamId, 1, undefined)),
    find("infrastructureRuleId", () => selectInfrastructureRules(sql, teamId, 1, undefined)),
    find("integrationId", () => selectIntegrations(sql, teamId, one, undefined)),
    find("automationId", () => selectAutomations(sql, teamId, 1, undefined)),
  ]);
  const found = {
    executionId: execution?.id,
    taskSlug: execution?.tasks[0]?.slug,
    attachmentId: attachment?.id,
    testCaseId: testCase?.id,
    bugReportId: bug?.id,
    environmentId: environment?.id,
    infrastructureRuleId: rule?.id,
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

/** Links to the overview and to the page of each tag. */
export const contents = (context: DocsContext, current: string | undefined): Html => (
  <nav class="contents" aria-label="API">
    <a href={pathTo(context)} aria-current={current === undefined ? "page" : undefined}>
      Overview
    </a>
    {TAGS.map(({ name, title }) => (
      <a href={pathTo(context, name)} aria-current={current === name ? "page" : undefined}>
        {title}
      </a>
    ))}
  </nav>
);

/** Names the project whose ids are in the examples, and lets the visitor choose another. */
export function choice({ projects, project, isSignedIn }: DocsContext, path: Path): Html {
  if (!isSignedIn)
    return (
      <p class="hint">
        The examples read <code>ASSAY_PROJECT</code>, <code>ASSAY_KEY</code> and other variables from the environment.{" "}
        <a href={`/login?${new URLSearchParams({ next: path }).toString()}`}>Sign in</a> to see examples with your own
        ids.
      </p>
    );
  if (!project) return <p class="hint">When you have a project, the examples contain its id.</p>;
  const key = (
    <>
      They read the project key from <code>ASSAY_KEY</code> and the team key from <code>ASSAY_TEAM_KEY</code>. See{" "}
      <a href={`/projects/${project.id}/settings`}>settings</a>.
    </>
  );
  if (projects.length === 1)
    return (
      <p class="hint">
        The examples contain the ids of {project.name}. {key}
      </p>
    );
  return (
    <>
      <form class="filters" action={path}>
        <FilterSelect
          label="Project"
          name="project"
          options={projects.map(({ id, name, teamName }): Choice => [id, `${teamName} / ${name}`])}
          value={project.id}
        />
        <button>Apply</button>
      </form>
      <p class="hint">The examples contain the ids of this project. {key}</p>
    </>
  );
}
