/** The one way in which a form changes something of a team or a project. */

import type { Tx } from "../../database/connect.ts";
import { actInTeam } from "../../operations/people/audit.ts";
import type { Role } from "../../schema/accounts.ts";
import type { Actor, NewAuditEntry } from "../../schema/audit.ts";
import type { PageContext } from "./page.ts";

type Writing = Pick<PageContext, "begin" | "visitor"> & { team: { id: string } };

/**
 * Runs the operation in a transaction in which the visitor's session and role are locked, so that both hold until the commit,
 * and writes the audit log in the same transaction. `record` returns its entry; undefined if nothing was changed, or if the
 * operation itself has recorded the change as `actor`. Throws a Refusal if the session or the role has ended since the form
 * was opened; then nothing is changed.
 */
export const write = <T>(
  { begin, visitor, team }: Writing,
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
