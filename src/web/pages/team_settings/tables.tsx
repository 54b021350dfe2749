/** The projects and the keys of a team. */

import type { Html } from "../../../http/html.ts";
import type { ShownKey } from "../../../store/keys.ts";
import type { ProjectWithKey } from "../../../store/projects.ts";
import { AgoCell, Empty, CardTable } from "../../components/list.tsx";
import { RevokeKey } from "../../components/keys.tsx";
import { Tag } from "../../components/status.tsx";
import { Ago } from "../../components/text.tsx";
import type { TeamContext } from "../../site/page.ts";

export function projectTable(rows: readonly ProjectWithKey[], now: Date): Html {
  return (
    <CardTable
      caption="Projects of the team"
      columns={[
        "Project",
        ["Default branch", "wide"],
        ["Key", "wide"],
        ["Key last used", "number"],
        ["Settings", "wide", "hidden"],
      ]}
    >
      {rows.map((row) => (
        <tr>
          <td class="long">
            <a href={`/projects/${row.id}`}>
              <b>{row.name}</b>
            </a>
          </td>
          <td class="long wide">
            <code>{row.defaultBranch}</code>
          </td>
          <td class="wide">{row.leading === null ? <span class="soft">none</span> : <code>{row.leading}…</code>}</td>
          <AgoCell at={row.lastUsedAt} now={now} />
          <td class="number wide">
            <a href={`/projects/${row.id}/settings`}>
              Settings<span class="visually-hidden"> of {row.name}</span>
            </a>
          </td>
        </tr>
      ))}
    </CardTable>
  );
}

export function keyTable({ team, role, csrf, now }: TeamContext, keys: readonly ShownKey[]): Html {
  if (keys.length === 0)
    return <Empty>No team keys yet. Scripts use them to set up integrations, environments and automations.</Empty>;
  return (
    <CardTable caption="Keys of the team" columns={["Key", ["Created", "wide"], "Last used", ["Revoke", "hidden"]]}>
      {keys.map((key) => (
        <tr>
          <td class="long">
            <b>{key.name ?? "unnamed"}</b> <code class="soft">{key.leading}…</code>
          </td>
          <td class="soft wide">
            <Ago at={key.createdAt} now={now} />
            {key.madeBy === null ? null : <> by {key.madeBy}</>}
          </td>
          <AgoCell at={key.lastUsedAt} now={now} kind="soft" />
          <td class="number">
            {key.revokedAt !== null ? (
              <>
                <Tag>revoked</Tag>{" "}
                <span class="soft small">
                  <Ago at={key.revokedAt} now={now} />
                </span>
              </>
            ) : role === "owner" ? (
              <RevokeKey
                action={`/teams/${team.id}/keys/${key.id}/revoke`}
                csrf={csrf}
                name={key.name ?? key.leading}
                shown={key}
                now={now}
              />
            ) : (
              <Tag kind="passed">active</Tag>
            )}
          </td>
        </tr>
      ))}
    </CardTable>
  );
}
