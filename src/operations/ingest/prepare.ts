/** Makes of a report what is stored of it: whose results they are, their details, and where they come from. */

import * as v from "valibot";
import { erroredCase, type ReportedCase, type Report } from "../../reports/report.ts";
import { cut } from "../../reports/text.ts";
import { fingerprint } from "../../rules/fingerprint.ts";
import { attachmentName, isKeptWith, normalizeAttachmentPath } from "../../rules/attachment_path.ts";
import { identify, type IdentifiedCases } from "../../rules/identity.ts";
import { exitMessage } from "../../wording/reasons.ts";
import { resolveBranch } from "../../rules/branch.ts";
import { nameVariant, readVariant } from "../../rules/variants.ts";
import { type FoldedCases, foldEqualNames } from "../../rules/equal_names.ts";
import { overheadsOf } from "../../rules/plan.ts";
import { markThroughChild } from "../../rules/through_child.ts";
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

/** A report with all that can be said of it before its test cases are looked up. */
export type PreparedReport = {
  report: Report;
  taskSlug: string;
  /** With the one that stands for a runner that failed while all its tests passed. */
  cases: readonly ReportedCase[];
  hasStandIn: boolean;
  identified: IdentifiedCases;
  /** Further rows of cases that have several. */
  rows: FoldedCases["rows"];
  /** Attachments of cases that passed are stored as well. */
  keepsAllAttachments: boolean;
  /** Hexadecimal; of everything that decides the results. */
  digest: string;
};

/** A report whose test cases are known by their numbers. */
export type ResolvedReport = {
  report: Report;
  taskSlug: string;
  /** Ascending by test case. */
  results: Result[];
  details: CaseDetail[];
  references: AttachmentReference[];
  rows: FoldedCases["rows"];
  /** The test case that stands for the exit code, when no other failed. */
  exitCase: number | null;
  /** Hexadecimal; of everything that decides the results. */
  digest: string;
  /** What files took beyond their test cases, each with one of its cases. */
  overheads: { testCase: number; ms: number }[];
};

/** What failed without a test case that did. `exitCode` undefined: there is none, or it was 0. */
export type RunnerFailure = { exitCode: number | undefined; message: string; output: string | null };

/** A failed case for a runner that failed while all its tests passed: no silent green. */
const exitCaseOf = ({ exitCode, message, output }: RunnerFailure, shard: Shard | undefined): ReportedCase => {
  const name = `runner ${exitCode ? `exited ${exitCode}` : "failed"}${shard ? ` (shard ${shard.index}/${shard.of})` : ""}`;
  return erroredCase({ suite: "", name, file: null }, message, output);
};

/** The line alone would be a row for every case of some producers, and says little where nothing went wrong. */
const tellsMore = (result: ReportedCase) =>
  result.message !== null ||
  result.stack !== null ||
  result.output !== null ||
  result.kind !== null ||
  result.properties !== null ||
  result.attempts > 1;

/** The name of the report's run: that of its task, or of the variant of the task that its tags make. */
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

/** Each test once, and what it failed by. */
function foldCases(
  cases: readonly ReportedCase[],
  { equal }: IdentifiedCases,
  { exit_code: exitCode, attempts }: UploadParameters,
): FoldedCases {
  const folded = foldEqualNames(cases, equal, { exitCode, areAttempts: attempts === "merged" });
  return { ...folded, cases: markThroughChild(folded.cases) };
}

/** `failure`: of a runner that has no report. Refuses tags that are too long. */
export function prepareReport(
  projectId: string,
  given: Report,
  parameters: UploadParameters,
  uploadDigest: string,
  failure?: RunnerFailure,
): PreparedReport {
  const taskSlug = taskOf(given, parameters);
  const identified = identify(projectId, taskSlug, given.cases);
  const { cases: tests, rows } = foldCases(given.cases, identified, parameters);
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

/** `numbers` are those of the test cases, in the order of `cases`. */
export function toResolved(
  { report, taskSlug, cases, rows, hasStandIn, keepsAllAttachments, digest }: PreparedReport,
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
    const cause = result.status === "failed" && !result.isThroughChild ? fingerprint(result).digest : null;
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

/** The files that results may name, of one report and of one case: a page of a case lists no more. */
const MAX_REFERENCES = 5_000;
const MAX_CASE_REFERENCES = 50;
const MAX_NAME_LENGTH = 200;

/** The files that the cases name, those that are kept first. */
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

/** Where the tests of an upload ran. */
export const machineOf = (parameters: UploadParameters, { context }: Report): MachineNames => ({
  host: parameters.host ?? cutTo(200, context.host) ?? null,
  system: parameters.system ?? null,
  image: parameters.image ?? null,
});

/** Half of a character would be stored as another one than is told. */
const cutTo = (max: number, text: string | undefined) => (text === undefined ? undefined : cut(text, max));

/** A report may say anything: what is no address is left out. */
function toBuildUrl(given: string | undefined): string | undefined {
  const { success, output } = v.safeParse(buildUrl, given);
  return success ? output : undefined;
}

/** What an attempt of a run has to tell. */
export const toRunDetails = (details: readonly CaseDetail[], runId: string, { number, shard }: Attempt): RunDetail[] =>
  details.map((detail) => ({ ...detail, runId, attempt: number, shard: shard === WHOLE ? null : shard }));

/** Whole milliseconds; the report's own word, else the sum of its cases. */
export const durationOf = (report: Report): number =>
  Math.round(report.durationMs ?? report.cases.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0));
