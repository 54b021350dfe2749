/** The one shape that every report format is read into, and the error for a report that cannot be read. */

export type { CaseStatus } from "../schema/fields.ts";
import type { CaseStatus } from "../schema/fields.ts";
export type FailureKind = "failure" | "error" | "timeout";

/** One result of one test case. Texts are free of NUL and lone surrogates; `null` is "the report does not say". */
export type ReportedCase = {
  /** Suites from the outside in, joined with " > "; "" when there are none. */
  suite: string;
  name: string;
  file: string | null;
  line: number | null;
  status: CaseStatus;
  kind: FailureKind | null;
  /** Passed, after at least one failure inside this very report. */
  flaky: boolean;
  /** Number of times the case ran for this result, at least 1. */
  attempts: number;
  /** Whole milliseconds, never negative. */
  durationMs: number | null;
  message: string | null;
  stack: string | null;
  output: string | null;
  properties: Record<string, string> | null;
  /** Files that the report names or holds for this case; absent where there are none. */
  attachments?: ReportAttachment[];
  /** Failed only because a case that it contains has failed. */
  isThroughChild?: boolean;
  /** The suite counts a flaky test, and the failures of the case are listed one by one: it may have passed in the end. */
  isFlakyByCount?: boolean;
  /**
   * How long its file took with everything beside its tests, such as imports and hooks; without a file, its class or package. On one
   * case of each, and absent where the report does not say.
   */
  unitMs?: number;
  /** The run of the tests that it is from, where a report holds several: the last one has the highest number. */
  round?: number;
} & KnownNames;

/** A file that explains a result. At least one of `path` and `body` is set. */
export type ReportAttachment = {
  name: string;
  /** The path as the report has it: absolute, or relative to some folder of the machine that ran the tests. */
  path: string | null;
  contentType: string | null;
  /** The content, where the report itself holds it. */
  body: Uint8Array | null;
};

/** The fields that identify a test case. */
export type CaseName = { suite: string; name: string; file: string | null };

/** Returns a key for maps. Equal cases have equal keys. */
export const caseKey = ({ suite, name, file }: CaseName): string => `${suite}\0${name}\0${file ?? ""}`;

/** The names under which the test of a result may be stored already, beside its suite, name and file. */
export type KnownNames = {
  /** The name in the report, where its paths were made relative to the root of the repository: an earlier report may have had no root. */
  reportedName?: CaseName;
  /** The names that other reporters of the tool give the test; several tests may share one. */
  otherNames?: CaseName[];
  /** True if reports that use one of `otherNames` do not contain the name of this case: a new test keeps them as well. */
  keepOtherNames?: boolean;
};

/** Creates a failed case for a failure that no test case shows. */
export const erroredCase = (
  { suite, name, file }: CaseName,
  message: string,
  output: string | null = null,
): ReportedCase => ({
  suite,
  name,
  file,
  line: null,
  status: "failed",
  kind: "error",
  flaky: false,
  attempts: 1,
  durationMs: null,
  message,
  stack: null,
  output,
  properties: null,
});

/** Fields of the build that the report comes from. They fill parameters that the upload omits. */
export type ReportContext = {
  branch?: string;
  commit?: string;
  buildUrl?: string;
  environment?: string;
  /** The machine that it was written on. */
  host?: string;
};

export type Report = {
  format: string;
  /** The tool that wrote it, if the tool's own format keeps retries and this one does not. */
  tool?: string | undefined;
  /** The name of the top suite: the default task slug. */
  suite: string | null;
  cases: ReportedCase[];
  /** Set when the report declares counts without listing its cases. */
  countsOnly: { passed: number; failed: number; skipped: number } | null;
  /** Whether the report was truncated; `cases` has the complete ones. */
  partial: boolean;
  /** The report's own duration, else null; the sum of the cases is the fallback and not computed here. */
  durationMs: number | null;
  completedAt: Date | null;
  /** When its tests ran, by its own clock, to be compared only with other reports of the same upload. Absent: unknown. */
  span?: { from: number; to: number };
  context: ReportContext;
  /** Files that the report names outside of test cases; absent where there are none. */
  attachments?: ReportAttachment[];
  /** Sentences for the uploader: totals that disagree, texts that were cut, a broken end. */
  warnings: string[];
};

/** Creates the report of a runner that left no file, or an empty one. */
export const emptyReport = (format: string, warnings: string[] = []): Report => ({
  format,
  suite: null,
  cases: [],
  countsOnly: null,
  partial: false,
  durationMs: null,
  completedAt: null,
  context: {},
  warnings,
});

/** A report that cannot be read. The message says what and where (line or byte) and is safe to show to the uploader. */
export class ReportError extends Error {
  override name = "ReportError";
}

/** Levels of elements in elements, and of values in values, of a document. No tool writes as many, but Robot Framework. */
export const MAX_LEVELS = 100;

export const nestedTooDeeply = (what: "elements" | "values", max = MAX_LEVELS): ReportError =>
  new ReportError(`its ${what} are nested more than ${max} levels deep`);
