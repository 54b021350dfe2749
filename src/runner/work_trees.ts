/** The work trees of a clone on the disk: which of them a task uses, and what has been prepared in the others. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";

const note = v.object({
  /** The commit that is checked out; "": unknown. */
  commit: v.string(),
  /** Which preparation has run in the tree for that commit; "": none. */
  prepared: v.string(),
  /** Files other than ignored ones that the preparation created: patterns as in .gitignore. */
  made: v.array(v.string()),
  usedAt: v.number(),
});

type TreeNote = v.InferOutput<typeof note>;

export type WorkTree = TreeNote & { path: string };

export type WorkTrees = {
  /** Makes the folder where there is none yet; the other functions need it. */
  open(): void;
  /** Reserves an unused tree of the commit, or else the one that was used least recently, or else a new one. */
  reserve(wanted: { commit: string; prepared: string; keep: number }): WorkTree;
  /** Makes a tree available to others, and removes the oldest unused ones until `keep` are left. */
  release(path: string, keep: number, note?: TreeNote): Promise<void>;
};

/** `onRemoved` is called after the folder of a tree was deleted. */
export function createWorkTrees(folder: string, onRemoved: () => Promise<void>): WorkTrees {
  /** The paths of the trees that tasks of this process use. */
  const busy = new Set<string>();

  /** The trees on the disk that no process uses, the most recently used first. */
  function listUnused(): WorkTree[] {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(folder, name))
      .filter((path) => !busy.has(path) && !isHeld(holderOf(path)))
      .map((path) => ({ path, commit: "", prepared: "", made: [], usedAt: 0, ...readNote(noteOf(path)) }))
      .sort((a, b) => b.usedAt - a.usedAt);
  }

  function nextPath(): string {
    for (let number = 1; ; number++) {
      const path = join(folder, String(number));
      if (!busy.has(path) && !existsSync(path) && !isHeld(holderOf(path))) return path;
    }
  }

  async function remove(path: string): Promise<void> {
    rmSync(path, { recursive: true, force: true });
    for (const file of [noteOf(path), holderOf(path)]) rmSync(file, { force: true });
    await onRemoved();
  }

  return {
    open: () => void mkdirSync(folder, { recursive: true }),
    reserve({ commit, prepared, keep }) {
      const unused = listUnused();
      const same = unused.find((tree) => tree.commit === commit && tree.prepared === prepared);
      const oldest = unused.length >= keep ? unused.at(-1) : undefined;
      const tree = same ?? oldest ?? { path: nextPath(), commit: "", prepared: "", made: [], usedAt: 0 };
      busy.add(tree.path);
      writeFileSync(holderOf(tree.path), String(process.pid));
      // Until it is released nothing is known of the tree: a runner that is killed leaves it in any state.
      rmSync(noteOf(tree.path), { force: true });
      return tree;
    },
    async release(path, keep, note) {
      if (note) writeFileSync(noteOf(path), JSON.stringify(note));
      rmSync(holderOf(path), { force: true });
      busy.delete(path);
      for (const tree of listUnused().slice(keep)) await remove(tree.path);
    },
  };
}

const noteOf = (path: string) => `${path}.json`;
const holderOf = (path: string) => `${path}.pid`;

/** Whether the process that the file names is alive. */
function isHeld(file: string): boolean {
  try {
    const pid = Number(readFileSync(file, "utf8"));
    // Our own number is that of an earlier process: what this one holds is known.
    if (!(pid > 0) || pid === process.pid) return false;
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function readNote(file: string): Partial<TreeNote> {
  try {
    return v.parse(note, JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return {};
  }
}
