/** Deletes a team: a page that says what is lost and asks for the name. */

import * as v from "valibot";
import type { Path } from "../../../http/html.ts";
import { deleteTeam } from "../../../operations/projects/deletion.ts";
import { selectTeamContents } from "../../../store/deletion.ts";
import { DeletionForm, countedLoss } from "../../components/deletion.tsx";
import { tryForm } from "../../site/form_input.ts";
import { type PageContext, SeeOther, type View, form, page } from "../../site/page.ts";
import { write } from "../../site/write.ts";

type Shown = Pick<PageContext, "sql" | "csrf"> & { team: { id: string; name: string } };

async function deletion(
  { sql, csrf, team }: Shown,
  { problem, given }: { problem?: string; given?: string } = {},
): Promise<View> {
  const contents = await selectTeamContents(sql, team.id);
  const path: Path = `/teams/${team.id}/settings`;
  const body = (
    <DeletionForm
      what="team"
      name={team.name}
      losses={[
        `${countedLoss(contents.projects, "project")} with all executions, test cases, bug reports, keys and links`,
        `${countedLoss(contents.members, "membership")} and ${countedLoss(contents.invitations, "open invitation")}; accounts are kept`,
        countedLoss(contents.keys, "team key"),
        `${countedLoss(contents.environments, "environment")} with variables and secrets`,
        `${countedLoss(contents.integrations, "integration")} with their deliveries, and ${countedLoss(contents.automations, "automation")}`,
        "The audit log. The server log keeps who deleted the team",
      ]}
      consequence="All keys, links and badges stop working immediately. Nothing is sent to integrations any more."
      action={`${path}/delete`}
      cancel={path}
      csrf={csrf}
      problem={problem}
      {...(given === undefined ? {} : { given })}
    />
  );
  return { title: "Delete the team", body, section: "team", ...(problem === undefined ? {} : { status: 400 }) };
}

export const deletionPage = page("/teams/:teamId/settings/delete", { access: "owner" }, (context) => deletion(context));

export const deletionForm = form(
  "/teams/:teamId/settings/delete",
  { access: "owner", fields: v.strictObject({ confirm: v.string() }) },
  async (context) => {
    const { team, fields, visitor, log } = context;
    // No record: the audit log is the team's, and is deleted with it.
    const deleted = await tryForm(() =>
      write(context, "owner", (sql, by) => deleteTeam(sql, { id: team.id, confirm: fields.confirm }, by)),
    );
    if ("problem" in deleted) return await deletion(context, { problem: deleted.problem, given: fields.confirm });
    const { name, projects, revokedKeys } = deleted.result;
    log.warn("A team was deleted", { teamId: team.id, name, projects, revokedKeys, deletedBy: visitor.email });
    return new SeeOther("/");
  },
);
