/** A team at a glance: its projects, its keys, and the way to everything else that is set for it. */

import * as v from "valibot";
import { write } from "../site/write.ts";
import type { Html, Path } from "../../http/html.ts";
import { check } from "../../http/input.ts";
import { addTeamKey, revokeTeamKey } from "../../operations/people/keys.ts";
import { createProject } from "../../operations/projects/projects.ts";
import { text, uuid } from "../../schema/fields.ts";
import { selectTeamKeys, type ShownKey } from "../../store/keys.ts";
import { selectTeamQueue } from "../../store/runners.ts";
import { type ProjectWithKey, selectProjectsWithKeys, selectTeamTally, type TeamTally } from "../../store/projects.ts";
import { tryForm } from "../site/form_input.ts";
import { Csrf, Danger, Done, Field, FormError } from "../components/form.tsx";
import { type Page, type PageContext, SeeOther, type View, form, page } from "../site/page.ts";
import { Ago } from "../components/text.tsx";
import { counted, toCount } from "../../wording/numbers.ts";
import { Pager } from "../components/pager.tsx";
import { Tag } from "../components/status.tsx";

const MAX_PROJECTS = 100;
const MAX_KEYS = 100;

const DONE = {
  revoked: "The key is revoked: nothing gets in with it any more.",
  shown:
    "The key was generated, and is shown only once. Whoever has not copied it revokes it, and generates another one.",
} as const;

/** Where the next page of projects begins: the last one's name and id. */
const after = v.pipe(
  v.string("expected the address of a next page"),
  v.transform((value) => /^([0-9a-f-]{36}) ([^]*)$/.exec(value)),
  v.check((match) => match === null || v.is(uuid, match[1]), "expected the address of a next page"),
  v.transform((match) => (match === null ? undefined : { id: match[1]!, name: match[2]! })),
);

type Shown = Pick<PageContext, "fast" | "sql" | "csrf" | "now"> & {
  role: "viewer" | "member" | "owner";
  team: { id: string; name: string };
};

const join = (parts: readonly (string | false)[]): string => parts.filter(Boolean).join(", ");

/** Each place with what stands there, in words. */
function places({ team, role }: Shown, tally: TeamTally, queue: { waiting: number; unserved: number }): Html {
  const base: Path = `/teams/${team.id}`;
  const { environments, variables, integrations, disabledIntegrations, failingIntegrations } = tally;
  const { automations, enabledAutomations } = tally;
  const rows: [path: string, name: string, what: string, isBad?: boolean][] = [
    ["members", "Members", "who is in the team, and invitations"],
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
        ? "nothing waits"
        : join([
            `${counted(queue.waiting, "task")} waiting`,
            queue.unserved > 0 && `${queue.unserved} for a runner that is not there`,
          ]),
      queue.unserved > 0,
    ],
    ...(role === "owner"
      ? [["audit", "Audit log", "who did what to keys, members, settings"] as [string, string, string]]
      : []),
  ];
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">What is set for the team</caption>
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

function projectTable(rows: readonly ProjectWithKey[], now: Date): Html {
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

function keyTable({ team, role, csrf, now }: Shown, keys: readonly ShownKey[]): Html {
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
                        Whatever uses {key.leading}… is refused from then on.{" "}
                        {key.lastUsedAt === null ? (
                          "It was never used."
                        ) : (
                          <>
                            It was last used <Ago at={key.lastUsedAt} now={now} />.
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

type Said = {
  told?: keyof typeof DONE | undefined;
  problem?: { of: "project" | "key"; text: string };
  given?: string;
};

async function settings(
  shown: Shown,
  cursor: v.InferOutput<typeof after>,
  { told, problem, given }: Said,
): Promise<View> {
  const { sql, team, role, csrf, now } = shown;
  const [tally, projects, keys, queue] = await Promise.all([
    selectTeamTally(sql, team.id),
    selectProjectsWithKeys(sql, team.id, MAX_PROJECTS, cursor),
    selectTeamKeys(sql, team.id, MAX_KEYS),
    selectTeamQueue(sql, team.id, 100),
  ]);
  const base: Path = `/teams/${team.id}`;
  const rows = projects.slice(0, MAX_PROJECTS);
  const last = projects.length > MAX_PROJECTS ? rows.at(-1) : undefined;
  const sum = (name: "waiting" | "unserved") => queue.reduce((total, row) => total + row[name], 0);
  const newest = keys.reduce<string | null>((id, key) => (id === null || key.id > id ? key.id : id), null);
  const text = (of: "project" | "key") => (problem?.of === of ? problem.text : undefined);
  const body = (
    <>
      {told ? <Done>{DONE[told]}</Done> : null}
      <h1>{team.name}</h1>
      <p class="meta">
        <span>You are {role === "owner" ? "an owner" : `a ${role}`} of this team.</span>
      </p>
      <h2>Settings</h2>
      {places(shown, tally, { waiting: sum("waiting"), unserved: sum("unserved") })}
      <h2 id="projects">Projects</h2>
      {rows.length === 0 ? (
        <div class="card empty">
          <p>No project yet{role === "owner" ? ": create one below." : ": owners create them."}</p>
        </div>
      ) : (
        projectTable(rows, now)
      )}{" "}
      <Pager path={`${base}/settings`} query={{ cursor: cursor && "" }} cursor={last && `${last.id} ${last.name}`} />{" "}
      {role === "owner" ? (
        <>
          <FormError message={text("project")} />
          <form class="line" method="post" action={`${base}/projects`}>
            <Csrf token={csrf} />{" "}
            <Field
              label="Name of a new project"
              name="name"
              required
              max={200}
              placeholder="shop"
              value={problem?.of === "project" ? given : ""}
            />{" "}
            <button>Create the project</button>
          </form>
        </>
      ) : null}
      <h2 id="keys">
        Team keys <small>for scripts: integrations, environments, automations; not for uploads</small>
      </h2>
      {keyTable(shown, keys)}{" "}
      {role === "owner" ? (
        <>
          <FormError message={text("key")} />
          <form class="line" method="post" action={`${base}/keys`}>
            <Csrf token={csrf} /> <input type="hidden" name="newest" value={newest ?? "none"} />{" "}
            <Field
              label="Name of a new key"
              name="name"
              id="key-name"
              required
              max={200}
              placeholder="terraform"
              value={problem?.of === "key" ? given : ""}
            />{" "}
            <button>Generate a team key</button>
          </form>
        </>
      ) : null}
      <h2>For scripts</h2>
      <div class="card padded">
        <dl class="facts">
          <dt>Team</dt>
          <dd class="long">
            <code data-copy>{team.id}</code>
          </dd>
        </dl>
      </div>
    </>
  );
  return { title: team.name, body, section: "team", ...(problem ? { status: 400 } : {}) };
}

const named = v.strictObject({ name: text(200) });
const nameField = v.strictObject({ name: v.string() });

export const teamSettings: Page[] = [
  page(
    "/teams/:teamId/settings",
    {
      access: "viewer",
      query: v.strictObject({ told: v.optional(v.picklist(["revoked", "shown"])), cursor: v.optional(after) }),
    },
    async (context) => await settings(context, context.query.cursor, { told: context.query.told }),
  ),

  form("/teams/:teamId/projects", { access: "owner", fields: nameField }, async (context) => {
    const { team, fields } = context;
    const created = await tryForm(() => {
      const { name } = check(named, { name: fields.name.trim() });
      return write(
        context,
        "owner",
        (sql) => createProject(sql, team.id, name),
        (projectId) => ({ action: "project.created", subject: name, details: { projectId } }),
      );
    });
    if ("problem" in created)
      return await settings(context, undefined, {
        problem: { of: "project", text: created.problem },
        given: fields.name,
      });
    return new SeeOther(`/projects/${created.result}/settings/key`);
  }),

  form(
    "/teams/:teamId/keys",
    { access: "owner", fields: v.strictObject({ name: v.string(), newest: v.union([v.literal("none"), uuid]) }) },
    async (context) => {
      const { team, fields, publicUrl } = context;
      const newest = fields.newest === "none" ? null : fields.newest;
      const made = await tryForm(() => {
        const { name } = check(named, { name: fields.name.trim() });
        return write(context, "owner", async (sql, by) => ({
          name,
          generated: await addTeamKey(sql, team.id, name, newest, by),
        }));
      });
      if ("problem" in made)
        return await settings(context, undefined, { problem: { of: "key", text: made.problem }, given: fields.name });
      const { name, generated } = made.result;
      // Sent twice, by a reload for one, it would make another one.
      if (!generated) return new SeeOther(`/teams/${team.id}/settings?told=shown#keys`);
      const { key } = generated;
      const body = (
        <>
          <h1>
            The new key of {team.name}: {name}
          </h1>
          <div class="message good">
            <p>
              <b>Copy it now: it is shown this once.</b>
            </p>
          </div>
          <pre data-copy>{key}</pre>
          <h2>Try it</h2>
          <pre data-copy>
            curl -H "Authorization: Bearer {key}" "{publicUrl}/api/v1/teams/{team.id}/environments"
          </pre>
          <p class="actions">
            <a class="button" href={`/teams/${team.id}/settings#keys`}>
              To the settings of the team
            </a>
          </p>
        </>
      );
      return { title: "The new key", body, section: "team" };
    },
  ),

  form("/teams/:teamId/keys/:keyId/revoke", { access: "owner" }, async (context) => {
    await write(context, "owner", (sql, by) => revokeTeamKey(sql, context.team.id, context.params.keyId, by));
    return new SeeOther(`/teams/${context.team.id}/settings?told=revoked#keys`);
  }),
];
