/** Finds the report files of an upload: expands globs, and takes only reports that the command has written. */

import { readFileSync, type Stats, statSync } from "node:fs";
import { toFileError } from "../file_failure.ts";
import { basename, join, resolve } from "node:path";

type ReportFile = {
  /** As it was given, or below the folder of the glob as that was given. */
  name: string;
  path: string;
  stats: Stats;
  /** It was given by its path, and not found by a glob. */
  isNamed: boolean;
};
/** `problems` say of each file and glob, in words, why it gives nothing; `absent` are those of files that were given by their paths. */
export type FoundReports = { files: ReportFile[]; problems: string[]; absent: string[] };

const MAGIC = /[*?[{]/;

/** Neither holds reports of these tests, though packages bring some along. */
const ELSEWHERE = ["node_modules", ".git"];

/** Undefined if there is no such file; a link is followed. Throws if it may not be read. */
const statOf = (path: string) => statSync(path, { throwIfNoEntry: false });

/** `a/{b,c/d}` → `a/b` and `a/c/d`: Bun's own globs know no slash within braces. */
function expandBraces(glob: string): string[] {
  const [whole, before, choices, after] = /^(.*)\{([^{}]*)\}(.*)$/s.exec(glob) ?? [];
  if (whole === undefined) return [glob];
  return choices!.split(",").flatMap((choice) => expandBraces(`${before}${choice}${after}`));
}

/** Names of the files that the glob matches, ascending; they begin as the glob does. */
const expand = (glob: string, directory: string): string[] =>
  [...new Set(expandBraces(glob).flatMap((each) => expandOne(each, directory)))].sort();

function expandOne(glob: string, directory: string): string[] {
  const isFile = (name: string) => statOf(resolve(directory, name))?.isFile() === true;
  const parts = glob.split("/");
  const first = parts.findIndex((part) => MAGIC.test(part));
  if (first === -1) return isFile(glob) ? [glob] : [];
  const base = parts.slice(0, first).join("/");
  const folder = base === "" ? (glob.startsWith("/") ? "/" : ".") : base;
  if (!statOf(resolve(directory, folder))?.isDirectory()) return [];
  const pattern = new Bun.Glob(parts.slice(first).join("/"));
  // Links to files are files, but `followSymlinks` would also walk in circles.
  const names = [...pattern.scanSync({ cwd: resolve(directory, folder), dot: true, onlyFiles: false })];
  return names
    .filter((name) => !name.split("/").some((part) => ELSEWHERE.includes(part) && !glob.includes(part)))
    .map((name) => (first === 0 ? name : join(folder, name)))
    .filter(isFile);
}

function findOne(given: string, directory: string): { isNamed: boolean } & ({ names: string[] } | { problem: string }) {
  const isGlob = MAGIC.test(given);
  try {
    const stats = statOf(resolve(directory, given));
    if (stats?.isDirectory())
      return {
        isNamed: true,
        problem: `"${given}" is a directory: name its files, such as "${join(given, "**/*.xml")}"`,
      };
    if (stats) return { isNamed: true, names: [given] };
    if (!isGlob) return { isNamed: true, problem: `File not found: "${given}"` };
    const names = expand(given, directory);
    return { isNamed: false, ...(names.length > 0 ? { names } : { problem: `No file matches "${given}"` }) };
  } catch (error) {
    return { isNamed: !isGlob, problem: `Cannot search for "${given}": ${(error as Error).message}` };
  }
}

/** Returns the existing files of paths and globs, each once. */
export function findReports(given: readonly string[], directory: string): FoundReports {
  const found = new Map<string, ReportFile>();
  const problems: string[] = [];
  const absent: string[] = [];
  for (const each of given) {
    const one = findOne(each, directory);
    const { isNamed } = one;
    if ("problem" in one) {
      problems.push(one.problem);
      if (isNamed) absent.push(one.problem);
    } else
      for (const name of one.names) {
        const path = resolve(directory, name);
        const stats = statOf(path);
        if (!stats) continue;
        const id = `${stats.dev} ${stats.ino}`;
        if (!found.has(id)) found.set(id, { name, path, stats, isNamed });
      }
  }
  return { files: [...found.values()], problems, absent };
}

/** File systems keep times of their own coarseness: up to two seconds. */
const COARSENESS_MS = 2_000;

const isSame = (one: Stats, other: Stats) =>
  one.ino === other.ino && one.size === other.size && one.mtimeMs === other.mtimeMs && one.ctimeMs === other.ctimeMs;

/**
 * Splits the files after a command into those that it has written and others. `before` are the files when it began, at `beganAt`. A stale
 * report would be a false green; an empty one counts as none.
 */
export function keepFresh(
  found: FoundReports,
  before: readonly ReportFile[],
  beganAt: number,
  noun: "report" | "file" = "report",
): FoundReports {
  const known = new Map(before.map(({ path, stats }) => [path, stats]));
  const kept: FoundReports = { files: [], problems: [...found.problems], absent: [...found.absent] };
  const leaveOut = ({ isNamed }: ReportFile, problem: string) => {
    kept.problems.push(problem);
    if (isNamed) kept.absent.push(problem);
  };
  for (const file of found.files) {
    const { name, path, stats } = file;
    const earlier = known.get(path);
    if (stats.mtimeMs < beganAt - COARSENESS_MS || (earlier && isSame(earlier, stats)))
      leaveOut(
        file,
        `"${name}" is stale: it was written at ${new Date(stats.mtimeMs).toISOString()}, before the command began; ` +
          `does the command write its ${noun} there?`,
      );
    else if (stats.isFile() && stats.size === 0) leaveOut(file, `"${name}" is empty`);
    else kept.files.push(file);
  }
  return kept;
}

/** Maximum total size. Servers accept far less. */
const MAX_BYTES = 2 ** 30;

/** Throws an Error that says which file cannot be read. */
export function readReportFiles(files: readonly ReportFile[]): { name: string; bytes: Uint8Array<ArrayBuffer> }[] {
  const size = files.reduce((sum, { stats }) => sum + stats.size, 0);
  if (size > MAX_BYTES)
    throw new Error(`The ${files.length} files have ${size} bytes in total, more than any server accepts`);
  return files.map(({ name, path }) => {
    try {
      return { name: basename(path), bytes: new Uint8Array(readFileSync(path)) };
    } catch (error) {
      throw toFileError(error, "read", name);
    }
  });
}
