/** How long a server holds what it has claimed: one that lives extends its claims, one that died is waited for. */

import type { Fragment, Sql } from "./connect.ts";

const CLAIM_SECONDS = 5;
/** Several times within the length of a claim. */
export const EXTEND_MS = 1_500;

export const claimEnd = (sql: Sql): Fragment => sql`now() + interval '1 second' * ${CLAIM_SECONDS}::int`;
