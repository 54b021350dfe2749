/** Trust rules of projects, and the id tokens of CI jobs that have been used. */

import { type Fragment, type Sql, toJson, toTextArray, type Tx } from "../database/connect.ts";
import { deletePortion } from "../database/delete_portion.ts";
import type { ListedTrustRule, NewTrustRule, TrustRule } from "../schema/trust_rules.ts";

const ruleColumns = (sql: Sql): Fragment => sql`
  id, kind, issuer, repository_id as "repositoryId", owner_id as "ownerId", repository, to_json(events) as events,
  to_json(refs) as refs, issuer_keys as keys`;

/** Returns rules in the order of creation; there are at most MAX_TRUST_RULES. */
export const selectTrustRules = (sql: Sql, projectId: string) => sql<ListedTrustRule[]>`
  select ${ruleColumns(sql)}, created_at as "createdAt", last_used_at as "lastUsedAt" from trust_rule
  where project_id = ${projectId} order by id`;

/**
 * Returns the project's rules for an issuer. `isRead`: some project has a rule without keys for it, so the server reads the keys that the
 * issuer publishes.
 */
export const selectTrustRulesOfIssuer = async (
  sql: Sql,
  projectId: string,
  issuer: string,
): Promise<{ rules: TrustRule[]; isRead: boolean }> => {
  const [row] = await sql<[{ rules: TrustRule[] | null; isRead: boolean }]>`
    select exists (select from trust_rule where issuer = ${issuer} and issuer_keys is null) as "isRead", (
      select json_agg(r order by r.id) from (
        select ${ruleColumns(sql)} from trust_rule where project_id = ${projectId} and issuer = ${issuer}) r) as rules`;
  return { rules: row.rules ?? [], isRead: row.isRead };
};

/** The project of a rule; undefined when there is no such rule. */
export const selectProjectOfTrustRule = async (sql: Sql, id: string): Promise<string | undefined> => {
  const [row] = await sql<{ projectId: string }[]>`select project_id as "projectId" from trust_rule where id = ${id}`;
  return row?.projectId;
};

export const insertTrustRule = (sql: Tx, projectId: string, id: string, rule: NewTrustRule) => sql`
  insert into trust_rule (project_id, id, kind, issuer, repository_id, owner_id, repository, events, refs, issuer_keys)
  values (${projectId}, ${id}, ${rule.kind}, ${rule.issuer}, ${rule.repositoryId},
    ${rule.kind === "github" ? rule.ownerId : null}, ${rule.repository ?? null},
    ${toTextArray(rule.events)}::text[], ${toTextArray(rule.refs)}::text[],
    ${rule.keys === undefined ? null : toJson(sql, rule.keys)})`;

/** Returns whether the rule exists, and locks it until the commit: its removal waits, and then finds its new keys. */
export const lockTrustRule = async (sql: Tx, projectId: string, id: string): Promise<boolean> =>
  (await sql`select from trust_rule where project_id = ${projectId} and id = ${id} for key share`).length === 1;

/** Written every few minutes, and not while another transaction writes it. */
export const updateTrustRuleUsed = (sql: Tx, projectId: string, id: string) => sql`
  update trust_rule set last_used_at = now() where (project_id, id) in (
    select project_id, id from trust_rule
    where project_id = ${projectId} and id = ${id} and coalesce(last_used_at < now() - interval '5 minutes', true)
    for no key update skip locked)`;

/** Deletes a rule; undefined if there is no such rule. */
export const deleteTrustRule = async (sql: Tx, projectId: string, id: string): Promise<TrustRule | undefined> => {
  const [rule] = await sql<TrustRule[]>`
    delete from trust_rule where project_id = ${projectId} and id = ${id} returning ${ruleColumns(sql)}`;
  return rule;
};

type TokenUse = {
  /** Hexadecimal. */
  digest: string;
  /** Hexadecimal; null: the request may not be repeated. */
  attempt: string | null;
  /** The key that the token is used for. */
  keyId: string;
  /** ISO 8601. */
  expiresAt: string;
};

/**
 * Marks a token as used. A token that was used before is accepted again only for the same attempt; then `replaced` is the key that it was
 * used for.
 */
export const useCiToken = async (
  sql: Tx,
  { digest, attempt, keyId, expiresAt }: TokenUse,
): Promise<{ isUsable: boolean; replaced?: string }> => {
  const inserted = await sql`
    insert into used_ci_token (digest, attempt, key_id, expires_at)
    values (decode(${digest}, 'hex'), decode(${attempt}, 'hex'), ${keyId}, ${expiresAt})
    on conflict (digest) do nothing`;
  if (inserted.count === 1) return { isUsable: true };
  const [used] = await sql<{ replaced: string }[]>`
    update used_ci_token u set key_id = ${keyId}
    from (select digest, key_id from used_ci_token where digest = decode(${digest}, 'hex') for update) before
    where u.digest = before.digest and u.attempt = decode(${attempt}, 'hex')
    returning before.key_id as replaced`;
  return used ? { isUsable: true, replaced: used.replaced } : { isUsable: false };
};

/** Deletes a page of tokens that expired an hour ago, because the clocks of servers differ; returns their number. */
export const deleteExpiredCiTokens = (sql: Sql, limit: number): Promise<number> =>
  deletePortion(sql, "used_ci_token", sql`expires_at < now() - interval '1 hour'`, { limit });
