/** The conditions of a list of bugs, over `bug_report b`. */

import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import type { BugCondition } from "../rules/bug_search.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import { isOwnedBy } from "./owners.ts";

/** A condition: a test case `c` of the bug meets a condition. */
const hasTestCase = (sql: Sql, condition: Fragment): Fragment => sql`exists (
  select from bug_case k join test_case c on c.project_id = k.project_id and c.number = k.test_case
  where k.project_id = b.project_id and k.bug_report_id = b.id and ${condition})`;

function conditionOf(sql: Sql, projectId: string, condition: BugCondition): Fragment {
  switch (condition.field) {
    case "status":
      return sql`b.status = any(${toTextArray(condition.is)}::text[])`;
    case "severity":
      return sql`b.severity = any(${toTextArray(condition.is)}::text[])`;
    case "regressed":
      return sql`b.regressed = ${condition.is}`;
    case "source":
    case "assignee":
      return sql`b.${sql(condition.field)} = ${condition.is}`;
    case "label":
      return sql`${condition.is}::text = any(b.labels)`;
    case "task":
      return hasTestCase(sql, sql`c.task_slug = ${condition.is}`);
    case "owner":
      return hasTestCase(sql, isOwnedBy(sql, projectId, sql`c`, [condition.is]));
    case "test":
      return hasTestCase(sql, sql`position(lower(${condition.is}) in lower(c.suite || ' ' || c.name)) > 0`);
    case "testCaseId":
      return sql`exists (
        select from bug_case k
        where k.project_id = b.project_id and k.bug_report_id = b.id and k.test_case = ${numberOfTestCase(condition.is)})`;
    case "text":
      return sql`position(lower(${condition.is}) in lower(b.title || ' ' || b.description)) > 0`;
    default: {
      const column = condition.field === "firstSeen" ? sql`b.first_seen_at` : sql`b.last_seen_at`;
      const { from, until } = condition;
      return sql`(${from === undefined ? sql`true` : sql`${column} >= ${`${from}T00:00:00Z`}::text::timestamptz`}
        and ${until === undefined ? sql`true` : sql`${column} < ${`${until}T00:00:00Z`}::text::timestamptz`})`;
    }
  }
}

/** Returns conditions that each begin with `and`. */
export const matchBugs = (sql: Sql, projectId: string, conditions: readonly BugCondition[]): Fragment =>
  conditions.reduce((before, one) => sql`${before} and ${conditionOf(sql, projectId, one)}`, sql``);
