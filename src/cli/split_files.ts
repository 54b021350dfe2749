/** The files that `assay split` chooses from: given files, those of a list of Playwright, or those of a plan. */

import { realpathSync, statSync } from "node:fs";
import { isAbsolute, relative, resolve } from "node:path";
import { plannedFiles, type ShardPlan, type SplitFile } from "../rules/plan.ts";
import { locateFile, toPathWord } from "../rules/report_path.ts";
import type { Invocation } from "./invocation.ts";
import { UsageError } from "./usage.ts";

/** Returns the files to split, in the order given. Throws if there are none. */
export async function readFiles(given: readonly string[], invocation: Invocation): Promise<string[]> {
  const files = (await Promise.all(given.map((each) => expand(each, invocation)))).flat();
  if (files.length === 0) throw new Error("No files: standard input is empty");
  return files;
}

async function expand(argument: string, { directory, stdin }: Invocation): Promise<string[]> {
  if (argument === "-") return (await stdin.text()).split(/\r?\n/).filter((line) => line.trim() !== "");
  const there = statSync(resolve(directory, argument), { throwIfNoEntry: false });
  if (there?.isDirectory())
    throw new UsageError(`"${argument}" is a directory: pass files, or a glob such as "${argument}/**/*.test.ts"`);
  // A file may be called [id].test.ts.
  if (there || !/[*?[{]/.test(argument)) return [argument];
  const found = await Array.fromAsync(
    new Bun.Glob(argument).scan({ cwd: directory, absolute: argument.startsWith("/") }),
  );
  const own = argument.includes("node_modules")
    ? found
    : found.filter((file) => !/(^|[/\\])node_modules[/\\]/.test(file));
  if (own.length === 0) throw new Error(`No file matches "${argument}"`);
  return own.sort();
}

const TOTAL = /^Total: (\d+) tests? in \d+ files?$/;

/** `[project] › file:line:column › titles`; the project may be missing, or have " › " in its name. */
function parseListed(line: string): { file: string; line: string } | undefined {
  const parts = line.trimStart().split(" › ");
  const fileAt = (at: number) => /^([^›]+):\d+:\d+$/.exec(at < parts.length - 1 ? parts[at]! : "")?.[1];
  const isProject = parts[0]!.startsWith("[");
  const inProject = isProject
    ? parts.findIndex((_, at) => at > 0 && parts[at - 1]!.endsWith("]") && fileAt(at) !== undefined)
    : -1;
  const at = Math.max(0, inProject);
  const file = fileAt(at);
  return file === undefined ? undefined : { file, line: [...parts.slice(0, at), file].join(" › ") };
}

/**
 * Returns the files, each with its project, that `playwright test --list` prints. Titles are left out, because a line of --test-list whose
 * title contains " › " silently selects nothing.
 */
export function parsePlaywrightList(lines: readonly string[]): Map<string, string[]> {
  const listed = lines.flatMap((line) => parseListed(line) ?? []);
  const total = lines.map((line) => TOTAL.exec(line)?.[1]).find((number) => number !== undefined);
  if (listed.length === 0 || (total !== undefined && Number(total) !== listed.length))
    throw new Error(
      `Cannot read the output of "playwright test --list": it lists ${listed.length} tests` +
        (total === undefined ? "" : `, but its total is ${total}`),
    );
  const files = Map.groupBy(listed, ({ file }) => file);
  return new Map([...files].map(([file, tests]) => [file, [...new Set(tests.map(({ line }) => line))]]));
}

type PlanOptions = {
  task: string;
  /** Leaves out names that are not files inside of the directory. */
  existing: boolean;
  directory: string;
  say: (message: string) => void;
};

/**
 * Returns the files that the server knows, for a job that names none. Anyone who may upload a report chooses these names. Files that are
 * left out here are in no other shard, so stderr names them.
 */
export function filesOfPlan(plan: ShardPlan, { task, existing, directory, say }: PlanOptions): SplitFile[] {
  const { own, ofOthers, leftOut } = plannedFiles(plan, directory);
  const find = existing
    ? (path: string) => locateFile(path, directory, createIsInside(directory))
    : (path: string) => path;
  const found = own.map((one) => ({ ...one, path: find(one.name) }));
  const missing = found.filter(({ path }) => path === undefined).map(({ name }) => name);
  if (leftOut.length > 0)
    say(
      `Omitted, and run in no shard: ${toList(leftOut)}. Reports name them, but they are not paths within this folder`,
    );
  if (missing.length > 0)
    say(
      `Omitted, and run in no shard: ${toList(missing)}. Reports name them, but they do not exist here (--no-existing prints them)`,
    );
  const kept = found.flatMap(({ path, ...one }) => (path === undefined ? [] : [{ ...one, file: toPathWord(path) }]));
  // All shards must decide alike, because a shard that is only left without files is green.
  const isNothing = kept.length === 0 && !ofOthers.some((path) => find(path) !== undefined);
  if (isNothing) throw new Error(`No files: no FILES are given, and none of the known files of "${task}" exists here`);
  return kept;
}

/** Whether there is a file whose links lead to no place outside of the directory. */
function createIsInside(directory: string): (path: string) => boolean {
  const root = realpathSync(directory);
  return (path) => {
    try {
      const way = relative(root, realpathSync(resolve(root, path)));
      return way !== "" && !/^\.\.(?:[\\/]|$)/.test(way) && !isAbsolute(way) && statSync(resolve(root, path)).isFile();
    } catch {
      return false;
    }
  };
}

const MAX_LISTED = 10;

function toList(names: readonly string[]): string {
  const listed = names.slice(0, MAX_LISTED).map((name) => JSON.stringify(name.slice(0, 200)));
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : "";
  return `${listed.join(", ")}${more}`;
}
