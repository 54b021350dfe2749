/** The audit log of a team: changes to members, keys, settings, tests, bugs and executions. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import type { AuditAction, AuditEntry } from "../../schema/audit.ts";
import { uuid } from "../../schema/fields.ts";
import { selectAuditEntries } from "../../store/audit.ts";
import { type Page, type View, page, type TeamContext } from "../site/page.ts";
import { AgoCell, Empty, type PagedRows, CardTable, toPagedRows } from "../components/list.tsx";
import { Breakable } from "../components/text.tsx";
import { bugPath, executionPath, testPath } from "../site/paths.ts";
import { selectProjectNames } from "../../store/projects.ts";
import { toLabel } from "../../wording/field_problem.ts";

const PAGE_SIZE = 50;

const ACTION_WORDS: Record<AuditAction, string> = {
  "account.password_changed": "changed the password of",
  "account.password_reset": "reset the password of",
  "account.linked": "linked single sign-on to",
  "invitation.created": "invited",
  "invitation.revoked": "revoked the invitation of",
  "key.generated": "generated the key",
  "key.revoked": "revoked the key",
  "trust_rule.added": "trusted CI jobs of",
  "trust_rule.removed": "stopped trusting CI jobs of",
  "member.added": "added the member",
  "member.removed": "removed the member",
  "member.role_changed": "changed the role of",
  "project.created": "created the project",
  "project.changed": "changed the project",
  "project.deleted": "deleted the project",
  "environment.created": "created the environment",
  "environment.changed": "changed the environment",
  "environment.deleted": "deleted the environment",
  "variable.changed": "set the variable",
  "variable.deleted": "deleted the variable",
  "variables.replaced": "replaced the variables of",
  "integration.created": "created the integration",
  "integration.changed": "changed the integration",
  "integration.deleted": "deleted the integration",
  "automation.created": "created the automation",
  "automation.changed": "changed the automation",
  "automation.deleted": "deleted the automation",
  "infrastructure_rule.created": "created the infrastructure rule",
  "infrastructure_rule.changed": "changed the infrastructure rule",
  "infrastructure_rule.deleted": "deleted the infrastructure rule",
  "runner.paused": "paused the runner",
  "runner.resumed": "resumed the runner",
  "share.created": "shared",
  "share.revoked": "stopped sharing",
  "bug.created": "opened",
  "bug.changed": "changed",
  "bug.merged": "merged",
  "culprit_search.started": "searches for the commit of",
  "culprit_search.cancelled": "cancelled the search for the commit of",
  "test_case.changed": "changed the test",
  "owners.changed": "changed the ownership file",
  "verification.begun": "began a verification of",
  "verification.cancelled": "cancelled a verification of",
  "execution.rerun": "reran the execution",
  "execution.completed": "completed the execution",
  "execution.cancelled": "cancelled the execution",
  "execution.deleted": "deleted the execution",
  "sample_data.added": "added sample data to",
  "sample_data.removed": "removed the sample data of",
  "team.created": "created the team",
  "team.renamed": "renamed the team to",
  "team.restored": "restored from a backup the team",
};

type Details = AuditEntry["details"];

const projectOf = ({ projectId }: Details): string | undefined =>
  typeof projectId === "string" ? projectId : undefined;

/** The page of the bug, execution or test that an entry is about. */
function subjectPath(details: Details): Path | undefined {
  const projectId = projectOf(details);
  const { bugReportId, executionId, testCaseIds } = details;
  if (projectId === undefined) return undefined;
  if (typeof bugReportId === "string") return bugPath(projectId, bugReportId);
  if (typeof executionId === "string") return executionPath(projectId, executionId);
  return Array.isArray(testCaseIds) && testCaseIds.length === 1 ? testPath(projectId, testCaseIds[0]!) : undefined;
}

/** Details that are ids: `subjectPath` links what can be opened. */
const ID = /(Id|Ids)$|^(into|rerun)$/;

/** Formats details as `role: member · by: invitation`. Null values and ids are left out. */
const detailsOf = (details: Details): string =>
  Object.entries(details)
    .filter(([name, value]) => value !== null && !ID.test(name))
    .map(([name, value]) => {
      if (name === "fields" && Array.isArray(value))
        return value.map((field) => toLabel(field).toLowerCase()).join(", ");
      return `${toLabel(name).toLowerCase()}: ${Array.isArray(value) ? value.join(", ") : String(value)}`;
    })
    .join(" · ");

type RowContext = { projects: ReadonlyMap<string, string>; now: Date };

function row({ at, actor, action, subject, details }: AuditEntry, { projects, now }: RowContext): Html {
  const projectId = projectOf(details);
  const project = projectId === undefined ? undefined : projects.get(projectId);
  const path = project === undefined ? undefined : subjectPath(details);
  const more = detailsOf(details);
  return (
    <tr>
      <AgoCell at={at} now={now} kind="nowrap" />
      <td class="long">
        <Breakable text={actor} /> {ACTION_WORDS[action] ?? action}{" "}
        <b>{path === undefined ? <Breakable text={subject} /> : <a href={path}>{subject}</a>}</b>{" "}
        <span class="small soft">
          {project === undefined || project === subject ? null : (
            <>
              in <a href={`/projects/${projectId!}`}>{project}</a>
              {more === "" ? "" : " · "}
            </>
          )}
          {more}
        </span>
      </td>
    </tr>
  );
}

const auditQuery = v.strictObject({ after: v.optional(uuid) });

type Context = TeamContext & { query: v.InferOutput<typeof auditQuery> };

type AuditData = PagedRows<AuditEntry> & Pick<RowContext, "projects">;

async function loadAudit({ sql, team, query }: Context): Promise<AuditData> {
  const found = await selectAuditEntries(sql, team.id, { limit: PAGE_SIZE, after: query.after });
  const page = toPagedRows(found, PAGE_SIZE, ({ id }) => id);
  const ids = new Set(page.rows.flatMap(({ details }) => projectOf(details) ?? []));
  return { ...page, projects: await selectProjectNames(sql, team.id, [...ids]) };
}

function auditView({ team, query, now }: Context, { rows, next, projects }: AuditData): View {
  const base: Path = `/teams/${team.id}/audit`;
  const body = (
    <>
      <h1>Audit log of {team.name}</h1>
      <p class="meta">
        Changes to members, keys, settings, tests, bugs and executions. Entries cannot be edited or deleted.
      </p>
      <div class="spaced">
        {rows.length === 0 ? (
          <Empty>{query.after === undefined ? "No entries yet." : "No older entries."}</Empty>
        ) : (
          <CardTable caption="Entries, newest first" columns={["When", "Event"]} scrolls>
            {rows.map((entry) => row(entry, { projects, now }))}
          </CardTable>
        )}
      </div>
      <nav class="pages" aria-label="Pages">
        {query.after === undefined ? null : <a href={base}>Newest</a>}
        {next === undefined ? null : <a href={`${base}?after=${next}`}>Older</a>}
      </nav>
    </>
  );
  return { title: `Audit log of ${team.name}`, body, section: "audit" };
}

export const audit: Page[] = [
  page("/teams/:teamId/audit", { access: "owner", query: auditQuery }, async (context) =>
    auditView(context, await loadAudit(context)),
  ),
];
