/** The audit log: actors and possible actions. */

/** `accountId` is null where no account acted; `name` is as it is called now. */
export type Actor = { accountId: string | null; name: string };

/** Anyone who may use the machine's command line. */
export const COMMAND_LINE: Actor = { accountId: null, name: "command line" };
/** Actions that nobody requested, such as the first start. */
export const SERVER: Actor = { accountId: null, name: "server" };

const AUDIT_ACTIONS = [
  "account.password_changed",
  "account.password_reset",
  "account.linked",
  "invitation.created",
  "invitation.revoked",
  "key.generated",
  "key.revoked",
  "trust_rule.added",
  "trust_rule.removed",
  "member.added",
  "member.removed",
  "member.role_changed",
  "project.created",
  "project.changed",
  "project.deleted",
  "environment.created",
  "environment.changed",
  "environment.deleted",
  "variable.changed",
  "variable.deleted",
  "variables.replaced",
  "integration.created",
  "integration.changed",
  "integration.deleted",
  "automation.created",
  "automation.changed",
  "automation.deleted",
  "infrastructure_rule.created",
  "infrastructure_rule.changed",
  "infrastructure_rule.deleted",
  "runner.paused",
  "runner.resumed",
  "share.created",
  "share.revoked",
  "bug.created",
  "bug.changed",
  "bug.merged",
  "culprit_search.started",
  "culprit_search.cancelled",
  "test_case.changed",
  "owners.changed",
  "verification.begun",
  "verification.cancelled",
  "execution.rerun",
  "execution.completed",
  "execution.cancelled",
  "execution.deleted",
  "sample_data.added",
  "sample_data.removed",
  "team.created",
  "team.renamed",
  "team.restored",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type NewAuditEntry = {
  action: AuditAction;
  /** The name of the object, as people know it. */
  subject: string;
  /** Never a secret. */
  details?: Record<string, string | number | boolean | null | readonly string[]>;
};

export type AuditEntry = {
  id: string;
  at: string;
  accountId: string | null;
  actor: string;
  action: AuditAction;
  subject: string;
  details: Record<string, unknown>;
};
