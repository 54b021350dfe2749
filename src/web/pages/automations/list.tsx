/** The automations of a team. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import type { AutomationRun } from "../../../schema/automation_runs.ts";
import { uuid } from "../../../schema/fields.ts";
import { type AutomationRow, selectAutomations, selectTeamProjects } from "../../../store/automations.ts";
import { selectIntegrations } from "../../../store/integrations.ts";
import { noticeParameter } from "../../components/form.tsx";
import { CardTable, TeamList, toPagedRows, MarkCell } from "../../components/list.tsx";
import { Mark, Tag } from "../../components/status.tsx";
import { Ago } from "../../components/text.tsx";
import { page } from "../../site/page.ts";
import { type Choices, sentenceOf } from "./sentence.ts";

const MAX_ROWS = 50;

const MAX_INTEGRATIONS = 100;

export const NOTICES = {
  created: "Automation created. A dry run shows what it would do.",
  saved: "Saved.",
  ran: "The automation ran. See the result below.",
  enabled: "Automation enabled.",
  disabled: "Automation disabled.",
  deleted: "Automation deleted.",
} as const;

type Place = { teamId: string; automationId: string };

export const pathOf = ({ teamId, automationId }: Place): Path => `/teams/${teamId}/automations/${automationId}`;

export async function selectChoices(sql: Sql, teamId: string): Promise<Choices> {
  const [projects, integrations] = await Promise.all([
    selectTeamProjects(sql, teamId, undefined),
    selectIntegrations(sql, teamId, { limit: MAX_INTEGRATIONS }, undefined),
  ]);
  return {
    projects: projects.toSorted((a, b) => a.name.localeCompare(b.name)),
    integrations: integrations.map(({ id, name, kind, enabled }) => ({ id, name, kind, enabled })),
  };
}

/** Shapes and words for the status of a run or one of its actions. */
export const MARKS: Record<string, string> = {
  done: "passed",
  skipped: "skipped",
  failed: "failed",
  planned: "queued",
};

export const wordOf = (run: AutomationRun["status"]) =>
  ({ done: "done", skipped: "nothing to do", failed: "failed" })[run];

export const lastRunOf = ({ lastRun }: AutomationRow, now: Date): Html =>
  lastRun === null ? (
    <>never ran</>
  ) : (
    <>
      <Mark status={MARKS[lastRun.status]!} word={false} /> last run {wordOf(lastRun.status)},{" "}
      <Ago at={lastRun.createdAt} now={now} />
    </>
  );

export const notice = noticeParameter(NOTICES);

export const cursor = v.optional(uuid);

type TableProperties = { base: Path; automations: readonly AutomationRow[]; choices: Choices; now: Date };

const AutomationTable = ({ base, automations, choices, now }: TableProperties): Html => (
  <CardTable
    caption="Automations, newest first"
    columns={[["Status", "hidden"], "Automation", ["Last run", "wide"], ["When", "number"]]}
  >
    {automations.map((row) => (
      <tr>
        <MarkCell
          status={!row.enabled ? "cancelled" : row.lastRun ? MARKS[row.lastRun.status]! : "queued"}
          word={!row.enabled ? "disabled" : row.lastRun ? wordOf(row.lastRun.status) : "never ran"}
        />
        <td class="long">
          <a href={`${base}/${row.id}`}>
            <b>{row.name}</b>
          </a>
          {row.enabled ? null : [" ", <Tag>disabled</Tag>]} <span class="small soft">{sentenceOf(row, choices)}</span>
        </td>
        <td class="long wide soft">
          {row.lastRun ? `${wordOf(row.lastRun.status)}: ${row.lastRun.reason}` : "never ran"}
        </td>
        <td class="number soft">{row.lastRun ? <Ago at={row.lastRun.createdAt} now={now} /> : "–"}</td>
      </tr>
    ))}
  </CardTable>
);

const path = "/teams/:teamId/automations";

export const listPage = page(path, { access: "viewer", query: v.strictObject({ cursor, notice }) }, async (context) => {
  const { sql, team, role, now, query } = context;
  const [found, choices] = await Promise.all([
    selectAutomations(sql, team.id, MAX_ROWS, query.cursor),
    selectChoices(sql, team.id),
  ]);
  const list = toPagedRows(found, MAX_ROWS, ({ id }) => id);
  const base: Path = `/teams/${team.id}/automations`;
  const body = (
    <TeamList
      path={base}
      title="Automations"
      noun="automation"
      description="Automations run actions when an event occurs or on a schedule."
      suggestion="A good first automation: notify the team when an execution fails on main."
      notices={NOTICES}
      hasNewPage
      {...{ role, list, query }}
    >
      <AutomationTable base={base} automations={list.rows} choices={choices} now={now} />
    </TeamList>
  );
  return { title: "Automations", body, section: "automations" };
});
