/** Projects of a team: created, and their settings changed. */

import type { ProjectPatch } from "../../schema/projects.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { insertProject, type ProjectRow, updateProject, updateTeamName } from "../../store/projects.ts";

/** Creates a project without a key and returns its id. */
export const createProject = async (sql: Tx, teamId: string, name: string): Promise<string> =>
  (await insertProject(sql, teamId, name)) ?? refuseAbsent();

export const changeProject = async (sql: Tx, projectId: string, patch: ProjectPatch): Promise<ProjectRow> =>
  (await updateProject(sql, projectId, patch)) ?? refuseAbsent();

/** Renames a team, in a transaction. Returns the name that it had; refuses as absent if there is no such team. */
export const renameTeam = async (sql: Tx, teamId: string, name: string): Promise<string> =>
  (await updateTeamName(sql, teamId, name)) ?? refuseAbsent();
