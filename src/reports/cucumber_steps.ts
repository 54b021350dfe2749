/** Code that the formats of Cucumber and its relatives share: statuses of steps, and attempts of scenarios. */

import type { FailureKind, ReportedCase } from "./report.ts";
import { cut, firstLine, joinAttachments } from "./text.ts";

/** The statuses of steps that fail a scenario: what the default, strict, counts as failed. */
export const FINISHED_BADLY = new Set(["failed", "ambiguous", "undefined", "pending"]);

/** Joins two attempts of a scenario: a later pass makes it flaky, else the failure stays. */
export function joinAttempts(earlier: ReportedCase, later: ReportedCase): ReportedCase {
  const joined = joinResults(earlier, later);
  const attachments = joinAttachments([earlier, later]);
  return attachments ? { ...joined, attachments } : joined;
}

function joinResults(earlier: ReportedCase, later: ReportedCase): ReportedCase {
  const attempts = earlier.attempts + 1;
  if (later.status === "failed") return { ...later, attempts };
  if (later.status === "skipped" || (earlier.status !== "failed" && !earlier.flaky)) {
    return earlier.status === "skipped" ? { ...later, attempts } : { ...earlier, attempts };
  }
  const { message, stack } = earlier;
  return { ...later, attempts, flaky: true, message, stack };
}

export function toStepKind(isHook: boolean, status: string, stack: string): FailureKind {
  if (/timed out|timeout/i.test(cut(firstLine(stack), 300))) return "timeout";
  return isHook || status !== "failed" ? "error" : "failure";
}

/** "Undefined step: When nobody wrote this step" */
export const toStepMessage = (isHook: boolean, status: string, text: string): string =>
  `${status.charAt(0).toUpperCase()}${status.slice(1)} ${isHook ? "hook" : "step"}: ${text}`;
