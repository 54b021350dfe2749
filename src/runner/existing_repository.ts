/** A repository that somebody works in: work trees of its commits are added elsewhere, and nothing else of it changes. */

import { existsSync } from "node:fs";
import { type AskGit, createTreeCommands, type GitClone } from "./git_clone.ts";

/** `directory`: where `ask` runs git. The commits are in the repository already, as full hashes. */
export function createExistingRepository(directory: string, ask: AskGit): GitClone {
  const { addTree, listUntracked } = createTreeCommands(directory, ask);
  const added = new Set<string>();
  return {
    open: async () => {},
    resolve: async ({ commit }) => commit!,
    async addTree(path, commit, run) {
      added.add(path);
      await addTree(path, commit, run);
    },
    // "git worktree prune" would also forget trees of the user's own whose disk is not connected.
    async pruneTrees() {
      for (const path of [...added].filter((path) => !existsSync(path))) {
        added.delete(path);
        await ask(["worktree", "remove", "--force", "--", path]);
      }
    },
    ask,
    listUntracked,
  };
}
