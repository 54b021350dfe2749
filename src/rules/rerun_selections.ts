/** How each tool is told which tests to run or to leave out, where that takes more than a pattern of titles. */

import { isPlainName } from "./drawn_name.ts";
import type { PlacedCase } from "./identity.ts";
import { cannot, type Cases, LIST_VARIABLE, quote, type Selection, toFileWord } from "./rerun_cases.ts";
import { ANYTHING, ARROWS, either, escape, flatten, isCut, titlePattern, TITLES, titles } from "./rerun_pattern.ts";
import { toPathWord } from "./report_path.ts";
import { quoted, type Word } from "./shell.ts";

export const ALL_OF_FILES = "All tests of the files run: the names of those that failed are too long for a command";

/** Titles begin with the project and the file, and end with tags: one pattern serves all cases and versions. */
export function playwrightPattern(cases: Cases): string {
  const { gap } = ARROWS;
  const patterns = cases.only.flatMap((one) => {
    const title = titlePattern(one, ARROWS);
    if (one.file === null) return [`${ANYTHING}${gap}${title}`];
    const file = escape(one.file);
    const [first = "", ...rest] = one.suite.split(" > ");
    const inProject = titlePattern({ ...one, suite: rest.join(" > ") }, ARROWS);
    // If there are several projects, the first suite is the project.
    return [
      `(?:.*\\s)?${file}${gap}${title}`,
      ...(first === "" ? [] : [`${flatten(first, ARROWS)}${gap}${file}${gap}${inProject}`]),
    ];
  });
  return `^(?:${[...new Set(patterns)].join("|")})\\s*(?:@.*)?$`;
}

export function* selectPlaywright(cases: Cases): Generator<Selection> {
  const pattern = playwrightPattern(cases);
  // Files are patterns as well, relative to the test directory in its settings.
  const files = [...new Set(cases.only.map(({ file }) => file))];
  const words = files.includes(null) ? [] : files.map((file) => quoted(`(?:^|/)${escape(file!)}$`));
  yield { args: ["--grep", quoted(pattern), ...words] };
  if (words.length > 0) yield { args: words, note: ALL_OF_FILES };
}

/** Passes few nodes as words, which every version accepts, and many in a file, which needs pytest 8.2. */
export function* selectPytest(cases: Cases): Generator<Selection> {
  const nodes = toNodes(cases);
  yield { args: nodes.map(quoted) };
  yield { args: [`"@$${LIST_VARIABLE}"`], list: `${nodes.join("\n")}\n` };
}

export function toNodes(cases: Cases): string[] {
  const nodes = [...new Set(cases.only.map((one) => toNode(one, cases)))];
  // In a file each line is an argument, and Python recognises many line ends.
  const odd = nodes.find((node) => /[\p{Cc}\u2028\u2029]/u.test(node));
  if (odd !== undefined) cannot(`${quote(odd)} has characters that pytest cannot be given`);
  return nodes;
}

/** Maximum depth of a module, because each part is looked up as a file. */
const MAX_MODULE_DEPTH = 50;

/** pytest's JUnit XML has the module and the classes in one dotted name, where there are no classes in the file's name. */
function toNode({ suite, name, file }: PlacedCase, { locate }: Cases): string {
  const parts = suite.split(" > ").at(-1)!.split(".");
  const module = (file ?? "").replace(/\.py$/, "").replaceAll("/", ".");
  const dotted = parts.join(".");
  const test = toPytestName(name);
  // A file that pytest does not collect has no module: it is not a test.
  if (suite === "") return cannot(`${quote(name)} is no test that can be selected`);
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

/** Characters that XML cannot contain are written as "#x1B": then all parameters of the test are run. */
function toPytestName(name: string): string {
  const isWhole = !isCut(name) && !isPlainName(name) && !/#x[0-9A-F]{2,4}|[\n\ufffd]/.test(name);
  return isWhole ? name : name.replace(/\[[\s\S]*$/, "");
}

/** An example of a shared group is reported with the file of the group, which cannot be run. */
export function* selectRspec(cases: Cases): Generator<Selection> {
  const isRunnable = cases.only.every(({ file }) => file !== null && file.endsWith("_spec.rb"));
  const files = isRunnable ? cases.files().map(toFileWord) : [];
  yield { args: [...files, "-E", quoted(titles(cases, TITLES))] };
  if (files.length > 0) yield { args: files, note: ALL_OF_FILES };
}

/** Node before 22 looks at the own names of a test and of the tests around it, later ones at all names together. */
export function nodePattern({ only }: Cases): string {
  const names = only.flatMap(({ suite, name }) => [...(suite === "" ? [] : suite.split(" > ")), name]);
  return `(?:^|\\s)${either(names.map((one) => flatten(one, TITLES)))}\\s*$`;
}

/** A test with data sets is selected with all of them. */
export const selectPhpunit = (cases: Cases): Selection[] => [{ args: ["--filter", quoted(phpunitPattern(cases))] }];

export function phpunitPattern(cases: Cases): string {
  const tests = cases.only.map(({ suite, name }) => {
    const method = name.replace(/\swith data set [\s\S]*$/, "");
    if (!/^[\p{L}_][\p{L}\p{N}_]*$/u.test(method)) cannot(`${quote(name)} is not the name of a method of PHP`);
    const type = suite.split(" > ").at(-1)!.split(/[\\.]/).at(-1)!;
    return `${/^[\p{L}_][\p{L}\p{N}_]*$/u.test(type) ? type : ""}::${method}`;
  });
  return `(?:${[...new Set(tests)].join("|")})(?:\\s|$)`;
}

/** Runs a subtest by its whole test, because its name cannot always be selected. */
export function* selectGo(cases: Cases): Generator<Selection> {
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

/** Also leaves out tests of the same name in other packages: go takes one pattern for all. */
export function goPattern({ only }: Cases): string {
  const tests = only.map(({ name }) => {
    const parts = name.split("/");
    if (parts.some((part) => part === "" || /[|()\s]/.test(part))) cannot(`${quote(name)} cannot be left out by go`);
    return parts.map((part) => `^${escape(part)}$`).join("/");
  });
  return [...new Set(tests)].join("|");
}

const JAVA_CLASS = /^[\p{L}_$][\p{L}\p{N}_$]*(?:\.[\p{L}_$][\p{L}\p{N}_$]*)*$/u;
const JAVA_METHOD = /^[\p{L}_$][\p{L}\p{N}_$]*/u;

/** A method with parameters is run with all of them, and the class where the name is not that of a method. */
export function* selectMaven(cases: Cases): Generator<Selection> {
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
export function* selectDotnet(cases: Cases): Generator<Selection> {
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

/** Leaves out a test by its full name, and one with parameters only with all of them. */
export function excludedDotnet(cases: Cases): string {
  const names = cases.only.map(({ suite, name }) => {
    const type = suite.split(" > ").at(-1)!;
    const plain = name.split(/[([]/, 1)[0]!.trimEnd();
    const method = plain.startsWith(`${type}.`) ? plain.slice(type.length + 1) : plain;
    if (!DOTNET_NAME.test(type) || !DOTNET_NAME.test(method)) cannot(`${quote(name)} is not the name of a .NET test`);
    return `FullyQualifiedName!=${escapeDotnet(`${type}.${method}`)}`;
  });
  return [...new Set(names)].join("&");
}

type Options = { alone: RegExp; withValue: RegExp };

/** Returns the words that are neither options nor their values. Fails if an unknown option is followed by a word. */
export function withoutPositionals(words: Word[], { alone, withValue }: Options): Word[] {
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

export const PYTEST_OPTIONS: Options = {
  alone:
    /^(?:-[vqslx]+|--verbose|--quiet|--exitfirst|--showlocals|-h|--no-header|--no-summary|--strict|--strict-markers|--strict-config|--no-cov|--nf|--new-first|--ff|--failed-first|--cache-clear|--disable-warnings|--runxfail|--doctest-modules|--continue-on-collection-errors|-[vqslx]*r[A-Za-z]+|-p\S+|-n\S+|-m\S+|-k\S+|-o\S+|-W\S+)$/,
  withValue:
    /^(?:-[kmpncoW]|-r|--junit-?xml|--junit-?prefix|--maxfail|--tb|--rootdir|--confcutdir|--basetemp|--color|--capture|--durations|--durations-min|--verbosity|--ignore|--ignore-glob|--deselect|--import-mode|--log-level|--log-file|--log-cli-level|--override-ini|--numprocesses|--dist|--maxprocesses|--timeout|--timeout-method|--reruns|--reruns-delay|--cov-report|--cov-config|--cov-fail-under|--html|--json-report-file|--alluredir|--ds|--asyncio-mode|--randomly-seed|-p)$/,
};

export const GO_OPTIONS: Options = {
  alone:
    /^--?(?:json|v|race|short|cover|failfast|a|n|x|i|c|work|msan|asan|trimpath|modcacherw|linkshared|fullpath|artifacts|test\.\w+)$/,
  withValue:
    /^--?(?:timeout|count|cpu|parallel|p|o|exec|tags|mod|modfile|overlay|pgo|vet|covermode|coverpkg|coverprofile|cpuprofile|memprofile|memprofilerate|blockprofile|blockprofilerate|mutexprofile|mutexprofilefraction|trace|outputdir|shuffle|skip|benchtime|fuzz|fuzztime|fuzzminimizetime|ldflags|gcflags|asmflags|gccgoflags|buildmode|buildvcs|compiler|installsuffix|pkgdir|toolexec|C)$/,
};
