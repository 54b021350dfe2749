/** Lists the files of a folder, those in ZIP archives included, so that an archive looks like the folder that it was made from. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { toFileError } from "../file_failure.ts";
import { compareNames, type FileProblem } from "./build.ts";
import { readZip, type ZipEntry } from "./zip.ts";

export type HistoryFile = {
  /** Relative to the folder, with "/" between folders: "123/results/report.xml", also for a file in "123/results.zip". */
  path: string;
  /** When the file, or its archive, was changed. */
  changedAt: Date;
  /** Throws an Error that says why it cannot be read. */
  read: () => Uint8Array<ArrayBuffer>;
};

const ARCHIVE = /\.zip$/i;

/** Hidden folders, and those of packages, hold no results of this project. */
const isSkipped = (name: string): boolean => name.startsWith(".") || name === "node_modules";

/** Ordered by path. Throws an Error if the folder itself cannot be read. */
export function listFiles(folder: string): { files: HistoryFile[]; problems: FileProblem[] } {
  const files: HistoryFile[] = [];
  const problems: FileProblem[] = [];
  const open = [""];
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    for (const name of readNames(folder, parent, problems)) {
      const path = parent === "" ? name : `${parent}/${name}`;
      const stats = statSync(join(folder, path), { throwIfNoEntry: false });
      if (stats?.isDirectory()) open.push(path);
      else if (!stats?.isFile()) continue;
      else if (ARCHIVE.test(name)) addArchive(folder, path, stats.mtime, { files, problems });
      else files.push({ path, changedAt: stats.mtime, read: () => new Uint8Array(readFileSync(join(folder, path))) });
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

/** An archive is read once for its list and again for each file: old archives together may be larger than the memory. */
function addArchive(
  folder: string,
  path: string,
  changedAt: Date,
  { files, problems }: { files: HistoryFile[]; problems: FileProblem[] },
): void {
  const open = (): ZipEntry[] => readZip(new Uint8Array(readFileSync(join(folder, path))));
  try {
    for (const [index, entry] of open().entries())
      if (!entry.path.split("/").some(isSkipped))
        files.push({
          path: `${path.replace(ARCHIVE, "")}/${entry.path}`,
          changedAt,
          read: () => open()[index]!.read(),
        });
  } catch (error) {
    problems.push({ name: path, message: (error as Error).message });
  }
}
