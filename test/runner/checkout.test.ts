/** Work trees of real repositories. */

import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  checkoutFolder,
  type CheckoutConfig,
  createCheckouts,
  openCheckout,
  passwordsOf,
} from "../../src/runner/checkout.ts";
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
    readdirSync(join(folder, "work"), { withFileTypes: true }).filter((entry) => /^\d+$/.test(entry.name)).length;
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

  test("that a killed runner has left is taken over, as checkout and preparation left it", async () => {
    const { path, one } = await createRepository();
    const { take, folder } = open(path);
    const left = await take(one);
    await sh(left.directory, "echo made > made");
    await left.prepared();
    await sh(left.directory, "rm -rf .git; echo broken > .git; echo changed > file; echo x > left");
    const config = configOf(path, { keep: 1 });
    const tree = await openCheckout(folder, host).take(config, { commit: one, branch: null }, runGit);
    expect([tree.directory, tree.isPrepared, fileIn(tree)]).toEqual([left.directory, true, "one"]);
    expect(readdirSync(tree.directory).sort()).toEqual([".git", ".gitignore", "file", "made"]);
    expect(await sh(tree.directory, "git status --porcelain")).toBe("?? made");
  });

  describe("begins as checkout and preparation left it, whatever the task before did:", () => {
    /** Runs `script` in a prepared tree, and takes the tree again. */
    async function after(script: string, prepare = "echo patched > file; mkdir node_modules; echo x > node_modules/x") {
      const { path, two } = await createRepository();
      const { take, checkout } = open(path);
      const first = await take(two, null, { keep: 1 });
      await sh(first.directory, prepare);
      await first.prepared();
      await sh(first.directory, script);
      first.release();
      await checkout.settled();
      const again = await take(two, null, { keep: 1 });
      return { again, path, two };
    }
    const listIn = (directory: string) => sh(directory, "find . -path ./.git -prune -o -print | sort");

    test.each([
      ["files that nothing ignores", "echo x > new; mkdir -p a/b; echo x > a/b/c"],
      ["ignored files, in folders of the preparation too", "echo x > node_modules/y; mkdir node_modules/.cache"],
      ["folders without write permission", "mkdir ro; echo x > ro/x; chmod 555 ro"],
      ["names that are not UTF-8", "printf x > \"$(printf 'a\\377\\n')\""],
      ["files that git was told to ignore", "echo dirty > .gitignore; git update-index --assume-unchanged .gitignore"],
      ["a sparse checkout", "git checkout -q file; git sparse-checkout set --no-cone nothing; echo patched > file"],
      ["git settings", "git config user.name left; git config core.worktree /tmp"],
      [
        "branches, commits and a stash",
        "git checkout -qb left; git commit -qam left; echo x > .gitignore; git stash -q; echo patched > file",
      ],
      ["locks of git", "touch .git/index.lock .git/config.lock .git/HEAD.lock .git/packed-refs.lock"],
      ["no git directory", "rm -rf .git"],
      ["deleted files", "rm .gitignore"],
      ["files instead of folders, and folders instead of files", "rm .gitignore; mkdir .gitignore; touch .gitignore/x"],
    ])("%s", async (_, script) => {
      // The task finds the file that the preparation wrote: a copy of the same text would be another file.
      const { again, two } = await after(
        script.replaceAll("; echo patched > file", "").replace("git checkout -q file; ", ""),
      );
      const isRestored = again.isPrepared;
      if (!isRestored) await sh(again.directory, "echo patched > file; mkdir node_modules; echo x > node_modules/x");
      expect([fileIn(again), await listIn(again.directory)]).toEqual([
        "patched",
        [".", "./.gitignore", "./file", "./node_modules", "./node_modules/x"].join("\n"),
      ]);
      expect(await sh(again.directory, "git rev-parse HEAD; git status --porcelain; git branch; git stash list")).toBe(
        `${two}\n M file\n* (HEAD detached at ${two.slice(0, 7)})`,
      );
      expect(await sh(again.directory, "git config user.name || echo none")).toBe("none");
      expect(readFileSync(join(again.directory, ".gitignore"), "utf8")).toBe("node_modules\n");
    });

    test.each([
      ["changed", "echo dirty > node_modules/x"],
      [
        "changed, of the same size and with the same time",
        "touch -r node_modules/x t; echo y > node_modules/x; touch -r t node_modules/x; rm t",
      ],
      ["deleted", "rm -rf node_modules"],
    ])("what the preparation made, prepared again if it was %s", async (_, script) => {
      const { again } = await after(script);
      expect(again.isPrepared).toBe(false);
      expect(again.notes).toEqual(['An earlier task changed "node_modules/x": the commit is prepared again']);
      expect(await listIn(again.directory)).toBe(".\n./.gitignore\n./file");
      expect(fileIn(again)).toBe("two");
    });

    test("a file of the commit that the preparation changed is prepared again, and not restored from git", async () => {
      const { again } = await after("git checkout -q file");
      expect([again.isPrepared, fileIn(again)]).toEqual([false, "two"]);
    });
  });

  test("has a git directory of its own: nothing that a task does to it is in the tree of another commit", async () => {
    const { path, one, two } = await createRepository();
    const { take, checkout, folder } = open(path);
    const first = await take(one, null, { keep: 1 });
    await first.prepared();
    await sh(
      first.directory,
      'git config --local alias.x "!false"; git branch left; git tag left; git update-ref refs/heads/y HEAD',
    );
    const common = await sh(first.directory, "git rev-parse --git-common-dir");
    await sh(first.directory, `touch ${common}/config.lock ${common}/packed-refs.lock`);
    first.release();
    await checkout.settled();
    const second = await take(two, null, { keep: 1 });
    expect(fileIn(second)).toBe("two");
    expect(await sh(second.directory, "git for-each-ref; git config --get-regexp alias || true")).toBe("");
    expect(await sh(join(folder, "repository.git"), "git for-each-ref refs/heads refs/tags")).toBe("");
  });

  test("shares no clone with another process: the second one has its own", async () => {
    const { path, one } = await createRepository();
    const root = join(place, `shared-${repositories++}`);
    const script = `import { createCheckouts } from ${JSON.stringify(join(import.meta.dir, "../../src/runner/checkout.ts"))};
      createCheckouts(${JSON.stringify(root)}, process.env)(${JSON.stringify(configOf(path))});
      console.log("open"); await new Response(Bun.stdin.stream()).text();`;
    const other = Bun.spawn([process.execPath, "-e", script], { stdin: "pipe", stdout: "pipe" });
    const { value } = await other.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe("open\n");
    const take = () =>
      createCheckouts(root, host)(configOf(path))!.take(configOf(path), { commit: one, branch: null }, runGit);
    const folder = checkoutFolder(root, configOf(path));
    expect((await take()).directory).toBe(join(`${folder}-2`, "work/1"));
    await other.stdin.end();
    await other.exited;
    expect((await take()).directory).toBe(join(folder, "work/1"));
  });

  test("of a shallow repository is checked out", async () => {
    const { path, two } = await createRepository();
    const shallow = join(place, `shallow-${repositories++}`);
    await sh(place, `git clone -q --depth 1 file://${path} ${shallow}`);
    const { take } = open(shallow);
    const tree = await take(null, "main");
    expect([tree.commit, fileIn(tree)]).toEqual([two, "two"]);
    expect(await sh(tree.directory, "git log --format=%s")).toBe("two");
  });

  test("that git cannot check out is told with the words of git", async () => {
    const { path } = await createRepository();
    await sh(path, "echo 'large filter=media' > .gitattributes; echo x > large; git add .; git commit -qm large");
    const { take } = open(path);
    writeFileSync(join(place, "gitconfig"), '[filter "media"]\n  smudge = false\n  required = true\n');
    const taking = take(null, "main");
    await expect(taking).rejects.toThrow("git cannot check out the commit: fatal: large: smudge filter media failed");
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
