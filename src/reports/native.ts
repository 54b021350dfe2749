/** Assay's own JSON: counts, with or without the test cases behind them. */

import * as v from "valibot";
import { type NativeCase, nativeCase, type NativeReport, nativeReport } from "../schema/reports.ts";
import { isObject, toCase } from "./fields.ts";
import { type Report, type ReportedCase, ReportError } from "./report.ts";
import { createCutter, cut, disagreement, MAX_CASES } from "./text.ts";

const COUNTS = ["passed", "failed", "skipped"] as const;

/** Whether it has the counts, or only fields of this format: then cases or counts may be missing, and the error names them. */
export function isNative(json: unknown): boolean {
  if (!isObject(json)) return false;
  if (COUNTS.every((key) => Object.hasOwn(json, key))) return true;
  const keys = Object.keys(json).slice(0, MAX_PROBLEMS);
  return keys.length > 0 && keys.every((key) => Object.hasOwn(nativeReport.entries, key));
}

/** Validates as strictly as every body of the API: throws a ReportError that names the invalid fields. */
export function readNative(json: unknown): Report {
  const { problems, report, cases } = validate(json);
  if (problems.length > MAX_PROBLEMS) problems.splice(MAX_PROBLEMS, problems.length, "and more");
  if (report === null || problems.length > 0) throw new ReportError(problems.join("; "));

  const { taskSlug, completedAt, durationMs, passed = 0, failed = 0, skipped = 0 } = report;
  const cutter = createCutter();
  const results = cases?.map((one) => ({ ...toCase(cutter, one), ...toAttachments(one) })) ?? [];
  return {
    format: "assay",
    suite: taskSlug ?? null,
    cases: results,
    countsOnly: cases ? null : { passed, failed, skipped },
    partial: false,
    durationMs: durationMs ?? null,
    completedAt: completedAt === undefined ? null : new Date(completedAt),
    context: {},
    warnings: [...(cases ? disagreement(declaredBy(report), results) : []), ...cutter.warnings()],
  };
}

/** The counts that the report declares. */
const declaredBy = ({ passed, failed, skipped }: NativeReport) =>
  Object.fromEntries(Object.entries({ passed, failed, skipped }).filter(([, count]) => count !== undefined));

const toAttachments = ({ attachments }: NativeCase): Pick<ReportedCase, "attachments"> =>
  attachments === undefined
    ? {}
    : { attachments: attachments.map(({ path, name = "" }) => ({ path, name, contentType: null, body: null })) };

const MAX_PROBLEMS = 20;

/** Validates case by case, because valibot would collect the mistakes of 200,000 cases before it returns. */
function validate(json: unknown): { problems: string[]; report: NativeReport | null; cases: NativeCase[] | null } {
  const given = Object.hasOwn(Object(json), "cases") ? (json as { cases: unknown }).cases : null;
  const list: unknown[] | null = Array.isArray(given) ? given : null;
  if (list && list.length > MAX_CASES) {
    throw new ReportError(`"cases": expected at most ${MAX_CASES.toLocaleString("en")}, got ${list.length}`);
  }
  const head = v.safeParse(nativeReport, list ? { ...(json as object), cases: [] } : json);
  const problems = head.issues ? toProblems(head.issues, nativeReport.entries, []) : [];
  // A list is an object without fields.
  const fields: Record<string, unknown> = Object(json);
  const missing = list || fields !== json ? [] : COUNTS.filter((name) => fields[name] === undefined);
  problems.push(...missing.map((name) => `"${name}": expected a value, got none`));
  const cases: NativeCase[] = [];
  for (const [at, one] of list?.entries() ?? []) {
    const parsed = v.safeParse(nativeCase, one);
    if (parsed.success) cases.push(parsed.output);
    else problems.push(...toProblems(parsed.issues, nativeCase.entries, ["cases", String(at)]));
    if (problems.length > MAX_PROBLEMS) break;
  }
  return { problems, report: head.success ? head.output : null, cases: list && cases };
}

function toProblems(issues: v.BaseIssue<unknown>[], entries: v.ObjectEntries, path: string[]): string[] {
  const problems = new Map<string, string>();
  for (const issue of issues) {
    const last = issue.path?.at(-1);
    const field = [...path, ...(last ? [cut(String(last.key), 100)] : [])].join(".") || "body";
    // Several rules of one field can fail; the first one is reported.
    if (issue.type !== "strict_object" || !last) {
      if (!problems.has(field)) problems.set(field, `${issue.message}, got ${show(issue.input)}`);
    } else if (issue.expected !== "never") problems.set(field, "expected a value, got none");
    else {
      // valibot stops at the first unknown field.
      const unknown = Object.keys(last.input as object).filter((key) => !Object.hasOwn(entries, key));
      for (const key of unknown.slice(0, MAX_PROBLEMS + 1)) {
        problems.set([...path, cut(key, 100).toWellFormed()].join("."), "expected no such field");
      }
    }
  }
  return [...problems].map(([field, problem]) => `"${field}": ${problem}`);
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(cut(value, 50).toWellFormed());
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
