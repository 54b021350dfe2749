/** How results are packed, for statements: `rules/merge.ts` is the only code that knows how many go into a row. */

import { BLOCK_SIZE } from "../rules/merge.ts";
import type { Fragment, Sql } from "./connect.ts";

/** The block of a test case; `number` is an expression. */
export const blockOfCase = (sql: Sql, number: Fragment): Fragment => sql`${number} / ${BLOCK_SIZE}::int`;
