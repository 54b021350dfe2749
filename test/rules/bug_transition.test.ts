import { expect, test } from "bun:test";
import { eventOf, type Transition } from "../../src/rules/bug_transition.ts";

test.each<[Transition["from"], Transition["to"], Transition["cause"], ReturnType<typeof eventOf>]>([
  [null, "open", "opened", "bug_report.opened"],
  ["open", "resolved", "api", "bug_report.resolved"],
  ["in_progress", "resolved", "clean_runs", "bug_report.resolved"],
  ["ignored", "resolved", "merge", "bug_report.resolved"],
  ["resolved", "open", "regression", "bug_report.regressed"],
  ["resolved", "open", "api", undefined],
  ["resolved", "in_progress", "merge", undefined],
  ["open", "in_progress", "api", undefined],
  ["open", "ignored", "api", undefined],
  ["resolved", "resolved", "api", undefined],
])("from %p to %p by %p: %p", (from, to, cause, event) => {
  expect(eventOf({ from, to, cause })).toBe(event);
});
