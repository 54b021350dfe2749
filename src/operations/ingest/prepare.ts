/** Converts a report into the data that is stored: identified results, their details, and the origin of the execution. */

import * as v from "valibot";
import { erroredCase, type ReportedCase, type Report } from "../../reports/report.ts";
import { cut } from "../../reports/text.ts";
import { mapInTurns } from "../../turns.ts";
import { fingerprint } from "../../rules/fingerprint.ts";
import { attachmentName, isKeptWith, normalizeAttachmentPath } from "../../rules/attachment_path.ts";
import { identify, type IdentifiedCases } from "../../rules/identity.ts";
import { exitMessage } from "../../wording/reasons.ts";
import { resolveBranch } from "../../rules/branch.ts";
import { nameVariant, readVariant } from "../../rules/variants.ts";
import { foldCases, type FoldedCases } from "../../rules/equal_names.ts";
import { overheadsOf } from "../../rules/plan.ts";
import { type Result, THROUGH_CHILD, toLetter } from "../../rules/merge.ts";
import type { MachineNames } from "../../rules/ran_on.ts";
import { WHOLE } from "../../rules/run_outcome.ts";
import { buildUrl, MAX_SLUG_LENGTH, type Shard, toStorable } from "../../schema/fields.ts";
import { refuse } from "../../schema/refusal.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import type { AttachmentReference } from "../../store/attachments.ts";
import type { CaseDetail, RunDetail } from "../../store/case_results.ts";
import type { Attempt } from "../../store/test_runs.ts";
import type { ExecutionOrigin } from "../../store/executions.ts";

/** A report with everything that can be derived from it before its test cases are looked up. */
export type PreparedReport = {
  report: Report;
  taskSlug: string;
  /** All cases; the last one may stand for a test runner that failed while all its tests passed (`hasStandIn`). */
  cases: readonly ReportedCase[];
  hasStandIn: boolean;
  /** The fingerprint of each case that failed by itself and has details, else null. Computing them takes too long for a transaction, which holds locks. */
  causes: readonly (string | null)[];
  identified: IdentifiedCases;
  /** Counts of further results with the name of another case, such as parameter sets. */
  rows: FoldedCases["rows"];
  /** Whether attachments of passed cases are stored as well. */
  keepsAllAttachments: boolean;
  /** SHA-256 in hexadecimal of everything that decides the results, to recognise repeated uploads. */
  digest: string;
};

/** A report whose test cases have been looked up. */
export type ResolvedReport = {
  report: Report;
  taskSlug: string;
  /** Results in ascending order of test case. */
  results: Result[];
  details: CaseDetail[];
  references: AttachmentReference[];
  rows: FoldedCases["rows"];
  /** The test case that stands for the failed test runner; null if there is none. */
  exitCase: number | null;
  /** SHA-256 in hexadecimal of everything that decides the results, to recognise repeated uploads. */
  digest: string;
  /** Time of each file beyond that of its test cases, such as for imports and hooks. `testCase` is one of its cases. */
  overheads: { testCase: number; ms: number }[];
};

/** A failure of the test runner that no test case shows. `exitCode` is undefined if there was none, or if it was 0. */
export type RunnerFailure = { exitCode: number | undefined; message: string; output: string | null };

/** Returns a failed case for a test runner that failed while all its tests passed, so that the run does not pass. */
const exitCaseOf = ({ exitCode, message, output }: RunnerFailure, shard: Shard | undefined): ReportedCase => {
  const name = `runner ${exitCode ? `exited ${exitCode}` : "failed"}${shard ? ` (shard ${shard.index}/${shard.of})` : ""}`;
  return erroredCase({ suite: "", name, file: null }, message, output);
};

/** Whether a result has details to store. A line number alone is not enough: some producers send one for every case. */
const tellsMore = (result: ReportedCase) =>
  result.message !== null ||
  result.stack !== null ||
  result.output !== null ||
  result.kind !== null ||
  result.properties !== null ||
  result.attempts > 1;

/** Returns the slug of the task of the report: the given or default one, extended by the tags of a variant. */
function taskOf({ suite }: Report, { task_slug, tag = [] }: UploadParameters): string {
  const task = task_slug ?? (suite?.slice(0, MAX_SLUG_LENGTH).toWellFormed() || "default");
  const name = nameVariant(task, tag);
  const own = readVariant(task).tags;
  if (tag.length > 0 && own.length > 0)
    refuse(`Cannot read "tag": the task ${JSON.stringify(task)} already has the tags ${own.join(", ")}`);
  if (name.length > MAX_SLUG_LENGTH)
    refuse(
      `Cannot read "tag": expected a task and tags of at most ${MAX_SLUG_LENGTH} characters together, got ${name.length}`,
    );
  return name;
}

/** Prepares a report. `failure` is the failure of a runner that has no report. Refuses tags that are too long. */
export async function prepareReport(
  projectId: string,
  given: Report,
  parameters: UploadParameters,
  uploadDigest: string,
  failure?: RunnerFailure,
): Promise<PreparedReport> {
  const taskSlug = taskOf(given, parameters);
  const identified = identify(projectId, taskSlug, given.cases);
  const folding = { exitCode: parameters.exit_code, areAttempts: parameters.attempts === "merged" };
  const { cases: tests, rows } = foldCases(given.cases, identified.equal, folding);
  const report = { ...given, cases: tests, durationMs: durationOf(given) };
  const exitCode = parameters.exit_code ?? 0;
  const failed = report.countsOnly?.failed ?? report.cases.filter(({ status }) => status === "failed").length;
  const unexplained =
    exitCode !== 0 && failed === 0
      ? {
          exitCode,
          message: exitMessage(exitCode),
          output: null,
        }
      : undefined;
  const stated =
    parameters.failure === undefined
      ? undefined
      : { exitCode: exitCode || undefined, message: parameters.failure, output: null };
  const standIn = failure ?? stated ?? unexplained;
  const cases = standIn ? [...report.cases, exitCaseOf(standIn, parameters.shard)] : report.cases;
  return {
    report,
    taskSlug,
    cases,
    hasStandIn: standIn !== undefined,
    causes: await mapInTurns(cases, (one) => {
      const isCause = one.status === "failed" && !one.isThroughChild && tellsMore(one);
      return isCause ? fingerprint(one).digest : null;
    }),
    // Hashing the names of a large report costs as much as reading it.
    identified:
      identified.equal.size === 0 && standIn === undefined
        ? { ...identified, results: cases }
        : identify(projectId, taskSlug, cases),
    rows,
    keepsAllAttachments: parameters.attachments === "all",
    digest: Bun.SHA256.hash(
      `${uploadDigest} ${exitCode} ${parameters.format ?? ""}${parameters.attempts ? ` ${parameters.attempts}` : ""}${parameters.failure === undefined ? "" : ` failure ${parameters.failure}`}`,
      "hex",
    ),
  };
}

/** Adds the test cases to a prepared report. `numbers` are their numbers, in the order of `cases`. */
export function toResolved(
  { report, taskSlug, cases, causes, rows, hasStandIn, keepsAllAttachments, digest }: PreparedReport,
  numbers: readonly number[],
): ResolvedReport {
  const results = cases.map(({ status, flaky, durationMs, isThroughChild = false }, index): Result => ({
    testCase: numbers[index]!,
    letter: isThroughChild ? THROUGH_CHILD : toLetter(status, flaky),
    durationMs,
  }));
  const details = cases.flatMap((result, index): CaseDetail[] => {
    if (!tellsMore(result)) return [];
    const { kind, line, attempts, message, stack, output, properties } = result;
    const cause = causes[index]!;
    return [{ testCase: numbers[index]!, kind, line, runs: attempts, message, stack, output, properties, cause }];
  });
  return {
    report,
    taskSlug,
    results: results.sort((a, b) => a.testCase - b.testCase),
    details,
    rows,
    references: toReferences(cases, numbers, keepsAllAttachments),
    exitCase: hasStandIn ? numbers.at(-1)! : null,
    digest,
    overheads: overheadsOf(cases).map(({ first, ms }) => ({ testCase: numbers[first]!, ms: toInt4(ms) })),
  };
}

const toInt4 = (ms: number) => Math.min(Math.max(Math.round(ms), -2_147_483_648), 2_147_483_647);

/** Maximum numbers of attachment references that are stored for one report and for one case. */
const MAX_REFERENCES = 5_000;
const MAX_CASE_REFERENCES = 50;
const MAX_NAME_LENGTH = 200;

/** Returns the references to attachments by the cases. If there are too many, those whose files are kept take precedence. */
function toReferences(
  cases: readonly ReportedCase[],
  numbers: readonly number[],
  keepsAll: boolean,
): AttachmentReference[] {
  const references = cases.flatMap((result, index): AttachmentReference[] =>
    (result.attachments ?? []).slice(0, MAX_CASE_REFERENCES).flatMap(({ path, name }, position) => {
      if (path === null) return [];
      const normal = normalizeAttachmentPath(path);
      const shown = cut(toStorable(name).trim() || attachmentName(normal), MAX_NAME_LENGTH);
      const isKept = keepsAll || isKeptWith(result);
      return { testCase: numbers[index]!, position, path: normal, name: shown, isKept };
    }),
  );
  if (references.length <= MAX_REFERENCES) return references;
  return references.toSorted((a, b) => Number(b.isKept) - Number(a.isKept)).slice(0, MAX_REFERENCES);
}

export const originOf = (parameters: UploadParameters, { context }: Report): ExecutionOrigin => ({
  ...resolveBranch({
    branch: parameters.branch ?? cutTo(500, context.branch),
    pullRequest: parameters.pull_request,
    baseBranch: parameters.base_branch,
  }),
  commit: parameters.commit ?? cutTo(200, context.commit),
  buildUrl: parameters.build_url ?? toBuildUrl(context.buildUrl),
  environment: parameters.environment ?? cutTo(200, context.environment),
});

/** Returns the machine that the tests of an upload ran on. */
export const machineOf = (parameters: UploadParameters, { context }: Report): MachineNames => ({
  host: parameters.host ?? cutTo(200, context.host) ?? null,
  system: parameters.system ?? null,
  image: parameters.image ?? null,
});

/** Cuts the text without splitting a surrogate pair, half of which cannot be stored. */
const cutTo = (max: number, text: string | undefined) => (text === undefined ? undefined : cut(text, max));

/** Returns the URL; undefined if the text is not a valid one, because a report may contain anything. */
function toBuildUrl(given: string | undefined): string | undefined {
  const { success, output } = v.safeParse(buildUrl, given);
  return success ? output : undefined;
}

/** Returns the details of the results, as rows of this attempt of the run. */
export const toRunDetails = (details: readonly CaseDetail[], runId: string, { number, shard }: Attempt): RunDetail[] =>
  details.map((detail) => ({ ...detail, runId, attempt: number, shard: shard === WHOLE ? null : shard }));

/** Returns the duration that the report states, or else the sum of its cases, in whole milliseconds. */
export const durationOf = (report: Report): number =>
  Math.round(report.durationMs ?? report.cases.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0));
