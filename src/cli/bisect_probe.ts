/** Runs a command in a work tree of a commit, which is prepared first. */

import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProbeResult } from "../rules/culprit.ts";
import { quoted } from "../rules/shell.ts";
import { openCheckout, type Tree } from "../runner/checkout.ts";
import { runTaskCommand } from "../runner/command.ts";
import { createExistingRepository } from "../runner/existing_repository.ts";
import { type AskGit, GIT_ENVIRONMENT, GIT_OPTIONS, type RunGit } from "../runner/git_clone.ts";
import { GRACE_MS, startGuard } from "../runner/processes.ts";

type ProbeRun = {
  result: ProbeResult;
  /** The exit code of the command that decided: the preparation, or the command itself; null: its directory is not in the commit. */
  exitCode: number | null;
  seconds: number;
  /** The end of the output. */
  output: string;
};

type ProberOptions = {
  /** The root of the repository. */
  repository: string;
  ask: AskGit;
  host: Record<string, string | undefined>;
  /** The directory that the command runs in, within the repository. */
  directory: string;
  command: readonly string[];
  prepare: string | undefined;
  match: string | undefined;
  onOutput: (bytes: Uint8Array) => void;
  /** Ends the probes, and with `hurry` at once. */
  stop: AbortSignal;
  hurry: AbortSignal;
};

export type Prober = {
  /** Rejects if the probe cannot run, or was stopped. */
  probe(commit: string): Promise<ProbeRun>;
  /** Removes all work trees. Call it after all probes have ended. */
  close(): Promise<void>;
};

/** The number of unused work trees to keep: a commit that is probed again need not be prepared again. */
const KEPT_TREES = 4;
/** The environment variable by which the processes of a probe are recognised. */
const PROBE_VARIABLE = "ASSAY_PROBE_ID";
const MAX_OUTPUT_BYTES = 65_536;
/** Exit codes without a result: 125 of git bisect, and 126 and 127 of shells that cannot run the command. */
const NO_RESULT_CODES = [125, 126, 127];

export async function createProber(options: ProberOptions): Promise<Prober> {
  const { repository, ask, host } = options;
  const folder = realpathSync(mkdtempSync(join(host["TMPDIR"] || tmpdir(), "assay-bisect-")));
  const checkout = openCheckout(join(folder, "trees"), host, createExistingRepository(repository, ask));
  const commands = { prepare: [options.prepare ?? ""], build: [] };
  const config = { repository, submodules: false, lfs: false, ...commands, keep: KEPT_TREES };
  // A hook that starts the search would otherwise make git in the work tree use the repository of the hook.
  const local = ((await ask(["rev-parse", "--local-env-vars"])) ?? "").split("\n");
  const environment = Object.fromEntries(
    Object.entries(host).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !local.includes(entry[0]),
    ),
  );

  const ofGit = { ...environment, ...GIT_ENVIRONMENT };

  async function take(commit: string): Promise<Tree> {
    let said = "";
    const runGit: RunGit = async (args, directory) => {
      const output = createTail();
      const git = ["git", ...GIT_OPTIONS, ...args];
      const exitCode = await runIn(git, { ...options, directory, environment: ofGit, folder, output });
      said = output.text().trim();
      return { exitCode, output: said };
    };
    try {
      return await checkout.take(config, { commit, branch: null }, runGit);
    } catch (error) {
      if (options.stop.aborted) throw error;
      throw new Error(`Cannot check out ${commit}: ${(error as Error).message}${said && `: ${said}`}`);
    }
  }

  async function runProbe(tree: Tree): Promise<Omit<ProbeRun, "seconds">> {
    const output = createTail(options.match);
    const directory = join(tree.directory, options.directory);
    if (!existsSync(directory)) return { result: "no_build", exitCode: null, output: "" };
    const context = { ...options, directory, environment, folder, output };
    if (!tree.isPrepared) {
      const exitCode = options.prepare === undefined ? 0 : await runIn(options.prepare, context);
      if (exitCode !== 0) return { result: "no_build", exitCode, output: output.text() };
      await tree.prepared();
      output.clear();
    }
    const exitCode = await runIn(options.command, context);
    return { result: resultOf(exitCode, output.hasMatch()), exitCode, output: output.text() };
  }

  return {
    async probe(commit) {
      const begin = performance.now();
      const tree = await take(commit);
      try {
        const run = await runProbe(tree);
        return { ...run, seconds: (performance.now() - begin) / 1000 };
      } finally {
        tree.release();
      }
    },
    async close() {
      await checkout.settled();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function resultOf(exitCode: number, hasMatch: boolean): ProbeResult {
  if (exitCode === 0) return "passed";
  if (NO_RESULT_CODES.includes(exitCode)) return "no_build";
  return hasMatch ? "failed" : "other_failure";
}

type RunContext = Pick<ProberOptions, "host" | "onOutput" | "stop" | "hurry"> & {
  directory: string;
  environment: Record<string, string>;
  folder: string;
  output: Tail;
};

/** Runs a command for the shell, or one that consists of words; returns its exit code after all its processes have ended. */
async function runIn(
  command: string | readonly string[],
  { host, onOutput, stop, hurry, directory, environment, folder, output }: RunContext,
): Promise<number> {
  stop.throwIfAborted();
  const mark = `${PROBE_VARIABLE}=${Bun.randomUUIDv7()}`;
  const guard = startGuard(mark, host["PATH"], undefined);
  try {
    const exitCode = await runTaskCommand({
      command: typeof command === "string" ? command : `exec ${command.map(quoted).join(" ")}`,
      environment: { ...environment, [PROBE_VARIABLE]: mark.slice(PROBE_VARIABLE.length + 1) },
      ...{ directory, mark, guard, cgroup: undefined, folder, stop, hurry, graceMs: GRACE_MS },
      onOutput(bytes) {
        output.write(bytes);
        onOutput(bytes);
      },
    });
    // The exit code of a stopped command has no meaning.
    stop.throwIfAborted();
    return exitCode;
  } finally {
    guard.release();
  }
}

type Tail = {
  write(bytes: Uint8Array): void;
  text(): string;
  clear(): void;
  /** Whether the whole output contains the text; true if there is none to find. */
  hasMatch(): boolean;
};

/** Keeps the end of an output, and searches all of it for a text. */
function createTail(match?: string): Tail {
  const wanted = match === undefined ? undefined : Buffer.from(match);
  let kept = Buffer.alloc(0);
  let found = wanted === undefined;
  return {
    write(bytes) {
      const all = Buffer.concat([kept, bytes]);
      if (!found) found = all.includes(wanted!);
      kept = all.subarray(Math.max(0, all.length - Math.max(MAX_OUTPUT_BYTES, wanted?.length ?? 0)));
    },
    text: () => kept.toString(),
    clear() {
      kept = Buffer.alloc(0);
      found = wanted === undefined;
    },
    hasMatch: () => found,
  };
}
