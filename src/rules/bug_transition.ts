/** Determines the event of each change of a bug report's status. No other code does. */

import type { BugReportDetail, BugStatus } from "../schema/bug_reports.ts";
import type { EventType } from "../schema/events.ts";

export type Transition = { from: BugStatus | null; to: BugStatus; cause: BugReportDetail["history"][number]["cause"] };

type TransitionEvent = Exclude<Extract<EventType, `bug_report.${string}`>, "bug_report.culprit_found">;

/** `from` null: it is new. Returns undefined if there is no event. */
export function eventOf({ from, to, cause }: Transition): TransitionEvent | undefined {
  if (from === null) return "bug_report.opened";
  if (from === to) return undefined;
  if (to === "resolved") return "bug_report.resolved";
  return cause === "regression" ? "bug_report.regressed" : undefined;
}
