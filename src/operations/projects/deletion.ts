/** Deletes projects and teams: revokes their keys and leaves a tombstone, whose rows the server removes afterwards (work/purge.ts). */

import type { Actor } from "../../schema/audit.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import { lockProject, lockTeam, markProjectDeleted, markTeamDeleted } from "../../store/deletion.ts";
import { revokeAllKeys } from "../people/keys.ts";

/** `confirm` is the name as the person has typed it. */
type Deletion = { id: string; confirm: string };

type DeletedProject = { id: string; teamId: string; name: string; revokedKeys: number };
type DeletedTeam = { id: string; name: string; projects: number; revokedKeys: number };

/** Names are compared as pages show them: a run of white space is one space. */
const asShown = (name: string): string => name.normalize("NFC").replaceAll(/\s+/g, " ").trim();

function requireName(what: "project" | "team", name: string, confirm: string): void {
  if (asShown(confirm) !== asShown(name))
    refuse(`Cannot read "confirm": expected the name of the ${what}, "${asShown(name)}", got "${confirm}"`);
}

/**
 * Deletes a project and writes the audit log of the team. Refuses as absent if there is no such project, and any other text than its name.
 */
export async function deleteProject(sql: Tx, { id, confirm }: Deletion, by: Actor): Promise<DeletedProject> {
  const { teamId, name } = (await lockProject(sql, id)) ?? refuseAbsent();
  requireName("project", name, confirm);
  const revokedKeys = await revokeAllKeys(sql, { teamId, projectId: id });
  await markProjectDeleted(sql, id, by.name);
  const details = { projectId: id, revokedKeys };
  await insertAuditEntry(sql, teamId, by, { action: "project.deleted", subject: name, details });
  return { id, teamId, name, revokedKeys };
}

/**
 * Deletes a team with its audit log. The server log records the deletion when its last row is removed. Refuses as absent if there is no
 * such team, and any other text than its name.
 */
export async function deleteTeam(sql: Tx, { id, confirm }: Deletion, by: Actor): Promise<DeletedTeam> {
  const { name, projects } = (await lockTeam(sql, id)) ?? refuseAbsent();
  requireName("team", name, confirm);
  const revokedKeys = await revokeAllKeys(sql, { teamId: id });
  await markTeamDeleted(sql, id, by.name);
  return { id, name, projects, revokedKeys };
}
