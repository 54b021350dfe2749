/** The form that chooses the share up to which gates of a project forgive, or tries a number. */

import * as v from "valibot";
import { check } from "../../../http/input.ts";
import { changeProject } from "../../../operations/projects/projects.ts";
import { GATE_SHARES } from "../../../schema/gate.ts";
import { projectPatch } from "../../../schema/projects.ts";
import { tryForm } from "../../site/form_input.ts";
import { SeeOther, form } from "../../site/page.ts";
import { write } from "../../site/write.ts";
import { CHOICES, type GateChoices } from "./gate_share.tsx";
import { loadSettings, settings } from "./settings.tsx";

const fields = v.strictObject({ choice: v.picklist(CHOICES), share: v.string(), action: v.picklist(["save", "try"]) });

const toShare = ({ choice, share }: v.InferOutput<typeof fields>): number | string => {
  if (choice !== "own") return GATE_SHARES[choice];
  return /^\d?\.\d{1,6}$/.test(share.trim()) ? Number(share.trim()) : share;
};

export const gateShareForm = form(
  "/projects/:projectId/settings/gate-share",
  { access: "owner", fields },
  async (context) => {
    const { project, fields: given } = context;
    const isTried = given.action === "try";
    const done = await tryForm(async () => {
      const gateShare = toShare(isTried ? { ...given, choice: "own" } : given);
      const patch = check(projectPatch, { gateShare });
      if (isTried) return;
      await write(
        context,
        "owner",
        (sql) => changeProject(sql, project.id, patch),
        ({ name, gateShare }) => ({
          action: "project.changed",
          subject: name,
          details: { projectId: project.id, fields: ["gateShare"], gateShare },
        }),
      );
    });
    if ("result" in done)
      return new SeeOther(
        `/projects/${project.id}/settings?${isTried ? `share=${Number(given.share)}` : "notice=saved"}#gates`,
      );
    const loaded = await loadSettings(context);
    const choices: GateChoices = { ...loaded.choices, chosen: "own", own: given.share };
    return settings(context, { ...loaded, choices, gateProblem: done.problem });
  },
);
