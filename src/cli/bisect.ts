/** `assay bisect`: finds the commit that broke a test by running it on this machine, or on the runners of a server. */

import { constants } from "node:os";
import { assumeFlakeRate } from "../rules/culprit.ts";
import { nextStep } from "../rules/culprit_probes.ts";
import type { CulpritVerdict } from "../rules/culprit_suspects.ts";
import { listChangedFiles } from "../runner/commit_range.ts";
import { createAskGit } from "../runner/git_clone.ts";
import { suspectLine } from "../wording/culprit.ts";
import { type BisectEnd, type BisectProbe, endJson, endLines, probeLine } from "./bisect_lines.ts";
import { readKnownCase } from "./bisect_case.ts";
import { type BisectOptions, DEFAULT_BUDGET, DEFAULT_FLAKE_RATE, readBisectOptions } from "./bisect_options.ts";
import { createProber, type Prober } from "./bisect_probe.ts";
import { type BisectRange, readRange } from "./bisect_range.ts";
import { searchLines, searchOnServer } from "./bisect_server.ts";
import { readServerAddress } from "./client.ts";
import { createOutputMask, createSay, secretsOf, toJsonLine, toPlainLine } from "./output.ts";

const EXIT_CODES: Record<CulpritVerdict["kind"], number> = { culprit: 0, environment: 3, undecided: 4 };
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Returns the exit code. Throws UsageError. */
export async function bisect(args: string[]): Promise<number> {
  const options = readBisectOptions(args);
  const say = createSay(process.env);
  return options.command.length === 0 ? await bisectOnServer(options, say) : await bisectHere(options, say);
}

type Say = (message: string) => void;

async function bisectOnServer({ test, good, bad, budget, json }: BisectOptions, say: Say): Promise<number> {
  const found = await searchOnServer({ test: test!, good, bad, budget }, process.env, say);
  const mask = createOutputMask(secretsOf(process.env));
  console.log(mask(json ? toJsonLine(found) : searchLines(found).map(toPlainLine).join("\n")));
  return found.verdict === null ? 1 : EXIT_CODES[found.verdict];
}

async function bisectHere(given: BisectOptions, say: Say): Promise<number> {
  const options = await complete(given);
  const signals = listenForSignals();
  const { repository, directory } = await findRepository();
  const ask = createAskGit(repository, process.env);
  const range = await readRange(ask, { ...options, directory });
  const { commits } = range;
  say(
    `Searching ${commits.length - 1} commits after ${commits[0]!.hash.slice(0, 10)}${range.isGoodKnown ? "" : "; no good commit is known"}`,
  );
  const prober = await createProber({
    ...options,
    ...{ repository, ask, host: process.env, directory, stop: signals.stop, hurry: signals.hurry },
    onOutput: (bytes) => void (options.verbose && process.stderr.write(bytes)),
  });
  try {
    const { probes, verdict } = await search(range, options, prober, say);
    const files = verdict.kind === "culprit" ? await listChangedFiles(ask, commits[verdict.index]!.hash) : [];
    print({ commits, probes, verdict, isGoodKnown: range.isGoodKnown, files }, options.json);
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

/** Adds what the server knows of the test case to what was not given, and then the defaults. */
async function complete(given: BisectOptions): Promise<CompleteOptions> {
  const known = given.test && (await readKnownCase(given.test, readServerAddress(process.env)));
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
  say: Say,
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
    // All of them have ended: their work trees can be removed.
    for (const run of runs) if (run.status === "rejected") throw run.reason;
  }
}

async function findRepository(): Promise<{ repository: string; directory: string }> {
  const ask = createAskGit(process.cwd(), process.env);
  const [repository, directory] = [
    await ask(["rev-parse", "--show-toplevel"]),
    await ask(["rev-parse", "--show-prefix"]),
  ];
  if (repository === null || directory === null) throw new Error("This directory is in no work tree of git");
  return { repository, directory };
}

/** The first signal ends the running commands, and the second one at once. */
function listenForSignals() {
  const [stop, hurry] = [new AbortController(), new AbortController()];
  let received: (typeof SIGNALS)[number] | undefined;
  for (const signal of SIGNALS)
    process.on(signal, () => {
      if (received) hurry.abort();
      received ??= signal;
      stop.abort();
    });
  return {
    ...{ stop: stop.signal, hurry: hurry.signal },
    exitCode: () => (received === undefined ? undefined : 128 + constants.signals[received]),
  };
}

function print(end: BisectEnd, isJson: boolean): void {
  const mask = createOutputMask(secretsOf(process.env));
  console.log(mask(isJson ? toJsonLine(endJson(end)) : endLines(end).map(toPlainLine).join("\n")));
}
