/** Formats the probes and the result of `assay bisect`, as lines for people and as JSON. */

import type { CommitProbe, ProbeResult } from "../rules/culprit.ts";
import type { SearchedCommit } from "../rules/culprit_range.ts";
import { culpritSentence, describeCommit, type SearchEnd, shortHash } from "../wording/culprit.ts";

/** A probe that has ended. */
export type BisectProbe = CommitProbe & { exitCode: number | null; seconds: number; output: string };

type BisectEnd = Omit<SearchEnd, "probes"> & {
  probes: readonly BisectProbe[];
  /** The files that the culprit changes; empty if there is none. */
  files: readonly string[];
};

const MAX_LISTED = 20;
const MAX_OUTPUT_LINES = 20;

const RESULTS: Record<ProbeResult, string> = {
  passed: "passed",
  failed: "failed",
  other_failure: "failed in another way",
  no_build: "no result",
};

/** Returns one line about a probe; `number` counts from 1. */
export function probeLine(number: number, commit: SearchedCommit, probe: BisectProbe): string {
  const exit = probe.exitCode === null ? "the directory is not in this commit" : `exit code ${probe.exitCode}`;
  const detail = probe.result === "passed" ? "" : ` (${exit})`;
  return `Probe ${number}: ${RESULTS[probe.result]}${detail} in ${probe.seconds.toFixed(1)} s: ${describeCommit(commit)}`;
}

/** The end of a search: its result as a sentence, and what belongs to it. */
export function endLines(end: BisectEnd): string[] {
  const { commits, probes, verdict, files } = end;
  const sentence = culpritSentence(end);
  if (verdict.kind === "environment") return [sentence];
  if (verdict.kind === "culprit") {
    const { index } = verdict;
    const failure = probes.findLast((probe) => probe.index === index && probe.result === "failed");
    return [sentence, ...culpritLines(commits[index]!, files), ...outputLines(failure, commits)];
  }
  const candidates = verdict.candidates.map((index) => describeCommit(commits[index]!));
  const unresolved = verdict.reason === "no_result" ? probes.filter(({ result }) => result === "no_build") : [];
  return [sentence, ...itemLines(candidates), ...outputLines(unresolved.at(-1), commits)];
}

/** The lines below the sentence that names a commit. */
export const culpritLines = ({ subject, date }: SearchedCommit, files: readonly string[]): string[] => [
  `  ${subject}`,
  `  ${date}`,
  ...itemLines(files),
];

/** Returns one indented line for each item; long lists are shortened. */
export function itemLines(items: readonly string[]): string[] {
  const lines = items.slice(0, MAX_LISTED).map((item) => `  ${item}`);
  return items.length > MAX_LISTED ? [...lines, `  and ${items.length - MAX_LISTED} more`] : lines;
}

function outputLines(probe: BisectProbe | undefined, commits: readonly SearchedCommit[]): string[] {
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
