/** The work trees of a clone on the disk: which of them a task uses, and what is in the others. */

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { removePath, type TreeState } from "./tree_state.ts";

const note = v.object({
  commit: v.string(),
  /** Which preparation has run in the tree. */
  prepared: v.string(),
});
const entries = v.array(v.tuple([v.string(), v.object({ print: v.string(), isOfCommit: v.boolean() })]));

export type TreeNote = v.InferOutput<typeof note>;

/** `note`: undefined if the files in the folder, if any, are those of an unknown commit. */
export type WorkTree = { path: string; note: TreeNote | undefined };

export type WorkTrees = {
  /** Makes the folder where there is none yet; the other functions need it. */
  open(): void;
  /** Reserves an unused tree of the commit, or else the one that was used least recently, or else a new one. */
  reserve(wanted: { commit: string; prepared: string; keep: number }): WorkTree;
  /** Stores what is in a tree. */
  write(path: string, note: TreeNote, state: TreeState): void;
  /** Returns what is in a tree that has a note. */
  readState(path: string): TreeState;
  /** Removes the folder of a tree. Files that cannot be removed are put aside; the result says why. */
  clear(path: string): Promise<string | undefined>;
  /** Makes a tree available to others, and removes the oldest unused ones until `keep` are left. */
  release(path: string, keep: number): Promise<void>;
};

/** A folder is used by one process: see folder_lock.ts. */
export function createWorkTrees(folder: string): WorkTrees {
  const busy = new Set<string>();

  /** The trees on the disk that no task uses, the most recently used first. */
  const listUnused = (): { path: string; usedAt: number }[] =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && /^\d+$/.test(entry.name))
      .map(({ name }) => join(folder, name))
      .filter((path) => !busy.has(path))
      .map((path) => ({ path, usedAt: statSync(noteOf(path), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
      .sort((a, b) => b.usedAt - a.usedAt);

  function nextPath(): string {
    for (let number = 1; ; number++) {
      const path = join(folder, String(number));
      if (!busy.has(path) && !existsSync(path)) return path;
    }
  }

  async function clear(path: string): Promise<string | undefined> {
    for (const file of [noteOf(path), stateOf(path)]) rmSync(file, { force: true });
    await removePath(gitCopyOf(path));
    try {
      await removePath(path);
      return undefined;
    } catch (error) {
      // A container may have left files of another user.
      renameSync(path, join(folder, `left-${Bun.randomUUIDv7()}`));
      return (error as Error).message;
    }
  }

  return {
    open: () => void mkdirSync(folder, { recursive: true }),
    reserve({ commit, prepared, keep }) {
      const unused = listUnused().map(({ path }) => ({ path, note: readNote(noteOf(path)) }));
      const same = unused.find(({ note }) => note?.commit === commit && note.prepared === prepared);
      const oldest = unused.length >= keep ? unused.at(-1) : undefined;
      const tree = same ?? oldest ?? { path: nextPath(), note: undefined };
      busy.add(tree.path);
      return tree === same ? tree : { path: tree.path, note: undefined };
    },
    write(path, note, state) {
      writeFileSync(stateOf(path), JSON.stringify([...state]));
      writeFileSync(noteOf(path), JSON.stringify(note));
    },
    readState: (path) => new Map(v.parse(entries, JSON.parse(readFileSync(stateOf(path), "utf8")))),
    clear,
    async release(path, keep) {
      const now = new Date();
      if (existsSync(noteOf(path))) utimesSync(noteOf(path), now, now);
      busy.delete(path);
      for (const tree of listUnused().slice(keep)) await clear(tree.path);
    },
  };
}

const noteOf = (path: string) => `${path}.json`;
const stateOf = (path: string) => `${path}.state`;

/** The folder with the git directory of a tree as its task shall find it. */
export const gitCopyOf = (path: string) => `${path}.git`;

function readNote(file: string): TreeNote | undefined {
  try {
    return v.parse(note, JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}
