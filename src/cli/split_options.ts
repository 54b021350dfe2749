/** The options of `assay split`, and what the environment and the CI system add to them. */

import { parseArgs } from "node:util";
import { nameVariant } from "../rules/variants.ts";
import type { Shard } from "../schema/fields.ts";
import { type CiBuild, findCiBuild } from "./ci.ts";
import type { EnvironmentVariables, Invocation } from "./invocation.ts";
import { SPLIT_PATIENCE_MS } from "./split_request.ts";
import { readTags, TAG_HELP } from "./tags.ts";
import { readShard } from "./shard_option.ts";
import { readSeconds, toUsageError, UsageError } from "./usage.ts";

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

export type Wish = {
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
export function readWish(args: string[], { environment, directory, say }: Invocation): Wish {
  const { values, positionals } = parse(args);
  const given = (name: TextOption) => values[name]?.trim() || undefined;
  const fromEnvironment = (name: string) => environment[name]?.trim() || undefined;
  const detected = findCiBuild({ environment, directory });
  const [key, id] = [given("execution-key"), given("execution-id")];
  if (key !== undefined && id !== undefined)
    throw new UsageError("split takes either --execution-id or --execution-key");
  if (values.existing && values["no-existing"]) throw new UsageError("split takes either --existing or --no-existing");
  const isCi =
    detected.system !== undefined || fromEnvironment("ASSAY_LEASE_ID") !== undefined || isSet(fromEnvironment("CI"));
  const named = given("shard") ?? fromEnvironment("ASSAY_SHARD") ?? detected.shard;
  const isWhole =
    named === undefined &&
    fromEnvironment("ASSAY_TASK") !== undefined &&
    fromEnvironment("ASSAY_LEASE_ID") !== undefined;
  const shard = isWhole ? "1/1" : named;
  if (shard === undefined) throw new UsageError("--shard is missing");
  const tags = readTags({ options: values.tag ?? [], environment, isShard: true });
  const task = given("task") ?? fromEnvironment("ASSAY_TASK") ?? detected.task ?? "default";
  const source = { executionKey: key, branch: given("branch"), commit: given("commit") };
  return {
    shard: readShard(shard),
    isWhole,
    // A runner's task has the name that the execution gives it.
    task: fromEnvironment("ASSAY_LEASE_ID") === undefined ? nameVariant(task, tags) : task,
    // An explicit key names another execution than that of the runner's task.
    executionId: id ?? (key === undefined ? fromEnvironment("ASSAY_EXECUTION_ID") : undefined),
    build: { ...detected, ...Object.fromEntries(Object.entries(source).filter(([, value]) => value !== undefined)) },
    baseCommit: given("base-commit") ?? detected.baseCommit,
    format: readFormat(given("format"), given("timings")),
    patienceMs: readSeconds("patience", values.patience) ?? SPLIT_PATIENCE_MS,
    fallback: values.fallback === true,
    existing: values.existing ?? (isCi && !values["no-existing"]),
    json: values.json === true,
    holder: values.next ? readHolder(given("holder"), environment) : undefined,
    files: positionals,
    say,
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

function readHolder(given: string | undefined, environment: EnvironmentVariables): string {
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
