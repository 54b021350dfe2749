/** A repository that somebody works in: work trees read its objects, and nothing of it changes. */

import { resolve } from "node:path";
import type { AskGit, GitClone } from "./git_clone.ts";

/** `directory`: where `ask` runs git. The commits are in the repository already, as full hashes. */
export const createExistingRepository = (directory: string, ask: AskGit): GitClone => ({
  open: async () => {},
  resolve: async ({ commit }) => commit!,
  protect: async () => {},
  ask,
  gitDirectory: async () => resolve(directory, (await ask(["rev-parse", "--git-common-dir"])) ?? ".git"),
});
