/** The words of the search for tests. */

import { HEALTHS } from "../schema/test_cases.ts";
import {
  type Keys,
  type SearchProblem,
  type Sign,
  readComparison,
  readListed,
  readConditions,
} from "./search_words.ts";

/** A condition that a test case must meet. */
export type TestCondition =
  | { field: "health"; is: readonly string[] }
  | { field: "owned" | "quarantined" | "skipped"; is: boolean }
  | { field: "tag"; is: string }
  | { field: "owner" | "task" | "file" | "name" | "suite" | "text"; is: string }
  | { field: "failures" | "flakeRate" | "p95Ms"; sign: Sign; number: number };

const FLAGS: Readonly<Record<string, TestCondition>> = {
  quarantined: { field: "quarantined", is: true },
  unquarantined: { field: "quarantined", is: false },
  skipped: { field: "skipped", is: true },
  owned: { field: "owned", is: true },
  unowned: { field: "owned", is: false },
};

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };
const MAX_INT = 2 ** 31 - 1;

function readIs(value: string): TestCondition | undefined {
  if (Object.hasOwn(FLAGS, value)) return FLAGS[value];
  const is = readListed(value, HEALTHS);
  return is && { field: "health", is };
}

function readFailed(value: string): TestCondition | undefined {
  const read = readComparison(value, /^\d{1,9}$/);
  return read && { field: "failures", sign: read.sign, number: Number(read.operand[0]) };
}

function readFlaky(value: string): TestCondition | undefined {
  const read = readComparison(value, /^(\d{1,3}(?:\.\d{1,3})?)%$/);
  return read && { field: "flakeRate", sign: read.sign, number: Number(read.operand[1]) / 100 };
}

function readSlow(value: string): TestCondition | undefined {
  const read = readComparison(value, /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m)$/);
  if (!read) return undefined;
  const ms = Math.round(Number(read.operand[1]) * UNIT_MS[read.operand[2]!]!);
  return { field: "p95Ms", sign: read.sign, number: Math.min(ms, MAX_INT) };
}

const textKey = (field: "owner" | "task" | "file" | "name" | "suite", expected: string) => ({
  expected,
  read: (is: string): TestCondition => ({ field, is }),
});

export const TEST_KEYS: Keys<TestCondition> = {
  is: { expected: `one of ${[...HEALTHS, ...Object.keys(FLAGS)].join(", ")}`, read: readIs },
  owner: textKey("owner", "an owner"),
  task: textKey("task", "a task"),
  tag: { expected: "a tag such as browser:webkit", read: (is) => ({ field: "tag", is }), mayRepeat: true },
  file: textKey("file", "a part of a file"),
  name: textKey("name", "a part of a name"),
  suite: textKey("suite", "a part of a suite"),
  failed: { expected: "a number of failures such as >2", read: readFailed },
  flaky: { expected: "a percentage such as >5%", read: readFlaky },
  slow: { expected: "a duration such as >2s, >500ms or >1m", read: readSlow },
};

export const readTestSearch = (q: string): { conditions: TestCondition[] } | SearchProblem =>
  readConditions(q, TEST_KEYS);
