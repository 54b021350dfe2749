/** Deletes a project: a page that says what is lost and asks for the name. */

import * as v from "valibot";
import type { Path } from "../../../http/html.ts";
import { deleteProject } from "../../../operations/projects/deletion.ts";
import { selectProjectContents } from "../../../store/deletion.ts";
import { DeletionForm, countedLoss } from "../../components/deletion.tsx";
import { tryForm } from "../../site/form_input.ts";
import { type PageContext, SeeOther, type View, form, page } from "../../site/page.ts";
import { write } from "../../site/write.ts";

type Shown = Pick<PageContext, "sql" | "csrf"> & { project: { id: string; name: string } };

async function deletion(
  { sql, csrf, project }: Shown,
  { problem, given }: { problem?: string; given?: string } = {},
): Promise<View> {
  const contents = await selectProjectContents(sql, project.id);
  const path: Path = `/projects/${project.id}/settings`;
  const body = (
    <DeletionForm
      what="project"
      name={project.name}
      losses={[
        `${countedLoss(contents.executions, "execution")} with their reports, results and logs`,
        `${countedLoss(contents.testCases, "test case")} with their history, owners and quarantine`,
        countedLoss(contents.bugReports, "bug report"),
        `${countedLoss(contents.keys, "API key")} and ${countedLoss(contents.runners, "runner")}`,
        `${countedLoss(contents.shares, "shared link")}, badges included`,
      ]}
      consequence="Keys, links and badges stop working immediately. Uploads fail, and runners lose their tasks."
      action={`${path}/delete`}
      cancel={path}
      csrf={csrf}
      problem={problem}
      {...(given === undefined ? {} : { given })}
    />
  );
  const status = problem === undefined ? {} : { status: 400 };
  return { title: "Delete the project", body, section: "settings", ...status };
}

export const deletionPage = page("/projects/:projectId/settings/delete", { access: "owner" }, (context) =>
  deletion(context),
);

export const deletionForm = form(
  "/projects/:projectId/settings/delete",
  { access: "owner", fields: v.strictObject({ confirm: v.string() }) },
  async (context) => {
    const { project, team, fields } = context;
    const deleted = await tryForm(() =>
      write(context, "owner", (sql, by) => deleteProject(sql, { id: project.id, confirm: fields.confirm }, by)),
    );
    if ("problem" in deleted) return await deletion(context, { problem: deleted.problem, given: fields.confirm });
    return new SeeOther(`/teams/${team.id}/settings?notice=deleted`);
  },
);
