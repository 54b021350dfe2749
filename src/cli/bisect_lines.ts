/** Formats the probes and the result of `assay bisect`, as lines for people and as JSON. */

import type { Belief, CommitProbe, ProbeResult } from "../rules/culprit.ts";
import { type CulpritVerdict, findLikely } from "../rules/culprit_suspects.ts";
import type { BisectCommit } from "./bisect_range.ts";

/** A probe that has ended. */
export type BisectProbe = CommitProbe & { exitCode: number | null; seconds: number; output: string };

export type BisectEnd = {
  commits: readonly BisectCommit[];
  probes: readonly BisectProbe[];
  verdict: CulpritVerdict;
  isGoodKnown: boolean;
  /** The files that the culprit changes; empty if there is none. */
  files: readonly string[];
};

const MAX_LISTED = 20;
const MAX_OUTPUT_LINES = 20;
const HASH_LENGTH = 10;

const RESULTS: Record<ProbeResult, string> = {
  passed: "passed",
  failed: "failed",
  other_failure: "failed in another way",
  no_build: "no result",
};

const shortHash = ({ hash }: BisectCommit): string => hash.slice(0, HASH_LENGTH);
const describe = (commit: BisectCommit): string => `${shortHash(commit)} ${commit.subject}`;
const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** One line about a probe; `number` counts from 1. */
export function probeLine(number: number, commit: BisectCommit, probe: BisectProbe): string {
  const exit = probe.exitCode === null ? "the directory is not in this commit" : `exit code ${probe.exitCode}`;
  const detail = probe.result === "passed" ? "" : ` (${exit})`;
  return `Probe ${number}: ${RESULTS[probe.result]}${detail} in ${probe.seconds.toFixed(1)} s: ${describe(commit)}`;
}

/** One line about what is known after a round. */
export function progressLine(belief: Belief, commits: readonly BisectCommit[]): string {
  const { candidates, chance } = findLikely(belief);
  const share = `(${Math.floor(100 * chance)} %)`;
  return candidates.length === 1
    ? `Suspect: ${describe(commits[candidates[0]!]!)} ${share}`
    : `Suspects: ${candidates.length} of ${commits.length - 1} commits ${share}`;
}

/** The end of a search in sentences. */
export function endLines({ commits, probes, verdict, isGoodKnown, files }: BisectEnd): string[] {
  const ran = (index: number, result: ProbeResult) => {
    const own = probes.filter((probe) => probe.index === index && probe.result !== "no_build");
    const count = own.filter((probe) => probe.result === result).length;
    return `${count} of ${plural(own.length, "time")}`;
  };
  const first = describe(commits[0]!);
  switch (verdict.kind) {
    case "culprit": {
      const [commit, parent] = [commits[verdict.index]!, commits[verdict.index - 1]!];
      return [
        `${shortHash(commit)} by ${commit.author} broke it: it failed there ${ran(verdict.index, "failed")}, ` +
          `on its parent ${shortHash(parent)} it passed ${ran(verdict.index - 1, "passed")}`,
        ...[`  ${commit.subject}`, `  ${commit.date}`],
        ...listOf(files),
        ...outputLines(
          probes.findLast(({ index, result }) => index === verdict.index && result === "failed"),
          commits,
        ),
      ];
    }
    case "environment": {
      const last = commits.length - 1;
      const reasons = {
        good_fails: isGoodKnown
          ? `Not the code of these commits: the good commit failed ${ran(0, "failed")}: ${first}`
          : `Not the code of these commits: the oldest of them failed ${ran(0, "failed")}: ${first}. Pass an older one as --good`,
        bad_passes: `Not the code: the bad commit passed ${ran(last, "passed")}: ${describe(commits[last]!)}`,
        outage: "Not the code: commits that passed before fail since some probe. Run the search again later",
      };
      return [reasons[verdict.reason]];
    }
    case "undecided": {
      const candidates = verdict.candidates.map((index) => describe(commits[index]!));
      const unresolved = verdict.reason === "no_result" ? probes.filter(({ result }) => result === "no_build") : [];
      return [undecidedLine(verdict, probes), ...listOf(candidates), ...outputLines(unresolved.at(-1), commits)];
    }
  }
}

function undecidedLine(
  { reason, candidates, chance }: CulpritVerdict & { kind: "undecided" },
  probes: readonly BisectProbe[],
): string {
  if (reason === "budget")
    return (
      `Cannot tell after ${plural(probes.length, "probe")}: ` +
      `at ${Math.floor(100 * chance)} % it is one of ${plural(candidates.length, "commit")}`
    );
  const head = `Cannot tell which of these ${plural(candidates.length, "commit")} broke it`;
  const unbuilt = new Set(probes.filter(({ result }) => result === "no_build").map(({ index }) => index));
  const count = candidates.filter((index) => unbuilt.has(index)).length;
  const isOther = candidates.some((index) =>
    probes.some((probe) => probe.index === index && probe.result === "other_failure"),
  );
  if (!isOther || count === candidates.length) return `${head}: ${count} of them have no result`;
  return `${head}: only the last fails in the way that is searched for, but the others fail in another way, which may hide it`;
}

function listOf(items: readonly string[]): string[] {
  const lines = items.slice(0, MAX_LISTED).map((item) => `  ${item}`);
  return items.length > MAX_LISTED ? [...lines, `  and ${items.length - MAX_LISTED} more`] : lines;
}

function outputLines(probe: BisectProbe | undefined, commits: readonly BisectCommit[]): string[] {
  const lines = (probe?.output ?? "").trimEnd().split(/\r?\n/).slice(-MAX_OUTPUT_LINES);
  if (!probe || lines.join("") === "") return [];
  return [`The end of the output in ${shortHash(commits[probe.index]!)}:`, ...lines.map((line) => `  ${line}`)];
}

/** The end of a search for programs. */
export function endJson({ commits, probes, verdict, files }: BisectEnd) {
  return {
    verdict: verdict.kind,
    reason: verdict.kind === "culprit" ? null : verdict.reason,
    chance: verdict.chance,
    culprit: verdict.kind === "culprit" ? { ...commits[verdict.index]!, files } : null,
    parent: verdict.kind === "culprit" ? commits[verdict.index - 1]! : null,
    candidates: verdict.kind === "undecided" ? verdict.candidates.map((index) => commits[index]!) : [],
    good: commits[0]!,
    bad: commits.at(-1)!,
    commitCount: commits.length - 1,
    probes: probes.map(({ index, result, round, exitCode, seconds }) => ({
      commit: commits[index]!.hash,
      ...{ result: result === "no_build" ? "no_result" : result, exitCode, round, seconds },
    })),
  };
}
