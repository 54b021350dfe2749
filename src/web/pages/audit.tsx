/** The audit log of a team: changes to members, keys, settings, tests, bugs and executions. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import type { AuditAction, AuditEntry } from "../../schema/audit.ts";
import { uuid } from "../../schema/fields.ts";
import { selectAuditEntries } from "../../store/audit.ts";
import { Empty } from "../components/empty.tsx";
import { type PagedRows, toPagedRows } from "../components/pager.tsx";
import { type Page, type PageContext, type View, page } from "../site/page.ts";
import { Ago, Breakable } from "../components/text.tsx";

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
  "bug.created": "opened the bug",
  "bug.changed": "changed the bug",
  "bug.merged": "merged the bug",
  "test_case.changed": "changed the test",
  "owners.changed": "changed the ownership file",
  "execution.rerun": "reran the execution",
  "execution.completed": "completed the execution",
  "execution.cancelled": "cancelled the execution",
  "execution.deleted": "deleted the execution",
  "sample_data.added": "added sample data to",
  "sample_data.removed": "removed the sample data of",
  "team.renamed": "renamed the team to",
};

/** Formats details as `role: member · by: invitation`. Null values are left out. */
const detailsOf = (details: AuditEntry["details"]): string =>
  Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(", ") : String(value)}`)
    .join(" · ");

const row = ({ at, actor, action, subject, details }: AuditEntry, now: Date): Html => (
  <tr>
    <td class="nowrap">
      <Ago at={at} now={now} />
    </td>
    <td class="long">
      <Breakable text={actor} /> {ACTION_WORDS[action] ?? action}{" "}
      <b>
        <Breakable text={subject} />
      </b>{" "}
      <span class="small soft">{detailsOf(details)}</span>
    </td>
  </tr>
);

const auditQuery = v.strictObject({ after: v.optional(uuid) });

type Context = Pick<PageContext, "sql" | "now"> & {
  team: { id: string; name: string };
  query: v.InferOutput<typeof auditQuery>;
};

async function loadAudit({ sql, team, query }: Context): Promise<PagedRows<AuditEntry>> {
  const found = await selectAuditEntries(sql, team.id, { limit: PAGE_SIZE, after: query.after });
  return toPagedRows(found, PAGE_SIZE, ({ id }) => id);
}

function auditView({ team, query, now }: Context, { rows, next }: PagedRows<AuditEntry>): View {
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
          <div class="card scroll">
            <table>
              <caption class="visually-hidden">Entries, newest first</caption>
              <thead>
                <tr>
                  <th scope="col">When</th>
                  <th scope="col">Event</th>
                </tr>
              </thead>
              <tbody>{rows.map((entry) => row(entry, now))}</tbody>
            </table>
          </div>
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
