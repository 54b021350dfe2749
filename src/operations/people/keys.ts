/** Generates API keys: a project's own, of which there is one; named ones with a scope; those of runners; and those of a team. */

import { type Actor, SERVER } from "../../schema/audit.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import type { NewNamedKey, Scope } from "../../schema/keys.ts";
import { createKey } from "../../secrets/keys.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import type { Tx } from "../../database/connect.ts";
import {
  insertKey,
  type LiveKey,
  lockProjectForKey,
  lockTeamForKey,
  type RevokedKey,
  revokeKey,
  selectChildKeyIds,
  selectIsNamedKey,
  selectIsTeamKey,
  selectLiveKeyIds,
  selectNewestNamedKeyId,
  selectUnrevokedKeyIds,
} from "../../store/keys.ts";
import { registerRunnerStart, selectFreeRunnerName } from "../../store/runners.ts";
import { notifyKeyRevoked } from "../../database/signals.ts";

/** The only time that the key is shown. */
export type GeneratedKey = { id: string; key: string; leading: string };

/** Creates a new key for the project and revokes the previous one at the same time. Undefined if there is no such project. */
export async function generateProjectKey(
  sql: Tx,
  projectId: string,
  by: Actor = SERVER,
): Promise<GeneratedKey | undefined> {
  const teamId = await lockProjectForKey(sql, projectId);
  if (teamId === undefined) return undefined;
  for (const id of await selectLiveKeyIds(sql, projectId)) await revokeWithChildren(sql, id);
  return await generate(sql, teamId, { kind: "project", projectId, name: null }, by);
}

/** Creates an additional team key, in a transaction. Returns undefined when there is no such team. */
export const generateTeamKey = async (
  sql: Tx,
  teamId: string,
  name: string | null,
  by: Actor = SERVER,
): Promise<GeneratedKey | undefined> =>
  (await lockTeamForKey(sql, teamId)) && (await generate(sql, teamId, { kind: "team", projectId: null, name }, by));

/** Revokes a key and returns when it was revoked, now or before; undefined if there is no such key. */
export async function revokeKeyById(sql: Tx, id: string, by: Actor = SERVER): Promise<string | undefined> {
  const revoked = await revokeWithChildren(sql, id);
  if (revoked?.isNew) {
    const { projectId, scope, name } = revoked;
    const details = {
      kind: projectId === null ? "team" : "project",
      projectId,
      ...(scope === null ? {} : { scope, name }),
    };
    await insertAuditEntry(sql, revoked.teamId, by, { action: "key.revoked", subject: revoked.leading, details });
  }
  return revoked?.revokedAt;
}

/**
 * Creates a new key that replaces this one (null: none). Undefined if the project has another key by now: a form that is sent twice would
 * revoke the key that it has just shown.
 */
export async function replaceProjectKey(
  sql: Tx,
  projectId: string,
  replaces: string | null,
  by: Actor,
): Promise<GeneratedKey | undefined> {
  if ((await lockProjectForKey(sql, projectId)) === undefined) refuseAbsent();
  const [live = null] = await selectLiveKeyIds(sql, projectId);
  return live === replaces ? await generateProjectKey(sql, projectId, by) : undefined;
}

/**
 * Creates an additional team key. `newest` is the newest key of the team, or null. Undefined if there is a newer one by now: a form that is
 * sent twice makes one key.
 */
export async function addTeamKey(
  sql: Tx,
  teamId: string,
  name: string,
  newest: string | null,
  by: Actor,
): Promise<GeneratedKey | undefined> {
  const found = (await lockTeamForKey(sql, teamId)) ?? refuseAbsent();
  return found.newestKeyId === newest ? await generateTeamKey(sql, teamId, name, by) : undefined;
}

/** Revokes a key of a team; keys of projects are only ever replaced. */
export async function revokeTeamKey(sql: Tx, teamId: string, id: string, by: Actor): Promise<void> {
  if (!(await selectIsTeamKey(sql, teamId, id))) refuseAbsent();
  await revokeKeyById(sql, id, by);
}

/** Creates an additional project key with a scope, in a transaction. Returns undefined when there is no such project. */
export async function generateNamedKey(
  sql: Tx,
  projectId: string,
  { name, scope, expiresInDays }: NewNamedKey,
  by: Actor,
): Promise<GeneratedKey | undefined> {
  const teamId = await lockProjectForKey(sql, projectId);
  if (teamId === undefined) return undefined;
  return await generate(sql, teamId, { kind: "project", projectId, name, scope, expiresInDays }, by);
}

/** Creates a named key for a project, like `addTeamKey`. */
export async function addNamedKey(
  sql: Tx,
  projectId: string,
  wanted: NewNamedKey,
  newest: string | null,
  by: Actor,
): Promise<GeneratedKey | undefined> {
  if ((await lockProjectForKey(sql, projectId)) === undefined) refuseAbsent();
  return (await selectNewestNamedKeyId(sql, projectId)) === newest
    ? await generateNamedKey(sql, projectId, wanted, by)
    : undefined;
}

/** Revokes a named key of this project; refuses other keys. */
export async function revokeNamedKey(sql: Tx, projectId: string, id: string, by: Actor): Promise<void> {
  if (!(await selectIsNamedKey(sql, projectId, id))) refuseAbsent();
  await revokeKeyById(sql, id, by);
}

/**
 * Creates a key for a runner, in a transaction that keeps `parent` live. It expires with its parent, or when it has not been used for an
 * hour. The audit log does not record it, because runners come and go.
 */
export async function registerRunner(
  sql: Tx,
  parent: Pick<LiveKey, "id" | "teamId" | "projectId">,
  { runner: wanted, version, unique }: { runner: string; version?: string | undefined; unique: boolean },
): Promise<Pick<GeneratedKey, "id" | "key"> & { runner: string }> {
  const runner = unique ? await selectFreeRunnerName(sql, parent.projectId!, wanted) : wanted;
  const { key, leading, digest } = createKey("project");
  const id = Bun.randomUUIDv7();
  const row = {
    id,
    projectId: parent.projectId,
    name: runner,
    leading,
    digest,
    scope: "runner",
    parentId: parent.id,
  } as const;
  if (!(await insertKey(sql, parent.teamId, row))) refuseAbsent();
  await registerRunnerStart(sql, parent.projectId!, runner, version ?? null);
  return { id, key, runner };
}

/**
 * Revokes all keys of a project, or of a team and its projects, in a transaction that has locked them, so that no key is generated. Returns
 * the number without those of runners. The audit log gets no entry for each.
 */
export async function revokeAllKeys(sql: Tx, owner: { teamId: string; projectId?: string }): Promise<number> {
  const ids = await selectUnrevokedKeyIds(sql, owner);
  for (const id of ids) await revokeWithChildren(sql, id);
  return ids.length;
}

/** Revokes a key and the keys of runners that were made with it. Requests that wait with one of them are answered with 401. */
async function revokeWithChildren(sql: Tx, id: string): Promise<RevokedKey | undefined> {
  const revoked = await revokeKey(sql, id);
  if (!revoked?.isNew) return revoked;
  await notifyKeyRevoked(sql, id);
  // A request that makes a child holds its parent live until the commit, so that none is missed here.
  for (const child of await selectChildKeyIds(sql, id)) {
    await revokeKey(sql, child);
    await notifyKeyRevoked(sql, child);
  }
  return revoked;
}

type NewKey = {
  kind: "project" | "team";
  projectId: string | null;
  name: string | null;
  scope?: Scope;
  expiresInDays?: number | undefined;
};

async function generate(
  sql: Tx,
  teamId: string,
  { kind, projectId, name, scope, expiresInDays }: NewKey,
  by: Actor,
): Promise<GeneratedKey | undefined> {
  const { key, leading, digest } = createKey(kind);
  const id = Bun.randomUUIDv7();
  const expiresIn = expiresInDays === undefined ? undefined : `${expiresInDays} days`;
  const row = { id, projectId, name, leading, digest, expiresIn, ...(scope === undefined ? {} : { scope }) };
  if (!(await insertKey(sql, teamId, row))) return undefined;
  const details = { kind, projectId, name, ...(scope === undefined ? {} : { scope }) };
  await insertAuditEntry(sql, teamId, by, { action: "key.generated", subject: leading, details });
  return { id, key, leading };
}
