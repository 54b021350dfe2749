/** The pages and forms of the settings of a team. */

import * as v from "valibot";
import { check } from "../../../http/input.ts";
import { addTeamKey, revokeTeamKey } from "../../../operations/people/keys.ts";
import { createProject, renameTeam } from "../../../operations/projects/projects.ts";
import { uuid } from "../../../schema/fields.ts";
import type { Page, View, TeamContext } from "../../site/page.ts";
import { deletionForm, deletionPage } from "./deletion.tsx";
import { named, type Problem, settings, settingsPage } from "./settings.tsx";
import { newKeyView } from "../../components/keys.tsx";
import { action } from "../../site/action.ts";

const nameField = v.strictObject({ name: v.string() });

const readName = ({ fields }: { fields: { name: string } }): string => check(named, { name: fields.name.trim() }).name;

type Named = TeamContext & { fields: { name: string } };

const showAgain = (of: Problem["of"]) => (context: Named, text: string) =>
  settings(context, undefined, { problem: { of, text }, value: context.fields.name });

const createProjectForm = action(
  "/teams/:teamId/projects",
  { access: "owner", fields: nameField },
  {
    read: readName,
    act: (sql, { team }, name) => createProject(sql, team.id, name),
    record: (projectId, _, name) => ({ action: "project.created", subject: name, details: { projectId } }),
    refused: showAgain("project"),
    done: (_, projectId) => `/projects/${projectId}/settings/key`,
  },
);

const teamKeyForm = action(
  "/teams/:teamId/keys",
  { access: "owner", fields: v.strictObject({ name: v.string(), newest: v.union([v.literal("none"), uuid]) }) },
  {
    read: readName,
    act: (sql, { team, fields: { newest } }, name, by) =>
      addTeamKey(sql, team.id, name, newest === "none" ? null : newest, by),
    refused: showAgain("key"),
    // A form that is sent twice, for example by a reload, must not create a second key.
    done: (context, made, name) =>
      made ? newKeyPage(context, name, made.key) : `/teams/${context.team.id}/settings?notice=shown#keys`,
  },
);

function newKeyPage({ team, publicUrl }: TeamContext, name: string, key: string): View {
  const links = (
    <a class="button" href={`/teams/${team.id}/settings#keys`}>
      Back to team settings
    </a>
  );
  return newKeyView(
    { heading: `New key of ${team.name}: ${name}`, key, section: "team", links },
    <>
      <h2>Try it</h2>
      <pre data-copy>
        curl -H "Authorization: Bearer {key}" "{publicUrl}/api/v1/teams/{team.id}/environments"
      </pre>
    </>,
  );
}

const revokeForm = action(
  "/teams/:teamId/keys/:keyId/revoke",
  { access: "owner" },
  {
    act: (sql, { team, params }, _, by) => revokeTeamKey(sql, team.id, params.keyId, by),
    done: ({ team }) => `/teams/${team.id}/settings?notice=revoked#keys`,
  },
);

const renameForm = action(
  "/teams/:teamId/name",
  { access: "owner", fields: nameField },
  {
    read: readName,
    act: (sql, { team }, name) => renameTeam(sql, team.id, name),
    record: (before, _, name) =>
      before === name ? undefined : { action: "team.renamed", subject: name, details: { before } },
    refused: showAgain("name"),
    done: ({ team }) => `/teams/${team.id}/settings?notice=renamed`,
  },
);

export const teamSettings: Page[] = [
  settingsPage,
  createProjectForm,
  teamKeyForm,
  revokeForm,
  renameForm,
  deletionPage,
  deletionForm,
];
