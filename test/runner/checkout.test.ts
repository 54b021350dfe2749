/** Work trees of real repositories. */

import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutFolder, type CheckoutConfig, openCheckout, passwordsOf } from "../../src/runner/checkout.ts";
import { GIT_ENVIRONMENT, GIT_OPTIONS, NoSuchCommitError } from "../../src/runner/git_clone.ts";
import { createPlace, readOutput, removePlace } from "../places.ts";

const place = createPlace("checkout");
afterAll(() => removePlace(place));
const host = { PATH: process.env["PATH"], HOME: place };
const IDENTITY = {
  ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@example.com" },
  ...{ GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@example.com" },
};

async function sh(directory: string, script: string): Promise<string> {
  const child = Bun.spawn(["sh", "-ec", script], {
    cwd: directory,
    env: { ...host, ...IDENTITY, GIT_CONFIG_GLOBAL: "/dev/null" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const { code, output, errors } = await readOutput(child);
  expect([code, errors]).toEqual([0, expect.anything()]);
  return output.trim();
}

let repositories = 0;
/** A repository with two commits on main, and one on a branch. */
async function createRepository() {
  const path = join(place, `repository-${repositories++}`);
  await sh(
    place,
    `git init -q -b main ${path}; cd ${path}; echo one > file; echo node_modules > .gitignore; git add .; git commit -qm one
     echo two > file; git commit -qam two; git checkout -qb topic/x; echo topic > file; git commit -qam topic; git checkout -q main`,
  );
  const [one, two, topic] = (await sh(path, "git rev-parse HEAD~1 HEAD topic/x")).split("\n");
  return { path, one: one!, two: two!, topic: topic! };
}

const configOf = (repository: string, more: Partial<CheckoutConfig> = {}): CheckoutConfig => ({
  ...{ repository, submodules: false, lfs: false, prepare: [], build: [], keep: 2 },
  ...more,
});

const runGit = async (args: readonly string[], directory: string) => {
  const git = Bun.spawn(["git", ...GIT_OPTIONS, ...args], {
    ...{ cwd: directory, stdout: "pipe", stderr: "pipe" },
    env: { ...host, ...GIT_ENVIRONMENT, GIT_CONFIG_GLOBAL: join(place, "gitconfig") },
  });
  const { code, errors } = await readOutput(git);
  return { output: errors, exitCode: code };
};

function open(repository: string) {
  const folder = checkoutFolder(join(place, `runner-${repositories++}`), configOf(repository));
  const checkout = openCheckout(folder, host);
  const ran: string[] = [];
  const run = async (args: readonly string[], directory: string) => {
    ran.push(args[0]!);
    return await runGit(args, directory);
  };
  const take = (commit: string | null, branch: string | null = null, more: Partial<CheckoutConfig> = {}) =>
    checkout.take(configOf(repository, more), { commit, branch }, run);
  const trees = () =>
    readdirSync(join(folder, "work"), { withFileTypes: true }).filter((entry) => entry.isDirectory()).length;
  return { checkout, take, ran, folder, trees };
}

const fileIn = ({ directory }: { directory: string }) => readFileSync(join(directory, "file"), "utf8").trim();

describe("a work tree", () => {
  test("is of the commit, short or long, of the branch, or of the default branch", async () => {
    const { path, one, two, topic } = await createRepository();
    const { take } = open(path);
    const wanted: [string | null, string | null, string, string][] = [
      [one, null, one, "one"],
      [two.slice(0, 8), "main", two, "two"],
      [topic.toUpperCase(), null, topic, "topic"],
      [null, "topic/x", topic, "topic"],
      [null, null, two, "two"],
      // The commit counts, wherever it lies.
      [topic, "main", topic, "topic"],
    ];
    for (const [commit, branch, head, text] of wanted) {
      const tree = await take(commit, branch);
      expect([tree.commit, fileIn(tree)]).toEqual([head, text]);
      tree.release();
    }
  });

  test("is fetched anew for what has come since", async () => {
    const { path } = await createRepository();
    const { take } = open(path);
    (await take(null, "main")).release();
    await sh(path, "echo three > file; git commit -qam three; git push -q . HEAD:refs/heads/fresh");
    const head = await sh(path, "git rev-parse HEAD");
    for (const tree of [await take(null, "main"), await take(null, "fresh"), await take(head.slice(0, 10))])
      expect([tree.commit, fileIn(tree)]).toEqual([head, "three"]);
  });

  test("is fetched where a branch has become the folder of another one", async () => {
    const { path, one } = await createRepository();
    const { take } = open(path);
    await sh(path, "git branch a");
    (await take(null, "a")).release();
    await sh(path, `git branch -D a; git branch a/b ${one}`);
    expect((await take(null, "a/b")).commit).toBe(one);
    expect((await take(one.slice(0, 9), "a/b")).commit).toBe(one);
  });

  test("is one task's alone, is kept for the next one of its commit, and not more than so many are", async () => {
    const { path, one, two, topic } = await createRepository();
    const { take, checkout, trees } = open(path);
    const [first, second, third] = [await take(one), await take(one), await take(two)];
    expect(new Set([first, second, third].map(({ directory }) => directory)).size).toBe(3);
    expect(first.isPrepared).toBeFalse();
    for (const tree of [first, second, third]) {
      await tree.prepared();
      tree.release();
    }
    await checkout.settled();
    expect(trees()).toBe(2);
    const again = await take(two);
    expect([again.directory, again.isPrepared]).toEqual([third.directory, true]);
    // Another preparation is another one.
    const other = await take(two, null, { prepare: ["true"] });
    expect(other.isPrepared).toBeFalse();
    again.release();
    other.release();
    await checkout.settled();
    expect((await take(topic)).isPrepared).toBeFalse();
    expect((await take(two, null, { prepare: ["true"] })).isPrepared).toBeFalse();
  });

  test("is complete although others are added at the same time", async () => {
    const { path, one, two } = await createRepository();
    const { take } = open(path);
    const taken = await Promise.all(Array.from({ length: 12 }, (_, at) => take(at % 2 === 0 ? one : two)));
    expect(taken.map(fileIn)).toEqual(taken.map((_, at) => (at % 2 === 0 ? "one" : "two")));
  });

  test("begins clean: with what is ignored for the same commit, without it for another one", async () => {
    const { path, one, two } = await createRepository();
    const { take } = open(path);
    const make = async (commit: string) => await take(commit, null, { keep: 1 });
    const first = await make(one);
    await sh(
      first.directory,
      "mkdir node_modules; echo x > node_modules/x; mkdir 'built [1] !x'; echo x > 'built [1] !x/y'",
    );
    await first.prepared();
    await sh(first.directory, "echo x > left; mkdir 'built 1 x'; echo changed > file");
    first.release();
    const second = await make(one);
    const left = readdirSync(second.directory).filter((name) => /left|built/.test(name));
    expect([fileIn(second), left]).toEqual(["one", ["built [1] !x"]]);
    expect([second.isPrepared, existsSync(join(second.directory, "node_modules/x"))]).toEqual([true, true]);
    second.release();
    const third = await make(two);
    expect([fileIn(third), existsSync(join(third.directory, "node_modules/x"))]).toEqual(["two", false]);
  });

  test("is prepared anew for the same commit when its commands have changed", async () => {
    const { path, two } = await createRepository();
    const { take } = open(path);
    const before = { prepare: ["npm ci"], build: ["make"], keep: 1 };
    const first = await take(two, null, before);
    expect(first.isPrepared).toBe(false);
    await first.prepared();
    first.release();
    const isPrepared = async (more: Partial<CheckoutConfig>) => {
      const tree = await take(two, null, { ...before, ...more });
      tree.release();
      return tree.isPrepared;
    };
    expect(await isPrepared({})).toBe(true);
    expect(await isPrepared({ build: ["make all"] })).toBe(false);
    expect(await isPrepared({ prepare: ["npm install"] })).toBe(false);
  });

  test("that a killed runner has left is taken over, one that a living one has is not", async () => {
    const { path, one } = await createRepository();
    const { take, folder } = open(path);
    const left = await take(one);
    await sh(left.directory, "echo broken > .git; echo changed > file");
    const living = Bun.spawn(["sleep", "60"]);
    const [, number] = /work\/(\d+)$/.exec(left.directory)!;
    const failed = { output: "", exitCode: 1 };
    const pidFile = join(folder, `work/${number}.pid`);
    for (const nobody of ["", "0", String(process.pid)]) {
      writeFileSync(pidFile, nobody);
      const taken = await openCheckout(folder, host)
        .take(configOf(path, { keep: 1 }), { commit: one, branch: null }, async () => failed)
        .catch(() => "tried");
      expect(taken).toBe("tried");
      expect(existsSync(pidFile)).toBeFalse();
    }
    writeFileSync(pidFile, "999999999");
    const next = openCheckout(folder, host);
    const config = configOf(path, { keep: 1 });
    const tree = await next.take(config, { commit: one, branch: null }, runGit);
    expect([tree.directory, fileIn(tree)]).toEqual([left.directory, "one"]);
    writeFileSync(join(folder, `work/${number}.pid`), String(living.pid));
    const other = await openCheckout(folder, host).take(config, { commit: one, branch: null }, runGit);
    expect(other.directory).not.toBe(left.directory);
    living.kill();
  });

  test("of submodules has them where that is wanted", async () => {
    const { path: inner } = await createRepository();
    const { path } = await createRepository();
    await sh(path, `git -c protocol.file.allow=always submodule --quiet add ${inner} inner; git commit -qm inner`);
    writeFileSync(join(place, "gitconfig"), '[protocol "file"]\n  allow = always\n');
    const { take } = open(path);
    const without = await take(null, "main");
    expect(existsSync(join(without.directory, "inner/file"))).toBeFalse();
    const having = await take(null, "main", { submodules: true });
    expect(readFileSync(join(having.directory, "inner/file"), "utf8")).toBe("two\n");
  });
});

describe("what cannot be checked out", () => {
  const why = async (taking: Promise<unknown>) => {
    const error = await taking.then(
      () => undefined,
      (error: Error) => error,
    );
    return [error instanceof NoSuchCommitError, error?.message];
  };

  test("is told: no such commit or branch, and nothing that git takes for an option or a command", async () => {
    const { path } = await createRepository();
    const { take, trees } = open(path);
    const none = "0".repeat(39) + "1";
    const isNoHash = (commit: string) => `The execution names the commit "${commit}", which is not a commit hash`;
    const isNoBranch = (name: string) => `The execution names the branch "${name}", which is not a valid branch name`;
    const cases: [string | null, string | null, string][] = [
      [none, null, `The repository has no commit "${none}", or several with this prefix`],
      ["1234567", "main", 'The repository has no commit "1234567", or several with this prefix'],
      [null, "gone", 'The repository has no branch "gone"'],
      [null, "--upload-pack=x", 'The repository has no branch "--upload-pack=x"'],
      ...["v1.2", "--upload-pack=touch pwned"].map(
        (commit) => [commit, null, isNoHash(commit)] as [string, null, string],
      ),
      ...["a..b", "x:refs/heads/main", "../../x"].map(
        (name) => [null, name, isNoBranch(name)] as [null, string, string],
      ),
    ];
    for (const [commit, branch, message] of cases) expect(await why(take(commit, branch))).toEqual([true, message]);
    expect(trees()).toBe(0);
  });

  test("is the network's or the machine's where git cannot reach the repository", async () => {
    const nowhere = join(place, "nowhere");
    const { take } = open(nowhere);
    const message = `git cannot fetch from the repository: fatal: '${nowhere}' does not appear to be a git repository`;
    for (const [commit, branch] of [
      [null, "main"],
      [null, null],
      ["0".repeat(40), null],
    ] as const)
      expect(await why(take(commit, branch))).toEqual([false, message]);
  });

  test("runs no hook of the repository", async () => {
    const { path, one } = await createRepository();
    const { take, folder, checkout } = open(path);
    (await take(one)).release();
    await checkout.settled();
    const hook = join(folder, "repository.git/hooks/post-checkout");
    const script = `printf '#!/bin/sh\\ntouch ${place}/pwned\\n' > ${hook}; chmod +x ${hook}`;
    await sh(folder, `mkdir -p repository.git/hooks; ${script}`);
    await take(one, null, { keep: 1 });
    expect(existsSync(join(place, "pwned"))).toBeFalse();
  });
});

test("a password in the address is known, so that no log shows it", () => {
  const of = (address: string) => passwordsOf(configOf(address));
  expect(of("https://ann:s3cr%2Fet@git.example.com/shop.git")).toEqual(["s3cr%2Fet", "s3cr/et", "ann"]);
  expect(passwordsOf(configOf("https://token123@git.example.com/shop.git"))).toEqual(["token123"]);
  expect(passwordsOf(configOf("https://TOKEN123:x-oauth-basic@git.example.com/s.git"))).toContain("TOKEN123");
  expect(passwordsOf(configOf("https://ann:50%off@git.example.com/s.git"))).toContain("50%off");
  expect(passwordsOf(configOf("git@git.example.com:shop.git"))).toEqual([]);
  expect(passwordsOf(configOf("/srv/shop"))).toEqual([]);
});
