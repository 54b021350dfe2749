/** `assay runner`: runs the tasks that assay.yaml defines on this machine, until it receives a stop signal. */

import packageJson from "../../package.json" with { type: "json" };
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { createLog } from "../log.ts";
import { openCgroups } from "../runner/cgroups.ts";
import { openRunnerConfig } from "../runner/config.ts";
import { type AskWithKey, askWithOwnKey } from "../runner/own_key.ts";
import { startRunner } from "../runner/runner.ts";
import { shield } from "../runner/shield.ts";
import { ask, messageOf, readServerAddress, type ServerAddress } from "./client.ts";
import type { Invocation } from "./invocation.ts";
import { detectMachine } from "./machine.ts";
import { toUsageError, UsageError } from "./usage.ts";

export const RUNNER_HELP = `Usage: assay runner [options]

Takes tasks from a server and runs them on this machine as defined in assay.yaml. SIGTERM stops the runner after the
current tasks; a second SIGTERM cancels them. See docs/runner.md.

  --config FILE           the file that defines the tasks (default: assay.yaml)
  --concurrency N         the number of tasks to run in parallel (default: 1)
  --labels a,b            the labels of this machine
  --name NAME             the name of this runner (default: the host name and the process id)
  --once                  run one task; the exit code is 0 if it passed, 1 if not

Required: ASSAY_URL, ASSAY_PROJECT, and ASSAY_KEY or ASSAY_KEY_FILE.`;

const MAX_CONCURRENCY = 64;

/** Answers the exit code: 1 where `--once` had a task that did not pass. */
export async function runner(args: string[], invocation: Invocation): Promise<number> {
  const { environment, directory, stdout } = invocation;
  const options = readOptions(args);
  const address = readAddress(invocation);
  const { tasks, folder } = await openRunnerConfig(options.config, directory);
  const log = createLog("info", stdout.print, stdout.isTerminal);
  const isShielded = shield();
  const cgroups = await openCgroups();
  const { name, labels, concurrency, once } = options;
  log.info("Runner started", {
    name,
    labels,
    concurrency,
    tasks: [...tasks.keys()],
    server: address.url,
    isShielded,
    hasCgroups: cgroups !== undefined,
  });
  if (process.getuid?.() === 0)
    log.warn("The runner runs as root, so its tasks can read its key from memory: start the runner as a separate user");
  const askAs: AskWithKey = (asking, key) => ask(key === undefined ? address : { ...address, key }, asking);
  const server = askWithOwnKey({ name, version: packageJson.version }, { ask: askAs, messageOf }, log);
  let stop = () => {};
  // Before the runner starts: a signal that arrives with its first request must not end the process.
  invocation.onStopSignal(() => stop());
  const started = startRunner({
    labels,
    concurrency,
    once,
    tasks,
    folder,
    host: environment,
    machine: detectMachine(environment, undefined),
    server,
    log,
    cgroups,
  });
  stop = started.stop;
  const allPassed = await started.ended;
  log.info("Runner stopped");
  return once && !allPassed ? 1 : 0;
}

function readOptions(args: string[]) {
  const { values } = parse(args);
  const concurrency = Number(values.concurrency ?? "1");
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY)
    throw new UsageError(
      `Cannot read --concurrency: expected an integer from 1 to ${MAX_CONCURRENCY}, got "${values.concurrency}"`,
    );
  const labels = (values.labels ?? "").split(",").map((label) => label.trim());
  return {
    config: values.config ?? "assay.yaml",
    name: values.name?.trim() || `${hostname()}-${process.pid}`,
    labels: labels.filter((label) => label !== ""),
    concurrency,
    once: values.once === true,
  };
}

function parse(args: string[]) {
  try {
    const text = { type: "string" } as const;
    return parseArgs({
      args,
      options: { config: text, concurrency: text, labels: text, name: text, once: { type: "boolean" } },
      allowPositionals: false,
    });
  } catch (error) {
    throw toUsageError(error);
  }
}

/** A key in a file is not in the environment, which others may read. */
function readAddress({ environment, directory }: Invocation): ServerAddress {
  const path = environment["ASSAY_KEY_FILE"]?.trim();
  if (!path || environment["ASSAY_KEY"]?.trim()) return readServerAddress(environment);
  try {
    return readServerAddress({ ...environment, ASSAY_KEY: readFileSync(resolve(directory, path), "utf8") });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot read ASSAY_KEY_FILE: ${(error as Error).message}`);
  }
}
