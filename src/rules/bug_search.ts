/** The words of the search for bugs. */

import { BUG_STATUSES, SEVERITIES, type BugStatus, type Severity } from "../schema/bug_reports.ts";
import { type Keys, type SearchProblem, readComparison, readListed, readConditions } from "./search_words.ts";

/** A condition that a bug must meet. `from` and `until` are days in UTC, without `until` itself. */
export type BugCondition =
  | { field: "status"; is: readonly BugStatus[] }
  | { field: "severity"; is: readonly Severity[] }
  | { field: "regressed"; is: boolean }
  | { field: "source" | "assignee" | "owner" | "label" | "task" | "test" | "testCaseId" | "text"; is: string }
  | { field: "firstSeen" | "lastSeen"; from: string | undefined; until: string | undefined };

const FLAGS: Readonly<Record<string, BugCondition>> = {
  any: { field: "status", is: BUG_STATUSES },
  regressed: { field: "regressed", is: true },
  automatic: { field: "source", is: "automatic" },
  manual: { field: "source", is: "manual" },
};

function readIs(value: string): BugCondition | undefined {
  if (Object.hasOwn(FLAGS, value)) return FLAGS[value];
  const is = readListed(value, BUG_STATUSES);
  return is && { field: "status", is };
}

function readSeverity(value: string): BugCondition | undefined {
  const is = readListed(value, SEVERITIES);
  return is && { field: "severity", is };
}

const DAY_MS = 86_400_000;
const toDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

function readDay(field: "firstSeen" | "lastSeen", value: string): BugCondition | undefined {
  const read = readComparison(value, /^20\d\d-\d\d-\d\d$/);
  if (!read) return undefined;
  const day = read.operand[0];
  const ms = Date.parse(day);
  // JavaScript reads 30 February as 2 March.
  if (Number.isNaN(ms) || toDay(ms) !== day) return undefined;
  const next = toDay(ms + DAY_MS);
  const { sign } = read;
  return {
    field,
    from: sign === ">" ? next : sign === ">=" || sign === "=" ? day : undefined,
    until: sign === "<" ? day : sign === "<=" || sign === "=" ? next : undefined,
  };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const textKey = (field: "assignee" | "owner" | "label" | "task", expected: string) => ({
  expected,
  read: (is: string): BugCondition => ({ field, is }),
});

export const BUG_KEYS: Keys<BugCondition> = {
  is: { expected: `one of ${[...BUG_STATUSES, ...Object.keys(FLAGS)].join(", ")}`, read: readIs },
  severity: { expected: `one of ${SEVERITIES.join(", ")}`, read: readSeverity },
  assignee: textKey("assignee", "an assignee"),
  owner: textKey("owner", "an owner"),
  label: { ...textKey("label", "a label"), mayRepeat: true },
  task: textKey("task", "a task"),
  test: {
    expected: "a part of the name of a test, or its id",
    read: (is) => ({ field: UUID.test(is) ? "testCaseId" : "test", is }),
  },
  first: { expected: "a date such as >2026-01-31", read: (value) => readDay("firstSeen", value) },
  last: { expected: "a date such as >2026-01-31", read: (value) => readDay("lastSeen", value) },
};

export const readBugSearch = (q: string): { conditions: BugCondition[] } | SearchProblem => readConditions(q, BUG_KEYS);
