/** `assay bisect` in real repositories. */

import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createFolder, start as startCommand } from "../commands.ts";
import { until } from "../harness.ts";

const place = createFolder();
const host = { PATH: process.env["PATH"]!, HOME: place, GIT_CONFIG_GLOBAL: "/dev/null" };

type Files = Record<string, string>;
type Repository = { path: string; hashes: string[] };

let repositories = 0;

async function git(path: string, args: string[], stdin = ""): Promise<string> {
  const child = Bun.spawn(["git", ...args], {
    cwd: path,
    env: host,
    stdin: new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([code, errors]).toEqual([0, expect.anything()]);
  return output.trim();
}

/** A repository with `count` commits on main, whose files `filesOf` returns for each number from 1. */
async function createRepository(count: number, filesOf: (number: number) => Files): Promise<Repository> {
  const path = join(place, `repository-${repositories++}`);
  mkdirSync(path);
  await git(path, ["init", "-q", "-b", "main"]);
  const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`;
  const commits = Array.from({ length: count }, (_, at) => {
    const files = Object.entries(filesOf(at + 1)).map(([name, text]) => `M 100644 inline ${name}\n${data(text)}`);
    return `commit refs/heads/main\ncommitter Ada <ada@example.com> ${1_700_000_000 + at} +0000\n${data(`change ${at + 1}`)}deleteall\n${files.join("")}`;
  });
  await git(path, ["fast-import", "--quiet"], commits.join("\n"));
  await git(path, ["reset", "-q", "--hard"]);
  return { path, hashes: (await git(path, ["rev-list", "--reverse", "main"])).split("\n") };
}

/** Starts the command with a folder of its own for temporary files, which is empty when it has ended. */
function start({ path }: Repository, args: string[], more: { cwd?: string; environment?: Files } = {}) {
  const temporary = createFolder();
  const env = { ...host, TMPDIR: temporary, ...more.environment };
  return { temporary, ...startCommand(["bisect", ...args], { cwd: join(path, more.cwd ?? "."), env }) };
}

async function bisect(repository: Repository, args: string[], more?: Parameters<typeof start>[2]) {
  const { ended, temporary } = start(repository, args, more);
  const { code, output, errors } = await ended;
  await expectNothingLeft(repository, temporary);
  return { code, output, errors, json: output.startsWith("{") ? JSON.parse(output) : undefined };
}

async function expectNothingLeft({ path }: Repository, temporary: string): Promise<void> {
  expect(readdirSync(temporary)).toEqual([]);
  expect((await git(path, ["worktree", "list"])).split("\n").length).toBe(1);
}

const stateOf = (culprit: number) => (number: number) => (number >= culprit ? "broken" : "fine");

/** 64 commits: the 41st breaks the test, six do not build, and the test fails now and then without a reason. */
describe("a repository of 64 commits", async () => {
  const CULPRIT = 41;
  const NO_BUILD = [12, 20, 33, 38, 50, 57];
  const repository = await createRepository(64, (number) => ({
    state: stateOf(CULPRIT)(number),
    number: String(number),
    "build.sh": NO_BUILD.includes(number) ? "exit 1" : 'echo built >> "$BUILDS"; mkdir out',
    "test.sh": `
      test -d out || exit 9
      echo run >> "$RUNS"
      # One run in four fails.
      test "$IS_FLAKY" != no && test $(( $(wc -l < "$RUNS") % 4 )) = 2 && { echo "lost connection"; exit 1; }
      echo "state is $(cat state)"
      grep -q fine state`,
    ".gitignore": "out",
  }));
  const { path, hashes } = repository;
  const environment = () => {
    const folder = createFolder({ builds: "", runs: "" });
    return { BUILDS: join(folder, "builds"), RUNS: join(folder, "runs") };
  };
  const good = hashes[0]!;
  const options = ["--good", good, "--flake-rate", "0.25", "--prepare", "sh build.sh"];

  test("names the culprit although the test is flaky and commits do not build", async () => {
    writeFileSync(join(path, "state"), "work in progress");
    writeFileSync(join(path, "new"), "not added");
    writeFileSync(join(path, ".git/hooks/post-checkout"), `#!/bin/sh\ntouch ${join(place, "hook")}\n`, { mode: 0o755 });
    const variables = environment();
    const args = [...options, "--json", "--", "sh", "test.sh"];
    const { code, json, errors } = await bisect(repository, args, { environment: variables });
    expect([code, json.verdict, json.culprit.hash]).toEqual([0, "culprit", hashes[CULPRIT - 1]]);
    expect(json).toMatchObject({
      culprit: { author: "Ada", subject: "change 41", files: ["number", "state"], date: "2023-11-14T22:14:00+00:00" },
      parent: { hash: hashes[CULPRIT - 2] },
      ...{ commitCount: 63, candidates: [], reason: null },
    });
    expect(json.chance).toBeGreaterThanOrEqual(0.99);
    const countOf = (hash: string, outcome: string) =>
      json.probes.filter((probe: any) => probe.commit === hash && probe.result === outcome).length;
    expect(countOf(hashes[CULPRIT - 1]!, "failed")).toBeGreaterThanOrEqual(2);
    expect(countOf(hashes[CULPRIT - 2]!, "passed")).toBeGreaterThanOrEqual(2);
    // Flaky failures of sound commits were among the results.
    const sound = json.probes.filter(({ commit }: { commit: string }) => hashes.indexOf(commit) < CULPRIT - 1);
    expect(sound.some(({ result }: { result: string }) => result === "failed")).toBe(true);
    expect(errors).toContain("Searching 63 commits after");
    expect(errors).toContain("Probe 1: ");

    // Each commit was built once, and the user's own work tree is as it was.
    const tested = json.probes.filter(({ result }: { result: string }) => result !== "no_result");
    const commits = new Set(tested.map(({ commit }: { commit: string }) => commit));
    expect(readFileSync(variables.BUILDS, "utf8").split("\n").length - 1).toBe(commits.size);
    expect(await git(path, ["status", "--short"])).toBe("M state\n?? new");
    expect(await git(path, ["symbolic-ref", "HEAD"])).toBe("refs/heads/main");
    expect(existsSync(join(place, "hook"))).toBe(false);
  });

  test("runs several probes at once, and counts only failures with a text", async () => {
    const args = [...options, "--concurrency", "3", "--match", "state is broken", "--", "sh", "test.sh"];
    const { code, output } = await bisect(repository, args, { environment: { ...environment(), IS_FLAKY: "no" } });
    const [first, ...lines] = output.trimEnd().split("\n");
    expect(code).toBe(0);
    const [short, parent] = [hashes[CULPRIT - 1]!.slice(0, 10), hashes[CULPRIT - 2]!.slice(0, 10)];
    const proof = `it failed there [2-9] of [2-9] times, on its parent ${parent} it passed [2-9] of [2-9] times`;
    expect(first).toMatch(new RegExp(`^${short} by Ada broke it: ${proof}$`));
    expect(lines.slice(0, 2)).toEqual(["  change 41", "  2023-11-14T22:14:00+00:00"]);
    expect(lines.slice(-2)).toEqual([`The end of the output in ${short}:`, "  state is broken"]);
  });

  test("says that it cannot tell if the budget is too small", async () => {
    const args = [...options, "--budget", "3", "--json", "--", "sh", "test.sh"];
    const { code, json } = await bisect(repository, args, { environment: environment() });
    expect([code, json.verdict, json.reason, json.probes.length]).toEqual([4, "undecided", "budget", 3]);
    expect(json.candidates.map(({ hash }: { hash: string }) => hash)).toContain(hashes[CULPRIT - 1]);
  });
});

describe("assay bisect", () => {
  const COMMAND = ["--", "grep", "-q", "fine", "state"];
  const simple = (count: number, culprit: number) =>
    createRepository(count, (number) => ({ state: stateOf(culprit)(number), number: String(number) }));

  test("finds the culprit without a good commit", async () => {
    const repository = await simple(10, 8);
    const { code, json } = await bisect(repository, ["--json", ...COMMAND]);
    expect([code, json.culprit.hash]).toEqual([0, repository.hashes[7]]);
  });

  test("begins with the commits that change a file of the command", async () => {
    const repository = await createRepository(14, (number) => ({
      "pkg/cart.test": stateOf(12)(number),
      number: String(number),
    }));
    const args = ["--good", "main~13", "--json", "--", "grep", "fine", "cart.test"];
    const { json } = await bisect(repository, args, { cwd: "pkg" });
    expect(json.culprit.hash).toBe(repository.hashes[11]);
    const probed = json.probes.map(({ commit }: { commit: string }) => repository.hashes.indexOf(commit));
    expect(probed.sort()).toEqual([10, 10, 11, 11]);
  });

  test("blames the environment if the good commit fails, or the bad one passes", async () => {
    const repository = await simple(4, 1);
    const failing = await bisect(repository, ["--good", "main~3", ...COMMAND]);
    expect(failing.code).toBe(3);
    expect(failing.output).toMatch(
      /^Not the code of these commits: the good commit fails today as well, \d of \d times: \w+ change 1\n$/,
    );
    const passing = await bisect(repository, ["--good", "main~3", "--json", "--", "true"]);
    expect([passing.code, passing.json.verdict, passing.json.reason]).toEqual([3, "environment", "bad_passes"]);
    const unknown = await bisect(repository, COMMAND);
    expect([unknown.code, unknown.output]).toEqual([3, expect.stringContaining("Pass an older one as --good")]);
  });

  test("names no commit if the one before it does not build, and lists what is left", async () => {
    const repository = await createRepository(16, (number) => ({
      state: stateOf(10)(number),
      code: [8, 9].includes(number) ? "125" : "0",
    }));
    const args = ["--good", "main~15", "--", "sh", "-c", "test $(cat code) = 0 || exit 125; grep fine state"];
    const { code, output } = await bisect(repository, args);
    expect(code).toBe(4);
    const expected = [8, 9, 10].map((number) => `  ${repository.hashes[number - 1]!.slice(0, 10)} change ${number}`);
    expect(output.trimEnd().split("\n")).toEqual([
      "Cannot tell which of these 3 commits broke it: 2 of them have no result",
      ...expected,
    ]);
  });

  test("finds each of two faults by its output, and says if one may hide the other", async () => {
    const repository = await createRepository(12, (number) => ({
      number: String(number),
      fee: stateOf(5)(number),
      total: stateOf(9)(number),
    }));
    const command = ["--", "sh", "-c", "! grep -H broken fee total"];
    const named = async (text: string) => await bisect(repository, ["--good", "main~11", "--match", text, ...command]);
    const first = await named("fee:broken");
    expect([first.code, first.output]).toEqual([0, expect.stringContaining("\n  change 5\n")]);
    const second = await named("total:broken");
    const [head, ...lines] = second.output.trimEnd().split("\n");
    expect([second.code, head]).toEqual([
      4,
      "Cannot tell which of these 5 commits broke it: only the last fails in the way that is searched for, " +
        "but the others fail in another way, which may hide it",
    ]);
    expect(lines.at(-1)).toBe(`  ${repository.hashes[8]!.slice(0, 10)} change 9`);
  });

  test("has no result if there is no such command or directory", async () => {
    const repository = await createRepository(6, (number) => ({
      number: String(number),
      ...(number >= 4 ? { "pkg/state": "broken" } : {}),
    }));
    const { code, output } = await bisect(repository, ["--good", "main~5", "--", "no-such-command"]);
    expect(code).toBe(4);
    expect(output).toMatch(/^Cannot tell which of these 5 commits broke it: 5 of them have no result\n/);
    expect(output).toMatch(/\nThe end of the output in \w{10}:\n.*no-such-command: not found\n$/);
    const { json } = await bisect(repository, ["--good", "main~5", "--json", "--", "false"], { cwd: "pkg" });
    expect(json.probes.some(({ exitCode }: { exitCode: number | null }) => exitCode === null)).toBe(true);
    expect(json.verdict).toBe("undecided");
  });

  test("follows first parents, so it names the merge that brought a fault", async () => {
    const repository = await simple(3, 100);
    const { path } = repository;
    const identity = ["-c", "user.name=Bob", "-c", "user.email=bob@example.com"];
    await git(path, ["checkout", "-q", "-b", "topic"]);
    writeFileSync(join(path, "state"), "broken");
    await git(path, [...identity, "commit", "-qam", "on the branch"]);
    await git(path, ["checkout", "-q", "main"]);
    await git(path, [...identity, "commit", "-q", "--allow-empty", "-m", "on main"]);
    await git(path, [...identity, "merge", "-q", "--no-ff", "-m", "merge topic", "topic"]);
    const { json } = await bisect(repository, ["--good", "main~3", "--json", ...COMMAND]);
    expect(json.culprit).toMatchObject({ subject: "merge topic", author: "Bob", files: ["state"] });
  });

  test("is not misled by variables of git in a hook", async () => {
    const repository = await simple(6, 4);
    const args = ["--good", "main~5", "--json", "--", "sh", "-c", 'test -z "$GIT_DIR" && grep fine state'];
    const { json } = await bisect(repository, args, { environment: { GIT_DIR: place, GIT_INDEX_FILE: "/nowhere" } });
    expect(json.culprit.hash).toBe(repository.hashes[3]);
  });

  test("removes its work trees and ends the command when it is interrupted", async () => {
    const repository = await simple(6, 4);
    const ended = join(place, "ended");
    const script = `trap 'echo ended > ${ended}; exit 1' TERM; echo begun; while :; do sleep 0.1; done`;
    const search = start(repository, ["--good", "main~5", "--verbose", "--", "sh", "-c", script]);
    await until(() => search.errors().includes("begun"));
    search.signal("SIGINT");
    expect((await search.ended).code).toBe(130);
    await expectNothingLeft(repository, search.temporary);
    expect(readFileSync(ended, "utf8")).toBe("ended\n");
  });

  test("explains what is wrong with the command line or the commits", async () => {
    const repository = await simple(3, 2);
    await git(repository.path, ["branch", "other", "main~1"]);
    const messageOf = async (args: string[]) => {
      const { code, output, errors } = await bisect(repository, args);
      expect(output).toBe("");
      return [code, errors.split("\n")[0]];
    };
    const wrong: [string[], number, string][] = [
      [["--good", "main~1"], 2, 'The command is missing: pass it after "--"'],
      [["--flake-rate", "5%", ...COMMAND], 2, 'Cannot read --flake-rate: expected a number from 0 to 0.9, got "5%"'],
      [["--budget", "0", ...COMMAND], 2, 'Cannot read --budget: expected an integer from 1 to 10000, got "0"'],
      [["--concurrency", "9", ...COMMAND], 2, 'Cannot read --concurrency: expected an integer from 1 to 8, got "9"'],
      [["--good", "nowhere", ...COMMAND], 1, 'The repository has no commit "nowhere"'],
      [["--good", "main", ...COMMAND], 1, "There are no commits between the good and the bad one"],
      [
        ["--good", "main", "--bad", "other", ...COMMAND],
        1,
        'The good commit "main" is not an ancestor of the bad commit "other"',
      ],
    ];
    for (const [args, code, message] of wrong) expect(await messageOf(args)).toEqual([code, message]);
    const outside = join(place, "outside");
    mkdirSync(outside);
    const { code, errors } = await bisect(repository, COMMAND, { cwd: "../outside" });
    expect([code, errors]).toEqual([1, "This directory is in no work tree of git\n"]);
  });
});
