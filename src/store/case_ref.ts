/** References to test cases as JSON: see schema/case_ref.ts. */

import type { Fragment, Sql } from "../database/connect.ts";

/** An expression: the test case `c`, an alias. */
export const caseRefOf = (sql: Sql, c: Fragment): Fragment => sql`
  json_build_object('testCaseId', ${c}.id, 'taskSlug', ${c}.task_slug, 'suite', ${c}.suite, 'name', ${c}.name, 'file', ${c}.file)`;
