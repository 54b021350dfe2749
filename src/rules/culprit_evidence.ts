/** Turns stored results of a test case into the evidence of a search, and changed files into prior weights. */

import { isSameCommit } from "./commit.ts";
import { type CommitProbe, type Overlap, type ProbeResult } from "./culprit.ts";

/** A probe as it is stored. */
export type StoredProbe = {
  commit: string;
  /** `no_result`: the runner was lost, or the test did not run; null: it has not ended. */
  result: "passed" | "failed" | "no_build" | "no_result" | null;
  /** Whether the failure is the searched one, and not another one. */
  isWanted: boolean;
  /** Whether it ran together with the test cases of other searches. */
  isShared: boolean;
  /** Its execution was cancelled. */
  isCancelled: boolean;
  /** Probes of one round have the same time; ISO 8601. */
  createdAt: string;
};

/** A result of another execution that tested one of the commits. */
type EarlierResult = Pick<StoredProbe, "commit" | "isWanted"> & { result: "passed" | "failed" };

/** After this number of probes without a result a commit counts as untestable: the first one may have lost its runner. */
const PROBES_WITHOUT_RESULT = 2;

/**
 * Returns the evidence of a search. `commits`: the hashes, the good commit first. The results by which the good and the bad commit were
 * chosen are left out, because the prior contains them, and differences since then are not caused by the code.
 */
export function toEvidence(
  commits: readonly string[],
  probes: readonly StoredProbe[],
  earlier: readonly EarlierResult[],
): CommitProbe[] {
  const indexOf = (commit: string) => commits.findIndex((hash) => isSameCommit(hash, commit));
  const evidence: CommitProbe[] = earlier.flatMap(({ commit, result, isWanted }) => {
    const index = indexOf(commit);
    return index <= 0 || index === commits.length - 1 ? [] : [{ index, result: toResult(result, isWanted) }];
  });
  const rounds = [...new Set(probes.map(({ createdAt }) => createdAt))].sort();
  const withoutResult = new Map<number, number>();
  for (const { commit, result, isWanted, isShared, createdAt } of probes) {
    const index = indexOf(commit);
    // Another test case may have ended the process before this one ran: alone it may have a result.
    if (index === -1 || result === null || (result === "no_result" && isShared)) continue;
    const count = (withoutResult.get(index) ?? 0) + (result === "no_result" ? 1 : 0);
    withoutResult.set(index, count);
    if (result === "no_result" && count < PROBES_WITHOUT_RESULT) continue;
    evidence.push({ index, result: toResult(result, isWanted), round: rounds.indexOf(createdAt) });
  }
  return evidence;
}

/**
 * Whether a search may share probes: a test case that had no result together with others is run alone from then on. A cancelled
 * probe says nothing about the others.
 */
export const mayShare = (probes: readonly Pick<StoredProbe, "result" | "isShared" | "isCancelled">[]): boolean =>
  !probes.some(({ result, isShared, isCancelled }) => isShared && result === "no_result" && !isCancelled);

function toResult(result: NonNullable<StoredProbe["result"]>, isWanted: boolean): ProbeResult {
  if (result === "no_result") return "no_build";
  return result === "failed" && !isWanted ? "other_failure" : result;
}

type TestFiles = {
  /** The file of the test and those of the frames in the stack; each may be only the end of a path. */
  named: readonly string[];
  /** Whether a file of the repository belongs to an owner of the test. */
  isOwned: (file: string) => boolean;
};

/** Returns for each commit what the files that it changes have in common with the test. */
export function findOverlaps(
  commits: readonly { files: readonly string[] }[],
  { named, isOwned }: TestFiles,
): Overlap[] {
  const ends = named.map(toPath).filter((path) => path !== "");
  return commits.map(({ files }) => {
    const paths = files.map(toPath);
    if (paths.some((path) => ends.some((end) => isEndOf(end, path) || isEndOf(path, end)))) return "test";
    return paths.some(isOwned) ? "owner" : "none";
  });
}

const toPath = (file: string): string => file.replaceAll("\\", "/").replace(/^(?:\.?\/)+/, "");

const isEndOf = (end: string, path: string): boolean => path === end || path.endsWith(`/${end}`);
