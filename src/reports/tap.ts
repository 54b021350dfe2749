/** TAP 13 and 14, the Test Anything Protocol: https://testanything.org */

import { toCase } from "./fields.ts";
import { type Report, ReportError } from "./report.ts";
import { toTapCases } from "./tap_cases.ts";
import { isCounted, numberWarnings, type TapLevel, PLAN_MISMATCH, toBreak, toPlanMismatch } from "./tap_plan.ts";
import { dropTimes, isTestFile, nameOfGlib, type TapPoint, toTapPoint } from "./tap_point.ts";
import { toPlainTap } from "./tap_source.ts";
import { clean, createCutter, linesOf, MAX_CASES, toMs, tooManyCases } from "./text.ts";

/** Throws a ReportError when no line is of TAP. */
export function readTap(written: string): Report {
  const text = toPlainTap(written);
  const levels: TapLevel[] = [{ indent: 0, points: [], owned: true, subtest: "", plans: [] }];
  const { points: top, plans } = levels[0]!;
  // tape names its tests in comments; those of other producers are output.
  const isGrouped = /^TAP version 13\n# (?!Subtest)/i.test(text) && !/^ *# Subtest/m.test(text);
  const isTap = /^\s*K?TAP version/i.test(text);
  // Deno names the file of its tests so, and GLib what went wrong, in comments above them.
  const isDeno = /^TAP version 14\n# \.{0,2}\//.test(text);
  const isGlib = /^(?:TAP version 1\d\n)?# random seed: /.test(text);
  // The kernel's tests print what they say above their point.
  const isKernel = /^# selftests: /m.test(text);
  const state = { group: "", file: null as string | null, skip: "", bail: "", above: [] as string[] };
  let [durationMs, count, bailed] = [null as number | null, 0, false];
  let last: TapPoint | null = null;
  let yaml: string | null = null;
  for (const line of linesOf(text)) {
    const plain = line.trimStart();
    const indent = line.length - plain.length;
    const isPoint = indent % 4 === 0 && /^(?:not )?ok(?=[\s#-]|$)(?! {2}\t)/.test(plain);
    if (yaml !== null && last) {
      // A block may be invalid and a text in it begin anywhere; only a numbered point further out ends it early.
      if (!isPoint || indent >= yaml.length || !/ok \d/.test(plain)) {
        if (line.trimEnd() === `${yaml}...`) yaml = null;
        else last.yaml.push(line.startsWith(yaml) ? line.slice(yaml.length) : line);
        if (yaml === null) last = null;
        continue;
      }
      yaml = null;
    }
    const plan = indent % 4 === 0 ? /^1\.\.(\d{1,9})(?:\s*$|\s+#\s*(.*))/.exec(plain) : null;
    if (isPoint) {
      if (++count > MAX_CASES) throw tooManyCases();
      last = { ...toTapPoint(plain, state.group), file: state.file };
      if (isGlib || isKernel)
        Object.assign(last, isGlib && nameOfGlib(last), { diagnostics: last.ok ? [] : state.above });
      state.above = [];
      addPoint(levels, indent, last);
    } else if (plan) {
      if (indent === 0) state.skip = plan[2] ?? "";
      (levelAt(levels, indent) ?? enter(levels, indent)).plans.push(Number(plan[1]));
      last = null;
    } else if (plain.startsWith("Bail out!")) {
      [bailed, state.bail] = [true, state.bail || plain.slice(9).trim()];
      last = null;
    } else if (last && indent > 0 && /^---\s*$/.test(plain)) yaml = line.slice(0, indent);
    else if (plain.startsWith("#")) {
      const comment = plain.slice(1).trim();
      const time = /^(?:duration_ms |time=)(\d+(?:\.\d+)?)(?:ms)?$/.exec(comment)?.[1];
      if (indent === 0 && time !== undefined) durationMs = toMs(Number(time));
      if (comment.startsWith("Subtest:")) enter(levels, indent).subtest = comment.slice(8).trim();
      else if (isGrouped && indent === 0) state.group = comment.replace(/^(?:TODO|SKIP) /, "");
      else if (isDeno && indent === 0 && isTestFile(comment)) state.file = clean(comment.replace(/^\.\//, ""));
      else if ((isKernel && indent === 0) || (isGlib && /^[\w-]*ERROR:/.test(comment))) state.above.push(comment);
      else if (last && !last.ok && !TOTALS.test(comment)) last.diagnostics.push(plain.replace(/^# ?/, ""));
      if (comment.startsWith("Subtest:") || TOTALS.test(comment)) last = null;
    } else if (plain === "}" && closeBlock(levels, indent)) last = null;
    else if (last && !last.ok && indent > 0) last.diagnostics.push(line);
  }
  if (count === 0 && plans.length === 0 && !bailed && !isTap) throw new ReportError("none of its lines is TAP");
  // node numbers a file without tests by its position among the files.
  if (/^# cancelled \d+$/m.test(text)) for (const point of top) point.number = 0;
  const mismatch = toBreak(levels, isTap && /\{\s*$/.test(text)) ?? toPlanMismatch(levels[0]!, isCounted(text, top));
  const numbers = numberWarnings(levels[0]!);
  close(levels);
  dropTimes(top);

  const cutter = createCutter();
  const cases = toTapCases(top, cutter);
  const fault = bailed
    ? { name: "(bail out)", message: state.bail || "Bail out!" }
    : mismatch !== null && { name: PLAN_MISMATCH, message: mismatch };
  if (fault) cases.push(toCase(cutter, { ...fault, message: clean(fault.message), status: "failed", kind: "error" }));
  else if (top.length === 0 && state.skip) {
    const reason = clean(state.skip.replace(/^skip\S*\s*/i, ""));
    cases.push(toCase(cutter, { name: "(all tests skipped)", status: "skipped", message: reason }));
  }
  return {
    format: "tap",
    suite: null,
    cases,
    countsOnly: null,
    partial: plans.length === 0 && !bailed,
    durationMs,
    completedAt: null,
    context: {},
    warnings: [...numbers, ...cutter.warnings()],
  };
}

/** Lines that node, mocha, tape and Perl write at the end. */
const TOTALS =
  /^(?:(?:Start|End) of .* tests$|(?:tests|suites|pass|fail|ok|cancelled|skipped|skip|todo|duration_ms) *[\d.]*$|Looks like you |time=[\d.]+m?s$)/;

/** Finds the level with this indentation. Each level is indented further than the one before. */
function levelAt(levels: TapLevel[], indent: number): TapLevel | undefined {
  let [from, to] = [0, levels.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (levels[middle]!.indent < indent) from = middle + 1;
    else to = middle;
  }
  return levels[from]?.indent === indent ? levels[from] : undefined;
}

function enter(levels: TapLevel[], indent: number): TapLevel {
  const outer = levels.at(-1)!;
  if (outer.indent >= indent) return outer;
  const opener = outer.points.at(-1);
  const owned = opener?.opens === true;
  const level = { indent, points: owned ? opener.children : [], owned, subtest: "", plans: [] };
  levels.push(level);
  return level;
}

/**
 * Closes the levels deeper than `indent`, whose parent has passed or not, and returns their points without a parent. A parent that passed
 * although the plan of its subtests is not fulfilled gets a failed one.
 */
function leave(levels: TapLevel[], indent: number, isOk: boolean): TapPoint[] {
  const orphans: TapPoint[][] = [];
  while (levels.at(-1)!.indent > indent) {
    const level = levels.pop()!;
    const { points, owned } = level;
    const mismatch = (owned ? levels.at(-1)!.points.at(-1)!.ok : isOk) ? toPlanMismatch(level) : null;
    if (mismatch !== null) points.push({ ...toTapPoint("not ok", ""), name: PLAN_MISMATCH, reason: mismatch });
    if (!owned) orphans.push(points);
  }
  return orphans.reverse().flat();
}

function addPoint(levels: TapLevel[], indent: number, point: TapPoint): void {
  point.children = leave(levels, indent, point.ok);
  const { points } = enter(levels, indent);
  const before = points.at(-1);
  if (before) before.opens = false;
  points.push(point);
}

/** Whether there was a block to close. */
function closeBlock(levels: TapLevel[], indent: number): boolean {
  const isInside = levels.at(-2)?.indent === indent && levels.at(-1)!.owned;
  const opener = levels.at(isInside ? -2 : -1)!.points.at(-1);
  if (!opener?.opens || (!isInside && levels.at(-1)!.indent !== indent)) return false;
  leave(levels, indent, opener.ok);
  opener.opens = false;
  return true;
}

/** Subtests whose parent never came keep the name that announced it. */
function close(levels: TapLevel[]): void {
  for (let level = levels.pop()!; levels.length > 0; level = levels.pop()!) {
    const outer = levels.at(-1)!;
    if (!level.owned && level.points.length > 0) {
      outer.points.push({ ...toTapPoint("ok", ""), name: clean(outer.subtest), children: level.points });
    }
  }
}
