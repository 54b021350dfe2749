/** The pages and forms of the settings of a team. */

import * as v from "valibot";
import { check } from "../../../http/input.ts";
import { addTeamKey, revokeTeamKey } from "../../../operations/people/keys.ts";
import { createProject, renameTeam } from "../../../operations/projects/projects.ts";
import { uuid } from "../../../schema/fields.ts";
import { tryForm } from "../../site/form_input.ts";
import { type Page, SeeOther, form } from "../../site/page.ts";
import { write } from "../../site/write.ts";
import { deletionForm, deletionPage } from "./deletion.tsx";
import { named, settings, settingsPage } from "./settings.tsx";

const nameField = v.strictObject({ name: v.string() });

const createProjectForm = form("/teams/:teamId/projects", { access: "owner", fields: nameField }, async (context) => {
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
      value: fields.name,
    });
  return new SeeOther(`/projects/${created.result}/settings/key`);
});

const teamKeyForm = form(
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
      return await settings(context, undefined, { problem: { of: "key", text: made.problem }, value: fields.name });
    const { name, generated } = made.result;
    // A form that is sent twice, for example by a reload, must not create a second key.
    if (!generated) return new SeeOther(`/teams/${team.id}/settings?notice=shown#keys`);
    const { key } = generated;
    const body = (
      <>
        <h1>
          New key of {team.name}: {name}
        </h1>
        <div class="message good">
          <p>
            <b>Copy it now. It is not shown again.</b>
          </p>
        </div>
        <pre data-copy>{key}</pre>
        <h2>Try it</h2>
        <pre data-copy>
          curl -H "Authorization: Bearer {key}" "{publicUrl}/api/v1/teams/{team.id}/environments"
        </pre>
        <p class="actions">
          <a class="button" href={`/teams/${team.id}/settings#keys`}>
            Back to team settings
          </a>
        </p>
      </>
    );
    return { title: "New key", body, section: "team" };
  },
);

const revokeForm = form("/teams/:teamId/keys/:keyId/revoke", { access: "owner" }, async (context) => {
  await write(context, "owner", (sql, by) => revokeTeamKey(sql, context.team.id, context.params.keyId, by));
  return new SeeOther(`/teams/${context.team.id}/settings?notice=revoked#keys`);
});

const renameForm = form("/teams/:teamId/name", { access: "owner", fields: nameField }, async (context) => {
  const { team, fields } = context;
  const renamed = await tryForm(() => {
    const { name } = check(named, { name: fields.name.trim() });
    return write(
      context,
      "owner",
      (sql) => renameTeam(sql, team.id, name),
      (before) => (before === name ? undefined : { action: "team.renamed", subject: name, details: { before } }),
    );
  });
  if ("problem" in renamed)
    return await settings(context, undefined, { problem: { of: "name", text: renamed.problem }, value: fields.name });
  return new SeeOther(`/teams/${team.id}/settings?notice=renamed`);
});

export const teamSettings: Page[] = [
  settingsPage,
  createProjectForm,
  teamKeyForm,
  revokeForm,
  renameForm,
  deletionPage,
  deletionForm,
];
