/** The points of TAP as test cases: their suites, and messages from what is written below a point. */

import { toCase } from "./fields.ts";
import type { CaseStatus, ReportedCase } from "./report.ts";
import { PLAN_MISMATCH } from "./tap_plan.ts";
import { isTestFile, type TapPoint } from "./tap_point.ts";
import { clean, cut, type Cutter, firstLine, MAX_NAME, toMs } from "./text.ts";

type PointNode = {
  point: TapPoint;
  outer: PointNode | null;
  suite: string;
  file: string | null;
  failed: boolean;
  todo: boolean;
};

/** The leaves, and parents that failed by themselves. */
export function toTapCases(top: TapPoint[], cutter: Cutter): ReportedCase[] {
  const nodes: PointNode[] = [];
  const open = top.map((point) => toNode(point, null)).reverse();
  for (let next = open.pop(); next; next = open.pop()) {
    nodes.push(next);
    const { children } = next.point;
    for (let n = children.length - 1; n >= 0; n--) open.push(toNode(children[n]!, next));
  }
  for (const { point, outer, failed } of nodes.toReversed()) if (outer && (failed || !point.ok)) outer.failed = true;
  return nodes
    .filter(({ point, failed }) => point.children.length === 0 || (!point.ok && !failed))
    .map((leaf) => toResult(leaf, cutter));
}

function toNode(point: TapPoint, outer: PointNode | null): PointNode {
  const todo = point.directive !== null || outer?.todo === true;
  if (!outer) return { point, outer, suite: point.group, file: null, failed: false, todo };
  const { name } = outer.point;
  const isOuterFile = outer.outer === null && isTestFile(name);
  const suite = isOuterFile ? outer.suite : [outer.suite, name].filter(Boolean).join(" > ");
  return { point, outer, suite: cut(suite, MAX_NAME + 1), file: isOuterFile ? name : outer.file, failed: false, todo };
}

/** The file is not taken from the location of a failure, because that would give a test two histories. */
function toResult({ point, suite, file, todo }: PointNode, cutter: Cutter): ReportedCase {
  const status: CaseStatus = todo ? "skipped" : point.ok ? "passed" : "failed";
  const written = clean(point.yaml.join("\n")).trimEnd();
  const yaml = messageOfDeno(written) ?? written;
  const stack = yaml || clean(dedent(point.diagnostics)).trimEnd();
  const message =
    point.reason ||
    (written ? (yaml === written ? toMessage(yaml) : firstLine(yaml)) : firstLine(stack.replace(BATS_PLACE, "")));
  const failed = status === "failed";
  const timedOut =
    point.timedOut || /^(?:failureType: '?testTimeout|expired:)/m.test(yaml) || TIMED_OUT.test(cut(stack, 500));
  const isError =
    point.name === PLAN_MISMATCH || /^failureType: '?(?:uncaughtException|hookFailed|cancelledByParent)/m.test(yaml);
  const duration = /^duration_ms: *['"]?(\d+(?:\.\d+)?)/m.exec(yaml)?.[1];
  const rest = {
    status,
    kind: timedOut ? ("timeout" as const) : isError ? ("error" as const) : ("failure" as const),
    durationMs: duration === undefined ? point.durationMs : toMs(Number(duration)),
    message: status === "passed" ? null : message,
    stack: failed ? stack : null,
  };
  if (failed && point.children.length === 0 && isTestFile(point.name)) {
    const path = point.name.replace(/^file:\/\//, "");
    return toCase(cutter, { ...rest, suite, file: path, name: "(file failed to load)", kind: "error" });
  }
  // Vitest's flat form is "file > suite > test".
  const parts = file === null && suite === "" ? point.name.split(" > ") : [];
  const isPath = parts.length > 1 && isTestFile(parts[0]!);
  return toCase(cutter, {
    ...rest,
    suite: isPath ? parts.slice(1, -1).join(" > ") : suite,
    name: isPath ? parts.at(-1)! : point.name,
    file: (isPath ? parts[0]! : (file ?? point.file))?.replace(/^file:\/\//, ""),
  });
}

/** Deno writes a block of one line of JSON. */
function messageOfDeno(yaml: string): string | null {
  if (!yaml.startsWith('{"message":')) return null;
  try {
    const { message } = JSON.parse(yaml);
    return typeof message === "string" ? clean(message).trimEnd() : null;
  } catch {
    return null;
  }
}

/** The location of a failure in bats, which precedes its message. */
const BATS_PLACE = /^\s*\((?:from|in) [^\n]* line \d+[,)]\n(?: *(?:from|in) [^\n]* line \d+[,)]\n){0,20}/;

const TIMED_OUT = /\b(?:timeout of \d+ ?m?s exceeded|(?:timed out|timeout) (?:in|after) \d+ ?m?s|due to timeout)\b/i;

/** The first "error" or "message" that has a text, on its line or as a block below it, else the error on top of "stack". */
function toMessage(yaml: string): string {
  for (const key of [/^ *(?:error|message): *(.*)\n?/gm, /^ *stack: *(?! )(.*)\n(?= *\w*(?:Error|Exception)\b)/gm]) {
    for (const { 0: line, 1: value = "", index } of yaml.matchAll(key)) {
      const text = /^[|>]/.test(value)
        ? firstLine(yaml.slice(index + line.length).replace(BATS_PLACE, ""))
        : unquote(value);
      if (text) return text;
    }
  }
  return "";
}

function unquote(value: string): string {
  if (/^'.*'$/.test(value)) return value.slice(1, -1).replaceAll("''", "'");
  if (!/^".*"$/.test(value)) return value.replace(/^["']/, "");
  try {
    return firstLine(clean(String(JSON.parse(value))));
  } catch {
    return value.slice(1, -1);
  }
}

function dedent(lines: string[]): string {
  const widths = lines.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length);
  const width = widths.reduce((least, one) => Math.min(least, one), widths[0] ?? 0);
  return lines.map((line) => line.slice(width)).join("\n");
}
