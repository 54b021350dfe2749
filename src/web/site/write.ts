/** Runs a change of a form in a transaction with authorization and audit log. */

import type { Tx } from "../../database/connect.ts";
import { actInTeam } from "../../operations/people/audit.ts";
import type { Role } from "../../schema/accounts.ts";
import type { Actor, NewAuditEntry } from "../../schema/audit.ts";
import type { PageContext } from "./page.ts";

type WriteContext = Pick<PageContext, "begin" | "visitor"> & { team: { id: string } };

/**
 * Runs the operation in a transaction in which the visitor's session and role are locked, so that both stay valid until the
 * commit. Writes the audit log in the same transaction. `record` returns its entry; undefined if nothing was changed, or if the
 * operation has recorded the change as `actor`. Throws a Refusal if the session or the role has ended since the form was
 * opened; then nothing is changed.
 */
export const write = <T>(
  { begin, visitor, team }: WriteContext,
  role: Role,
  operation: (sql: Tx, actor: Actor) => Promise<T>,
  record: (result: T) => NewAuditEntry | undefined = () => undefined,
): Promise<T> =>
  actInTeam({ begin }, visitor, { teamId: team.id, needed: role }, async (sql, insertEntry, actor) => {
    const result = await operation(sql, actor);
    const entry = record(result);
    if (entry) await insertEntry(entry);
    return result;
  });
