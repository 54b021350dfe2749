/** What the client of an upload is answered: the run as JSON, or the verdict as text. */

import type { TakenReport } from "./taken_report.ts";
import { toRunDetail, toSlowerTest } from "../executions/run_detail.ts";
import { toLists } from "../../rules/blame.ts";
import { absentLines } from "../../wording/absent_tests.ts";
import { gateLines } from "../../wording/gate.ts";
import { toRunLine } from "../../wording/run_line.ts";
import { slowerLine } from "../../wording/slower.ts";
import type { StoredAnswer } from "../../store/idempotency.ts";

/** Maximum number of forgiven failures in the text of an answer. */
const MAX_FORGIVEN_LINES = 20;

export type AnswerOptions = {
  /** Without a trailing slash. */
  publicUrl: string;
  wantsText: boolean;
};

/** `missing`: warnings about attachments. */
export function toAnswer(
  { run, added, bugReports, blames, failures, slowerTests, absent, gate }: TakenReport,
  projectId: string,
  missing: readonly string[],
  { publicUrl, wantsText }: AnswerOptions,
): StoredAnswer {
  const detail = toRunDetail(publicUrl, projectId, run, absent);
  const body = {
    ...detail,
    warnings: [...detail.warnings, ...missing.filter((one) => !detail.warnings.includes(one))],
    counts: blames,
    ...toLists(failures),
    slowerTests: slowerTests.map(toSlowerTest),
    ...(gate ? { gate } : {}),
    bugReports,
  };
  const status = added ? 201 : 200;
  if (!wantsText) return { status, contentType: "application/json", body: JSON.stringify(body) };
  const slower = slowerLine(slowerTests);
  const lines = [
    ...(gate ? gateLines(gate, MAX_FORGIVEN_LINES) : []),
    toRunLine(body),
    ...absentLines(absent),
    ...(slower ? [slower] : []),
  ];
  return { status, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n` };
}
