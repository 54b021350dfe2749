/** Fetches that fail: the reason in the message of the task, and the further tries of the runner. */

import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { openCheckout } from "../../src/runner/checkout.ts";
import type { TaskConfig } from "../../src/runner/config.ts";
import {
  collectOutput,
  createFetchRetry,
  type FetchRetries,
  GitFetchError,
  gitReasonIn,
} from "../../src/runner/git_fetch.ts";
import { createMask } from "../../src/secrets/mask.ts";
import type { RunnerLease } from "../../src/runner/protocol.ts";
import { runTask } from "../../src/runner/task.ts";
import { createPlace, removePlace } from "../places.ts";

const place = createPlace("git-fetch");
afterAll(() => removePlace(place));
const host = { PATH: process.env["PATH"], HOME: place };
let places = 0;

const NOTE = /^\[assay\] git cannot fetch, trying again in (.*) s$/gm;
const AT_ONCE: FetchRetries = { delaysMs: [0, 0], withinMs: 600_000 };
/** A wait that only the end of the task ends before the time limit of the test. */
const LATER: FetchRetries = { delaysMs: [600_000], withinMs: 600_000 };
/** A commit that is in no repository. */
const UNKNOWN = "0".repeat(39) + "1";

const LEASE: RunnerLease = {
  ...{ id: "the-lease", taskSlug: "unit", timeoutSeconds: 600, attempt: 1, probe: false },
  execution: { id: "the-execution", branch: "main", commit: null, baseUrl: null },
  ...{ variables: {}, secretNames: [], executionNames: [] },
};
const CONFIG: TaskConfig = {
  ...{ command: "exit 3", workingDirectory: "", report: ["report.xml"], artifacts: [], attachments: "failed" },
  ...{ before: [], after: [], pass: [], accept: [], retryOn: [], comparesCommit: true },
  ...{ format: undefined, git: undefined, timeoutSeconds: undefined, silenceSeconds: undefined },
  ...{ rerun: undefined, gate: undefined },
};

type More = {
  lease?: Partial<RunnerLease>;
  submodules?: boolean;
  retries?: FetchRetries;
  /** Called when the log says that the fetch is tried again. */
  onRetry?: (stop: AbortController) => void;
};

/** Runs a task that needs the repository; its command leaves no report, and so fails with a message. */
async function runWith(repository: string, { lease, submodules = false, retries = AT_ONCE, onRetry }: More = {}) {
  const folder = join(place, `runner-${places++}`);
  mkdirSync(folder);
  const git = { repository, submodules, lfs: false, prepare: [], build: [], keep: 1 };
  const stop = new AbortController();
  let output = "";
  const end = await runTask({
    settleCommit: async (commit) => commit,
    lease: { ...LEASE, ...lease },
    config: { ...CONFIG, git },
    ...{ host, mask: createMask([]), graceMs: 10_000, cgroups: undefined, onNote: () => {} },
    ...{ stop: stop.signal, hurry: new AbortController().signal, fetchRetries: retries },
    checkout: openCheckout(folder, host),
    onOutput(bytes) {
      const text = new TextDecoder().decode(bytes);
      output += text;
      if (text.startsWith("[assay] git cannot fetch")) onRetry?.(stop);
    },
  });
  return { end, retries: [...output.matchAll(NOTE)].map(([, seconds]) => seconds) };
}

async function createRepository(): Promise<string> {
  const path = join(place, `repository-${places++}`);
  const git = "git -c user.name=a -c user.email=a@example.com";
  await Bun.$`git init -q -b main ${path}`;
  await Bun.$`sh -ec ${`${git} commit -q --allow-empty -m one`}`.cwd(path);
  return path;
}

const missing = (path: string) => `fatal: '${path}' does not appear to be a git repository`;

describe("a fetch that fails", () => {
  test("is tried again, and its reason is in the message", async () => {
    const gone = join(place, "gone");
    const problem = `git cannot fetch from the repository: ${missing(gone)}`;
    expect(await runWith(gone)).toEqual({
      end: { kind: "infrastructure", message: `Cannot check out: ${problem}` },
      retries: ["0", "0"],
    });
    const lease = { commits: { good: UNKNOWN, bad: UNKNOWN } };
    expect(await runWith(gone, { lease })).toEqual({
      end: { kind: "infrastructure", message: `Cannot list the commits: ${problem}` },
      retries: ["0", "0"],
    });
  });

  test("succeeds when the repository is back", async () => {
    const path = await createRepository();
    renameSync(path, `${path}.away`);
    const { end, retries } = await runWith(path, { onRetry: () => renameSync(`${path}.away`, path) });
    expect([end, retries]).toEqual([expect.objectContaining({ kind: "failure", exitCode: 3 }), ["0"]]);
  });

  test("is not tried again once the task is stopped, and does not wait for it", async () => {
    const gone = join(place, "gone");
    const { end, retries } = await runWith(gone, { retries: LATER, onRetry: (stop) => stop.abort("Cancelled") });
    expect([end, retries]).toEqual([{ kind: "failure", message: "Cancelled" }, ["600"]]);
  });

  test("does not delay a commit or branch that is missing", async () => {
    const path = await createRepository();
    for (const execution of [
      { commit: UNKNOWN, branch: null },
      { commit: null, branch: "gone" },
    ]) {
      const lease = { execution: { id: "e", baseUrl: null, ...execution } };
      const { end, retries } = await runWith(path, { lease, retries: LATER });
      expect([end, retries]).toEqual([expect.objectContaining({ kind: "failure", reason: "no_build" }), []]);
    }
  });

  test("may be that of a submodule", async () => {
    const [path, inner] = [await createRepository(), await createRepository()];
    await Bun.$`git -c protocol.file.allow=always submodule --quiet add ${inner} inner`.cwd(path);
    await Bun.$`git -c user.name=a -c user.email=a@example.com commit -qm inner`.cwd(path);
    const { end, retries } = await runWith(path, { submodules: true });
    const message = "Cannot check out: git cannot fetch the submodules: fatal: transport 'file' not allowed";
    expect([end, retries]).toEqual([{ kind: "infrastructure", message }, ["0", "0"]]);
  });

  test("is not tried again if it has taken too long, or if the error is another one", async () => {
    const triesOf = async (error: Error, withinMs: number) => {
      let tries = 0;
      const attempt = async () => {
        tries++;
        throw error;
      };
      const retry = createFetchRetry(() => {}, { delaysMs: [0, 0], withinMs });
      await expect(retry(attempt, new AbortController().signal)).rejects.toBe(error);
      return tries;
    };
    const error = new GitFetchError("git cannot fetch", { exitCode: 128, output: "" });
    expect([await triesOf(error, 600_000), await triesOf(error, -1), await triesOf(new Error("x"), 600_000)]).toEqual([
      3, 1, 1,
    ]);
  });
});

describe("the reason in a message", () => {
  test.each([
    [
      "fatal: detected dubious ownership in repository at '/srv/a.git'\nTo add …\n\tgit config\nfatal: Could not read from remote repository.\n",
      "fatal: detected dubious ownership in repository at '/srv/a.git'",
    ],
    [
      "fatal: unable to access 'https://h.test/a.git/': Could not resolve host: h.test\n",
      "fatal: unable to access 'https://h.test/a.git/': Could not resolve host: h.test",
    ],
    [
      "Warning: Permanently added 'h' to the list of known hosts.\r\ngit@h: Permission denied (publickey).\r\nfatal: Could not read from remote repository.\n\nPlease make sure\n",
      "git@h: Permission denied (publickey).",
    ],
    [
      "fatal: unable to connect to h.test:\nh.test[0: 192.0.2.1]: errno=Connection refused\n",
      "fatal: unable to connect to h.test: h.test[0: 192.0.2.1]: errno=Connection refused",
    ],
    ["fatal: Could not read from remote repository.\n", "fatal: Could not read from remote repository."],
    ["warning: x\nerror: cannot lock ref 'refs/a'\nerror: b\n", "error: cannot lock ref 'refs/a'"],
    ["fatal: remote error: a\u001b[31m\tb\u0000c\n", "fatal: remote error: a [31m b c"],
    ["git: 'lfs' is not a git command. See 'git --help'.\n", "git: 'lfs' is not a git command. See 'git --help'."],
    [
      "Downloading a (4 B)\nError downloading object: a (0a1b): Smudge error: connection refused\nerror: external filter 'git-lfs filter-process' failed\nfatal: a: smudge filter lfs failed\n",
      "Error downloading object: a (0a1b): Smudge error: connection refused",
    ],
    ["remote: Counting objects\n", ""],
    ["", ""],
  ])("of %j", (output, reason) => expect(gitReasonIn(output)).toBe(reason));

  test.each([
    ["'https://ann:s3cret@h.test/a.git/': x", "'https://***@h.test/a.git/': x"],
    ["https://s3cret@h.test and ssh://ann:s3cret@i.test:22/b", "https://***@h.test and ssh://***@i.test:22/b"],
    ["'https://ann:s3c@ret/s3'cret@h.test/a'", "'https://***@h.test/a'"],
    ["https://h.test/a?X-Amz-Signature=s3cret: 403", "https://h.test/a?*** 403"],
    ["https://h.test/a?s3cret=a@b", "https://***@b"],
  ])("shows no credentials of %p", (text, shown) => expect(gitReasonIn(`fatal: ${text}`)).toBe(`fatal: ${shown}`));

  test("is short, and is masked before it is cut", () => {
    const secret = "correct-horse-battery-staple";
    const passedOn: string[] = [];
    const { onOutput, end } = collectOutput(createMask([secret]), (bytes) =>
      passedOn.push(new TextDecoder().decode(bytes)),
    );
    const parts = [
      `${"x".repeat(20_000)}\nfatal: ${"é".repeat(280)} ${secret.slice(0, 9)}`,
      `${secret.slice(9)}${"y".repeat(100)}\n`,
    ];
    for (const part of parts) onOutput(new TextEncoder().encode(part));
    const output = end();
    expect([passedOn, output.length]).toEqual([parts, 16_384]);
    const { message } = new GitFetchError("git cannot fetch", { exitCode: 128, output });
    expect(message).toBe(`git cannot fetch: fatal: ${"é".repeat(280)} ***${"y".repeat(9)}…`);
  });
});
