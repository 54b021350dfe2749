/** `assay split`: prints the files of one shard, by the plan that the server stores for all shards of a task. */

import { parseArgs } from "node:util";
import { createFileMatch, type ShardPlan, type SplitFile, splitFiles, toFileName } from "../rules/plan.ts";
import { nameVariant } from "../rules/variants.ts";
import type { Shard } from "../schema/fields.ts";
import { MAX_SPLIT_FILES } from "../schema/plans.ts";
import { type CiBuild, detectBuild } from "./ci.ts";
import { ServerAwayError } from "./client.ts";
import { createSay, toJsonLine } from "./output.ts";
import { filesOfPlan, parsePlaywrightList, readFiles } from "./split_files.ts";
import { askBatch, askPlan, SPLIT_PATIENCE_MS, type AskedPlan, planAnswer, readAs } from "./split_request.ts";
import { readTags, TAG_HELP } from "./tags.ts";
import { readSeconds, readShard, toUsageError, UsageError } from "./usage.ts";

export const SPLIT_USAGE = `  split --shard 2/4 [options] [FILE|GLOB…|-]
      print the test files of one of several parallel jobs, balanced by duration`;

export const SPLIT_HELP = `Usage: assay split --shard 2/4 [options] [FILE|GLOB…|-]

Prints the files of this shard, one per line. Files with known durations are balanced by duration; new files are
distributed by hash. Each file is in exactly one shard, and a shard that runs again gets the same files.
With "-" the files are read from standard input. Without FILES, the command prints only files of earlier reports, so new files
run in no shard. It omits names that are not below the working directory.

  --shard 2/4             this shard and the number of shards (default: ASSAY_SHARD, or the number that the CI system
                          gives to the parallel job; a task of a runner without shards is not split and gets all files)
  --task NAME             the task that the uploads name (default: ASSAY_TASK, or the name of the CI job)
${TAG_HELP}
  --execution-key KEY     a value that all jobs of the build share (default: the id of the CI build)
  --execution-id ID       an execution of the server (default: ASSAY_EXECUTION_ID)
  --branch, --commit, --base-commit
                          where the build comes from, the same as for the uploads (default: from the CI system or git)
  --format playwright     read the output of "playwright test --list" and print a file for its option --test-list
  --next                  print the next batch of files, and report that the previous batch has run; print nothing if no files
                          are left. A faster job gets more files (docs/splitting.md has the loop)
  --holder NAME           with --next: a name that differs each time the job starts (default: the id of the CI job; elsewhere
                          use "$$")
  --timings bun           print the file for "bun test --shard=2/4 --timings=FILE" instead
  --patience SECONDS      time limit for four attempts if the server is unavailable (default: 15; 0: one attempt)
  --fallback              if the server is unavailable or no key is set, assign all files by hash
  --existing, --no-existing
                          without FILES: print only existing files, or all (default: --existing in CI)
  --json                  print one line of JSON: { shard, task, files }

Required: ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY, or the id token of a CI job (upload --help). In a task of a runner,
ASSAY_PLAN names the file with the plan.
Empty options are ignored. Globs are expanded by this command, without node_modules.

Exit code: 0, even if the shard has no files and nothing is printed; 1 if there is no plan or no file at all; 2 for wrong
usage.`;

type Environment = Record<string, string | undefined>;

const OPTIONS = {
  shard: { type: "string" },
  task: { type: "string" },
  tag: { type: "string", multiple: true },
  "execution-key": { type: "string" },
  "execution-id": { type: "string" },
  branch: { type: "string" },
  commit: { type: "string" },
  "base-commit": { type: "string" },
  format: { type: "string" },
  timings: { type: "string" },
  patience: { type: "string" },
  next: { type: "boolean" },
  holder: { type: "string" },
  fallback: { type: "boolean" },
  existing: { type: "boolean" },
  "no-existing": { type: "boolean" },
  json: { type: "boolean" },
} as const;

type Format = "files" | "playwright" | "bun";

type Wish = {
  shard: Shard;
  /** A task of a runner without shards, such as the rerun of a sharded task: it gets all files. */
  isWhole: boolean;
  task: string;
  executionId: string | undefined;
  build: CiBuild;
  baseCommit: string | undefined;
  format: Format;
  patienceMs: number;
  fallback: boolean;
  /** Whether only names of files that exist are printed. */
  existing: boolean;
  json: boolean;
  /** The holder name of this job for batches; undefined: the files are split beforehand. */
  holder: string | undefined;
  files: string[];
  /** Writes a message to stderr. */
  say: (message: string) => void;
};

type TextOption = Exclude<
  {
    [Name in keyof typeof OPTIONS]: (typeof OPTIONS)[Name]["type"] extends "string" ? Name : never;
  }[keyof typeof OPTIONS],
  "tag"
>;

/** Reads options, then variables that a runner sets, then values of the CI system and git. */
function readWish(args: string[], environment: Environment): Wish {
  const { values, positionals } = parse(args);
  const given = (name: TextOption) => values[name]?.trim() || undefined;
  const told = (name: string) => environment[name]?.trim() || undefined;
  const detected = detectBuild(environment);
  const [key, id] = [given("execution-key"), given("execution-id")];
  if (key !== undefined && id !== undefined)
    throw new UsageError("split takes either --execution-id or --execution-key");
  if (values.existing && values["no-existing"]) throw new UsageError("split takes either --existing or --no-existing");
  const isCi = detected.system !== undefined || told("ASSAY_LEASE_ID") !== undefined || isSet(told("CI"));
  const named = given("shard") ?? told("ASSAY_SHARD") ?? detected.shard;
  const isWhole = named === undefined && told("ASSAY_TASK") !== undefined && told("ASSAY_LEASE_ID") !== undefined;
  const shard = isWhole ? "1/1" : named;
  if (shard === undefined) throw new UsageError("--shard is missing");
  const tags = readTags({ options: values.tag ?? [], environment, isShard: true });
  const task = given("task") ?? told("ASSAY_TASK") ?? detected.task ?? "default";
  const source = { executionKey: key, branch: given("branch"), commit: given("commit") };
  return {
    shard: readShard(shard),
    isWhole,
    // A runner's task has the name that the execution gives it.
    task: told("ASSAY_LEASE_ID") === undefined ? nameVariant(task, tags) : task,
    // An explicit key names another execution than that of the runner's task.
    executionId: id ?? (key === undefined ? told("ASSAY_EXECUTION_ID") : undefined),
    build: { ...detected, ...Object.fromEntries(Object.entries(source).filter(([, value]) => value !== undefined)) },
    baseCommit: given("base-commit"),
    format: readFormat(given("format"), given("timings")),
    patienceMs: readSeconds("patience", values.patience) ?? SPLIT_PATIENCE_MS,
    fallback: values.fallback === true,
    existing: values.existing ?? (isCi && !values["no-existing"]),
    json: values.json === true,
    holder: values.next ? readHolder(given("holder"), environment) : undefined,
    files: positionals,
    say: createSay(environment),
  };
}

/** Variables with the id of a job, which differs when the job is run again. */
const JOB_IDS = [
  ["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"],
  ["CI_JOB_ID"],
  ["CIRCLE_WORKFLOW_JOB_ID"],
  ["BUILDKITE_JOB_ID"],
  ["SYSTEM_JOBID", "SYSTEM_JOBATTEMPT"],
] as const;

function readHolder(given: string | undefined, environment: Environment): string {
  if (given !== undefined) return given;
  if (environment["ASSAY_LEASE_ID"]) return environment["ASSAY_LEASE_ID"];
  for (const names of JOB_IDS) {
    const ids = names.map((name) => environment[name]?.trim() ?? "");
    if (ids.every((id) => id !== "")) return ids.join("-");
  }
  throw new UsageError(
    `--holder is missing: with --next pass a name that differs each time the job starts, such as "$$"`,
  );
}

const isSet = (flag: string | undefined) => flag !== undefined && !/^(?:false|0|no|off)$/i.test(flag);

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw toUsageError(error);
  }
}

function readFormat(format: string | undefined, timings: string | undefined): Format {
  if (timings !== undefined && timings !== "bun") throw new UsageError(`--timings: expected "bun", got "${timings}"`);
  if (format !== undefined && format !== "files" && format !== "playwright")
    throw new UsageError(`--format: expected "files" or "playwright", got "${format}"`);
  if (timings !== undefined && format !== undefined) throw new UsageError("split takes either --format or --timings");
  return timings ?? format ?? "files";
}

/** A task of a runner does not have the project's key: the runner has fetched the plan into a file. */
async function readPlanFile(path: string, { shard }: Wish, environment: Environment): Promise<AskedPlan> {
  const its = environment["ASSAY_SHARD"];
  if (its !== undefined && its !== `${shard.index}/${shard.of}`)
    throw new UsageError(`--shard: the plan in ASSAY_PLAN is for shard "${its}"`);
  return readAs(planAnswer, `plan in "${path}"`, await Bun.file(path).text());
}

/** Returns undefined if the server is unavailable or the build has no key, and all files are assigned by hash. */
async function findPlan(
  wish: Wish,
  environment: Environment,
  names: readonly string[] | undefined,
): Promise<AskedPlan | undefined> {
  const file = environment["ASSAY_PLAN"];
  try {
    if (file) return await readPlanFile(file, wish, environment);
    return await askPlan(wish, environment, names);
  } catch (error) {
    // The builds of forks have no secrets: that is the same for all of their shards.
    const isAway = error instanceof ServerAwayError || (!file && !environment["ASSAY_KEY"]?.trim());
    if (!isAway) throw error;
    const { message } = error as Error;
    if (!wish.fallback)
      throw error instanceof UsageError ? error : new Error(`${message}; use --fallback to split by hash`);
    wish.say(`${message}: files are split by hash. If other shards received the plan, run them again as well`);
    return undefined;
  }
}

/**
 * Returns the file for `bun test --timings`, which identifies a file by its path from the working directory. Without timings
 * bun makes shards of equal size.
 */
function toBunTimings({ task, say }: Wish, plan: AskedPlan | undefined, names: readonly string[] | undefined): string {
  const timings = plan?.timings ?? {};
  const match = createFileMatch(Object.keys(timings));
  const known = names?.flatMap((name) => {
    const file = match(name);
    return file === undefined ? [] : [[name, timings[file]!] as const];
  });
  const why = plan && whyNone(plan, known === undefined || known.length > 0);
  if (why !== undefined) say(`No timings for "${task}": ${why}`);
  return toJsonLine({ version: 1, files: known ? Object.fromEntries(known) : timings });
}

const sumOf = (timings: ShardPlan["timings"], files: Iterable<string>) =>
  [...files].reduce((sum, file) => sum + timings[file]!, 0);
const seconds = (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;

/** Returns the reason why no durations are known for the files; undefined: some are known. */
function whyNone({ runs, timings }: AskedPlan, known: boolean): string | undefined {
  const example = Object.keys(timings)[0];
  if (runs === 0) return "this task has no runs yet";
  if (example === undefined) return "the reports of this task name no files";
  return known ? undefined : `the reports of this task contain none of them, for example they name "${example}"`;
}

function describe({ shard, task }: Wish, plan: AskedPlan, own: readonly SplitFile[], names: readonly string[]): string {
  const { timings } = plan;
  const head = `Shard ${shard.index}/${shard.of} of "${task}": ${own.length} of ${names.length} files`;
  const match = createFileMatch(Object.keys(timings));
  const why = whyNone(
    plan,
    names.some((name) => match(name) !== undefined),
  );
  if (why !== undefined) return `${head}, by hash: ${why}`;
  const known = new Set(own.flatMap(({ known }) => known ?? []));
  const fresh = own.filter(({ known }) => known === undefined).length;
  const unknown = fresh === 0 ? "" : `, ${fresh} of them by hash`;
  return `${head}${unknown}, ${seconds(sumOf(timings, known))} of ${seconds(sumOf(timings, Object.keys(timings)))}`;
}

export async function split(args: string[], environment: Environment = process.env): Promise<void> {
  const wish = readWish(args, environment);
  const { format, shard, json, say } = wish;
  const directory = process.cwd();
  const given = wish.files.length === 0 ? undefined : await readFiles(wish.files);
  if (format === "playwright" && given === undefined)
    throw new UsageError(
      `--format playwright: pass the output of "npx playwright test --list" on standard input, and "-" as FILE`,
    );
  const list = format === "playwright" ? parsePlaywrightList(given!) : undefined;
  if (wish.holder !== undefined)
    return await printNext(wish, wish.holder, list ? [...list.keys()] : given, list, environment);
  const plan = wish.isWhole
    ? undefined
    : await findPlan(
        wish,
        environment,
        given?.map((file) => toFileName(file, directory)),
      );
  if (format === "bun") {
    const names = given?.map((file) => toFileName(file, directory));
    return await print([toBunTimings(wish, plan, names)]);
  }
  if (wish.isWhole && given) say(`"${wish.task}" has no shards: all ${given.length} files`);
  const files = list ? [...list.keys()] : given;
  const own = files ? splitFiles(files, { plan, shard, directory }) : ownFilesOf(wish, plan, directory);
  const names = files?.map((file) => toFileName(file, directory)) ?? [...(plan?.files ?? [])];
  if (plan) say(describe(wish, plan, own, names));
  const lines = own.flatMap(({ file }) => list?.get(file) ?? [toWord(file)]);
  if (json) return await print([toJsonLine({ shard: `${shard.index}/${shard.of}`, task: wish.task, files: lines })]);
  const broken = lines.find((line) => /[\r\n]/.test(line));
  // The second line would become another argument of a command.
  if (broken !== undefined) throw new Error(`Cannot print ${JSON.stringify(broken)} as a line: use --json`);
  await print(lines);
}

/** The next files of the job, which the server hands out one batch after the other. */
async function printNext(
  wish: Wish,
  holder: string,
  files: readonly string[] | undefined,
  list: Map<string, string[]> | undefined,
  environment: Environment,
): Promise<void> {
  if (files === undefined) throw new UsageError("FILES are missing: --next splits the given files into batches");
  if (files.length > MAX_SPLIT_FILES)
    throw new UsageError(`--next takes at most ${MAX_SPLIT_FILES} files, got ${files.length}`);
  const byName = new Map(files.map((file) => [toFileName(file, process.cwd()), file]));
  const answer = await askBatch(wish, holder, [...byName.keys()], environment);
  const match = createFileMatch([...byName.keys()]);
  const own = answer.files.map((file) => {
    const name = match(toFileName(file));
    if (name === undefined)
      throw new Error(`Cannot run ${JSON.stringify(file)}: it is assigned to this job, but it is not among its FILES`);
    return byName.get(name)!;
  });
  const { shard, task, json, say } = wish;
  say(
    `Shard ${shard.index}/${shard.of} of "${task}": ${own.length === 0 ? "no files are left" : `${own.length} files, ${answer.left} left`}`,
  );
  const lines = own.flatMap((file) => list?.get(file) ?? [toWord(file)]);
  if (json) return await print([toJsonLine({ shard: `${shard.index}/${shard.of}`, task, files: lines })]);
  await print(lines);
}

/** Returns a given name unchanged, unless it could be read as an option. */
const toWord = (file: string): string => (file.startsWith("-") ? `./${file}` : file);

function ownFilesOf({ task, existing, say }: Wish, plan: AskedPlan | undefined, directory: string): SplitFile[] {
  if (plan === undefined || Object.keys(plan.timings).length === 0)
    throw new Error(`No files: no FILES are given, and the server knows no files of "${task}"`);
  say("No FILES are given: new files run in no shard");
  return filesOfPlan(plan, { task, existing, directory, say });
}

/** Writes all lines before the process ends, also into a pipe. */
async function print(lines: readonly string[]): Promise<void> {
  await Bun.write(Bun.stdout, lines.map((line) => `${line}\n`).join(""));
}
