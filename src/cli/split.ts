/** `assay split`: prints the files of one shard, by the plan that the server stores for all shards of a task. */

import { resolve } from "node:path";
import { createFileMatch, type ShardPlan, type SplitFile, splitFiles, toFileName } from "../rules/plan.ts";
import { MAX_SPLIT_FILES } from "../schema/plans.ts";
import { ServerAwayError } from "./client.ts";
import type { Invocation } from "./invocation.ts";
import { toJsonLine } from "./output.ts";
import { filesOfPlan, parsePlaywrightList, readFiles } from "./split_files.ts";
import { readWish, type Wish } from "./split_options.ts";
import { askBatch, askPlan, askRunnerForPlan, type AskedPlan, planAnswer, readAs } from "./split_request.ts";
import { UsageError } from "./usage.ts";

/** A task of a runner does not have the project's key: the runner has fetched the plan into a file. */
async function readPlanFile(path: string, { shard }: Wish, { environment, directory }: Invocation): Promise<AskedPlan> {
  const its = environment["ASSAY_SHARD"];
  if (its !== undefined && its !== `${shard.index}/${shard.of}`)
    throw new UsageError(`--shard: the plan in ASSAY_PLAN is for shard "${its}"`);
  return readAs(planAnswer, `plan in "${path}"`, await Bun.file(resolve(directory, path)).text());
}

/** Returns undefined if the server is unavailable or the build has no key, and all files are assigned by hash. */
async function findPlan(
  wish: Wish,
  invocation: Invocation,
  names: readonly string[] | undefined,
): Promise<AskedPlan | undefined> {
  const { environment } = invocation;
  const file = environment["ASSAY_PLAN"];
  try {
    if (file) {
      const fromFile = await readPlanFile(file, wish, invocation);
      return (await askRunnerForPlan(wish, environment["ASSAY_QUEUE"], names)) ?? fromFile;
    }
    return await askPlan(wish, invocation, names);
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

export async function split(args: string[], invocation: Invocation): Promise<void> {
  const { directory } = invocation;
  const print = createPrint(invocation);
  const wish = readWish(args, invocation);
  const { format, shard, json, say } = wish;
  const given = wish.files.length === 0 ? undefined : await readFiles(wish.files, invocation);
  if (format === "playwright" && given === undefined)
    throw new UsageError(
      `--format playwright: pass the output of "npx playwright test --list" on standard input, and "-" as FILE`,
    );
  const list = format === "playwright" ? parsePlaywrightList(given!) : undefined;
  if (wish.holder !== undefined)
    return await printNext(wish, wish.holder, list ? [...list.keys()] : given, list, invocation);
  const plan = wish.isWhole
    ? undefined
    : await findPlan(
        wish,
        invocation,
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
  invocation: Invocation,
): Promise<void> {
  const { directory } = invocation;
  const print = createPrint(invocation);
  if (files === undefined) throw new UsageError("FILES are missing: --next splits the given files into batches");
  if (files.length > MAX_SPLIT_FILES)
    throw new UsageError(`--next takes at most ${MAX_SPLIT_FILES} files, got ${files.length}`);
  const byName = new Map(files.map((file) => [toFileName(file, directory), file]));
  const answer = await askBatch(wish, holder, [...byName.keys()], invocation);
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
const createPrint =
  ({ stdout }: Invocation) =>
  (lines: readonly string[]): Promise<void> =>
    stdout.write(lines.map((line) => `${line}\n`).join(""));
