/** Deletes a project: a page that says what is lost and asks for the name. */

import * as v from "valibot";
import { deleteProject } from "../../../operations/projects/deletion.ts";
import { selectProjectContents } from "../../../store/deletion.ts";
import { deletionView, countedLoss } from "../../components/deletion.tsx";
import { type View, page, type ProjectContext } from "../../site/page.ts";
import { action } from "../../site/action.ts";

async function deletion(
  { sql, csrf, project }: ProjectContext,
  refused: { problem?: string; given?: string } = {},
): Promise<View> {
  const contents = await selectProjectContents(sql, project.id);
  return deletionView({
    what: "project",
    name: project.name,
    losses: [
      `${countedLoss(contents.executions, "execution")} with their reports, results and logs`,
      `${countedLoss(contents.testCases, "test case")} with their history, owners and quarantine`,
      countedLoss(contents.bugReports, "bug report"),
      `${countedLoss(contents.keys, "API key")} and ${countedLoss(contents.runners, "runner")}`,
      `${countedLoss(contents.shares, "shared link")}, badges included`,
    ],
    consequence: "Keys, links and badges stop working immediately. Uploads fail, and runners lose their tasks.",
    settings: `/projects/${project.id}/settings`,
    csrf,
    ...refused,
  });
}

export const deletionPage = page("/projects/:projectId/settings/delete", { access: "owner" }, (context) =>
  deletion(context),
);

export const deletionForm = action(
  "/projects/:projectId/settings/delete",
  { access: "owner", fields: v.strictObject({ confirm: v.string() }) },
  {
    act: (sql, { project, fields: { confirm } }, _, by) => deleteProject(sql, { id: project.id, confirm }, by),
    refused: (context, problem) => deletion(context, { problem, given: context.fields.confirm }),
    done: ({ team }) => `/teams/${team.id}/settings?notice=deleted`,
  },
);
