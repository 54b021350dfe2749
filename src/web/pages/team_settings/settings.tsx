/** The settings of a team. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { mayBeEmpty, text } from "../../../schema/fields.ts";
import { selectTeamKeys } from "../../../store/keys.ts";
import { selectProjectsWithKeys } from "../../../store/projects.ts";
import { Empty, Pager } from "../../components/list.tsx";
import { DangerZone } from "../../components/deletion.tsx";
import { Field, FormError, Notice, noticeParameter, Form, Hidden } from "../../components/form.tsx";
import { type View, page, type TeamContext } from "../../site/page.ts";
import { keyTable, projectTable } from "./tables.tsx";

const MAX_PROJECTS = 100;

const MAX_KEYS = 100;

const NOTICES = {
  deleted: "Project deleted. Its data is being removed.",
  revoked: "Key revoked.",
  renamed: "Team renamed.",
  shown: "The key was shown once. If you did not copy it, revoke it and create a new one.",
} as const;

export type Problem = { of: "project" | "key" | "name" | "team"; text: string };

type FormState = {
  notice?: keyof typeof NOTICES | undefined;
  problem?: Problem | undefined;
  value?: string | undefined;
};

type NameForm = { of: Problem["of"]; label: string; placeholder?: string; button: string; newest?: string };

const FORM_PATHS = { project: "projects", key: "keys", name: "name", team: "teams" } as const;

/** A form of one name, for owners. `newest`: the newest key, so that a form that is sent twice creates no second one. */
function nameForm({ team, role, csrf }: TeamContext, { problem, value }: FormState, fields: NameForm): Html | null {
  if (role !== "owner") return null;
  const { of, label, placeholder, button, newest } = fields;
  const refused = problem?.of === of ? problem : undefined;
  const shown = refused ? value : of === "name" ? team.name : "";
  return (
    <>
      <FormError message={refused?.text} />
      <Form to={`/teams/${team.id}/${FORM_PATHS[of]}`} csrf={csrf} kind="line">
        <Hidden name="newest" value={newest} />
        <Field label={label} name="name" required max={200} {...(placeholder && { placeholder })} value={shown} />
        <button>{button}</button>
      </Form>
    </>
  );
}

export async function settings(
  shown: TeamContext,
  cursor: string | undefined,
  { notice, problem, value }: FormState,
): Promise<View> {
  const { sql, team, role, now, cursors } = shown;
  const base: Path = `/teams/${team.id}`;
  const [id, ...name] = cursor === undefined ? [] : cursors.read(base, cursor);
  const after = id === undefined ? undefined : { id, name: name.join("\n") };
  const [projects, keys] = await Promise.all([
    selectProjectsWithKeys(sql, team.id, MAX_PROJECTS, after),
    selectTeamKeys(sql, team.id, MAX_KEYS),
  ]);
  const rows = projects.slice(0, MAX_PROJECTS);
  const last = projects.length > MAX_PROJECTS ? rows.at(-1) : undefined;
  const newest = keys.reduce((id, key) => (id === "none" || key.id > id ? key.id : id), "none");
  const form = (fields: NameForm) => nameForm(shown, { problem, value }, fields);
  const body = (
    <>
      <Notice notices={NOTICES} name={notice} />
      <h1>{team.name}</h1>
      <p class="meta">
        <span>You are {role === "owner" ? "an owner" : `a ${role}`} of this team.</span>
      </p>
      <h2 id="projects">Projects</h2>
      {rows.length === 0 ? (
        <Empty>No projects yet.{role === "owner" ? " Create one below." : " Owners of the team create them."}</Empty>
      ) : (
        projectTable(rows, now)
      )}
      <Pager
        path={`${base}/settings`}
        query={{ cursor: cursor && "" }}
        cursor={last && cursors.write(base, [last.id, last.name])}
      />
      {form({ of: "project", label: "Name of the new project", placeholder: "shop", button: "Create project" })}
      <h2 id="keys">
        Team keys <small>for scripts that manage integrations, environments and automations; not for uploads</small>
      </h2>
      {keyTable(shown, keys)}
      {form({ of: "key", label: "Name of the new key", placeholder: "terraform", button: "Generate team key", newest })}
      {role === "owner" ? <h2 id="name">Name of the team</h2> : null}
      {form({ of: "name", label: "Name", button: "Rename team" })}
      {role === "owner" ? (
        <h2 id="new-team">
          New team <small>with projects, members and keys of its own; you are its owner</small>
        </h2>
      ) : null}
      {form({ of: "team", label: "Name of the new team", button: "Create team" })}
      <h2>Infrastructure rules</h2>
      <p>
        <a href={`${base}/infrastructure-rules`}>Texts of failures that are not the fault of a test</a>
      </p>
      <h2>For scripts</h2>
      <div class="card padded">
        <dl class="facts">
          <dt>Team</dt>
          <dd class="long">
            <code data-copy>{team.id}</code>
          </dd>
        </dl>
      </div>
      {role === "owner" ? <DangerZone what="team" path={`${base}/settings/delete`} /> : null}
    </>
  );
  return { title: team.name, body, section: "team", ...(problem ? { status: 400 } : {}) };
}

export const named = v.strictObject({ name: text(200) });

export const settingsPage = page(
  "/teams/:teamId/settings",
  {
    access: "viewer",
    query: v.strictObject({ notice: noticeParameter(NOTICES), cursor: mayBeEmpty(text(2_000)) }),
  },
  async (context) => await settings(context, context.query.cursor, { notice: context.query.notice }),
);
