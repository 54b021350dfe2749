/** Writes what a search for the commit that broke a test has found. */

import type { Belief, CommitProbe, ProbeResult } from "../rules/culprit.ts";
import { type CulpritVerdict, findLikely } from "../rules/culprit_suspects.ts";
import type { OpenProbes, SearchProbe } from "../schema/culprit_searches.ts";
import type { SearchedCommit } from "../rules/culprit_range.ts";
import { firstLineOf } from "./first_line.ts";
import { missingRunnerSentence } from "./missing_runner.ts";
import { counted, toCount } from "./numbers.ts";

const HASH_LENGTH = 10;

export const shortHash = ({ hash }: Pick<SearchedCommit, "hash">): string => hash.slice(0, HASH_LENGTH);

/** Returns "c4d5e6f012 Round prices". */
export const describeCommit = (commit: SearchedCommit): string => `${shortHash(commit)} ${commit.subject}`;

/** The results of probes as words. */
export const PROBE_WORDS: Record<NonNullable<SearchProbe["result"]> | "running", string> = {
  passed: "passed",
  failed: "failed",
  other_failure: "failed in another way",
  no_build: "does not build",
  no_result: "no result",
  running: "running",
};

const toPercent = (chance: number): string => `${Math.floor(100 * chance)} %`;

/** Returns one line about what is known after a round. `commits`: the good commit first. */
export function suspectLine(belief: Belief, commits: readonly SearchedCommit[]): string {
  const { candidates, chance } = findLikely(belief);
  return candidates.length === 1
    ? `Suspect: ${describeCommit(commits[candidates[0]!]!)} (${toPercent(chance)})`
    : `Suspects: ${candidates.length} of ${commits.length - 1} commits (${toPercent(chance)})`;
}

/** Returns "2 of 3 times": how many probes of a commit had a result. */
function countWords(probes: readonly CommitProbe[], index: number, result: ProbeResult): string {
  const own = probes.filter((probe) => probe.index === index && probe.result !== "no_build");
  return `${own.filter((probe) => probe.result === result).length} of ${counted(own.length, "time")}`;
}

/** Returns what proves that a commit is the culprit. `commits`: the good commit first. */
export const proofWords = (
  commits: readonly SearchedCommit[],
  probes: readonly CommitProbe[],
  culprit: number,
): string =>
  `it failed there ${countWords(probes, culprit, "failed")}, ` +
  `on its parent ${shortHash(commits[culprit - 1]!)} it passed ${countWords(probes, culprit - 1, "passed")}`;

export type SearchEnd = {
  /** The good commit first. */
  commits: readonly SearchedCommit[];
  probes: readonly CommitProbe[];
  verdict: CulpritVerdict;
  isGoodKnown: boolean;
};

/** Returns the result of a search as one sentence. Only a commit that was confirmed is named as the culprit. */
export function culpritSentence({ commits, probes, verdict, isGoodKnown }: SearchEnd): string {
  if (verdict.kind === "undecided") return undecidedSentence(verdict, probes);
  if (verdict.kind === "culprit") {
    const commit = commits[verdict.index]!;
    return `${shortHash(commit)} by ${commit.author} broke it: ${proofWords(commits, probes, verdict.index)}`;
  }
  const ran = (index: number, result: ProbeResult) => countWords(probes, index, result);
  const first = describeCommit(commits[0]!);
  const last = commits.length - 1;
  const sentences = {
    good_fails: isGoodKnown
      ? `Not the code of these commits: the good commit fails today as well, ${ran(0, "failed")}: ${first}`
      : `Not the code of these commits: the oldest of them failed ${ran(0, "failed")}: ${first}. Pass an older one as --good`,
    bad_passes: `Not the code: the bad commit passed ${ran(last, "passed")}: ${describeCommit(commits[last]!)}`,
    outage: "Not the code: commits that passed before fail since some probe. Run the search again later",
  };
  return sentences[verdict.reason];
}

const withinSentence = (sentence: string): string => `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;

/** Returns "2 probes run, 3 wait for a free runner". Null: the search waits for nobody. */
export function waitingWords(open: OpenProbes | null): string | null {
  if (open === null) return null;
  const { kind, running, queued, missingRunner } = open;
  const runner =
    missingRunner === null ? "a free runner" : `a runner: ${withinSentence(missingRunnerSentence(missingRunner))}`;
  const waits = queued === 1 ? "waits" : "wait";
  if (kind === "commits")
    return running > 0 ? "A runner lists the commits" : `The list of the commits waits for ${runner}`;
  const ran = `${counted(running, "probe")} ${running === 1 ? "runs" : "run"}`;
  if (queued === 0) return ran;
  return running === 0
    ? `${counted(queued, "probe")} ${waits} for ${runner}`
    : `${ran}, ${toCount(queued)} ${waits} for ${runner}`;
}

/** Why a search on runners has ended before its probes were done. */
export type Unfinished = {
  reason: "time" | "no_runner" | "no_commits";
  maxMinutes: number;
  /** Why there is no list of commits. */
  failure?: string;
};

/** Returns the end of a search that its probes have not ended; `likely`: the suspects, if there were probes. */
export function unfinishedSentence(
  { reason, maxMinutes, failure }: Unfinished,
  probes: number,
  likely: { candidates: readonly number[]; chance: number } | undefined,
): string {
  const minutes = counted(maxMinutes, "minute");
  if (reason === "no_commits") {
    return `Cannot tell: ${withinSentence(firstLineOf(failure ?? "No runner could list the commits of the range"))}`;
  }
  if (reason === "no_runner" || !likely) return `Cannot tell: no runner took a probe within ${minutes}`;
  return (
    `Cannot tell after ${counted(probes, "probe")} in ${minutes}: ` +
    `at ${toPercent(likely.chance)} it is one of ${counted(likely.candidates.length, "commit")}`
  );
}

function undecidedSentence(
  { reason, candidates, chance }: CulpritVerdict & { kind: "undecided" },
  probes: readonly CommitProbe[],
): string {
  if (reason === "budget")
    return (
      `Cannot tell after ${counted(probes.length, "probe")}: ` +
      `at ${toPercent(chance)} it is one of ${counted(candidates.length, "commit")}`
    );
  const head = `Cannot tell which of these ${counted(candidates.length, "commit")} broke it`;
  const unbuilt = new Set(probes.filter(({ result }) => result === "no_build").map(({ index }) => index));
  const count = candidates.filter((index) => unbuilt.has(index)).length;
  const isOther = candidates.some((index) =>
    probes.some((probe) => probe.index === index && probe.result === "other_failure"),
  );
  if (!isOther || count === candidates.length)
    return `${head}: ${count} of them ${count === 1 ? "has" : "have"} no result`;
  return `${head}: only the last fails in the way that is searched for, but the others fail in another way, which may hide it`;
}
