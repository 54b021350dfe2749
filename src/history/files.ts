/** Lists the files of a folder. */

import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { toFileError } from "../file_failure.ts";
import { compareNames, type FileProblem } from "./build.ts";

export type HistoryFile = {
  /** Relative to the folder, with "/" between folders. */
  path: string;
  changedAt: Date;
  /** Throws an Error that says why it cannot be read. */
  read: () => Uint8Array<ArrayBuffer>;
};

/** Hidden folders, and those of packages, hold no results of this project. */
const isSkipped = (name: string): boolean => name.startsWith(".") || name === "node_modules";

/** Ordered by path. Throws an Error if the folder itself cannot be read. */
export function listFiles(folder: string): { files: HistoryFile[]; problems: FileProblem[] } {
  const files: HistoryFile[] = [];
  const problems: FileProblem[] = [];
  const open = [""];
  // Symbolic links may lead to a folder again, or around in circles. A folder has its own path if it is below the first one.
  const links: string[] = [];
  const visited = new Set<string>();
  for (let parent = open.pop(); parent !== undefined; parent = open.pop() ?? links.shift()) {
    const { dev, ino } = statSync(join(folder, parent), { throwIfNoEntry: false }) ?? {};
    if (visited.has(`${dev} ${ino}`)) continue;
    visited.add(`${dev} ${ino}`);
    for (const name of readNames(folder, parent, problems)) {
      const path = parent === "" ? name : `${parent}/${name}`;
      const stats = statSync(join(folder, path), { throwIfNoEntry: false });
      if (stats?.isDirectory()) (lstatSync(join(folder, path)).isSymbolicLink() ? links : open).push(path);
      else if (stats?.isFile())
        files.push({ path, changedAt: stats.mtime, read: () => new Uint8Array(readFileSync(join(folder, path))) });
    }
  }
  return { files: files.sort((one, other) => compareNames(one.path, other.path)), problems };
}

function readNames(folder: string, parent: string, problems: FileProblem[]): string[] {
  try {
    return readdirSync(join(folder, parent)).filter((name) => !isSkipped(name));
  } catch (error) {
    if (parent === "") throw toFileError(error, "read", folder);
    problems.push({ name: parent, message: (error as Error).message });
    return [];
  }
}
