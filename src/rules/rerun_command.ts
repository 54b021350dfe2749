/** The command that runs only the test cases that failed, from a preset or a template of assay.yaml: docs/rerun.md. */

import { FAULT } from "../reports/fields.ts";
import { MAX_NAME } from "../reports/text.ts";
import { DRAWN_PART, isPlainName } from "./drawn_name.ts";
import type { PlacedCase } from "./identity.ts";
import { locateFile, toPathWord } from "./report_path.ts";
import { quoted, scanShell, type Word } from "./shell.ts";

/** Tools whose way of selecting tests is known. */
export const PRESETS = [
  "jest",
  "vitest",
  "bun",
  "playwright",
  "cypress",
  "pytest",
  "rspec",
  "go",
  "maven",
  "dotnet",
] as const;
export type Preset = (typeof PRESETS)[number];

/** The variable that holds the path of the list. */
export const LIST_VARIABLE = "ASSAY_RERUN_LIST";

/** In a template, beside the names of presets, which stand for the words that these would add. */
export const PLACEHOLDERS = ["files", "names", "pattern", "namePattern", "list"] as const;
type Placeholder = (typeof PLACEHOLDERS)[number];

/** What becomes several words, and so cannot be a part of one. */
const SEVERAL: readonly string[] = ["files", "names", ...PRESETS];

export type RerunInput = {
  /** A preset or a template, in which `mistakeInRerun` finds nothing. */
  rerun: string;
  /** What the task runs as a whole. */
  command: string;
  /** As they are stored. */
  only: readonly PlacedCase[];
  /** Absolute: where the command runs. */
  directory: string;
  /** Whether there is a file at this absolute path. */
  exists: (path: string) => boolean;
};

/**
 * A command for the shell that runs the cases, and maybe more: `note` says when it is all of their files. A `list` is
 * to be written into a file, whose path the command finds in ASSAY_RERUN_LIST. Or why only the whole task can run.
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

/** Why a case, a text or a command does not allow what is tried. */
class CannotSelect extends Error {}

function cannot(reason: string): never {
  throw new CannotSelect(reason);
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

/** For the log of the task, which may be a terminal. */
const quote = (text: string) =>
  JSON.stringify((text.length > 100 ? `${text.slice(0, 100)}…` : text).replace(/[\x7f-\x9f\u2028\u2029]/g, " "));

/** The names that our readers give what failed outside of tests, and operations/ingest/prepare.ts a bad exit code. */
const SYNTHETIC =
  /^\((?:no name|bail out|all tests skipped|plan mismatch|(?:file|build|setup|package|suite|test run|global setup|global teardown)(?: failed(?: to load)?| did not finish)|error outside of (?:tests|examples)|\S+ failed)\)$/;

function isOutsideOfTests({ name, suite, file }: PlacedCase): boolean {
  if (name === FAULT || SYNTHETIC.test(name)) return true;
  return suite === "" && file === null && /^runner\b/.test(name);
}

/** Words to add to a command, each quoted as far as it must be, and what they ask for beside that. */
type Selection = { args: string[]; list?: string; note?: string };

type Cases = {
  only: readonly PlacedCase[];
  /** Relative to the directory, each of them once. Fails with the first that is not there. */
  files: () => string[];
  /** Such a file as the tool finds it from the directory; undefined where there is none. */
  locate: (file: string) => string | undefined;
};

function toCases({ only, directory, exists }: RerunInput): Cases {
  // The report chooses the name: a file elsewhere on this machine is no test of the task.
  const locate = (file: string) => locateFile(file, directory, exists);
  const files = () => {
    const found = new Map<string, string>();
    for (const { file, name } of only) {
      if (file === null) cannot(`the report names no file for ${quote(name)}`);
      if (!found.has(file)) found.set(file, locate(file) ?? cannot(`there is no file ${quote(file)} in ${directory}`));
    }
    return [...new Set(found.values())];
  };
  return { only, files, locate };
}

/** A command that gives a tool the files of its shard, as docs/splitting.md has it: the files of a rerun are named instead. */
const SPLIT =
  /^\s*assay\s+split\b[^;|&\n]{0,2000}>\s*(\S{1,200})\s*&&\s*xargs\s+(?:-[rx]{1,2}\s+|-[dn]\s+\S{1,10}\s+){0,5}-a\s+(\S{1,200})\s+/;

function withoutSplit(command: string): string {
  const match = SPLIT.exec(command);
  return match && match[1] === match[2] ? command.slice(match[0].length) : command;
}

/** The first that fits; what comes later runs more. */
function fromPreset(preset: Preset, given: RerunInput): RerunCommand {
  const rerun = { ...given, command: withoutSplit(given.command) };
  const add = toInsertion(preset, rerun.command);
  return firstThatFits(TOOLS[preset].select(toCases(rerun), rerun.command), add);
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
  return firstThatFits(TOOLS[preset].select(cases, rerun.rerun), fill);
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

/** A file is never taken for an option. */
const toFileWord = (file: string): string => quoted(toPathWord(file));

/** Nothing can be put before a name that would be taken for an option, or for a file of arguments. */
function toNameWord(name: string): string {
  if (/^[-@]/.test(name)) cannot(`the name ${quote(name)} would be taken for an option`);
  return quoted(name);
}

/** Stands for a drawn part while a name is made a pattern: no reader leaves such a character in a name. */
const DRAWN = "\u0000";
const escape = (text: string): string =>
  text
    .replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
    .replaceAll("\ufffd", ".")
    .replaceAll(DRAWN, ".*");

/** What may be between suites and names: where one tool has a blank, another has " > " or " › ". */
type Style = {
  /** The arrows alone: looking for the blanks around them as well would take quadratic time for a run of blanks. */
  arrows: RegExp;
  gap: string;
  /** The suite may be no part of the title, or be in the name already. */
  isVague?: boolean;
};
const TITLES: Style = { arrows: />+/, gap: "[\\s>]+" };
const VAGUE: Style = { ...TITLES, isVague: true };
const ARROWS: Style = { arrows: /[>›]+/, gap: "[\\s>›]+" };

const ANYTHING = "[\\s\\S]*";

/** A reader cuts between two halves of a character. */
const isCut = (text: string) => text.length >= MAX_NAME - 1;

/** JUnit XML has a blank for whatever white space there was. */
function flatten(text: string, { arrows, gap }: Style): string {
  const pieces = text.replace(DRAWN_PART, DRAWN).split(arrows);
  const last = pieces.length - 1;
  // Around arrows there may be blanks, and arrows with nothing but blanks between them are one.
  const parts = pieces
    .map((piece, at) => (at === 0 ? piece : piece.trimStart()))
    .map((piece, at) => (at === last ? piece : piece.trimEnd()))
    .filter((piece, at) => at === 0 || at === last || piece !== "");
  return parts.map((part) => part.split(/\s+/).map(escape).join("\\s+")).join(gap) + (isCut(text) ? ANYTHING : "");
}

const either = (patterns: string[]): string => {
  const [first = "", ...rest] = new Set(patterns);
  return rest.length === 0 ? first : `(?:${[first, ...rest].join("|")})`;
};

const anchored = (pattern: string): string => `^\\s*(?:${pattern})\\s*$`;

/** What comes before the name. */
function suitePattern({ suite, file }: Omit<PlacedCase, "name">, style: Style): string {
  if (suite === "" || isNameOf(suite, file)) return "";
  const around = flatten(suite, style) + style.gap;
  return style.isVague ? `(?:${around})?` : around;
}

const titlePattern = (one: PlacedCase, style: Style): string => suitePattern(one, style) + flatten(one.name, style);

/** rspec_junit_formatter calls the file a class. */
function isNameOf(suite: string, file: string | null): boolean {
  return file !== null && suite === file.replace(/\.\w+$/, "").replaceAll("/", ".");
}

/** The suites from the outside in and the name; each suite once. */
function titles({ only }: Cases, style: Style): string {
  const suites = Map.groupBy(only, (one) => suitePattern(one, style));
  const patterns = [...suites].map(
    ([around, inside]) => around + either(inside.map(({ name }) => flatten(name, style))),
  );
  return anchored([...new Set(patterns)].join("|"));
}

const ALL_OF_FILES = "All tests of the files run: the names of those that failed are too long for a command";

/** With files where all are known; the pattern alone finds the tests as well, and loads every file. */
function* byPattern(
  cases: Cases,
  style: Style,
  withFiles: (files: string[]) => string[],
  withPattern: (pattern: string) => string[],
): Generator<Selection> {
  const files = cases.only.every(({ file }) => file !== null) ? withFiles(cases.files()) : [];
  // An option of the command that may have a value takes a file for it, and an option not.
  yield { args: [...withPattern(quoted(titles(cases, style))), ...files] };
  if (files.length > 0) yield { args: files, note: ALL_OF_FILES };
}

type Tool = {
  /** The word that is the tool, and the one that has to come after it. */
  name: RegExp;
  verb?: string;
  /** A word that may come after it, without which it watches the files. */
  mode?: RegExp;
  /** Options of a command that would select something else, or a part of what is selected. */
  conflict: RegExp;
  /** Takes what is there already as paths or packages out of the words after the tool; fails where it cannot tell. */
  strip?: (words: Word[]) => Word[];
  select: (cases: Cases, command: string) => Iterable<Selection>;
};

const SHARD = "--shard(?:=.*)?";
const TITLE = "-t(?!s)(?:.+)?|--testNamePattern(?:=.*)?|--test-name-pattern(?:=.*)?";

const TOOLS: Record<Preset, Tool> = {
  jest: {
    name: /^jest$/,
    conflict: new RegExp(`^(?:${TITLE}|${SHARD})$`),
    select: (cases, command) =>
      byPattern(
        cases,
        // Templates of jest-junit put the suites into the names, or other suites than the test's own before them.
        /\s--json\b/.test(command) ? TITLES : VAGUE,
        (files) => ["--runTestsByPath", ...files.map(toFileWord)],
        (pattern) => ["-t", pattern],
      ),
  },
  vitest: {
    name: /^vitest$/,
    mode: /^(?:run|watch|dev)$/,
    conflict: new RegExp(`^(?:${TITLE}|${SHARD})$`),
    select: (cases) =>
      byPattern(
        cases,
        TITLES,
        (files) => files.map(toFileWord),
        (pattern) => ["-t", pattern],
      ),
  },
  bun: {
    name: /^bun$/,
    verb: "test",
    conflict: new RegExp(`^(?:${TITLE}|${SHARD})$`),
    select: (cases) =>
      byPattern(
        cases,
        TITLES,
        // Without "./" it is any file with that in its path.
        (files) => files.map((file) => quoted(`./${file}`)),
        (pattern) => ["-t", pattern],
      ),
  },
  playwright: {
    name: /^playwright$/,
    verb: "test",
    conflict: new RegExp(`^(?:-g(?:.+)?|--grep(?:=.*)?|--last-failed|--only-changed(?:=.*)?|${SHARD})$`),
    select: selectPlaywright,
  },
  cypress: {
    name: /^cypress$/,
    verb: "run",
    conflict: /^(?:-s|--spec(?:=.*)?)$/,
    select: (cases) => {
      const files = cases.files();
      const odd = files.find((file) => /[,*?[\]{}!()]/.test(file));
      if (odd !== undefined) cannot(`Cypress takes the file ${quote(odd)} for a pattern`);
      return [
        { args: ["--spec", quoted(files.map(toPathWord).join(","))], note: "Cypress runs all tests of the files" },
      ];
    },
  },
  pytest: {
    name: /^(?:pytest|py\.test)$/,
    conflict: /^(?:--lf|--last-failed|--pyargs|--sw|--stepwise)$/,
    strip: (words) => withoutPositionals(words, PYTEST_OPTIONS),
    select: selectPytest,
  },
  rspec: {
    name: /^rspec$/,
    conflict: /^(?:-e|-E|--example(?:=.*)?|--example-matches(?:=.*)?|--only-failures|-n|--next-failure)$/,
    select: selectRspec,
  },
  go: {
    name: /^(?:go|gotestsum)$/,
    verb: "test",
    conflict: /^--?(?:test\.)?(?:run|list|bench)(?:=.*)?$/,
    strip: (words) => withoutPositionals(words, GO_OPTIONS),
    select: selectGo,
  },
  maven: {
    name: /^(?:mvn|mvnw|mvnd)$/,
    conflict: /^-Dtest=/,
    select: selectMaven,
  },
  dotnet: {
    name: /^dotnet$/,
    verb: "test",
    conflict: /^--filter(?:[=:].*)?$/,
    select: selectDotnet,
  },
};

/** Its titles begin with the project and the file, and end with tags: one pattern for everything, and every version. */
function* selectPlaywright(cases: Cases): Generator<Selection> {
  const { gap } = ARROWS;
  const patterns = cases.only.flatMap((one) => {
    const title = titlePattern(one, ARROWS);
    if (one.file === null) return [`${ANYTHING}${gap}${title}`];
    const file = escape(one.file);
    const [first = "", ...rest] = one.suite.split(" > ");
    const inProject = titlePattern({ ...one, suite: rest.join(" > ") }, ARROWS);
    // The first suite is the project where there are several.
    return [
      `(?:.*\\s)?${file}${gap}${title}`,
      ...(first === "" ? [] : [`${flatten(first, ARROWS)}${gap}${file}${gap}${inProject}`]),
    ];
  });
  const pattern = `^(?:${[...new Set(patterns)].join("|")})\\s*(?:@.*)?$`;
  // Files are patterns as well, and relative to where its settings have the tests.
  const files = [...new Set(cases.only.map(({ file }) => file))];
  const words = files.includes(null) ? [] : files.map((file) => quoted(`(?:^|/)${escape(file!)}$`));
  yield { args: ["--grep", quoted(pattern), ...words] };
  if (words.length > 0) yield { args: words, note: ALL_OF_FILES };
}

/** As words where they are few, which every version takes; in a file since pytest 8.2. */
function* selectPytest(cases: Cases): Generator<Selection> {
  const nodes = [...new Set(cases.only.map((one) => toNode(one, cases)))];
  // In a file each line is an argument, and Python knows many ends of lines.
  const odd = nodes.find((node) => /[\p{Cc}\u2028\u2029]/u.test(node));
  if (odd !== undefined) cannot(`${quote(odd)} has characters that pytest cannot be given`);
  yield { args: nodes.map(quoted) };
  yield { args: [`"@$${LIST_VARIABLE}"`], list: `${nodes.join("\n")}\n` };
}

/** Each part is looked up as a file. */
const MAX_MODULE_DEPTH = 50;

/** pytest's JUnit XML has the module and the classes in one dotted name, where there are no classes in the file's name. */
function toNode({ suite, name, file }: PlacedCase, { locate }: Cases): string {
  const parts = suite.split(" > ").at(-1)!.split(".");
  const module = (file ?? "").replace(/\.py$/, "").replaceAll("/", ".");
  const dotted = parts.join(".");
  const test = toPytestName(name);
  // What it does not collect has no module: its file is not a test.
  if (suite === "") return cannot(`${quote(name)} has failed, which is no test that can be selected`);
  for (let count = Math.min(parts.length, MAX_MODULE_DEPTH); count > 0; count--) {
    const found = locate(`${parts.slice(0, count).join("/")}.py`);
    if (found !== undefined) return [toPathWord(found), ...parts.slice(count), test].join("::");
  }
  const found = file === null ? undefined : locate(file);
  if (found !== undefined && (dotted === module || dotted.startsWith(`${module}.`))) {
    const classes = dotted.slice(module.length + 1);
    return [toPathWord(found), ...(classes === "" ? [] : classes.split(".")), test].join("::");
  }
  return cannot(`there is no file for the module ${quote(suite)}`);
}

/** What XML cannot hold is told as "#x1B" and so on: then all parameters of the test are run. */
function toPytestName(name: string): string {
  const isWhole = !isCut(name) && !isPlainName(name) && !/#x[0-9A-F]{2,4}|[\n\ufffd]/.test(name);
  return isWhole ? name : name.replace(/\[[\s\S]*$/, "");
}

/** An example of a shared group is told with the file of the group, which cannot be run. */
function* selectRspec(cases: Cases): Generator<Selection> {
  const isRunnable = cases.only.every(({ file }) => file !== null && file.endsWith("_spec.rb"));
  const files = isRunnable ? cases.files().map(toFileWord) : [];
  yield { args: [...files, "-E", quoted(titles(cases, TITLES))] };
  if (files.length > 0) yield { args: files, note: ALL_OF_FILES };
}

/** A subtest is run by its whole test: what it is called is not always what it can be selected by. */
function* selectGo(cases: Cases): Generator<Selection> {
  const tests = cases.only.map(({ name }) => name.split("/")[0]!);
  const odd = tests.find((name) => !/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name));
  if (odd !== undefined) cannot(`${quote(odd)} is not the name of a Go test`);
  const packages = [...new Set(cases.only.map(({ suite }) => suite))];
  const strange = packages.find((path) => !/^[\w.~][\w.~/-]*$/.test(path) || path.split("/").includes(".."));
  if (strange !== undefined) cannot(`${quote(strange)} is not a Go package`);
  const pattern = quoted(`^(?:${[...new Set(tests)].join("|")})$`);
  yield { args: ["-run", pattern, ...packages.map(quoted)] };
  yield { args: packages.map(quoted), note: "All tests of the packages run: there are too many for a command" };
}

const JAVA_CLASS = /^[\p{L}_$][\p{L}\p{N}_$]*(?:\.[\p{L}_$][\p{L}\p{N}_$]*)*$/u;
const JAVA_METHOD = /^[\p{L}_$][\p{L}\p{N}_$]*/u;

/** A method with parameters is run with all of them, and the class where the name is not that of a method. */
function* selectMaven(cases: Cases): Generator<Selection> {
  const classes = new Map<string, Set<string> | null>();
  for (const { suite, name } of cases.only) {
    const type = suite.split(" > ").at(-1)!;
    if (!JAVA_CLASS.test(type)) cannot(`${quote(type)} is not a Java class`);
    const method = JAVA_METHOD.exec(name)?.[0];
    const isMethod = method !== undefined && /^(?:[([{].*)?$/s.test(name.slice(method.length));
    const methods = classes.get(type);
    if (!isMethod || methods === null) classes.set(type, null);
    else classes.set(type, (methods ?? new Set<string>()).add(method));
  }
  const add = (tests: string[]) => [`-Dtest=${quoted(tests.join(","))}`, "-Dsurefire.failIfNoSpecifiedTests=false"];
  yield { args: add([...classes].map(([type, methods]) => (methods ? `${type}#${[...methods].join("+")}` : type))) };
  yield { args: add([...classes.keys()]), note: "All tests of the classes run: there are too many for a command" };
}

const DOTNET_NAME = /^[\p{L}_@][\p{L}\p{N}_@`+]*(?:\.[\p{L}_@][\p{L}\p{N}_@`+]*)*$/u;
const escapeDotnet = (text: string) => text.replace(/[\\()&|=!~]/g, "\\$&");

/** A test with parameters is run with all of them, and the class where the name is not that of a method. */
function* selectDotnet(cases: Cases): Generator<Selection> {
  const filters = new Set<string>();
  const classes = new Set<string>();
  for (const { suite, name } of cases.only) {
    const type = suite.split(" > ").at(-1)!;
    if (!DOTNET_NAME.test(type)) cannot(`${quote(type)} is not a .NET class`);
    const plain = name.split(/[([]/, 1)[0]!.trimEnd();
    const method = plain.startsWith(`${type}.`) ? plain.slice(type.length + 1) : plain;
    const ofClass = `FullyQualifiedName~${escapeDotnet(`${type}.`)}`;
    // NUnit has the parameters in the full name, and xUnit has not.
    const operator = plain === name ? "=" : "~";
    const ofMethod = `FullyQualifiedName${operator}${escapeDotnet(`${type}.${method}`)}`;
    filters.add(DOTNET_NAME.test(method) ? ofMethod : ofClass);
    classes.add(ofClass);
  }
  yield { args: ["--filter", quoted([...filters].join("|"))] };
  yield {
    args: ["--filter", quoted([...classes].join("|"))],
    note: "All tests of the classes run: there are too many for a command",
  };
}

/** What may come before the name of a tool, as in `npx jest`; whatever else does may read its words anew, as ssh does. */
const WRAPPERS =
  /^(?:npx|bunx|pnpx|npm|pnpm|yarn|bun|deno|node|env|time|nice|exec|command|timeout|stdbuf|xvfb-run|cross-env|dotenv|dotenvx|bundle|poetry|uv|uvx|pipenv|pdm|hatch|rye|python[\d.]*|coverage|docker|docker-compose|podman|kubectl)$/;
const KEYWORDS = /^(?:if|then|elif|else|while|until|do|!|\{)$/;
const INSTALLS = /^(?:i|ci|install|add|remove|uninstall|update|upgrade|build|pull|info|view)$/;
/** Options of npm, pnpm and Yarn that run a script in another folder. */
const ELSEWHERE = /^(?:-w|--workspaces?|--workspace=.*|--prefix(?:=.*)?|-C|--dir|--cwd|--filter|-F|-r|--recursive)$/;
const ASSIGNMENT = /^[A-Za-z_]\w*=/;

const nameOf = (word: Word | undefined) => word?.text?.replace(/^.*\//, "").replace(/\.(?:[cm]?js|cmd|exe)$/, "") ?? "";

/** How the words of a preset come into the command of a task. Fails where they cannot. */
function toInsertion(preset: Preset, command: string): (args: string) => string {
  const tool = TOOLS[preset];
  const { commands: all, problem } = scanShell(command);
  const commands = all.map(withoutPrefix).filter(({ length }) => length > 0);
  if (problem !== null) cannot(`the command of the task cannot be understood: ${problem}`);
  if (commands.some(([first]) => /^(?:cd|pushd)$/.test(first?.text ?? "")))
    cannot('the command of the task goes to another folder, which "workingDirectory" can say instead');
  const found = commands.flatMap((words) => {
    const after = findTool(words, tool);
    return after === undefined ? [] : [{ words, after }];
  });
  if (found.length > 1) cannot(`the command of the task runs ${preset} more than once; a template in "rerun" can tell`);
  const [only] = found;
  const script = only ? undefined : findScript(commands);
  if (!only && (!script || tool.strip || preset === "maven"))
    return cannot(`the command of the task does not run ${preset} itself; a template with {${preset}} in "rerun" can`);
  const { words, after } = only ?? script!;
  const conflict = words.slice(after).find(({ text }) => text !== null && tool.conflict.test(text));
  if (conflict) cannot(`the command of the task has its own ${conflict.text}; a template in "rerun" can do without it`);

  const isScript = only === undefined;
  const elsewhere = isScript && words.find(({ text }) => ELSEWHERE.test(text ?? ""));
  if (elsewhere) cannot(`the command of the task runs in another folder by ${elsewhere.text}`);
  const rest = words.slice(after);
  const split = rest.findIndex(({ text }) => text === "--" || (preset === "go" && /^--?args$/.test(text ?? "")));
  // gotestsum hands on what comes after "--", and npm does; everything else takes it for no option.
  const isHandedOn = nameOf(words[after - 1]) === "gotestsum" || (isScript && nameOf(words[0]) === "npm");
  const own = isHandedOn ? (split === -1 ? [] : rest.slice(split + 1)) : split === -1 ? rest : rest.slice(0, split);
  const stripped = tool.strip ? tool.strip(own) : [];
  const dashes = isHandedOn && split === -1 ? " --" : "";
  // Before the options of the command, of which the last may want a value; "go -C" wants to be the first.
  const last = preset === "go" ? own.at(-1) : undefined;
  const before = last ?? (isHandedOn ? rest[split === -1 ? rest.length - 1 : split] : undefined) ?? words[after - 1]!;
  return (args) => {
    const edits = [
      { start: before.end, end: before.end, text: `${dashes} ${args}` },
      ...stripped.map(({ start, end }) => ({ start: startOfGap(command, start), end, text: "" })),
    ];
    // From the end, so that places stay where they are; what is added comes after a word that goes.
    let text = command;
    for (const edit of edits.sort((a, b) => b.end - a.end || b.start - a.start))
      text = text.slice(0, edit.start) + edit.text + text.slice(edit.end);
    return text;
  };
}

const startOfGap = (text: string, end: number): number => text.slice(0, end).trimEnd().length;

/** Without what may come before any command. */
function withoutPrefix(words: Word[]): Word[] {
  const first = words.findIndex(({ text }) => text === null || !(ASSIGNMENT.test(text) || KEYWORDS.test(text)));
  return first === -1 ? [] : words.slice(first);
}

/** The index of the first word after the tool and its verb. */
function findTool(words: Word[], { name, verb, mode }: Tool): number | undefined {
  for (const [at, word] of words.entries()) {
    const called = nameOf(word);
    if (name.test(called)) {
      if (verb === undefined || called === "gotestsum") return mode?.test(words[at + 1]?.text ?? "") ? at + 2 : at + 1;
      const next = words.findIndex(({ text }, index) => index > at && !text?.startsWith("-"));
      if (words[next]?.text === verb) return next + 1;
    }
    // npm takes options for its own, unless they come after "--".
    const isNpm = nameOf(words[0]) === "npm" && !words.slice(0, at + 1).some(({ text }) => text === "--");
    if (at === 0 ? !WRAPPERS.test(called) : INSTALLS.test(called)) return undefined;
    if (isNpm && name.test(nameOf(words[at + 1]))) return undefined;
  }
  return undefined;
}

/** A script of package.json: "npm test", "yarn e2e". The one that is called a test, where there are several. */
function findScript(commands: Word[][]): { words: Word[]; after: number } | undefined {
  const scripts = commands.flatMap((words) => {
    const [manager, verb, name] = words.map(({ text }) => text ?? "");
    if (!/^(?:npm|pnpm|yarn|bun)$/.test(manager ?? "")) return [];
    const isRun = /^(?:run|run-script)$/.test(verb ?? "");
    const script = (isRun ? name : verb) ?? "";
    if (script === "" || script.startsWith("-") || INSTALLS.test(script)) return [];
    // Only these two take a script without "run".
    if (!isRun && !(manager === "yarn" || manager === "pnpm" || /^(?:test|t|tst)$/.test(script))) return [];
    return [{ words, after: isRun ? 3 : 2, script }];
  });
  const tests = scripts.length > 1 ? scripts.filter(({ script }) => /test|spec|e2e/i.test(script)) : scripts;
  return tests.length === 1 ? tests[0] : undefined;
}

type Options = { alone: RegExp; withValue: RegExp };

/** What is no option, and no value of one. Fails where an option is not known that a word comes after. */
function withoutPositionals(words: Word[], { alone, withValue }: Options): Word[] {
  const positionals: Word[] = [];
  for (let at = 0; at < words.length; at++) {
    const text = words[at]!.text;
    if (text === null) cannot('the command of the task has a variable where paths may be; use a template in "rerun"');
    if (!text.startsWith("-")) positionals.push(words[at]!);
    else if (withValue.test(text)) at++;
    else if (!text.includes("=") && !alone.test(text)) {
      const next = words[at + 1];
      if (next && !next.text?.startsWith("-"))
        cannot(`whether ${next.text} belongs to ${text} is not known; write ${text}=… or use a template in "rerun"`);
    }
  }
  return positionals;
}

const PYTEST_OPTIONS: Options = {
  alone:
    /^(?:-[vqslx]+|--verbose|--quiet|--exitfirst|--showlocals|-h|--no-header|--no-summary|--strict|--strict-markers|--strict-config|--no-cov|--nf|--new-first|--ff|--failed-first|--cache-clear|--disable-warnings|--runxfail|--doctest-modules|--continue-on-collection-errors|-[vqslx]*r[A-Za-z]+|-p\S+|-n\S+|-m\S+|-k\S+|-o\S+|-W\S+)$/,
  withValue:
    /^(?:-[kmpncoW]|-r|--junit-?xml|--junit-?prefix|--maxfail|--tb|--rootdir|--confcutdir|--basetemp|--color|--capture|--durations|--durations-min|--verbosity|--ignore|--ignore-glob|--deselect|--import-mode|--log-level|--log-file|--log-cli-level|--override-ini|--numprocesses|--dist|--maxprocesses|--timeout|--timeout-method|--reruns|--reruns-delay|--cov-report|--cov-config|--cov-fail-under|--html|--json-report-file|--alluredir|--ds|--asyncio-mode|--randomly-seed|-p)$/,
};

const GO_OPTIONS: Options = {
  alone:
    /^--?(?:json|v|race|short|cover|failfast|a|n|x|i|c|work|msan|asan|trimpath|modcacherw|linkshared|fullpath|artifacts|test\.\w+)$/,
  withValue:
    /^--?(?:timeout|count|cpu|parallel|p|o|exec|tags|mod|modfile|overlay|pgo|vet|covermode|coverpkg|coverprofile|cpuprofile|memprofile|memprofilerate|blockprofile|blockprofilerate|mutexprofile|mutexprofilefraction|trace|outputdir|shuffle|skip|benchtime|fuzz|fuzztime|fuzzminimizetime|ldflags|gcflags|asmflags|gccgoflags|buildmode|buildvcs|compiler|installsuffix|pkgdir|toolexec|C)$/,
};
