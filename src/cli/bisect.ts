/** `assay bisect`: finds the commit that broke a test by running it on this machine, or on the runners of a server. */

import { constants } from "node:os";
import { assumeFlakeRate } from "../rules/culprit.ts";
import { nextStep } from "../rules/culprit_probes.ts";
import type { CulpritVerdict } from "../rules/culprit_suspects.ts";
import { listChangedFiles } from "../runner/commit_range.ts";
import { createAskGit } from "../runner/git_clone.ts";
import { suspectLine } from "../wording/culprit.ts";
import { type BisectProbe, endJson, endLines, probeLine } from "./bisect_lines.ts";
import { readKnownCase } from "./bisect_case.ts";
import { type BisectOptions, DEFAULT_BUDGET, DEFAULT_FLAKE_RATE, readBisectOptions } from "./bisect_options.ts";
import { createProber, type Prober } from "./bisect_probe.ts";
import { type BisectRange, readRange } from "./bisect_range.ts";
import { searchLines, searchOnServer } from "./bisect_server.ts";
import { readServerAddress } from "./client.ts";
import type { EnvironmentVariables, Invocation, StopSignal } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";

const EXIT_CODES: Record<CulpritVerdict["kind"], number> = { culprit: 0, environment: 3, undecided: 4 };

/** Returns the exit code. Throws UsageError. */
export async function bisect(args: string[], invocation: Invocation): Promise<number> {
  const options = readBisectOptions(args);
  return options.command.length === 0
    ? await bisectOnServer(options, invocation)
    : await bisectHere(options, invocation);
}

async function bisectOnServer(options: BisectOptions, invocation: Invocation): Promise<number> {
  const { test, good, bad, budget, json } = options;
  const found = await searchOnServer({ test: test!, good, bad, budget }, invocation);
  invocation.print(json ? toJsonLine(found) : searchLines(found).map(toPlainLine).join("\n"));
  return found.verdict === null ? 1 : EXIT_CODES[found.verdict];
}

async function bisectHere(given: BisectOptions, invocation: Invocation): Promise<number> {
  const { environment, say, stderr } = invocation;
  const options = await complete(given, environment);
  const signals = listenForSignals(invocation);
  const { repository, directory } = await findRepository(invocation);
  const ask = createAskGit(repository, environment);
  const range = await readRange(ask, { ...options, directory });
  const { commits } = range;
  say(
    `Searching ${commits.length - 1} commits after ${commits[0]!.hash.slice(0, 10)}${range.isGoodKnown ? "" : "; no good commit is known"}`,
  );
  let written = Promise.resolve();
  const prober = await createProber({
    ...options,
    ...{ repository, ask, host: environment, directory, stop: signals.stop, hurry: signals.hurry },
    onOutput(bytes) {
      // A reader of the output that has ended does not end the search.
      if (options.verbose) written = written.then(() => stderr.write(bytes)).catch(() => {});
    },
  });
  try {
    const { probes, verdict } = await search(range, options, prober, say);
    await written;
    const files = verdict.kind === "culprit" ? await listChangedFiles(ask, commits[verdict.index]!.hash) : [];
    const end = { commits, probes, verdict, isGoodKnown: range.isGoodKnown, files };
    invocation.print(options.json ? toJsonLine(endJson(end)) : endLines(end).map(toPlainLine).join("\n"));
    return EXIT_CODES[verdict.kind];
  } catch (error) {
    const code = signals.exitCode();
    if (code === undefined) throw error;
    say("Stopped");
    return code;
  } finally {
    await prober.close();
  }
}

type CompleteOptions = BisectOptions & { bad: string; flakeRate: number; budget: number; file: string | null };

/** Completes options with the server's data about the test case, and then with defaults. */
async function complete(given: BisectOptions, environment: EnvironmentVariables): Promise<CompleteOptions> {
  const known = given.test && (await readKnownCase(given.test, readServerAddress(environment)));
  return {
    ...given,
    good: given.good ?? known?.good,
    bad: given.bad ?? known?.bad ?? "HEAD",
    flakeRate: given.flakeRate ?? known?.flakeRate ?? DEFAULT_FLAKE_RATE,
    budget: given.budget ?? DEFAULT_BUDGET,
    file: known?.file ?? null,
  };
}

/** Probes commits until the result is certain or the budget is spent. */
async function search(
  { commits, weights }: BisectRange,
  { flakeRate, budget, concurrency }: CompleteOptions,
  prober: Prober,
  say: Invocation["say"],
): Promise<{ probes: BisectProbe[]; verdict: CulpritVerdict }> {
  const range = { weights, flakeRate: assumeFlakeRate(flakeRate) };
  const probes: BisectProbe[] = [];
  for (let round = 0; ; round++) {
    const step = nextStep(range, probes, { atOnce: concurrency, left: budget - probes.length });
    if (probes.length > 0) say(suspectLine(step.belief, commits));
    if (step.verdict) return { probes, verdict: step.verdict };
    const runs = await Promise.allSettled(
      step.next.map(async (index) => {
        const run = { index, round, ...(await prober.probe(commits[index]!.hash)) };
        probes.push(run);
        say(probeLine(probes.length, commits[index]!, run));
      }),
    );
    // All probes have ended, so their work trees can be removed.
    for (const run of runs) if (run.status === "rejected") throw run.reason;
  }
}

async function findRepository(given: Invocation): Promise<{ repository: string; directory: string }> {
  const ask = createAskGit(given.directory, given.environment);
  const [repository, directory] = [
    await ask(["rev-parse", "--show-toplevel"]),
    await ask(["rev-parse", "--show-prefix"]),
  ];
  if (repository === null || directory === null) throw new Error("This directory is in no work tree of git");
  return { repository, directory };
}

/** The first signal ends the running commands, and the second one at once. */
function listenForSignals({ onStopSignal }: Invocation) {
  const [stop, hurry] = [new AbortController(), new AbortController()];
  let received: StopSignal | undefined;
  onStopSignal((signal) => {
    if (received) hurry.abort();
    received ??= signal;
    stop.abort();
  });
  return {
    ...{ stop: stop.signal, hurry: hurry.signal },
    exitCode: () => (received === undefined ? undefined : 128 + constants.signals[received]),
  };
}
