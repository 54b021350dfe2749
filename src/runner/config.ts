/** Reads assay.yaml, which defines the commands of tasks on this machine; docs/rerun.md describes `rerun`. */

import { dirname, normalize, resolve } from "node:path";
import * as v from "valibot";
import { mistakeInRerun } from "../rules/rerun_command.ts";
import { variableName } from "../schema/environments.ts";
import { integer, slug, text } from "../schema/fields.ts";
import { gateMode, type GateMode } from "../schema/gate.ts";
import type { CheckoutConfig } from "./checkout.ts";
import type { AttachmentScope } from "./named_attachments.ts";

export type TaskConfig = {
  /** For the shell. */
  command: string;
  /** Paths and globs, at least one; they begin at `workingDirectory` unless they are absolute. */
  report: string[];
  /** Undefined: recognised by the server, which knows what formats there are. */
  format: string | undefined;
  /** The runner checks the commit out itself; undefined: the task runs in a folder that is there. */
  git: CheckoutConfig | undefined;
  /** Absolute; with `git` relative to the work tree. May have "{slot}" in it. */
  workingDirectory: string;
  /** From 1 second to a week; undefined: as long as the lease says. */
  timeoutSeconds: number | undefined;
  /** A command that prints nothing for so long is ended; undefined: it may be silent. */
  silenceSeconds: number | undefined;
  /** Commands for the shell, in their order; none is an empty list. */
  before: string[];
  after: string[];
  /** Whether the commit that is checked out has to be the one of the execution, where that names one. */
  comparesCommit: boolean;
  /** Exit codes that say nothing about the tests: another runner gets the task. */
  retryOn: number[];
  /** A preset or a template, for `toRerunCommand`; undefined: the whole task is run again. */
  rerun: string | undefined;
  /** Which failures let the task pass for this runner; undefined: none. */
  gate: GateMode | undefined;
  /** Paths and globs of files for the run as a whole; they begin at `workingDirectory` and stay below it. */
  artifacts: string[];
  /** The test cases whose attachments, as the report names them, are sent. */
  attachments: AttachmentScope | "none";
  /** Names of variables that the command gets from the runner's own environment. */
  pass: string[];
  /** Names of variables that an execution may set. */
  accept: string[];
};

export type RunnerConfig = {
  /** Absolute: the file, and the folder that it is in. */
  path: string;
  folder: string;
  /** By slug, in the order of the file; at least one. */
  tasks: Map<string, TaskConfig>;
};

/** Every mistake at once, a line each. */
export class RunnerConfigError extends Error {
  override name = "RunnerConfigError";
}

/** A file that somebody wrote by hand is smaller, in bytes. */
const MAX_BYTES = 1_048_576;
/** Aliases make many mistakes out of one. */
const MAX_MISTAKES = 50;
const MAX_COMMAND = 32_768;
const MAX_LIST = 100;
/** The maximum number of tasks that a runner may announce to the server. */
const MAX_TASKS = 2_000;

const oneOrMore = (max: number) => {
  const expected = `expected a text of 1 to ${max} characters, or a list of 1 to ${MAX_LIST} such texts`;
  const list = v.pipe(v.array(text(max), expected), v.minLength(1, expected), v.maxLength(MAX_LIST, expected));
  return v.lazy((input) =>
    Array.isArray(input)
      ? list
      : v.pipe(
          typeof input === "string" ? text(max) : v.string(expected),
          v.transform((one) => [one]),
        ),
  );
};

const EXPECTED_NAMES = `expected a list of at most ${MAX_LIST} variable names`;

const EXPECTED_CODES = `expected a list of 1 to ${MAX_LIST} exit codes`;

const ownName = v.pipe(
  variableName,
  v.check(
    (name) => !name.startsWith("ASSAY_"),
    "expected a name that does not begin with ASSAY_, which is reserved for the runner",
  ),
);

const names = v.pipe(v.array(ownName, EXPECTED_NAMES), v.maxLength(MAX_LIST, EXPECTED_NAMES));

const rerun = v.pipe(
  text(MAX_COMMAND),
  v.rawCheck(({ dataset, addIssue }) => {
    const mistake = dataset.typed ? mistakeInRerun(dataset.value) : null;
    if (mistake !== null) addIssue({ message: mistake });
  }),
);

const EXPECTED_CHECKOUT = 'expected "own", "none", or an object with "git"';

const checkout = v.lazy((input) =>
  isObject(input)
    ? v.strictObject({
        git: v.pipe(
          text(2_000),
          v.check(
            (value) => !value.startsWith("-") && !/^ext::/i.test(value),
            "expected the address or path of a repository",
          ),
        ),
        submodules: v.optional(v.boolean("expected true or false"), false),
        lfs: v.optional(v.boolean("expected true or false"), false),
        prepare: v.optional(oneOrMore(MAX_COMMAND)),
        build: v.optional(oneOrMore(MAX_COMMAND)),
        keep: v.optional(integer(1, 64), 2),
      })
    : v.picklist(["own", "none"], EXPECTED_CHECKOUT),
);

const task = v.strictObject({
  command: text(MAX_COMMAND),
  report: oneOrMore(1_000),
  format: v.optional(text(50)),
  workingDirectory: v.optional(text(1_000)),
  timeoutSeconds: v.optional(integer(1, 604_800)),
  silenceSeconds: v.optional(integer(1, 604_800)),
  before: v.optional(oneOrMore(MAX_COMMAND)),
  after: v.optional(oneOrMore(MAX_COMMAND)),
  checkout: v.optional(checkout),
  retryOn: v.optional(
    v.pipe(
      v.array(integer(1, 255), EXPECTED_CODES),
      v.minLength(1, EXPECTED_CODES),
      v.maxLength(MAX_LIST, EXPECTED_CODES),
    ),
  ),
  rerun: v.optional(rerun),
  gate: v.optional(gateMode),
  artifacts: v.optional(oneOrMore(1_000)),
  attachments: v.optional(v.picklist(["failed", "all", "none"], 'expected "failed", "all" or "none"')),
  pass: v.optional(names),
  accept: v.optional(names),
});

/** Throws a RunnerConfigError. A relative path begins at `directory`, and the paths in the file begin at its folder. */
export async function openRunnerConfig(path: string, directory: string): Promise<RunnerConfig> {
  const file = Bun.file(resolve(directory, path));
  const cannot = (why: string) => new RunnerConfigError(`Cannot read ${JSON.stringify(path)}: ${why}`);
  try {
    if (file.size > MAX_BYTES) throw cannot("it is larger than 1 MiB");
    return readRunnerConfig(await file.text(), path, directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      throw cannot(`the file does not exist in ${JSON.stringify(directory)}; it defines the commands of the tasks`);
    throw code === undefined ? error : cannot((error as Error).message);
  }
}

/** Throws a RunnerConfigError. A relative path begins at `directory`, and the paths in the text begin at the folder of the file. */
export function readRunnerConfig(text: string, path: string, directory = "."): RunnerConfig {
  const mistakes: string[] = [];
  const fail = (): never => {
    const more = mistakes.length > MAX_MISTAKES ? ["There are more mistakes"] : [];
    throw new RunnerConfigError([...mistakes.slice(0, MAX_MISTAKES), ...more].join("\n"));
  };
  const tell = (what: string) => void mistakes.push(`Cannot read ${JSON.stringify(path)}: ${what}`);

  const root = parse(text, tell) ?? fail();
  for (const key of Object.keys(root)) if (key !== "tasks") tell(`unknown field ${nameOf(key)}`);
  const given = Object.hasOwn(root, "tasks") ? root.tasks : undefined;
  if (given === undefined) tell('missing field "tasks"');
  else if (!isObject(given)) tell(`"tasks": expected an object with a field for each task, got ${quote(given)}`);
  else if (Object.keys(given).length === 0) tell('"tasks": expected at least one task');
  else if (Object.keys(given).length > MAX_TASKS)
    tell(`"tasks": expected at most ${MAX_TASKS} tasks, got ${Object.keys(given).length}`);
  const file = resolve(directory, path);
  const folder = dirname(file);
  const tasks = new Map<string, TaskConfig>();
  for (const [name, one] of Object.entries(isObject(given) ? given : {})) {
    if (mistakes.length > MAX_MISTAKES) break;
    const read = readTask(name, one, folder, tell);
    if (read) tasks.set(name, read);
  }
  return mistakes.length > 0 ? fail() : { path: file, folder, tasks };
}

type YamlObject = Record<string, unknown>;

const isObject = (value: unknown): value is YamlObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parse(text: string, tell: (mistake: string) => void): YamlObject | undefined {
  if (text.length > MAX_BYTES) return void tell("it is larger than 1 MiB");
  let root: unknown;
  try {
    root = Bun.YAML.parse(text);
  } catch (error) {
    // It throws a RangeError for what is nested too deep.
    const why = (error as Error).message.replace(/^YAML Parse error: /, "");
    return void tell(`it is not valid YAML: ${why.slice(0, 200)}`);
  }
  if (isObject(root)) return root;
  tell(root === null ? "it is empty" : `expected an object with the field "tasks", got ${quote(root)}`);
}

function readTask(
  name: string,
  given: unknown,
  folder: string,
  tell: (mistake: string) => void,
): TaskConfig | undefined {
  const at = `tasks.${name}`;
  const named = v.safeParse(slug, name);
  if (!named.success) return void tell(`${nameOf(at)}: ${named.issues[0].message} as the name of a task`);
  if (!isObject(given))
    return void tell(`${nameOf(at)}: expected an object with "command" and "report", got ${quote(given)}`);
  const known = new Set<string>();
  for (const key of Object.keys(given)) {
    if (Object.hasOwn(task.entries, key)) known.add(key);
    else tell(`unknown field ${nameOf(`${at}.${key}`)}`);
  }
  const result = v.safeParse(task, Object.fromEntries([...known].map((key) => [key, given[key]])));
  if (!result.success) {
    for (const issue of result.issues.slice(0, MAX_MISTAKES)) {
      const keys = issue.path?.map(({ key }) => String(key)) ?? [];
      const place = nameOf([at, ...keys].join("."));
      const isMissing = keys.length === 1 && !known.has(keys[0]!);
      tell(isMissing ? `missing field ${place}` : `${place}: ${issue.message}, got ${quote(issue.input)}`);
    }
    return undefined;
  }
  const {
    workingDirectory = ".",
    before = [],
    after = [],
    retryOn = [],
    artifacts = [],
    attachments = "failed",
    pass = [],
    accept = [],
    ...rest
  } = result.output;
  const git = typeof rest.checkout === "object" ? toCheckout(rest.checkout, folder) : undefined;
  return {
    command: rest.command,
    report: rest.report,
    format: rest.format,
    git,
    workingDirectory: git ? normalize(workingDirectory) : resolve(folder, workingDirectory),
    timeoutSeconds: rest.timeoutSeconds,
    silenceSeconds: rest.silenceSeconds,
    before,
    after,
    comparesCommit: rest.checkout !== "none",
    retryOn: [...new Set(retryOn)],
    rerun: rest.rerun,
    gate: rest.gate,
    artifacts,
    attachments,
    pass: [...new Set(pass)],
    accept: [...new Set(accept)],
  };
}

type GivenCheckout = Omit<CheckoutConfig, "repository" | "prepare" | "build"> & {
  git: string;
  prepare?: string[] | undefined;
  build?: string[] | undefined;
};

/** A path begins at the folder of assay.yaml; an address, such as "git@host:shop.git", has a colon in its first part. */
const toCheckout = ({ git, prepare = [], build = [], ...rest }: GivenCheckout, folder: string): CheckoutConfig => ({
  ...rest,
  prepare,
  build,
  repository: /^[^/]*:/.test(git) ? git : resolve(folder, git),
});

/** The task as it runs in one of the places of a runner: "{slot}" is the number of the place, from 1. */
export function inSlot(config: TaskConfig, slot: number): TaskConfig {
  const fill = (path: string) => path.replaceAll("{slot}", String(slot));
  return {
    ...config,
    workingDirectory: fill(config.workingDirectory),
    report: config.report.map(fill),
    artifacts: config.artifacts.map(fill),
  };
}

const MAX_QUOTED = 60;

const nameOf = (path: string): string => JSON.stringify(path.slice(0, 200).toWellFormed());

/** Never what is inside of lists and objects: aliases can make those endless. */
function quote(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return value === null ? "nothing" : String(value);
  const short = value.length > MAX_QUOTED ? `${value.slice(0, MAX_QUOTED)}…` : value;
  return JSON.stringify(short.toWellFormed());
}
