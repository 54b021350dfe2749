/** The pages and forms of the settings of a project. */

import * as v from "valibot";
import { check } from "../../../http/input.ts";
import { deleteProject } from "../../../operations/projects/deletion.ts";
import { changeProject } from "../../../operations/projects/projects.ts";
import { exportQuery } from "../../../schema/exports.ts";
import { GATE_SHARES } from "../../../schema/gate.ts";
import { projectPatch } from "../../../schema/projects.ts";
import { addressBlock } from "../../../secrets/attempts.ts";
import { selectProjectContents } from "../../../store/deletion.ts";
import { deletionView, countedLoss } from "../../components/deletion.tsx";
import { action } from "../../site/action.ts";
import { type Page, page, type View, type ProjectContext } from "../../site/page.ts";
import { CHOICES, type GateChoices } from "./gate_share.tsx";
import { keyForm, keyPage } from "./key.tsx";
import { ownersPage } from "./owners.tsx";
import { changeForm, settingsPage, loadSettings, settings } from "./settings.tsx";

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

const deletionPage = page("/projects/:projectId/settings/delete", { access: "owner" }, (context) => deletion(context));

const deletionForm = action(
  "/projects/:projectId/settings/delete",
  { access: "owner", fields: v.strictObject({ confirm: v.string() }) },
  {
    act: (sql, { project, fields: { confirm } }, _, by) => deleteProject(sql, { id: project.id, confirm }, by),
    refused: (context, problem) => deletion(context, { problem, given: context.fields.confirm }),
    done: ({ team }) => `/teams/${team.id}/settings?notice=deleted`,
  },
);

const fields = v.strictObject({ choice: v.picklist(CHOICES), share: v.string(), action: v.picklist(["save", "try"]) });

const toShare = ({ choice, share }: v.InferOutput<typeof fields>): number | string => {
  if (choice !== "own") return GATE_SHARES[choice];
  return /^\d?\.\d{1,6}$/.test(share.trim()) ? Number(share.trim()) : share;
};

const readShare = (given: v.InferOutput<typeof fields>) => check(projectPatch, { gateShare: toShare(given) });

const gateShareForm = action(
  "/projects/:projectId/settings/gate-share",
  { access: "owner", fields },
  {
    preview: ({ project, fields: given }) =>
      given.action === "try"
        ? `/projects/${project.id}/settings?share=${readShare({ ...given, choice: "own" }).gateShare}#gates`
        : undefined,
    read: (context) => readShare(context.fields),
    act: (sql, { project }, patch) => changeProject(sql, project.id, patch),
    record: ({ name, gateShare }, { project }) => ({
      action: "project.changed",
      subject: name,
      details: { projectId: project.id, fields: ["gateShare"], gateShare },
    }),
    refused: async (context, gateProblem) => {
      const loaded = await loadSettings(context);
      const choices: GateChoices = { ...loaded.choices, chosen: "own", own: context.fields.share };
      return settings(context, { ...loaded, choices, gateProblem });
    },
    done: ({ project }) => `/projects/${project.id}/settings?notice=saved#gates`,
  },
);

const exportPage = page(
  "/projects/:projectId/export",
  { access: "viewer", query: exportQuery },
  async ({ project, query, visitor, address, mayStay, exportProject, now }) =>
    await exportProject({
      ...{ projectId: project.id, query, mayStay },
      owner: { session: visitor.sessionId, address: addressBlock(address()), project: project.id },
      headers: {
        "Content-Disposition": `attachment; filename="assay-export-${now.toISOString().slice(0, 10)}.ndjson"`,
      },
    }),
);

export const projectSettings: Page[] = [
  settingsPage,
  changeForm,
  gateShareForm,
  keyPage,
  keyForm,
  ownersPage,
  exportPage,
  deletionPage,
  deletionForm,
];
