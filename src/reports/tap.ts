/** TAP 13 and 14, the Test Anything Protocol: https://testanything.org */

import { toCase } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type Report, ReportError } from "./report.ts";
import { toPlainTap } from "./tap_source.ts";
import {
  clean,
  createCutter,
  type Cutter,
  cut,
  firstLine,
  linesOf,
  MAX_CASES,
  MAX_NAME,
  plural,
  toMs,
  tooManyCases,
} from "./text.ts";

/** A line "ok" or "not ok", and the lines below it. */
type Point = {
  name: string;
  /** The number as written, else 0. */
  number: number;
  /** Without a directive. */
  ok: boolean;
  directive: "skip" | "todo" | null;
  reason: string;
  timedOut: boolean;
  durationMs: number | null;
  yaml: string[];
  diagnostics: string[];
  /** The comment above it, for producers that name their tests so. */
  group: string;
  /** The file that a comment above it names. */
  file: string | null;
  /** Whether the point opened a block that is not closed yet. Deeper lines are inside it. */
  opens: boolean;
  children: Point[];
};

/** Points of one indentation; they belong to the point that opened a block, or else to the next one further out. */
type Level = { indent: number; points: Point[]; owned: boolean; subtest: string; plans: number[] };

/** Throws a ReportError when no line is of TAP. */
export function readTap(written: string): Report {
  const text = toPlainTap(written);
  const levels: Level[] = [{ indent: 0, points: [], owned: true, subtest: "", plans: [] }];
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
  let last: Point | null = null;
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
      last = { ...toPoint(plain, state.group), file: state.file };
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
      else if (isDeno && indent === 0 && isFile(comment)) state.file = clean(comment.replace(/^\.\//, ""));
      else if ((isKernel && indent === 0) || (isGlib && /^[\w-]*ERROR:/.test(comment))) state.above.push(comment);
      else if (last && !last.ok && !TOTALS.test(comment)) last.diagnostics.push(plain.replace(/^# ?/, ""));
      if (comment.startsWith("Subtest:") || TOTALS.test(comment)) last = null;
    } else if (plain === "}" && closeBlock(levels, indent)) last = null;
    else if (last && !last.ok && indent > 0) last.diagnostics.push(line);
  }
  if (count === 0 && plans.length === 0 && !bailed && !isTap) throw new ReportError("none of its lines is TAP");
  // node numbers a file without tests by its position among the files.
  if (/^# cancelled \d+$/m.test(text)) for (const point of top) point.number = 0;
  const mismatch = toBreak(levels, isTap && /\{\s*$/.test(text)) ?? toMismatch(levels[0]!, isCounted(text, top));
  close(levels);
  dropTimes(top);

  const cutter = createCutter();
  const cases = toCases(top, cutter);
  const fault = bailed
    ? { name: "(bail out)", message: state.bail || "Bail out!" }
    : mismatch !== null && { name: MISMATCH, message: mismatch };
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
    warnings: cutter.warnings(),
  };
}

/** Lines that node, mocha, tape and Perl write at the end. */
const TOTALS =
  /^(?:(?:Start|End) of .* tests$|(?:tests|suites|pass|fail|ok|cancelled|skipped|skip|todo|duration_ms) *[\d.]*$|Looks like you |time=[\d.]+m?s$)/;

const MISMATCH = "(plan mismatch)";

/** Describes how the plans of a level contradict its points; null if they agree. The outermost level must have a plan. */
function toMismatch({ plans, points, indent }: Level, isCounted = false): string | null {
  const ran = points.length;
  if (plans.length === 0)
    return indent > 0 ? null : `There is no plan, after ${plural(ran, "test")}: the run broke off`;
  const plan = plans.reduce((sum, one) => sum + one, 0);
  if (plan !== ran) return `The plan is of ${plural(plan, "test")}, but there ${ran === 1 ? "is" : "are"} ${ran}`;
  return isCounted ? null : toRepetition(plans, points);
}

/** Whether the text ends with the right totals. mocha gives the failure of a hook the number of a test. */
function isCounted(text: string, points: Point[]): boolean {
  const [, passed, failed] = /^# pass (\d{1,9})\n# fail (\d{1,9})$/m.exec(text.slice(-1_000)) ?? [];
  const plain = points.filter(({ directive }) => directive === null);
  const failures = plain.filter(({ ok }) => !ok).length;
  return failures === Number(failed) && plain.length - failures === Number(passed);
}

/** Joined files begin at 1 again, each with its plan; a report that does not number all tests is not checked. */
function toRepetition(plans: number[], points: Point[]): string | null {
  const counts = new Map<number, number>();
  for (const { number } of points) {
    if (number === 0) return null;
    counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  const longest = plans.reduce((most, plan) => Math.max(most, plan), 0);
  // The number of plans that include each number.
  const wanted = new Uint32Array(longest + 2);
  for (const plan of plans) wanted[plan]!++;
  for (let number = longest; number > 0; number--) wanted[number]! += wanted[number + 1]!;
  const repeated = [...counts].find(([number, count]) => count > Math.max(1, wanted[number] ?? 0));
  if (!repeated) return null;
  for (let number = 1; number <= longest; number++) {
    if ((counts.get(number) ?? 0) < wanted[number]!)
      return `The number ${repeated[0]} is there ${repeated[1]} times, and ${number} is missing`;
  }
  return null;
}

/** Describes why the text ends inside a subtest (a plan that is not fulfilled, or a block that is not closed); null if it does not. */
function toBreak(levels: Level[], endsInBrace: boolean): string | null {
  const inner = levels.slice(1);
  const opener = levels.at(-1)!.points.at(-1);
  // A level is announced in the one around it, by Perl of old in itself.
  const path = inner.map(({ owned, subtest }, at) =>
    owned ? levels[at]!.points.at(-1)!.name : clean(levels[at]!.subtest || subtest),
  );
  const where = `inside the subtest "${cut([...path, ...(endsInBrace ? [opener?.name ?? ""] : [])].join(" > "), 200)}"`;
  if (endsInBrace && opener?.opens) return `The run broke off ${where}`;
  for (const level of inner) {
    const mismatch = toMismatch(level);
    if (mismatch !== null) return `The run broke off ${where}: ${mismatch.charAt(0).toLowerCase()}${mismatch.slice(1)}`;
    if (level.owned || level.plans.length === 0) return `The run broke off ${where}`;
  }
  return null;
}

/** After the name may come, in any order, a directive, how long the test took, and a brace that opens its subtests. */
function toPoint(line: string, group: string): Point {
  const [head, number = ""] = /^(?:not )?ok(?:\s+(\d+)(?=[\s#-]|$))?/.exec(line)!;
  const ok = line.startsWith("ok");
  let name = line.slice(head.length).trim();
  if (number !== "" || /^-[\s#]/.test(name)) name = name.replace(/^-(?:\s+|(?=#)|$)/, "");
  const opens = /(?:^|\s)\{$/.test(name);
  if (opens) name = name.slice(0, -1).trimEnd();
  let [durationMs, timedOut] = [null as number | null, false];
  // bats writes two; a bound keeps a line of nothing else from taking long.
  for (let tail = TAIL.exec(name), n = 0; tail && n < 3; tail = TAIL.exec(name), n++) {
    name = name.slice(0, tail.index).trimEnd();
    const [, time, unit] = tail;
    if (time === undefined) timedOut = true;
    else durationMs = toMs(Number(time) * (unit === "ms" ? 1 : 1000));
  }
  const ended = KERNEL.exec(name);
  if (ended) name = name.slice(0, ended.index);
  timedOut ||= ended?.[1]!.startsWith("TIMEOUT") === true;
  const directive = /(?:^|\s)#\s*(?:(skip)\S*|todo\b:?|xfail\b)(.*)/i.exec(name);
  if (directive) name = name.slice(0, directive.index);
  let reason = directive?.[2]?.trim() ?? ended?.[1] ?? "";
  // QUnit and Busted write the name after it; Perl, whose word is in lower case, the reason.
  const isName =
    name.trim() === "" && /^#\s*(?:SKIP|TODO|XFAIL)\s/.test(directive?.[0].trimStart() ?? "") && reason !== "-";
  if (isName) [name, reason] = [reason, ""];
  return {
    number: Number(number),
    name: clean(name.replace(/\\([\\#])/g, "$1")).trim(),
    ok,
    directive: directive ? (directive[1] ? "skip" : "todo") : null,
    // mocha writes a dash for no reason.
    reason: reason === "-" ? "" : clean(reason),
    timedOut,
    durationMs,
    yaml: [],
    diagnostics: [],
    group: clean(group),
    file: null,
    opens,
    children: [],
  };
}

/** The outcome of a program of the kernel's tests. */
const KERNEL = /(?:^|\s)#\s*(exit=\d+|(?:TIMEOUT|ERROR|XPASS)\b.*)$/;

const TAIL = /(?:^|\s)# ?(?:(?:time=|in )(\d+(?:\.\d+)?) ?(ms|s|sec)|timeout after \d+ ?s)$/;

/** Finds the level with this indentation. Each level is indented further than the one before. */
function levelAt(levels: Level[], indent: number): Level | undefined {
  let [from, to] = [0, levels.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (levels[middle]!.indent < indent) from = middle + 1;
    else to = middle;
  }
  return levels[from]?.indent === indent ? levels[from] : undefined;
}

function enter(levels: Level[], indent: number): Level {
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
function leave(levels: Level[], indent: number, isOk: boolean): Point[] {
  const orphans: Point[][] = [];
  while (levels.at(-1)!.indent > indent) {
    const level = levels.pop()!;
    const { points, owned } = level;
    const mismatch = (owned ? levels.at(-1)!.points.at(-1)!.ok : isOk) ? toMismatch(level) : null;
    if (mismatch !== null) points.push({ ...toPoint("not ok", ""), name: MISMATCH, reason: mismatch });
    if (!owned) orphans.push(points);
  }
  return orphans.reverse().flat();
}

function addPoint(levels: Level[], indent: number, point: Point): void {
  point.children = leave(levels, indent, point.ok);
  const { points } = enter(levels, indent);
  const before = points.at(-1);
  if (before) before.opens = false;
  points.push(point);
}

/** Whether there was a block to close. */
function closeBlock(levels: Level[], indent: number): boolean {
  const isInside = levels.at(-2)?.indent === indent && levels.at(-1)!.owned;
  const opener = levels.at(isInside ? -2 : -1)!.points.at(-1);
  if (!opener?.opens || (!isInside && levels.at(-1)!.indent !== indent)) return false;
  leave(levels, indent, opener.ok);
  opener.opens = false;
  return true;
}

/** Subtests whose parent never came keep the name that announced it. */
function close(levels: Level[]): void {
  for (let level = levels.pop()!; levels.length > 0; level = levels.pop()!) {
    const outer = levels.at(-1)!;
    if (!level.owned && level.points.length > 0) {
      outer.points.push({ ...toPoint("ok", ""), name: clean(outer.subtest), children: level.points });
    }
  }
}

type PointNode = {
  point: Point;
  outer: PointNode | null;
  suite: string;
  file: string | null;
  failed: boolean;
  todo: boolean;
};

/** The leaves, and parents that failed by themselves. */
function toCases(top: Point[], cutter: Cutter): ReportedCase[] {
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

function toNode(point: Point, outer: PointNode | null): PointNode {
  const todo = point.directive !== null || outer?.todo === true;
  if (!outer) return { point, outer, suite: point.group, file: null, failed: false, todo };
  const { name } = outer.point;
  const isOuterFile = outer.outer === null && isFile(name);
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
    point.name === MISMATCH || /^failureType: '?(?:uncaughtException|hookFailed|cancelledByParent)/m.test(yaml);
  const duration = /^duration_ms: *['"]?(\d+(?:\.\d+)?)/m.exec(yaml)?.[1];
  const rest = {
    status,
    kind: timedOut ? ("timeout" as const) : isError ? ("error" as const) : ("failure" as const),
    durationMs: duration === undefined ? point.durationMs : toMs(Number(duration)),
    message: status === "passed" ? null : message,
    stack: failed ? stack : null,
  };
  if (failed && point.children.length === 0 && isFile(point.name)) {
    const path = point.name.replace(/^file:\/\//, "");
    return toCase(cutter, { ...rest, suite, file: path, name: "(file failed to load)", kind: "error" });
  }
  // Vitest's flat form is "file > suite > test".
  const parts = file === null && suite === "" ? point.name.split(" > ") : [];
  const isPath = parts.length > 1 && isFile(parts[0]!);
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

/** GLib names a test by its path, and appends to it why it failed. */
function nameOfGlib({ name, ok }: Point): Partial<Point> {
  const at = ok || !name.startsWith("/") ? -1 : name.indexOf(" - ");
  return at === -1 ? {} : { name: name.slice(0, at), reason: name.slice(at + 3) };
}

/** bats appends "in 5ms" to each name if it prints times, without a separator. */
function dropTimes(points: Point[]): void {
  const times = points.map(({ name }) => / in (\d{1,9})ms$/.exec(name));
  if (times.includes(null)) return;
  for (const [at, time] of times.entries()) {
    Object.assign(points[at]!, { name: points[at]!.name.slice(0, time!.index), durationMs: toMs(Number(time![1])) });
  }
}

/** The location of a failure in bats, which precedes its message. */
const BATS_PLACE = /^\s*\((?:from|in) [^\n]* line \d+[,)]\n(?: *(?:from|in) [^\n]* line \d+[,)]\n){0,20}/;

const TIMED_OUT = /\b(?:timeout of \d+ ?m?s exceeded|(?:timed out|timeout) (?:in|after) \d+ ?m?s|due to timeout)\b/i;

function isFile(name: string): boolean {
  return name.length <= 500 && /^\S+\.(?:[cm]?[jt]sx?|vue|svelte|t|pl|bats|sh|php|py|rb|lua)$/i.test(name);
}

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
