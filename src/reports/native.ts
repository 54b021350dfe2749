/** Assay's own JSON: counts, with or without the test cases behind them. */

import * as v from "valibot";
import { type NativeCase, nativeCase, nativeReport } from "../schema/reports.ts";
import { type CaseResult, type Report, ReportError } from "./report.ts";
import { createCutter, type Cutter, cut, disagreement, MAX_CASES } from "./text.ts";

export function isNative(json: unknown): boolean {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return false;
  return ["passed", "failed", "skipped"].every((key) => Object.hasOwn(json, key));
}

/** As strict as every body of the API: throws a ReportError that names every bad field. */
export function readNative(json: unknown): Report {
  const given = (json as { cases?: unknown } | null)?.cases;
  if (Array.isArray(given) && given.length > MAX_CASES) {
    throw new ReportError(`"cases": expected at most ${MAX_CASES.toLocaleString("en")}, got ${given.length}`);
  }
  const parsed = v.safeParse(nativeReport, json);
  if (!parsed.success) throw new ReportError(toProblems(parsed.issues));

  const { taskSlug, passed, failed, skipped, completedAt, durationMs, cases } = parsed.output;
  const declared = { passed, failed, skipped };
  const cutter = createCutter();
  const results = cases?.map((one) => toCase(one, cutter)) ?? [];
  return {
    format: "assay",
    suite: taskSlug ?? null,
    cases: results,
    countsOnly: cases ? null : declared,
    partial: false,
    durationMs: durationMs ?? null,
    completedAt: completedAt === undefined ? null : new Date(completedAt),
    context: {},
    warnings: [...(cases ? disagreement(declared, results) : []), ...cutter.warnings()],
  };
}

function toCase(one: NativeCase, cutter: Cutter): CaseResult {
  return {
    suite: cutter.cut("suite", one.suite ?? ""),
    name: cutter.cut("name", one.name),
    file: cutter.cutOrNull("file", one.file ?? null),
    line: one.line ?? null,
    status: one.status,
    kind: one.status === "failed" ? (one.kind ?? "failure") : null,
    flaky: one.status === "passed" && one.flaky === true,
    attempts: one.attempts ?? 1,
    durationMs: one.durationMs ?? null,
    message: cutter.cutOrNull("message", one.message ?? null),
    stack: cutter.cutOrNull("stack", one.stack ?? null),
    output: cutter.cutOrNull("output", one.output ?? null),
    properties: null,
  };
}

const MAX_PROBLEMS = 20;

function toProblems(issues: v.InferIssue<typeof nativeReport>[]): string {
  const problems = new Map<string, string>();
  let more = 0;
  for (const issue of issues) {
    for (const [field, problem] of toFields(issue)) {
      // Several rules of one field can fail; the first one tells it.
      if (problems.has(field)) continue;
      if (problems.size < MAX_PROBLEMS) problems.set(field, problem);
      else more++;
    }
  }
  const list = [...problems].map(([field, problem]) => `"${field}": ${problem}`);
  return [...list, ...(more ? [`and ${more} more`] : [])].join("; ");
}

function toFields(issue: v.InferIssue<typeof nativeReport>): [string, string][] {
  const field = issue.path?.map(({ key }) => cut(String(key), 100)).join(".") ?? "body";
  const last = issue.path?.at(-1);
  if (issue.type !== "strict_object" || !last || issue.expected === "Object") {
    return [[field, `${issue.message}, got ${show(issue.input)}`]];
  }
  if (issue.expected !== "never") return [[field, "expected a value, got none"]];
  // valibot stops at the first unknown field of an object.
  const { entries } = issue.path?.length === 1 ? nativeReport : nativeCase;
  const unknown = Object.keys(last.input as object).filter((key) => !Object.hasOwn(entries, key));
  const parent = field.split(".").slice(0, -1);
  return unknown.map((key) => [[...parent, cut(key, 100)].join("."), "expected no such field"]);
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(cut(value, 50).toWellFormed());
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
