/** The steps of a search for a culprit: listing its commits, starting probes, and its end. */

import type { RangeCommit } from "../../rules/culprit_range.ts";
import type { Belief } from "../../rules/culprit.ts";
import { mayShare } from "../../rules/culprit_evidence.ts";
import { expectedBits, nextStep, type SearchStep } from "../../rules/culprit_probes.ts";
import { type ProbeRequest, shareProbes } from "../../rules/culprit_sharing.ts";
import { concludeCulprit, type CulpritVerdict, findLikely } from "../../rules/culprit_suspects.ts";
import type { SearchReason } from "../../schema/culprit_searches.ts";
import { isUnavailable, savepoint, type Tx } from "../../database/connect.ts";
import { selectListingFailure } from "../../store/culprit_listings.ts";
import {
  type CulpritSearchRow,
  lockDueSearch,
  lockOtherSearches,
  lockMergedInto,
  type ListedSearch,
  selectIsProven,
  selectKnownRange,
  updateCancelledSearch,
  updateEndedSearch,
  updateProgress,
  updateRange,
} from "../../store/culprit_searches.ts";
import { insertBugEvents } from "../../store/events.ts";
import { selectProbes } from "../../store/probes.ts";
import { selectTestCase } from "../../store/test_cases.ts";
import {
  culpritSentence,
  proofWords,
  suspectLine,
  type Unfinished,
  unfinishedSentence,
} from "../../wording/culprit.ts";
import { cancelProbes, countFreeRunners, createListing, createSharedProbes, joinListing } from "../probes/probes.ts";
import { loadEvidence, type SearchEvidence } from "./culprit_evidence.ts";

/** Suspects that are stored of a step. */
const MAX_SUSPECTS = 20;
/** Files of the culprit that its event names. */
const MAX_EVENT_FILES = 20;
/** Maximum number of attempts to list the commits of a range before the search ends without them. */
const MAX_LISTINGS = 3;

/**
 * Makes one step of a search that can continue, in a transaction. `onSearch` gets the search first, because a step may fail. Returns false
 * if no search is due.
 */
export async function advanceSearch(
  sql: Tx,
  now: Date,
  onSearch: (search: { projectId: string; id: string }) => void,
): Promise<boolean> {
  const due = await lockDueSearch(sql);
  if (!due) return false;
  const { projectId, mergedInto, ...search } = due;
  onSearch({ projectId, id: search.id });
  const isLate = now.getTime() >= Date.parse(search.createdAt) + search.maxMinutes * 60_000;
  const step = { projectId, search, now };
  if (mergedInto !== null) await cancelMerged(sql, step, mergedInto);
  else if (isLate) await endLate(sql, step);
  else if (search.commits === null) await list(sql, step);
  else await probe(sql, step, search.commits);
  return true;
}

type Step = { projectId: string; search: CulpritSearchRow; now: Date };

/** A bug that is part of another one is not searched for any more. */
async function cancelMerged(sql: Tx, { projectId, search: { id }, now }: Step, into: number): Promise<void> {
  await cancelProbes(sql, projectId, { culpritSearchId: id }, "The bug report was merged into another one");
  await updateCancelledSearch(sql, projectId, id, mergedSummary(into), now);
}

const mergedSummary = (into: number): string => `Cancelled: the bug report was merged into number ${into}`;

/** Takes the commits from another search of the same range, or lets a runner list them. */
async function list(sql: Tx, step: Step): Promise<void> {
  const { projectId, search, now } = step;
  const { id } = search;
  const known = await selectKnownRange(sql, projectId, search);
  if (known) return void (await updateRange(sql, projectId, id, known));
  const failure = await selectListingFailure(sql, projectId, id);
  if (failure !== undefined) return await endUnfinished(sql, step, { reason: "no_commits", failure });
  const listings = (await selectProbes(sql, projectId, { culpritSearchId: id })).length;
  if (listings >= MAX_LISTINGS) return await endUnfinished(sql, step, { reason: "no_commits" });
  if (await joinListing(sql, projectId, search, now)) return;
  // The listing of another search may have ended while this one waited for it.
  const listed = await selectKnownRange(sql, projectId, search);
  if (listed) return void (await updateRange(sql, projectId, id, listed));
  await createListing(sql, projectId, search, now);
}

async function probe(sql: Tx, step: Step, commits: RangeCommit[]): Promise<void> {
  const { projectId, search, now } = step;
  const { taskSlug } = search;
  const atOnce = Math.max(1, await countFreeRunners(sql, projectId, taskSlug));
  const own = await plan(sql, projectId, { ...search, commits }, atOnce);
  const { loaded, next } = own;
  if (next.verdict) return await endWith(sql, step, { commits, loaded, belief: next.belief, verdict: next.verdict });
  const plans = [own, ...(own.mayShare ? await planOthers(sql, step, atOnce) : [])];
  const probes = shareProbes(plans.map(toProbeRequest), atOnce);
  const testOf = new Map(plans.map(({ search: { id, testCaseId } }) => [id, testCaseId]));
  await createSharedProbes(sql, projectId, {
    ...{ taskSlug, now },
    probes: probes.map(({ hash, searchIds }) => ({
      commit: hash,
      tests: searchIds.map((id) => ({ testCaseId: testOf.get(id)!, owner: { culpritSearchId: id } })),
    })),
  });
  for (const { search, next } of plans)
    await updateProgress(sql, projectId, search.id, {
      summary: suspectLine(next.belief, search.commits),
      suspects: toSuspects(next.belief, findLikely(next.belief).candidates),
    });
}

type Plan = {
  search: ListedSearch;
  loaded: SearchEvidence;
  next: SearchStep;
  mayShare: boolean;
  /** All its probes have ended. */
  isDue: boolean;
};

async function plan(sql: Tx, projectId: string, search: ListedSearch, atOnce: number): Promise<Plan> {
  const loaded = await loadEvidence(sql, projectId, search, search.commits);
  const left = search.maxProbes - loaded.probes.filter(({ isOwn }) => isOwn).length;
  const isDue = loaded.probes.every(({ result }) => result !== null);
  // A search that waits for its own probes only joins those of others; choosing several takes long.
  const next = nextStep(loaded.range, loaded.evidence, { atOnce: isDue ? atOnce : 1, left });
  return { search, loaded, next, mayShare: mayShare(loaded.probes), isDue };
}

/** Other searches that may share the probes of a step. One that ends now does so in a step of its own. */
async function planOthers(sql: Tx, { projectId, search }: Step, atOnce: number): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const other of await lockOtherSearches(sql, projectId, search))
    try {
      plans.push(await savepoint(sql, (sql) => plan(sql, projectId, other, atOnce)));
    } catch (error) {
      // The other search reports its error in its own step, and does not stop this one.
      if (isUnavailable(error)) throw error;
    }
  return plans.filter(({ next, mayShare }) => mayShare && !next.verdict);
}

function toProbeRequest({ search: { id, commits }, loaded, next, isDue }: Plan): ProbeRequest {
  const bits = expectedBits(next.belief, loaded.evidence);
  const indexes = new Map(commits.map(({ hash }, index) => [hash, index]));
  const wanted = isDue && !next.verdict ? next.next : [];
  const open = new Set(loaded.probes.filter(({ result }) => result === null).map(({ commit }) => commit));
  return {
    ...{ searchId: id, next: wanted.map((index) => commits[index]!.hash) },
    // A further probe of a commit is worth nothing until the open one has ended.
    bitsOf: (hash) => (open.has(hash) ? 0 : (bits[indexes.get(hash) ?? -1] ?? 0)),
  };
}

/** The most probable of the candidates, in the order of the range. */
const toSuspects = ({ chances }: Belief, candidates: readonly number[]): CulpritSearchRow["suspects"] =>
  candidates
    .toSorted((a, b) => chances[b]! - chances[a]!)
    .slice(0, MAX_SUSPECTS)
    .sort((a, b) => a - b)
    .map((index) => ({ index, chance: Number(chances[index]!.toFixed(4)) }));

type Ending = { commits: RangeCommit[]; loaded: SearchEvidence; belief: Belief; verdict: CulpritVerdict };

async function endWith(sql: Tx, step: Step, { commits, loaded, belief, verdict }: Ending): Promise<void> {
  const { projectId, search } = step;
  const { id, bugReportId, testCaseId, depth } = search;
  // Only the probes of the search itself prove anything: earlier results have found the suspects sooner.
  const probes = loaded.evidence.filter(({ round }) => round !== undefined);
  const summary = culpritSentence({ commits, probes, verdict, isGoodKnown: true });
  const culprit = verdict.kind === "culprit" ? verdict.index : null;
  const candidates = culprit !== null ? [culprit] : verdict.kind === "undecided" ? verdict.candidates : [];
  const hasEnded = await end(sql, step, {
    ...{ verdict: verdict.kind, reason: verdict.kind === "culprit" ? null : verdict.reason, summary, culprit },
    suspects: toSuspects(belief, candidates),
  });
  if (!hasEnded || culprit === null) return;
  if (await selectIsProven(sql, projectId, search, commits[culprit]!.hash)) return;
  const { hash: commit, author, date, subject, files } = commits[culprit]!;
  const { taskSlug, suite, name, file } = (await selectTestCase(sql, projectId, testCaseId))!;
  await insertBugEvents(
    sql,
    projectId,
    [
      {
        type: "bug_report.culprit_found",
        bugReportId,
        culprit: {
          ...{ searchId: id, summary, proof: proofWords(commits, probes, culprit), commit, author, date, subject },
          ...{ files: files.slice(0, MAX_EVENT_FILES), testCase: { testCaseId, taskSlug, suite, name, file } },
        },
      },
    ],
    depth,
  );
}

/** Ends a search whose time is over, possibly with a result from the probes so far. */
async function endLate(sql: Tx, step: Step): Promise<void> {
  const { projectId, search } = step;
  const { commits } = search;
  if (commits === null) return await endUnfinished(sql, step, { reason: "no_runner" });
  const loaded = await loadEvidence(sql, projectId, search, commits);
  const { belief } = nextStep(loaded.range, loaded.evidence, { atOnce: 1, left: 1 });
  const verdict = concludeCulprit(belief, loaded.evidence, "budget")!;
  if (verdict.kind !== "undecided" || verdict.reason !== "budget")
    return await endWith(sql, step, { commits, loaded, belief, verdict });
  const hasEnded = loaded.probes.some(({ result }) => result !== null);
  await endUnfinished(sql, step, { reason: hasEnded ? "time" : "no_runner" }, { belief, probes: loaded.probes.length });
}

async function endUnfinished(
  sql: Tx,
  step: Step,
  ending: Omit<Unfinished, "maxMinutes">,
  known?: { belief: Belief; probes: number },
): Promise<void> {
  const { maxMinutes } = step.search;
  const likely = known && findLikely(known.belief);
  const summary = unfinishedSentence({ ...ending, maxMinutes }, known?.probes ?? 0, likely);
  const suspects = known && likely ? toSuspects(known.belief, likely.candidates) : [];
  await end(sql, step, { verdict: "undecided", reason: ending.reason, summary, suspects, culprit: null });
}

type StoredEnd = Pick<CulpritSearchRow, "verdict" | "summary" | "suspects" | "culprit"> & {
  reason: SearchReason | null;
};

/** Returns false if the bug was merged during the step: then the search is cancelled. */
async function end(sql: Tx, step: Step, ended: StoredEnd): Promise<boolean> {
  const { projectId, now } = step;
  const { id, bugReportId } = step.search;
  await cancelProbes(sql, projectId, { culpritSearchId: id }, "The search for the commit has ended");
  const into = await lockMergedInto(sql, projectId, bugReportId);
  if (into !== null) {
    await updateCancelledSearch(sql, projectId, id, mergedSummary(into), now);
    return false;
  }
  await updateEndedSearch(sql, projectId, id, { ...ended, now: now.toISOString() });
  return true;
}
