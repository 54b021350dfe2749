/** The command that runs only the test cases that failed, from a preset or a template of assay.yaml: docs/rerun.md. */

import type { PlacedCase } from "./identity.ts";
import { isOutsideOfTests } from "./outside_of_tests.ts";
import { quoted, scanShell } from "./shell.ts";
import {
  PRESETS,
  type Preset,
  LIST_VARIABLE,
  type RerunCases,
  CannotSelect,
  cannot,
  quote,
  type Selection,
  type Cases,
  toCases,
  toFileWord,
  toNameWord,
} from "./rerun_cases.ts";
import { TITLES, VAGUE, flatten, either, anchored, titles } from "./rerun_pattern.ts";
import { TEST_TOOLS } from "./rerun_tools.ts";
import { toInsertion } from "./rerun_insertion.ts";

/** Placeholders of a template, besides the names of presets, which stand for the words that the presets would add. */
export const PLACEHOLDERS = ["files", "names", "pattern", "namePattern", "list"] as const;
type Placeholder = (typeof PLACEHOLDERS)[number];

/** Placeholders for several words, which cannot be part of a word. */
const SEVERAL: readonly string[] = ["files", "names", ...PRESETS];

export type RerunInput = RerunCases & {
  /** A preset or a template, in which `mistakeInRerun` finds nothing. */
  rerun: string;
  /** The command of the whole task. */
  command: string;
};

/**
 * A command for the shell that runs the cases, and possibly more: `note` says if all tests of their files run. A `list` must be written to
 * a file, whose path the command finds in ASSAY_RERUN_LIST. Or the reason why only the whole task can run.
 */
export type RerunCommand =
  { whole: false; command: string; list: string | null; note: string | null } | { whole: true; reason: string };

/** Linux takes no argument of 128 KiB, and the shell gets the command as one; npm quotes it once more. In bytes. */
const MAX_COMMAND = 98_304;

const isPreset = (text: string): text is Preset => (PRESETS as readonly string[]).includes(text);
const isPlaceholder = (text: string): text is Placeholder => (PLACEHOLDERS as readonly string[]).includes(text);

/** Why a text is neither a preset nor a template: "expected …"; null when it is one. */
export function mistakeInRerun(rerun: string): string | null {
  if (isPreset(rerun)) return null;
  const { commands, isPlain, problem } = scanShell(rerun);
  const words = commands.flat();
  let count = 0;
  for (const { name, start, end } of placesIn(rerun)) {
    const isKnown = isPreset(name) || isPlaceholder(name);
    if (!isKnown && !isPlain(start)) continue;
    if (!isKnown) return `expected ${braced([...PLACEHOLDERS, ...PRESETS])} as placeholders and not {${name}}`;
    if (problem !== null) return `expected a command that can be understood: ${problem}`;
    if (!isPlain(start)) return `expected {${name}} outside of quotes, comments and $(…): its value comes quoted`;
    const isAlone = words.some((word) => word.start === start && word.end === end);
    if (SEVERAL.includes(name) && !isAlone) return `expected {${name}} as a word by itself: it may become several`;
    count++;
  }
  if (count > 0) return null;
  return `expected one of ${PRESETS.join(", ")}, or a command with a placeholder such as {files}`;
}

const braced = (names: readonly string[]) => names.map((name) => `{${name}}`).join(", ");

function placesIn(template: string): { name: string; start: number; end: number }[] {
  return [...template.matchAll(/(?<!\$)\{(\w{1,50})\}/g)].map(({ 0: all, 1: name, index }) => ({
    name: name!,
    start: index,
    end: index + all.length,
  }));
}

export function toRerunCommand(rerun: RerunInput): RerunCommand {
  try {
    if (rerun.only.length === 0) cannot("no test case is named");
    for (const one of rerun.only) {
      if (isOutsideOfTests(one)) cannot(`${quote(one.name)} has failed, which is no test that can be selected`);
    }
    return isPreset(rerun.rerun) ? fromPreset(rerun.rerun, rerun) : fromTemplate(rerun);
  } catch (error) {
    if (error instanceof CannotSelect) return { whole: true, reason: error.message };
    throw error;
  }
}

export type WithoutCases = {
  /** The command, or the words alone if there is none. */
  command: string;
  /** The test cases that cannot be left out, and why. */
  problems: { testCase: PlacedCase; reason: string }[];
};

/**
 * Adds the words to a command that make the tool run all tests but these; undefined: the words alone. Throws `CannotSelect` if the tool has
 * no such words, or the command has no place for them.
 */
export function toCommandWithout(
  preset: Preset,
  { only, command, ...place }: RerunCases & { command: string | undefined },
): WithoutCases {
  const { exclude } = TEST_TOOLS[preset];
  if (!exclude) return cannot(`${preset} cannot be told which tests to leave out`);
  const wordsFor = (some: readonly PlacedCase[]) => exclude(toCases({ only: some, ...place }), command ?? "").join(" ");
  const problems: WithoutCases["problems"] = [];
  const possible = only.filter((testCase) => {
    try {
      return wordsFor([testCase]) !== "";
    } catch (error) {
      if (!(error instanceof CannotSelect)) throw error;
      problems.push({ testCase, reason: error.message });
      return false;
    }
  });
  if (possible.length === 0) return { command: command ?? "", problems };
  const words = wordsFor(possible);
  const whole = command === undefined ? words : toInsertion(preset, command, true)(words);
  if (Buffer.byteLength(whole) > MAX_COMMAND) cannot("the names of the tests are too long for a command");
  return { command: whole, problems };
}

/** A command that gives a tool the files of its shard, as docs/splitting.md has it: the files of a rerun are named instead. */
const SPLIT =
  /^\s*assay\s+split\b[^;|&\n]{0,2000}>\s*(\S{1,200})\s*&&\s*xargs\s+(?:-[rx]{1,2}\s+|-[dn]\s+\S{1,10}\s+){0,5}-a\s+(\S{1,200})\s+/;

function withoutSplit(command: string): string {
  const match = SPLIT.exec(command);
  return match && match[1] === match[2] ? command.slice(match[0].length) : command;
}

/** Returns the first selection that fits; later ones run more tests. */
function fromPreset(preset: Preset, given: RerunInput): RerunCommand {
  const rerun = { ...given, command: withoutSplit(given.command) };
  const add = toInsertion(preset, rerun.command);
  return firstThatFits(TEST_TOOLS[preset].select(toCases(rerun), rerun.command), add);
}

function firstThatFits(selections: Iterable<Selection>, add: (args: string) => string): RerunCommand {
  for (const { args, list = null, note = null } of selections) {
    const command = add(args.join(" "));
    if (Buffer.byteLength(command) <= MAX_COMMAND) return { whole: false, command, list, note };
  }
  return cannot("the names of what failed are too long for a command");
}

function fromTemplate(rerun: RerunInput): RerunCommand {
  const cases = toCases(rerun);
  const places = placesIn(rerun.rerun).filter(({ name }) => isPreset(name) || isPlaceholder(name));
  const preset = places.map(({ name }) => name).find(isPreset);
  const fill = (args: string) => {
    let command = "";
    let last = 0;
    for (const { name, start, end } of places) {
      command += rerun.rerun.slice(last, start) + (isPlaceholder(name) ? toValue(name, cases) : args);
      last = end;
    }
    return command + rerun.rerun.slice(last);
  };
  const list = places.some(({ name }) => name === "list") ? toList(cases) : undefined;
  if (preset === undefined) return firstThatFits([{ args: [], ...(list === undefined ? {} : { list }) }], fill);
  const others = places.some(({ name }) => isPreset(name) && name !== preset);
  if (others || list !== undefined) cannot("a template may hold one preset, and then no {list}");
  return firstThatFits(TEST_TOOLS[preset].select(cases, rerun.rerun), fill);
}

function toValue(name: Placeholder, cases: Cases): string {
  const { only } = cases;
  if (name === "files") return cases.files().map(toFileWord).join(" ");
  if (name === "names") return [...new Set(only.map((one) => toNameWord(one.name)))].join(" ");
  if (name === "pattern") return quoted(titles(cases, VAGUE));
  if (name === "namePattern") return quoted(anchored(either(only.map((one) => flatten(one.name, TITLES)))));
  return `"$${LIST_VARIABLE}"`;
}

const toList = ({ only }: Cases): string =>
  `${JSON.stringify(only.map(({ suite, name, file }) => ({ suite, name, file })))}\n`;
