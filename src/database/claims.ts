/** The lifetime of claims. A live server extends its claims; those of a dead server expire. */

import type { Fragment, Sql } from "./connect.ts";

const CLAIM_SECONDS = 5;
/** Several times within the length of a claim. */
export const EXTEND_MS = 1_500;

export const claimEnd = (sql: Sql): Fragment => sql`now() + interval '1 second' * ${CLAIM_SECONDS}::int`;
