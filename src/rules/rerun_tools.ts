/** Builds the arguments that make each test tool run only some tests, and finds their position in its command. */

import { toPathWord } from "./report_path.ts";
import { cannot, type Cases, type Preset, quote, type Selection, toFileWord } from "./rerun_cases.ts";
import { type Style, titles, TITLES, VAGUE } from "./rerun_pattern.ts";
import {
  ALL_OF_FILES,
  GO_OPTIONS,
  PYTEST_OPTIONS,
  excludedDotnet,
  goPattern,
  nodePattern,
  phpunitPattern,
  playwrightPattern,
  selectDotnet,
  selectGo,
  selectMaven,
  selectPhpunit,
  selectPlaywright,
  selectPytest,
  selectRspec,
  withoutPositionals,
  toNodes,
} from "./rerun_selections.ts";
import { quoted, type Word } from "./shell.ts";

/** Adds files if all are known; the pattern alone also finds the tests, but loads every file. */
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

export type TestTool = {
  /** The name of the tool, and the word that must follow it. */
  name: RegExp;
  verb?: string;
  /** An option without which it is another tool. */
  flag?: string;
  /** A word that may come after it, without which it watches the files. */
  mode?: RegExp;
  /** Options of a command that conflict with the selection. */
  conflict: RegExp;
  /** Returns the paths or packages among the words after the tool, which are removed; fails if it cannot recognise them. */
  strip?: (words: Word[]) => Word[];
  select: (cases: Cases, command: string) => Iterable<Selection>;
  /** Words that make it run all tests but these; absent: it has none that leave out no others. */
  exclude?: (cases: Cases, command: string) => string[];
};

/** A pattern of all titles but those that match another one, which begins with "^". */
const butNot = (pattern: string): string => `^(?!${pattern.slice(1)})`;

const SHARD = "--shard(?:=.*)?";
const TITLE = "-t(?!s)(?:.+)?|--testNamePattern(?:=.*)?|--test-name-pattern(?:=.*)?";

export const TEST_TOOLS: Record<Preset, TestTool> = {
  jest: {
    name: /^jest$/,
    conflict: new RegExp(`^(?:${TITLE}|${SHARD})$`),
    select: (cases, command) =>
      byPattern(
        cases,
        jestStyle(command),
        (files) => ["--runTestsByPath", ...files.map(toFileWord)],
        (pattern) => ["-t", pattern],
      ),
    exclude: (cases, command) => ["-t", quoted(butNot(titles(cases, jestStyle(command))))],
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
    exclude: (cases) => ["-t", quoted(butNot(titles(cases, TITLES)))],
  },
  bun: {
    name: /^bun$/,
    verb: "test",
    conflict: new RegExp(`^(?:${TITLE}|${SHARD})$`),
    select: (cases) =>
      byPattern(
        cases,
        TITLES,
        // Without "./" the argument matches any file with that text in its path.
        (files) => files.map((file) => quoted(`./${file}`)),
        (pattern) => ["-t", pattern],
      ),
    exclude: (cases) => ["-t", quoted(butNot(titles(cases, TITLES)))],
  },
  mocha: {
    name: /^_?mocha$/,
    conflict: /^(?:-[gfi](?:.+)?|--f?grep(?:=.*)?|--invert)$/,
    select: (cases, command) => [{ args: ["--grep", quoted(titles(cases, mochaStyle(command)))] }],
    exclude: (cases, command) => ["--grep", quoted(butNot(titles(cases, mochaStyle(command))))],
  },
  node: {
    name: /^node$/,
    flag: "--test",
    conflict: /^--test-(?:name-pattern|skip-pattern|only|shard)(?:=.*)?$/,
    select: (cases) => [{ args: [`--test-name-pattern=${quoted(nodePattern(cases))}`] }],
  },
  playwright: {
    name: /^playwright$/,
    verb: "test",
    conflict: new RegExp(`^(?:-g(?:.+)?|--grep(?:=.*)?|--last-failed|--only-changed(?:=.*)?|${SHARD})$`),
    select: selectPlaywright,
    exclude: (cases) => ["--grep-invert", quoted(playwrightPattern(cases))],
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
    exclude: (cases) => toNodes(cases).map((node) => `--deselect=${quoted(node)}`),
  },
  rspec: {
    name: /^rspec$/,
    conflict: /^(?:-e|-E|--example(?:=.*)?|--example-matches(?:=.*)?|--only-failures|-n|--next-failure)$/,
    select: selectRspec,
    exclude: (cases) => ["-E", quoted(butNot(titles(cases, TITLES)))],
  },
  phpunit: {
    name: /^phpunit(?:\.phar)?$/,
    conflict: /^--(?:filter|testsuite|group|exclude-filter)(?:=.*)?$/,
    select: selectPhpunit,
    exclude: (cases) => ["--filter", quoted(`^(?!.*${phpunitPattern(cases)})`)],
  },
  go: {
    name: /^(?:go|gotestsum)$/,
    verb: "test",
    conflict: /^--?(?:test\.)?(?:run|list|bench)(?:=.*)?$/,
    strip: (words) => withoutPositionals(words, GO_OPTIONS),
    select: selectGo,
    exclude: (cases) => ["-skip", quoted(goPattern(cases))],
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
    exclude: (cases) => ["--filter", quoted(excludedDotnet(cases))],
  },
};

/** Templates of jest-junit put the suites into the names, or other suites than the test's own before them. */
const jestStyle = (command: string): Style => (/\s--json\b/.test(command) ? TITLES : VAGUE);

/** Reports of JUnit have the suites in the names, and other texts than suites before them. */
const mochaStyle = (command: string): Style => (/\s(?:-R|--reporter)[\s=]+json\b/.test(command) ? TITLES : VAGUE);
