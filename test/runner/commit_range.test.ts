/** The commits of a range, listed in a runner's own clone of a real repository. */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openCheckout } from "../../src/runner/checkout.ts";
import { NoSuchRangeError } from "../../src/runner/commit_range.ts";
import { NoSuchCommitError, type RunGit } from "../../src/runner/git_clone.ts";
import { createPlace, removePlace } from "../places.ts";

const place = createPlace("commit-range");
afterAll(() => removePlace(place));
const host = { PATH: process.env["PATH"]!, HOME: place, GIT_CONFIG_GLOBAL: "/dev/null" };
const repository = join(place, "repository");
mkdirSync(repository);

const git = async (args: string[], cwd = repository): Promise<string> => {
  const child = Bun.spawn(["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...args], {
    cwd,
    env: host,
    stdout: "pipe",
    stderr: "ignore",
  });
  const output = (await child.stdout.text()).trim();
  expect(await child.exited).toBe(0);
  return output;
};
const run: RunGit = async (args, cwd) => {
  const child = Bun.spawn(["git", ...args], { cwd, env: host, stdout: "ignore", stderr: "ignore" });
  return { output: "", exitCode: await child.exited };
};

async function commit(message: string, files: Record<string, string>): Promise<string> {
  for (const [name, text] of Object.entries(files)) await Bun.write(join(repository, name), text);
  await git(["add", "."]);
  await git(["commit", "-q", "-m", message]);
  return await git(["rev-parse", "HEAD"]);
}

await git(["init", "-q", "-b", "main"]);
const first = await commit("first", { a: "1" });
const second = await commit("second\n\nwith a body", { "with blanks and ümlauts/b\nc": "2", a: "2" });
await git(["checkout", "-q", "-b", "side"]);
const side = await commit("on the side", { side: "1" });
await git(["checkout", "-q", "main"]);
const third = await commit("third", { third: "3" });
await git(["merge", "-q", "--no-ff", "-m", "merge the side", "side"]);
const merged = await git(["rev-parse", "HEAD"]);

const config = { repository, submodules: false, lfs: false, prepare: [], build: [], keep: 1 };
const checkout = openCheckout(join(place, "clone"), host);
const list = (good: string, bad: string) => checkout.listRange(config, { good, bad }, run);

test("follows first parents, and lists what each commit changes compared with its own", async () => {
  const commits = await list(first.slice(0, 10), merged);
  expect(commits.map(({ hash, author, subject, files }) => [hash, author, subject, files])).toEqual([
    [first, "Ada", "first", []],
    [second, "Ada", "second", ["a", "with blanks and ümlauts/b\nc"]],
    [third, "Ada", "third", ["third"]],
    [merged, "Ada", "merge the side", ["side"]],
  ]);
  for (const { date } of commits) expect(Date.parse(date)).toBeGreaterThan(0);
});

test("a good commit on a merged branch gives its place to the first parent of the oldest commit", async () => {
  expect((await list(side, merged)).map(({ hash }) => hash)).toEqual([second, third, merged]);
});

test("there is no range between commits that are none, in the wrong order, or the same", async () => {
  await expect(list(merged, first)).rejects.toThrow(NoSuchRangeError);
  await expect(list(merged, first)).rejects.toThrow(
    `The good commit "${merged}" is not an ancestor of the bad commit "${first}"`,
  );
  await expect(list(first, first)).rejects.toThrow("There are no commits between the good and the bad one");
  await expect(list("1234567", merged)).rejects.toThrow(NoSuchCommitError);
  await expect(list("--output=x", merged)).rejects.toThrow(NoSuchCommitError);
});
