/**
 * Finds functions whose time grows faster than the length of a hostile text: compares the time for a text with the time for a part of it. For
 * a quiet machine, as `bun run linearity`.
 */

import { expect, test } from "bun:test";
import { Glob } from "bun";
import { join } from "node:path";

const SOURCE = join(import.meta.dir, "../../../src");

/** The tests measure processor time: a busy machine only lets them wait. */
export const TIMEOUT_MS = 120_000;

/** Characters that text handling looks for: blanks, line breaks, letters, digits, markup, escapes and quotes. */
const CHARACTERS = [...' \t\n\ra0<&\\\x1b>"/.#(['];
const LONGEST = 65_536;
/** Linear time grows as its text does, and quadratic time with the square of it: the bound lies between them. */
const MAX_EXPONENT = 1.6;
/** Even a linear function must not hold up the event loop for longer. Usual times are a thousandth of it. */
const MAX_MS = 2_000;

/** A whole that is `factor` times its part is compared with it, in up to so many rounds, unless it takes less than `negligibleMs`. */
type Comparison = { factor: number; rounds: number; negligibleMs: number };

/** A smaller time at 64 KiB holds no quadratic part that matters. */
const COMPARISON: Comparison = { factor: 2, rounds: 24, negligibleMs: 10 };
/** Two comparisons need fewer rounds each: what is superlinear takes long. */
const FIRST: Comparison = { ...COMPARISON, rounds: 6 };
/**
 * A text four times as long must confirm what the halves of a text have shown. A quadratic function takes sixteen times as long for it, and
 * a linear one four times.
 */
const CONFIRMING: Comparison = { factor: 4, rounds: 6, negligibleMs: 100 };

export type HostileText = { name: string; of: (length: number) => string };

const shown = (text: string): string => JSON.stringify(text).slice(1, -1);

const RUNS: HostileText[] = CHARACTERS.map((one) => ({ name: `${shown(one)}…`, of: (length) => one.repeat(length) }));

/** Two characters in turn, and a run of one that begins or ends with the other. */
const PAIRS: HostileText[] = CHARACTERS.flatMap((one) =>
  CHARACTERS.filter((other) => other !== one).flatMap((other) => [
    ...(one < other
      ? [{ name: `${shown(one + other)}…`, of: (length: number) => (one + other).repeat(length / 2) }]
      : []),
    { name: `${shown(other)} ${shown(one)}…`, of: (length: number) => other + one.repeat(length - 1) },
    { name: `${shown(one)}… ${shown(other)}`, of: (length: number) => one.repeat(length - 1) + other },
  ]),
);

/** The runs of one character, and some of the others. */
export const FEW_TEXTS: readonly HostileText[] = [
  ...RUNS,
  ...["\r\n", " \n", " [", "|n", "\t ", "a ", "a.", "a/", "0.", '\\"', "<a", "</", "&#", "[]", "()", "\x1b["].map(
    (two) => ({
      name: `${shown(two)}…`,
      of: (length: number) => two.repeat(length / 2),
    }),
  ),
  { name: "\\r a…", of: (length) => `\r${"a".repeat(length - 1)}` },
  { name: "\\n  …", of: (length) => "\n  ".repeat(length / 3) },
];

const ALL_TEXTS: readonly HostileText[] = [...RUNS, ...PAIRS];

type Call = ((text: string) => unknown) & { texts?: readonly HostileText[] };

/** For a function that takes milliseconds even for a harmless text. */
export const withFewTexts = (call: (text: string) => unknown): Call => Object.assign(call, { texts: FEW_TEXTS });

type Work = () => unknown;

/** Milliseconds of processor time that this process has taken: other processes do not count. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

async function timeOf(work: Work): Promise<number> {
  const start = processorTime();
  try {
    await work();
  } catch {
    // A refusal is an answer, too: only its time counts.
  }
  return processorTime() - start;
}

/**
 * Whether the work on a whole, which is `factor` times its part, takes longer than that explains: in all of many rounds at best, because
 * the garbage collector only adds time, and then by the medians, because on a busy machine the best time of a part may be a lucky one.
 */
export async function isSteep(onPart: Work, onWhole: Work, comparison: Partial<Comparison> = {}): Promise<boolean> {
  const { factor, rounds, negligibleMs } = { ...COMPARISON, ...comparison };
  const maxRatio = factor ** MAX_EXPONENT;
  const [parts, wholes]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    wholes.push(await timeOf(onWhole));
    const whole = Math.min(...wholes);
    if (whole < negligibleMs) return false;
    if (whole > 2 * MAX_MS) return true;
    for (let again = 0; again < 3; again++) parts.push(await timeOf(onPart));
    if (whole <= maxRatio * Math.min(...parts) && whole <= MAX_MS) return false;
  }
  return medianOf(wholes) > Math.min(maxRatio * medianOf(parts), MAX_MS);
}

const medianOf = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;

function growsSteeply(call: Call, text: HostileText, length: number, comparison: Comparison): Promise<boolean> {
  const [part, whole] = [text.of(length / comparison.factor), text.of(length)];
  return isSteep(
    () => call(part),
    () => call(whole),
    comparison,
  );
}

/** The names of the texts for which `call` takes superlinear time. Short texts come first, so that a cubic one ends. */
export async function findSteep(
  call: Call,
  texts: readonly HostileText[] = call.texts ?? ALL_TEXTS,
): Promise<string[]> {
  const steep: string[] = [];
  for (const text of texts) {
    // A few show what is wrong, and each takes long.
    if (steep.length >= 3) break;
    for (const length of [2_048, 16_384, LONGEST]) {
      if (!(await growsSteeply(call, text, length, FIRST))) continue;
      // A linear function is steep in all rounds where only the whole makes the garbage collector run, or the machine is busy.
      const longer = length * CONFIRMING.factor;
      if (!(await growsSteeply(call, text, longer, CONFIRMING))) continue;
      steep.push(`${text.name} at ${length} and ${longer}`);
      break;
    }
  }
  return steep;
}

/**
 * By file and export: how the function is called with a text from outside; `null` where it takes none, or only texts
 * whose length was limited before, or where the call of another export covers it.
 */
export type Calls = Record<string, Record<string, Call | null>>;

/** Every function that files of `layer` export must be in `calls`, and what is called must take linear time. */
export function testLinearity(layer: string, calls: Calls, texts = ALL_TEXTS): void {
  test(`every function that src/${layer} exports is listed`, async () => {
    const exported: Record<string, string[]> = {};
    // The program itself, which runs when it is imported.
    const files = [...new Glob("**/*.{ts,tsx}").scanSync(join(SOURCE, layer))].filter(
      (file) => !/^assay(_cli)?\.ts$/.test(file),
    );
    for (const file of files) {
      const names = Object.entries(await import(join(SOURCE, layer, file)))
        .filter(([, value]) => typeof value === "function" && !/^class\b/.test(String(value)))
        .map(([name]) => name);
      if (names.length > 0) exported[file] = names.sort();
    }
    const listed = Object.entries(calls).map(([file, functions]) => [file, Object.keys(functions).sort()]);
    expect(Object.fromEntries(listed)).toEqual(exported);
  });

  testCalls(calls, texts);
}

/** The functions of `calls` must take linear time. */
export function testCalls(calls: Calls, texts = ALL_TEXTS): void {
  for (const [file, functions] of Object.entries(calls))
    for (const [name, call] of Object.entries(functions))
      if (call)
        test(
          `${file} ${name}`,
          async () => {
            expect(await findSteep(call, call.texts ?? texts)).toEqual([]);
          },
          TIMEOUT_MS,
        );
}
