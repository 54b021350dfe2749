/** The form that chooses the share up to which gates of a project forgive, or tries a number. */

import * as v from "valibot";
import { check } from "../../../http/input.ts";
import { changeProject } from "../../../operations/projects/projects.ts";
import { GATE_SHARES } from "../../../schema/gate.ts";
import { projectPatch } from "../../../schema/projects.ts";
import { CHOICES, type GateChoices } from "./gate_share.tsx";
import { loadSettings, settings } from "./settings.tsx";
import { action } from "../../site/action.ts";

const fields = v.strictObject({ choice: v.picklist(CHOICES), share: v.string(), action: v.picklist(["save", "try"]) });

const toShare = ({ choice, share }: v.InferOutput<typeof fields>): number | string => {
  if (choice !== "own") return GATE_SHARES[choice];
  return /^\d?\.\d{1,6}$/.test(share.trim()) ? Number(share.trim()) : share;
};

const readShare = (given: v.InferOutput<typeof fields>) => check(projectPatch, { gateShare: toShare(given) });

export const gateShareForm = action(
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
