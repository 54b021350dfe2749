/** The tests of TeamCity service messages as test cases. */

import { toCase } from "./fields.ts";
import type { CaseStatus, FailureKind, ReportedCase } from "./report.ts";
import { cut, type Cutter, firstLine } from "./text.ts";

type Failure = { message: string; details: string; isError: boolean };

export type TeamcityTest = {
  suite: string;
  name: string;
  file: string | null;
  attempts: number;
  hasFailedBefore: boolean;
  /** Failures of the last attempt. */
  failures: Failure[];
  ignored: string | null;
  output: string;
  began: number;
  durationMs: number | null;
  unfinished: boolean;
  properties: [string, string][];
};

export function toTeamcityCase(test: TeamcityTest, cutter: Cutter): ReportedCase {
  const failed = test.unfinished || test.failures.length > 0;
  const status: CaseStatus = failed ? "failed" : test.ignored === null ? "passed" : "skipped";
  const [first] = test.failures;
  const message = first ? toMessageOf(first) : "";
  return toCase(cutter, {
    suite: test.suite,
    name: test.name,
    file: test.file,
    status,
    kind: toKind(test, message),
    flaky: test.hasFailedBefore,
    attempts: test.attempts,
    durationMs: test.durationMs,
    message: failed ? message || (test.unfinished ? "It did not finish" : null) : test.ignored?.trim(),
    stack: failed ? test.failures.map(toStack).join("\n\n") : null,
    output: test.output.trim(),
    properties: test.properties,
  });
}

/** jest-teamcity-reporter says no more than "FAILED". */
const isBare = ({ message }: Failure): boolean => /^(?:FAILED)?$/i.test(message.trim());

function toMessageOf(failure: Failure): string {
  if (isBare(failure)) return firstLine(failure.details);
  const message = failure.message.trim();
  // Catch2 sets the place and the section off with lines of dots and dashes.
  if (!/^\.{60,}$/m.test(message)) return message;
  const lines = message.split("\n").filter((line) => !/^(?:\.{60,}|-{60,}|\S{1,500}:\d{1,9}|\s*)$/.test(line));
  return lines.join("\n") || message;
}

/** Some tools repeat the message on top of the details. */
function toStack(failure: Failure): string {
  const [message, trace] = [isBare(failure) ? "" : failure.message.trim(), failure.details.trim()];
  if (trace === "" || trace.includes(cut(firstLine(message), 1000))) return trace || message;
  return `${message}\n${trace}`;
}

function toKind({ unfinished, failures }: TeamcityTest, message: string): FailureKind {
  if (TIMED_OUT.test(cut(message, 500))) return "timeout";
  return unfinished || failures.some(({ isError }) => isError) ? "error" : "failure";
}

const TIMED_OUT = /\b(?:timeout of \d+ ?m?s exceeded|(?:timed out|timeout) (?:in|after) \d+ ?m?s)\b/i;
