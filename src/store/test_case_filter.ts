/** The conditions of a list of test cases, over `test_case c`, `case_health h` and the active quarantine `q`. */

import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import type { TestCondition } from "../rules/test_search.ts";
import type { TestCaseSort } from "../schema/test_cases.ts";
import { selectTasksWithTags } from "./filter_options.ts";
import { healthHint, healthOf } from "./health.ts";
import { isOwned, isOwnedBy, numbersOfOwner } from "./owners.ts";

type Comparison = Extract<TestCondition, { sign: string }>;

/** The column of each number, its type, and the value of a test case that has none. */
const NUMBERS = {
  failures: { column: "failures", type: "int", sort: "failures", fallback: "0" },
  flakeRate: { column: "flake_rate", type: "real", sort: "flakeRate", fallback: "0" },
  p95Ms: { column: "p95_ms", type: "int", sort: "p95Ms", fallback: "null" },
} as const satisfies Record<
  Comparison["field"],
  { column: string; type: string; sort: TestCaseSort; fallback: string }
>;

/** Whether only test cases with a number above zero match, so that the partial index of the column has all of them. */
const isAboveZero = (condition: TestCondition): condition is Comparison =>
  "sign" in condition &&
  (condition.sign === ">" || ((condition.sign === ">=" || condition.sign === "=") && condition.number > 0));

/** Whether every test case that matches has a sort key. */
export const requiresSortKey = (conditions: readonly TestCondition[], sort: TestCaseSort): boolean =>
  conditions.some((one) => isAboveZero(one) && NUMBERS[one.field].sort === sort);

/** Compares a column of `h` with a number of its own type, as its index does. */
function compare(sql: Sql, { field, sign, number }: Comparison, column: Fragment): Fragment {
  const value = sql`${String(number)}::text::${sql.unsafe(NUMBERS[field].type)}`;
  return sql`${column} ${sql.unsafe(sign)} ${value}`;
}

/** Maximum number of test cases that are listed by reading them first, whatever the order is. */
const MAX_FEW_CASES = 2_000;

/** A statement: the numbers of the test cases that meet a condition, if an index has them; more than MAX_FEW_CASES are cut off. */
function indexedNumbers(sql: Sql, projectId: string, condition: TestCondition): Fragment | undefined {
  if (condition.field === "owner") return numbersOfOwner(sql, projectId, condition.is, MAX_FEW_CASES + 1);
  if (!isAboveZero(condition)) return undefined;
  const column = sql`h.${sql(NUMBERS[condition.field].column)}`;
  return sql`
    select h.test_case from case_health h
    where h.project_id = ${projectId} and ${column} > 0 and ${compare(sql, condition, column)} limit ${MAX_FEW_CASES + 1}`;
}

async function hasFew(sql: Sql, numbers: Fragment): Promise<boolean> {
  const [row] = await sql<{ few: boolean }[]>`select count(*) <= ${MAX_FEW_CASES} as few from (${numbers}) cases`;
  return row!.few;
}

const contains = (sql: Sql, column: Fragment, text: string): Fragment =>
  sql`position(lower(${text}) in lower(${column})) > 0`;

function conditionOf(sql: Sql, projectId: string, condition: Exclude<TestCondition, { field: "tag" }>): Fragment {
  switch (condition.field) {
    case "health":
      return sql`${healthOf(sql)} = any(${toTextArray(condition.is)}::text[])`;
    case "owned":
      return condition.is ? isOwned(sql, sql`c`) : sql`not ${isOwned(sql, sql`c`)}`;
    case "quarantined":
      return condition.is ? sql`q.test_case is not null` : sql`q.test_case is null`;
    case "skipped":
      return condition.is ? sql`q.skip` : sql`not coalesce(q.skip, false)`;
    case "owner":
      return isOwnedBy(sql, projectId, sql`c`, [condition.is]);
    case "task":
      return sql`c.task_slug = ${condition.is}`;
    case "file":
    case "name":
    case "suite":
      return contains(sql, sql`c.${sql(condition.field)}`, condition.is);
    case "text":
      // Joined like this it costs half of what concat_ws does, which counts where 100,000 are looked through.
      return contains(sql, sql`c.suite || ' ' || c.name || coalesce(' ' || c.file, '')`, condition.is);
    default: {
      const { column, fallback } = NUMBERS[condition.field];
      // Without a fallback where it makes no difference, so that the index of the column can be used.
      return isAboveZero(condition)
        ? compare(sql, condition, sql`h.${sql(column)}`)
        : compare(sql, condition, sql`coalesce(h.${sql(column)}, ${sql.unsafe(fallback)})`);
    }
  }
}

/** Returns conditions that each begin with `and`, as a list: a promise of a fragment would execute it. `isSorted`: the list is not in the order of the numbers of its test cases. */
export async function matchTestCases(
  sql: Sql,
  projectId: string,
  conditions: readonly TestCondition[],
  isSorted: boolean,
): Promise<Fragment[]> {
  const tags = conditions.flatMap((one) => (one.field === "tag" ? [one.is] : []));
  const parts: Fragment[] = [];
  if (tags.length > 0) {
    const tasks = await selectTasksWithTags(sql, projectId, tags);
    parts.push(sql`and c.task_slug = any(${toTextArray(tasks)}::text[])`);
  }
  const healths = conditions.flatMap((one) => (one.field === "health" && one.is.length === 1 ? one.is : []));
  parts.push(healthHint(sql, healths[0]));
  for (const condition of conditions) {
    if (condition.field === "tag") continue;
    // Counted before, and not left to the planner: it keeps the plan that was right for other values.
    const numbers = isSorted || "sign" in condition ? indexedNumbers(sql, projectId, condition) : undefined;
    parts.push(
      numbers && (await hasFew(sql, numbers))
        ? sql`and c.number = any(array(${numbers}))`
        : sql`and ${conditionOf(sql, projectId, condition)}`,
    );
  }
  return parts;
}
