/** The points of TAP: the lines "ok" and "not ok", with what producers write into their names. */

import { clean, toMs } from "./text.ts";

/** A line "ok" or "not ok", and the lines below it. */
export type TapPoint = {
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
  children: TapPoint[];
};

/** After the name may come, in any order, a directive, how long the test took, and a brace that opens its subtests. */
export function toTapPoint(line: string, group: string): TapPoint {
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

/** GLib names a test by its path, and appends to it why it failed. */
export function nameOfGlib({ name, ok }: TapPoint): Partial<TapPoint> {
  const at = ok || !name.startsWith("/") ? -1 : name.indexOf(" - ");
  return at === -1 ? {} : { name: name.slice(0, at), reason: name.slice(at + 3) };
}

/** bats appends "in 5ms" to each name if it prints times, without a separator. */
export function dropTimes(points: TapPoint[]): void {
  const times = points.map(({ name }) => / in (\d{1,9})ms$/.exec(name));
  if (times.includes(null)) return;
  for (const [at, time] of times.entries()) {
    Object.assign(points[at]!, { name: points[at]!.name.slice(0, time!.index), durationMs: toMs(Number(time![1])) });
  }
}

export function isTestFile(name: string): boolean {
  return name.length <= 500 && /^\S+\.(?:[cm]?[jt]sx?|vue|svelte|t|pl|bats|sh|php|py|rb|lua)$/i.test(name);
}
