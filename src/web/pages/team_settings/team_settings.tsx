/** The pages and forms of the settings of a team. */

import * as v from "valibot";
import { check } from "../../../http/input.ts";
import { createTeam } from "../../../operations/people/accounts.ts";
import { addTeamKey, revokeTeamKey } from "../../../operations/people/keys.ts";
import { deleteTeam } from "../../../operations/projects/deletion.ts";
import { createProject, renameTeam } from "../../../operations/projects/projects.ts";
import { uuid } from "../../../schema/fields.ts";
import { selectTeamContents } from "../../../store/deletion.ts";
import { deletionView, countedLoss } from "../../components/deletion.tsx";
import { newKeyView } from "../../components/keys.tsx";
import { action } from "../../site/action.ts";
import { type Page, type View, type TeamContext, page } from "../../site/page.ts";
import { named, type Problem, settings, settingsPage } from "./settings.tsx";

async function deletion(
  { sql, csrf, team }: TeamContext,
  refused: { problem?: string; given?: string } = {},
): Promise<View> {
  const contents = await selectTeamContents(sql, team.id);
  return deletionView({
    what: "team",
    name: team.name,
    losses: [
      `${countedLoss(contents.projects, "project")} with all executions, test cases, bug reports, keys and links`,
      `${countedLoss(contents.members, "membership")} and ${countedLoss(contents.invitations, "open invitation")}; accounts are kept`,
      countedLoss(contents.keys, "team key"),
      `${countedLoss(contents.environments, "environment")} with variables and secrets`,
      `${countedLoss(contents.integrations, "integration")} with their deliveries, and ${countedLoss(contents.automations, "automation")}`,
      "The audit log. The server log keeps who deleted the team",
    ],
    consequence: "All keys, links and badges stop working immediately. Nothing is sent to integrations any more.",
    settings: `/teams/${team.id}/settings`,
    csrf,
    ...refused,
  });
}

const deletionPage = page("/teams/:teamId/settings/delete", { access: "owner" }, (context) => deletion(context));

const deletionForm = action(
  "/teams/:teamId/settings/delete",
  { access: "owner", fields: v.strictObject({ confirm: v.string() }) },
  {
    // No record: the audit log is the team's, and is deleted with it.
    act: (sql, { team, fields: { confirm } }, _, by) => deleteTeam(sql, { id: team.id, confirm }, by),
    refused: (context, problem) => deletion(context, { problem, given: context.fields.confirm }),
    done: ({ team, visitor, log }, { name, projects, revokedKeys }) => {
      log.warn("A team was deleted", { teamId: team.id, name, projects, revokedKeys, deletedBy: visitor.email });
      return "/";
    },
  },
);

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

const createTeamForm = action(
  "/teams/:teamId/teams",
  { access: "owner", fields: nameField },
  {
    read: readName,
    act: (sql, { visitor }, name) => createTeam(sql, name, visitor),
    refused: showAgain("team"),
    done: (_, teamId) => `/teams/${teamId}/settings`,
  },
);

export const teamSettings: Page[] = [
  settingsPage,
  createProjectForm,
  teamKeyForm,
  revokeForm,
  renameForm,
  createTeamForm,
  deletionPage,
  deletionForm,
];
