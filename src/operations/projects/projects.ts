/** Projects of a team: created, and their settings changed. */

import type { ProjectPatch } from "../../schema/projects.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { insertProject, type ProjectRow, updateProject } from "../../store/projects.ts";

/** In a transaction; answers its id. It has no key yet. */
export const createProject = async (sql: Tx, teamId: string, name: string): Promise<string> =>
  (await insertProject(sql, teamId, name)) ?? refuseAbsent();

/** In a transaction. */
export const changeProject = async (sql: Tx, projectId: string, patch: ProjectPatch): Promise<ProjectRow> =>
  (await updateProject(sql, projectId, patch)) ?? refuseAbsent();
