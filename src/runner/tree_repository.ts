/** The git directory of a work tree: each tree has its own, which reads the objects of the runner's clone. */

import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AskGit, GitClone } from "./git_clone.ts";
import { removePath } from "./tree_state.ts";

/** Creates a repository without refs in a folder that does not exist. */
export async function createTreeRepository(path: string, { ask, gitDirectory }: GitClone, lfs?: string): Promise<void> {
  const shared = await gitDirectory();
  const format = (await ask(["rev-parse", "--show-object-format"])) ?? "sha1";
  const options = ["--quiet", "--template=", ...(format === "sha1" ? [] : [`--object-format=${format}`])];
  mkdirSync(path, { recursive: true });
  if ((await ask(["init", ...options, "--", path])) === null)
    throw new Error(`Cannot create a git repository in ${JSON.stringify(path)}`);
  const own = join(path, ".git");
  mkdirSync(join(own, "objects/info"), { recursive: true });
  writeFileSync(join(own, "objects/info/alternates"), `${join(shared, "objects")}\n`);
  if (existsSync(join(shared, "shallow"))) copyFileSync(join(shared, "shallow"), join(own, "shallow"));
  for (const [name, value] of [...(await listRemotes(ask)), ...(lfs === undefined ? [] : [["lfs.storage", lfs]])])
    await ask(["config", "--add", name!, value!], path);
}

/** Returns the settings of the remotes: a preparation may fetch tags, and git fetches missing objects of a partial clone. */
async function listRemotes(ask: AskGit): Promise<string[][]> {
  const output = (await ask(["config", "--local", "-z", "--get-regexp", "^remote\\."])) ?? "";
  return output
    .split("\0")
    .filter((text) => text.includes("\n"))
    .map((text) => [text.slice(0, text.indexOf("\n")), text.slice(text.indexOf("\n") + 1)]);
}

/** Replaces a folder by a copy of another one, with the times of its files: git compares them. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await removePath(to);
  const copy = Bun.spawn(["cp", "-a", "--", from, to], { stdio: ["ignore", "ignore", "pipe"] });
  const [problem, exitCode] = await Promise.all([copy.stderr.text(), copy.exited]);
  if (exitCode !== 0) throw new Error(`Cannot copy ${JSON.stringify(from)}: ${problem.trim()}`);
}
