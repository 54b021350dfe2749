/** What somebody who is signed in changes in a team, and that the audit log tells of it. */

import { actInTeam } from "../operations/people/audit.ts";
import type { Role } from "../schema/accounts.ts";
import type { Actor, NewAuditEntry } from "../schema/audit.ts";
import type { Tx } from "../database/connect.ts";
import type { PageContext } from "./page.ts";

type Changing = Pick<PageContext, "begin" | "visitor"> & { team: { id: string } };
type Entry<T> = (result: T) => NewAuditEntry | undefined;

/**
 * In a transaction, until whose commit his session and his role hold. `entry` is what the log tells; undefined: nothing, or
 * what `work` tells it itself, as `by`.
 */
export const change = <T>(
  { begin, visitor, team }: Changing,
  needed: Role,
  work: (sql: Tx, by: Actor) => Promise<T>,
  entry: Entry<T> = () => undefined,
): Promise<T> =>
  actInTeam({ begin }, visitor, { teamId: team.id, needed }, async (sql, record, by) => {
    const result = await work(sql, by);
    const told = entry(result);
    if (told) await record(told);
    return result;
  });
