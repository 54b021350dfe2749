/** Cases that failed only because a case that they contain did: the failure is that of the inner one. */

import type { ReportedCase } from "../reports/report.ts";

/** Lines that Go writes around the output of every test. */
const FRAME = /^\s*(?:=== (?:RUN|PAUSE|CONT|NAME)\b.*|--- (?:FAIL|PASS|SKIP): .*|FAIL|Failed|)$/;

/** Subtests of a deeper level are failures beside their parents. */
const MAX_LEVELS = 20;

const saysNothing = ({ stack, message }: ReportedCase): boolean =>
  (stack ?? message ?? "").split("\n").every((line) => FRAME.test(line));

/** Marks the parents of Go's subtests, whose names begin with that of the parent and a slash. */
export function markThroughChild(cases: readonly ReportedCase[]): ReportedCase[] {
  const parents = new Set<string>();
  for (const { status, suite, name } of cases) {
    if (status !== "failed") continue;
    let at = name.indexOf("/");
    for (let level = 0; at !== -1 && level < MAX_LEVELS; at = name.indexOf("/", at + 1), level++)
      parents.add(`${suite}\0${name.slice(0, at)}`);
  }
  if (parents.size === 0) return [...cases];
  return cases.map((one) =>
    one.status === "failed" && parents.has(`${one.suite}\0${one.name}`) && saysNothing(one)
      ? { ...one, isThroughChild: true }
      : one,
  );
}
