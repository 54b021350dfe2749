/** Generates API keys: a project has one, and a new one revokes the one before; a team has any number. */

import { createKey } from "../secrets/keys.ts";
import type { Sql, Tx } from "../store/connect.ts";
import { insertKey, lockProjectForKey, revokeKey, selectLiveKeyIds } from "../store/keys.ts";

/** The only time that the key is shown. */
export type GeneratedKey = { id: string; key: string; leading: string };

/**
 * In a transaction: a new key for the project; the one before is revoked in the same moment. Undefined when there is no
 * such project.
 */
export async function generateProjectKey(sql: Tx, projectId: string): Promise<GeneratedKey | undefined> {
  const teamId = await lockProjectForKey(sql, projectId);
  if (teamId === undefined) return undefined;
  for (const id of await selectLiveKeyIds(sql, projectId)) await revokeKey(sql, id);
  return await generate(sql, teamId, { kind: "project", projectId, name: null });
}

/** Undefined when there is no such team. */
export const generateTeamKey = (sql: Sql, teamId: string, name: string | null): Promise<GeneratedKey | undefined> =>
  generate(sql, teamId, { kind: "team", projectId: null, name });

async function generate(
  sql: Sql,
  teamId: string,
  { kind, projectId, name }: { kind: "project" | "team"; projectId: string | null; name: string | null },
): Promise<GeneratedKey | undefined> {
  const { key, leading, digest } = createKey(kind);
  const id = Bun.randomUUIDv7();
  return (await insertKey(sql, teamId, { id, projectId, name, leading, digest })) ? { id, key, leading } : undefined;
}
