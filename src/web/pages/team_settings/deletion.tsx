/** Deletes a team: a page that says what is lost and asks for the name. */

import * as v from "valibot";
import { deleteTeam } from "../../../operations/projects/deletion.ts";
import { selectTeamContents } from "../../../store/deletion.ts";
import { deletionView, countedLoss } from "../../components/deletion.tsx";
import { type View, page, type TeamContext } from "../../site/page.ts";
import { action } from "../../site/action.ts";

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

export const deletionPage = page("/teams/:teamId/settings/delete", { access: "owner" }, (context) => deletion(context));

export const deletionForm = action(
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
