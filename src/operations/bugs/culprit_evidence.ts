/** Loads the evidence of a search for a culprit: its probes, earlier results, and the flake rate of the test. */

import type { RangeCommit } from "../../rules/culprit_range.ts";
import { type CommitProbe, type CulpritRange, measureFlakeRate, weighCommits } from "../../rules/culprit.ts";
import { findOverlaps, type StoredProbe, toEvidence } from "../../rules/culprit_evidence.ts";
import { caseFingerprint, fingerprint } from "../../rules/fingerprint.ts";
import { ownFrames } from "../../rules/stack.ts";
import type { SearchProbe } from "../../schema/culprit_searches.ts";
import type { Sql } from "../../database/connect.ts";
import {
  type CaseFailure,
  selectBugDigests,
  selectCaseFailures,
  selectEarlierProbes,
  selectEarlierResults,
  selectSearchedCase,
} from "../../store/culprit_evidence.ts";
import { type CulpritSearchRow, selectProvenCulprits } from "../../store/culprit_searches.ts";
import { type ProbeRow, selectProbes } from "../../store/probes.ts";
import { readOwnership } from "../projects/owners.ts";

/** Maximum number of files of a stack that are looked for in the changes of commits. */
const MAX_FRAMES = 10;

const digestsOf = (failure: CaseFailure): string[] => [fingerprint(failure).digest, caseFingerprint(failure).digest];

/** `fingerprint`: that of a probe. */
type Failed = { executionId: string; fingerprint?: string | null };
type Wanted = { isWanted: (failed: Failed) => boolean; badFailure: CaseFailure | undefined };

/** Whether the failures of executions are those of the bug: by its fingerprints, or by the message of the first bad build. */
async function loadWanted(
  sql: Sql,
  projectId: string,
  { bugReportId, testCase, taskSlug, badExecutionId }: CulpritSearchRow,
  failed: readonly Failed[],
): Promise<Wanted> {
  const executionIds = [badExecutionId ?? [], failed.map(({ executionId }) => executionId)].flat();
  const digests = await selectBugDigests(sql, projectId, bugReportId);
  const failures = await selectCaseFailures(sql, projectId, { testCase, taskSlug, executionIds });
  const byExecution = new Map(failures.map((failure) => [failure.executionId, failure]));
  const badFailure = byExecution.get(badExecutionId ?? "");
  const wanted = new Set([...digests, ...(badFailure ? digestsOf(badFailure) : [])]);
  const isWanted = ({ executionId, fingerprint: digest }: Failed) => {
    const failure = byExecution.get(executionId);
    const digests = [digest?.replaceAll("-", "") ?? [], failure ? digestsOf(failure) : []].flat();
    return digests.some((digest) => wanted.has(digest));
  };
  return { isWanted, badFailure };
}

const failedOf = (results: readonly (Failed & { result: string | null })[]): Failed[] =>
  results.filter(({ result }) => result === "failed");

export type SearchEvidence = {
  range: CulpritRange;
  evidence: CommitProbe[];
  /** The probes of the search itself, including open ones. */
  probes: (StoredProbe & Pick<ProbeRow, "executionId" | "isOwn">)[];
};

/** `commits`: those of the search, the good one first. */
export async function loadEvidence(
  sql: Sql,
  projectId: string,
  search: CulpritSearchRow,
  commits: readonly RangeCommit[],
): Promise<SearchEvidence> {
  const { id, testCase, taskSlug } = search;
  const hashes = commits.map(({ hash }) => hash);
  const stored = await selectTestProbes(sql, projectId, id);
  const asked = { testCase, taskSlug, searchId: id, commits: hashes };
  const earlier = [
    ...(await selectEarlierResults(sql, projectId, asked)),
    ...(await selectEarlierProbes(sql, projectId, asked)),
  ];
  const { isWanted, badFailure } = await loadWanted(sql, projectId, search, failedOf([...stored, ...earlier]));
  const mark = <One extends Failed>(one: One) => ({ ...one, isWanted: isWanted(one) });
  const probes = stored.map(mark);
  return {
    range: await loadRange(sql, projectId, { search, commits, badFailure }),
    evidence: toEvidence(hashes, probes, earlier.map(mark)),
    probes,
  };
}

async function loadRange(
  sql: Sql,
  projectId: string,
  about: { search: CulpritSearchRow; commits: readonly RangeCommit[]; badFailure: CaseFailure | undefined },
): Promise<CulpritRange> {
  const { search, commits, badFailure } = about;
  const test = await selectSearchedCase(sql, projectId, search.testCase);
  const proven = new Set((await selectProvenCulprits(sql, projectId, search)).map((index) => index - 1));
  const frames = ownFrames(badFailure?.stack ?? "").slice(0, MAX_FRAMES);
  const ownersOf = test && test.owners.length > 0 ? await readOwnership(sql, projectId) : undefined;
  const overlaps = findOverlaps(commits.slice(1), {
    named: [test?.file ?? "", ...frames.map(({ file }) => file)],
    isOwned: (file) => ownersOf?.(file).some((owner) => test!.owners.includes(owner)) ?? false,
  });
  const flakeRate = measureFlakeRate(test?.flakeFailures ?? 0, test?.flakeResults ?? 0);
  return { weights: weighCommits(overlaps, proven), flakeRate };
}

/** Excludes the probe that lists the commits, which runs no test case. */
const selectTestProbes = async (sql: Sql, projectId: string, searchId: string) =>
  (await selectProbes(sql, projectId, { culpritSearchId: searchId })).flatMap(({ kind, commit, ...probe }) =>
    kind === "test" && commit !== null ? [{ ...probe, commit }] : [],
  );

/** The probes of a search as they are shown. */
export async function readSearchProbes(sql: Sql, projectId: string, search: CulpritSearchRow): Promise<SearchProbe[]> {
  const probes = await selectTestProbes(sql, projectId, search.id);
  const failed = failedOf(probes);
  const { isWanted } =
    failed.length === 0 ? { isWanted: () => false } : await loadWanted(sql, projectId, search, failed);
  return probes.map((probe) => {
    const { executionId, commit, result, createdAt, endedAt } = probe;
    const isOther = result === "failed" && !isWanted(probe);
    return { executionId, commit, result: isOther ? "other_failure" : result, createdAt, endedAt };
  });
}
