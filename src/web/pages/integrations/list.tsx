/** The integrations of a team. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { toIntegration } from "../../../operations/automation/integrations.ts";
import { uuid } from "../../../schema/fields.ts";
import type { Integration } from "../../../schema/integrations.ts";
import { selectIntegrations } from "../../../store/integrations.ts";
import { counted } from "../../../wording/numbers.ts";
import { noticeParameter } from "../../components/form.tsx";
import { MarkCell, CardTable, TeamList, toPagedRows } from "../../components/list.tsx";
import { Ago } from "../../components/text.tsx";
import { page } from "../../site/page.ts";
import { KIND_NAMES } from "./fields.tsx";

const MAX_ROWS = 50;

export const NOTICES = {
  created: "Integration created. Send a test message to verify it.",
  saved: "Saved.",
  tested: "Test message sent.",
  failed: "The test message was not delivered. See the response below.",
  redelivered: "Redelivery queued.",
  enabled: "Integration enabled.",
  disabled: "Integration disabled. No messages are sent or queued.",
  deleted: "Integration deleted.",
} as const;

type Place = { teamId: string; integrationId: string };

export const pathOf = ({ teamId, integrationId }: Place): Path => `/teams/${teamId}/integrations/${integrationId}`;

/** Shows the state as a coloured shape and in words. */
export function stateOf({ enabled, disabledReason, lastDelivery, givenUp }: Integration): {
  status: string;
  text: string;
} {
  if (!enabled)
    return { status: "cancelled", text: disabledReason === null ? "disabled" : `disabled: ${disabledReason}` };
  const lost = givenUp ? `; ${counted(givenUp, "message")} not delivered` : "";
  if (lastDelivery === null) return { status: "queued", text: `no deliveries yet${lost}` };
  const { status, statusCode } = lastDelivery;
  if (status === "inapplicable") return { status: "skipped", text: `nothing to send the last time${lost}` };
  if (status === "sent") return { status: "passed", text: `last delivery succeeded${lost}` };
  const answer = statusCode === null ? "" : `, status ${statusCode}`;
  return status === "failed"
    ? { status: "failed", text: `last delivery failed${answer}${lost}` }
    : { status: "running", text: `last delivery pending${answer}${lost}` };
}

function IntegrationRow({ base, row, now }: { base: Path; row: Integration; now: Date }): Html {
  const { status, text } = stateOf(row);
  return (
    <tr>
      <MarkCell status={status} word={false} />
      <td class="long">
        <a href={`${base}/${row.id}`}>
          <b>{row.name}</b>
        </a>{" "}
        <span class="soft">{KIND_NAMES[row.kind][0]}</span>
        <span class="small soft narrow-only">{text}</span>
      </td>
      <td class="long wide">{text}</td>
      <td class="number soft">
        {row.lastDelivery === null ? "never" : <Ago at={row.lastDelivery.createdAt} now={now} />}
      </td>
    </tr>
  );
}

type TableProperties = { base: Path; integrations: readonly Integration[]; now: Date };

const IntegrationTable = ({ base, integrations, now }: TableProperties): Html => (
  <CardTable
    caption="Integrations, newest first"
    columns={[["Status", "hidden"], "Integration", ["State", "wide"], ["Last delivery", "number"]]}
  >
    {integrations.map((row) => (
      <IntegrationRow base={base} row={row} now={now} />
    ))}
  </CardTable>
);

export const notice = noticeParameter(NOTICES);

export const cursor = v.optional(uuid);

const path = "/teams/:teamId/integrations";

export const listPage = page(path, { access: "viewer", query: v.strictObject({ cursor, notice }) }, async (context) => {
  const { sql, team, role, now, query } = context;
  const found = await selectIntegrations(sql, team.id, { limit: MAX_ROWS }, query.cursor);
  const list = toPagedRows(found.map(toIntegration), MAX_ROWS, ({ id }) => id);
  const base: Path = `/teams/${team.id}/integrations`;
  const body = (
    <TeamList
      path={base}
      title="Integrations"
      noun="integration"
      description="Services that automations send to: chat, issue trackers, CI systems and webhooks."
      suggestion="Connect Slack, Microsoft Teams, GitHub and six other services."
      notices={NOTICES}
      hasNewPage
      {...{ role, list, query }}
    >
      <IntegrationTable base={base} integrations={list.rows} now={now} />
    </TeamList>
  );
  return { title: "Integrations", body, section: "integrations" };
});
