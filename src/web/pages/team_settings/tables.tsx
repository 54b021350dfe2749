/** The projects and the keys of a team. */

import type { Html, Path } from "../../../http/html.ts";
import type { ShownKey } from "../../../store/keys.ts";
import type { ProjectWithKey, TeamTally } from "../../../store/projects.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { Danger } from "../../components/form.tsx";
import { Tag } from "../../components/status.tsx";
import { Ago } from "../../components/text.tsx";
import type { PageContext } from "../../site/page.ts";

export type Shown = Pick<PageContext, "fast" | "sql" | "csrf" | "now"> & {
  role: "viewer" | "member" | "owner";
  team: { id: string; name: string };
};
const join = (parts: readonly (string | false)[]): string => parts.filter(Boolean).join(", ");

/** Each place with what stands there, in words. */
export function places({ team, role }: Shown, tally: TeamTally, queue: { waiting: number; unserved: number }): Html {
  const base: Path = `/teams/${team.id}`;
  const { environments, variables, integrations, disabledIntegrations, failingIntegrations } = tally;
  const { automations, enabledAutomations } = tally;
  const rows: [path: string, name: string, what: string, isBad?: boolean][] = [
    ["members", "Members", "people and invitations"],
    [
      "environments",
      "Environments",
      environments === 0 ? "none yet" : `${environments}, with ${counted(variables, "variable")}`,
    ],
    [
      "integrations",
      "Integrations",
      integrations === 0
        ? "none yet"
        : join([
            toCount(integrations),
            failingIntegrations > 0 && `${failingIntegrations} cannot be reached`,
            disabledIntegrations > 0 && `${disabledIntegrations} disabled`,
          ]),
      failingIntegrations > 0,
    ],
    [
      "automations",
      "Automations",
      automations === 0
        ? "none yet"
        : join([
            automations === enabledAutomations ? `${toCount(automations)}, all enabled` : toCount(automations),
            automations > enabledAutomations && `${automations - enabledAutomations} disabled`,
          ]),
    ],
    [
      "runners",
      "Runners",
      queue.waiting === 0
        ? "no tasks waiting"
        : join([
            `${counted(queue.waiting, "task")} waiting`,
            queue.unserved > 0 && `${queue.unserved} without a matching runner`,
          ]),
      queue.unserved > 0,
    ],
    ...(role === "owner"
      ? [["audit", "Audit log", "changes to keys, members and settings"] as [string, string, string]]
      : []),
  ];
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">Settings of the team</caption>
        <tbody>
          {rows.map(([path, name, what, isBad]) => (
            <tr>
              <td>
                <a href={`${base}/${path}`}>
                  <b>{name}</b>
                </a>
              </td>
              <td class={isBad ? "failed" : "soft"}>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function projectTable(rows: readonly ProjectWithKey[], now: Date): Html {
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">Projects of the team</caption>
        <thead>
          <tr>
            <th scope="col">Project</th>
            <th scope="col" class="wide">
              Default branch
            </th>
            <th scope="col">Key</th>
            <th scope="col" class="number">
              Key last used
            </th>
            <th scope="col" class="wide">
              <span class="visually-hidden">Settings</span>
            </th>
          </tr>
        </thead>
        <tbody>
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
              <td>{row.leading === null ? <span class="soft">none</span> : <code>{row.leading}…</code>}</td>
              <td class="number soft">{row.lastUsedAt === null ? "never" : <Ago at={row.lastUsedAt} now={now} />}</td>
              <td class="number wide">
                <a href={`/projects/${row.id}/settings`}>
                  Settings<span class="visually-hidden"> of {row.name}</span>
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function keyTable({ team, role, csrf, now }: Shown, keys: readonly ShownKey[]): Html {
  if (keys.length === 0)
    return (
      <div class="card empty">
        <p>No team key yet. It is for scripts that set up integrations, environments and automations.</p>
      </div>
    );
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">Keys of the team</caption>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col" class="wide">
              Created
            </th>
            <th scope="col">Last used</th>
            <th scope="col">
              <span class="visually-hidden">Revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr>
              <td class="long">
                <b>{key.name ?? "without a name"}</b> <code class="soft">{key.leading}…</code>
              </td>
              <td class="soft wide">
                <Ago at={key.createdAt} now={now} />
                {key.madeBy === null ? null : <> by {key.madeBy}</>}
              </td>
              <td class="soft">{key.lastUsedAt === null ? "never" : <Ago at={key.lastUsedAt} now={now} />}</td>
              <td class="number">
                {key.revokedAt !== null ? (
                  <>
                    <Tag>revoked</Tag>{" "}
                    <span class="soft small">
                      <Ago at={key.revokedAt} now={now} />
                    </span>
                  </>
                ) : role === "owner" ? (
                  <Danger
                    action={`/teams/${team.id}/keys/${key.id}/revoke`}
                    csrf={csrf}
                    label={
                      <>
                        Revoke<span class="visually-hidden"> {key.name ?? key.leading}</span>
                      </>
                    }
                    loss={
                      <>
                        Requests with {key.leading}… will be refused.{" "}
                        {key.lastUsedAt === null ? (
                          "Never used."
                        ) : (
                          <>
                            Last used <Ago at={key.lastUsedAt} now={now} />.
                          </>
                        )}
                      </>
                    }
                  />
                ) : (
                  <Tag kind="passed">live</Tag>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
