/** The report files that a command has left, and not those that lay there before: a stale report is a false green. */

import { type BigIntStats, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";

/** Other tasks write their reports in the work trees of the runner. */
const TREES = ".assay";
/** File systems round times. */
const SLACK_MS = 2_000;

/** The time as the file system of a folder tells it, which may be another machine's; ours where nothing can be written there. */
export function fileClockMs(directory: string): number {
  const path = join(directory, `.assay-clock-${crypto.randomUUID()}`);
  try {
    writeFileSync(path, "");
    return statSync(path).mtimeMs;
  } catch {
    return Date.now();
  } finally {
    rmSync(path, { force: true });
  }
}

export type ReportFiles = { fresh: string[]; stale: string[] };

/**
 * Looks at once; the function that it answers looks again and tells what is new, by absolute path, in order. A file is stale
 * if it is as it was, or older than the first look.
 */
export function watchReports(patterns: readonly string[], directory: string): () => ReportFiles {
  const began = fileClockMs(directory);
  const before = look(patterns, directory);
  return () => {
    const found: ReportFiles = { fresh: [], stale: [] };
    for (const [path, now] of look(patterns, directory)) {
      const was = before.get(path);
      const isSame = was !== undefined && was.mtimeNs === now.mtimeNs && was.size === now.size && was.ino === now.ino;
      found[isSame || Number(now.mtimeMs) < began - SLACK_MS ? "stale" : "fresh"].push(path);
    }
    return found;
  };
}

/** The file of a report without a wildcard; or the folder where a wildcard begins (`isOpen`), as it may find all that is below. */
export type Reach = { path: string; isOpen: boolean };

/** Returns the places where a task may write its reports, without symbolic links. */
export const reachesOf = ({ report, workingDirectory }: ReportPlace): Reach[] =>
  report.map((pattern) => {
    const { path, isOpen } = reachOf(pattern, workingDirectory);
    return { path: isOpen ? toRealPath(path) : join(toRealPath(dirname(path)), basename(path)), isOpen };
  });

/** Whether a file might be the report of both, as far as their patterns tell. */
export const mayShareReport = (one: readonly Reach[], other: readonly Reach[]): boolean =>
  one.some((a) => other.some((b) => a.path === b.path || (a.isOpen && isBelow(b, a)) || (b.isOpen && isBelow(a, b))));

/** Resolves the links of the part of a path that exists. */
function toRealPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(toRealPath(folder), basename(path));
  }
}

/** Returns the paths without a wildcard that are not among these files. */
export const absentReports = (patterns: readonly string[], directory: string, files: readonly string[]): string[] =>
  patterns.filter((pattern) => {
    const { path, isOpen } = reachOf(pattern, directory);
    return !isOpen && !files.includes(path);
  });

type ReportPlace = { report: readonly string[]; workingDirectory: string };
function reachOf(pattern: string, directory: string): Reach {
  const isOpen = /[*?[{!\\]/.test(pattern);
  return { path: resolve(directory, isOpen ? fixedPartOf(pattern) : pattern), isOpen };
}

const isBelow = ({ path }: Reach, { path: folder }: Reach) =>
  path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);

/** Returns the path before the first part with a wildcard. */
const fixedPartOf = (pattern: string) => /^[^*?[{!]*\//.exec(pattern)?.[0] ?? "";

function look(patterns: readonly string[], directory: string): Map<string, BigIntStats> {
  const paths = new Set(patterns.flatMap((pattern) => expand(pattern, directory)));
  const stats = [...paths]
    .sort()
    .map((path) => [path, statSync(path, { bigint: true, throwIfNoEntry: false })] as const);
  return new Map(stats.filter((entry): entry is [string, BigIntStats] => entry[1]?.isFile() === true));
}

/** A path that exists literally is that file, even if it looks like a glob. */
function expand(pattern: string, directory: string): string[] {
  const path = resolve(directory, pattern);
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return [path];
  // A glob is looked for below the part of it that has no wildcard.
  const fixed = fixedPartOf(pattern);
  const root = isAbsolute(pattern) ? fixed : resolve(directory, fixed);
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) return [];
  const glob = new Bun.Glob(pattern.slice(fixed.length));
  const names = [...glob.scanSync({ cwd: root, dot: true, onlyFiles: true })];
  return names.filter((name) => !name.split("/").includes(TREES)).map((name) => join(root, name));
}

/** As a message names files: from the directory of the task, and not all of many. */
export function listPaths(paths: readonly string[], directory: string): string {
  const names = paths.slice(0, 3).map((path) => JSON.stringify(isAbsolute(path) ? relative(directory, path) : path));
  return [...names, ...(paths.length > 3 ? [`${paths.length - 3} more`] : [])].join(", ");
}
