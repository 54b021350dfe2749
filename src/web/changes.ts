/** What somebody who is signed in changes in a team. */

import { requireRole } from "../operations/audit.ts";
import type { Role } from "../schema/accounts.ts";
import type { Actor } from "../schema/audit.ts";
import type { Tx } from "../store/connect.ts";
import type { PageContext } from "./page.ts";

type Changing = Pick<PageContext, "begin" | "visitor"> & { team: { id: string } };

/** In a transaction, until whose commit his session and his role hold. `by` is for the audit log. */
export const change = <T>(
  { begin, visitor, team }: Changing,
  needed: Role,
  work: (sql: Tx, by: Actor) => Promise<T>,
): Promise<T> => begin(async (sql) => await work(sql, await requireRole(sql, visitor, team.id, needed)));
