/** The trust rules of a project: added and removed. */

import type { Tx } from "../../database/connect.ts";
import { notifyKeyRevoked } from "../../database/signals.ts";
import type { Actor } from "../../schema/audit.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { MAX_TRUST_RULES, type NewTrustRule, type TrustRule } from "../../schema/trust_rules.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import { lockProjectForKey, revokeKey, selectCiKeyIds } from "../../store/keys.ts";
import { deleteTrustRule, insertTrustRule, selectTrustRules } from "../../store/trust_rules.ts";

type Conditions = Pick<TrustRule, "kind" | "issuer" | "repositoryId" | "repository" | "events" | "refs">;

/** Returns the name of the repository if it is known, else its id. */
export const nameRepository = ({ repository, repositoryId }: Pick<TrustRule, "repository" | "repositoryId">): string =>
  repository ?? `repository ${repositoryId}`;

const toAuditEntry = (action: "trust_rule.added" | "trust_rule.removed", projectId: string, rule: Conditions) =>
  ({
    action,
    subject: nameRepository(rule),
    details: {
      projectId,
      kind: rule.kind,
      issuer: rule.issuer,
      repositoryId: rule.repositoryId,
      ...(rule.events.length === 0 ? {} : { events: rule.events }),
      ...(rule.refs.length === 0 ? {} : { refs: rule.refs }),
    },
  }) as const;

const toIdentity = ({ kind, issuer, repositoryId, events, refs }: Omit<Conditions, "repository">): string =>
  JSON.stringify([kind, issuer, repositoryId, events, refs]);

/** Adds a rule and returns its id. Refuses a duplicate, and one beyond the limit. */
export async function addTrustRule(sql: Tx, projectId: string, rule: NewTrustRule, by: Actor): Promise<string> {
  const teamId = (await lockProjectForKey(sql, projectId)) ?? refuseAbsent();
  const known = await selectTrustRules(sql, projectId);
  if (known.some((other) => toIdentity(other) === toIdentity(rule))) refuse("This project already has this trust rule");
  if (known.length >= MAX_TRUST_RULES) refuse(`A project has at most ${MAX_TRUST_RULES} trust rules`);
  const id = Bun.randomUUIDv7();
  await insertTrustRule(sql, projectId, id, rule);
  const entry = toAuditEntry("trust_rule.added", projectId, { ...rule, repository: rule.repository ?? null });
  await insertAuditEntry(sql, teamId, by, entry);
  return id;
}

/** Removes a rule. From the commit on no request with a key of the rule takes effect. */
export async function removeTrustRule(sql: Tx, projectId: string, id: string, by: Actor): Promise<void> {
  const teamId = (await lockProjectForKey(sql, projectId)) ?? refuseAbsent();
  const rule = (await deleteTrustRule(sql, projectId, id)) ?? refuseAbsent();
  for (const keyId of await selectCiKeyIds(sql, projectId, id)) {
    await revokeKey(sql, keyId);
    await notifyKeyRevoked(sql, keyId);
  }
  await insertAuditEntry(sql, teamId, by, toAuditEntry("trust_rule.removed", projectId, rule));
}
