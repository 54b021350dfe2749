/** Puts together what the odds of the failures of a run are weighed by. */

import { isFromOutside } from "../../rules/outside.ts";
import { CONSTANTS, type FailedRun, type FailedTestFacts, type Inheritance, type Sightings } from "../../rules/odds.ts";
import { type Rate, readRates } from "../../rules/flaky_rates.ts";
import type { Tx } from "../../database/connect.ts";
import type { JudgedRun } from "../../store/failures.ts";
import {
  type CaseState,
  type FailedRow,
  MAX_WITH_HISTORY,
  type PastFailure,
  type PastRun,
  type RunPlace,
  selectAbsent,
  selectFailed,
  selectPassedAgain,
  selectPast,
  selectPastRuns,
  selectResultCounts,
  selectRunPlace,
  selectSightings,
  selectStateRuns,
  selectStates,
  type Sighting,
  type StateRun,
} from "../../store/failure_facts.ts";

/** What is known of the failures of a run. */
export type OddsFacts = {
  run: FailedRun;
  disturbed: number;
  rates: readonly Rate[];
  rows: readonly FailedRow[];
  isOnLine: boolean;
  /** When each test case failed last by itself, as far as it is known. */
  flakyAt: ReadonlyMap<number, string>;
};

/** So many runs of the line after the base are asked for the state of a test case. */
const AFTER_BASE = 20;

/** The runs of commits that the line has seen after the baseline; a commit of the line itself is not explained by its other builds. */
function afterBase(runs: readonly StateRun[], { baselineId, isOnLine }: RunPlace): StateRun[] {
  const ofLine = runs.filter(({ of }) => of === "line");
  const isAfter = ({ executionId }: StateRun) => baselineId === null || executionId > baselineId;
  const before = new Set(ofLine.flatMap((run) => (isAfter(run) ? [] : (run.commit ?? []))));
  const isSeen = ({ commit }: StateRun) => commit !== null && before.has(commit);
  return ofLine.filter((run) => isAfter(run) && !(isOnLine && run.isSameCommit) && !isSeen(run)).slice(0, AFTER_BASE);
}

/** In the transaction of an upload, after its results are stored. */
export async function loadOddsFacts(sql: Tx, projectId: string, run: JudgedRun): Promise<OddsFacts> {
  const rows = await selectFailed(sql, projectId, run.id);
  const numbers = rows.map(({ testCase }) => testCase);
  const first = numbers.slice(0, MAX_WITH_HISTORY);
  const causes = [...new Set(rows.flatMap(({ cause }) => cause ?? []))].slice(0, MAX_WITH_HISTORY);
  const [place, past, counts, seen] = await Promise.all([
    selectRunPlace(sql, projectId, run, first),
    selectPast(sql, projectId, run, first),
    selectResultCounts(sql, projectId, first),
    selectSightings(sql, projectId, run, causes),
  ]);
  const { line } = place;
  const runs = await selectStateRuns(sql, projectId, run, line);
  const asked = [...runs.filter(({ of }) => of === "base"), ...afterBase(runs, place)];
  const siblings = runs.filter(({ of }) => of === "sibling");
  const all = [...asked, ...siblings];
  const ids = all.map(({ id }) => id);
  const repeated = all.filter(({ hasRerun }) => hasRerun).map(({ id }) => id);
  const [failed, absent, passedAgain, pastRuns] = await Promise.all([
    ids.length === 0 ? [] : selectStates(sql, projectId, ids, numbers),
    ids.length === 0 ? [] : selectAbsent(sql, projectId, ids, first),
    repeated.length === 0 ? [] : selectPassedAgain(sql, projectId, repeated, numbers),
    past.length === 0 ? [] : selectPastRuns(sql, projectId, run, [...new Set(past.map(({ runId }) => runId))]),
  ]);
  const keyOf = ({ runId, testCase }: RunCase) => `${runId} ${testCase}`;
  const again = new Set(passedAgain.map(keyOf));
  const states = failed.filter((state) => !again.has(keyOf(state)));
  const lineFacts = createLine({
    runs: place.isOnLine ? runs.filter(({ of }) => of !== "sibling") : runs,
    asked,
    isBaseNamed: place.isBaseNamed,
    states,
    absent,
  });
  const runOf = new Map(pastRuns.map((one) => [one.id, one]));
  const known = past.flatMap((one) => {
    const where = runOf.get(one.runId);
    return where ? { ...where, ...one } : [];
  });
  const pastOf = Map.groupBy(known, ({ testCase }) => testCase);
  const countOf = new Map(counts.map(({ testCase, runs }) => [testCase, runs]));
  const passed = new Set(place.passed);
  const sampleOf = new Map(
    rows.flatMap((row) => (row.kind !== null || row.message !== null ? [[row.cause, row]] : [])),
  );
  const failures = rows.map((row): FailedTestFacts => {
    const { testCase, cause, file, suite } = row;
    const sample = sampleOf.get(cause);
    const { isOpen, ...own } = weighPast(pastOf.get(testCase) ?? [], {
      ...{ testCase, cause, isOnLine: place.isOnLine, line },
      ...lineFacts,
    });
    const inheritance = lineFacts.inheritanceOf(testCase, cause);
    // None of the runs that are asked has it: its last result on the line counts, however old that is.
    if (inheritance.last === "none" && isOpen) inheritance.last = "this cause";
    return {
      test: testCase,
      cause: cause ?? "",
      file: file ?? suite,
      saysOutside: sample !== undefined && saysOutside(sample),
      passedAtCommit: passed.has(testCase),
      results: Math.max(0, (countOf.get(testCase) ?? 0) - own.inARow + 1),
      ...own,
      inheritance,
    };
  });
  return {
    run: {
      tests: place.tests,
      failures,
      sightings: toSightings(seen),
      onHost: place.host === null ? null : { runs: place.hostRuns, disturbed: place.hostDisturbed },
    },
    disturbed: disturbedShare(place),
    rates: readRates(place.rates),
    rows,
    isOnLine: place.isOnLine,
    flakyAt: new Map([...pastOf].map(([testCase, [last]]) => [testCase, last!.at])),
  };
}

const disturbedShare = ({ builds, disturbed }: RunPlace) =>
  (disturbed + CONSTANTS.unrestA) / (builds + CONSTANTS.unrestB);

const saysOutside = ({ kind, message, stack, suite, file }: FailedRow) =>
  isFromOutside({ kind, message, stack, suite, name: "", file });

type LineFacts = {
  runs: readonly StateRun[];
  asked: readonly StateRun[];
  /** The build says into which branch it goes. */
  isBaseNamed: boolean;
  states: readonly CaseState[];
  absent: readonly RunCase[];
};
type RunCase = { runId: string; testCase: number };

function createLine({ runs, asked, isBaseNamed, states, absent }: LineFacts) {
  const keyOf = (runId: string, testCase: number) => `${runId} ${testCase}`;
  const failed = new Map(states.map((state) => [keyOf(state.runId, state.testCase), state]));
  const missing = new Set(absent.map(({ runId, testCase }) => keyOf(runId, testCase)));
  const ordinalsOf = (wanted: StateRun["of"]) =>
    new Map(runs.filter(({ of }) => of === wanted).map(({ id }, index) => [id, index]));
  const siblings = runs.filter(({ of }) => of === "sibling");

  function stateOf(run: StateRun | undefined, testCase: number, cause: string | null): Inheritance["last"] {
    if (!run || missing.has(keyOf(run.id, testCase))) return "none";
    const found = failed.get(keyOf(run.id, testCase));
    if (!found) return "passed";
    if (found.explained === "outside") return "none";
    if (found.cause === cause) return "this cause";
    return found.explained === "flaky" ? "passed" : "other cause";
  }

  return {
    ofLine: ordinalsOf("line"),
    ofMine: ordinalsOf("mine"),
    hasPassedSince: (testCase: number, runId: string) =>
      asked.some((run) => run.id > runId && stateOf(run, testCase, null) === "passed"),
    inheritanceOf(testCase: number, cause: string | null): Inheritance {
      // A run may be short, or have lost a shard.
      const known = asked
        .map((run) => ({ run, state: stateOf(run, testCase, cause) }))
        .filter(({ state }) => state !== "none");
      const at = known.findLastIndex(({ run }) => run.of === "base");
      const last = known[at]?.state ?? "none";
      const next = known[at + 1]?.state;
      const theirs = siblings.map((run) => stateOf(run, testCase, cause));
      const otherLines = siblings.filter(({ isLine }) => isLine);
      return {
        last,
        doubt: (at === -1 ? undefined : failed.get(keyOf(known[at]!.run.id, testCase))?.flaky) ?? 0,
        // What passed in a named base is not inherited.
        isNextBroken:
          !isBaseNamed &&
          last !== "this cause" &&
          last !== "other cause" &&
          next === "this cause" &&
          !known.slice(at + 2).some(({ state }) => state === "passed"),
        isOnOtherLine: !isBaseNamed && otherLines.some((run) => stateOf(run, testCase, cause) === "this cause"),
        siblings: {
          failed: theirs.filter((state) => state === "this cause").length,
          passed: theirs.filter((state) => state === "passed").length,
        },
      };
    },
  };
}

type PastContext = {
  testCase: number;
  cause: string | null;
  isOnLine: boolean;
  line: string;
  /** The places of runs on the line, and on this branch where that is another one: two that follow each other differ by one. */
  ofLine: ReadonlyMap<string, number>;
  ofMine: ReadonlyMap<string, number>;
  /** On the line, as far as it is asked. */
  hasPassedSince: (testCase: number, runId: string) => boolean;
};

/** The failures of a test case before: those in a row on this branch, and the weight of the others. */
function weighPast(past: readonly (PastFailure & PastRun)[], context: PastContext) {
  const { testCase, cause, isOnLine, line, ofLine, ofMine, hasPassedSince } = context;
  const isOfLine = ({ pullRequest, branch }: PastRun) => pullRequest === null && (branch === null || branch === line);
  const mine = past.filter(
    (one) => one.isMine && !one.isRetried && (one.explained !== "outside" || one.cause === cause),
  );
  const inARow = 1 + countStreak(mine, isOnLine ? ofLine : ofMine);
  const streak = new Set(mine.slice(0, inARow - 1));
  // What a branch did before it passed again may have been its change; on a line it is the test's.
  const others = past.filter(
    (one) =>
      !streak.has(one) &&
      (!one.isMine || isOnLine) &&
      // Builds of one commit that fail are one event.
      (!one.isSameCommit || one.isRetried) &&
      // What failed in a pull request may have come to the line with it.
      (!isOnLine || one.isRetried || isOfLine(one) || one.cause !== cause) &&
      !one.isOfMany &&
      one.explained !== "outside" &&
      one.explained !== "inherited",
  );
  const places = Map.groupBy(others, (one) => (isOfLine(one) ? "line" : `${one.pullRequest} ${one.branch}`));
  let failures = 0;
  const rows: number[] = [];
  const pullRequests = { same: 0, other: 0 };
  const add = (own: readonly PastFailure[]) =>
    pullRequests[own.some((one) => one.cause === cause) ? "same" : "other"]++;
  let isOpen = false;
  for (const [place, own] of places) {
    const retried = own.filter(({ isRetried }) => isRetried);
    if (place === "line") {
      // What a row goes on with is inherited from its beginning.
      const all = past.filter(
        (one) => isOfLine(one) && !one.isRetried && !streak.has(one) && one.explained !== "outside",
      );
      const counted = new Set<PastFailure>(own);
      const episodes = toEpisodes(all, ofLine).filter((row) => row.some((one) => counted.has(one)));
      // The last one may be a change that is not mended yet.
      const last = episodes.at(-1)?.at(-1);
      if (last && !hasPassedSince(testCase, last.runId)) {
        add(episodes.pop()!);
        isOpen = last.cause === cause;
      }
      // A single one is the test's own; a row of them may be a change that was mended.
      for (const { length } of episodes)
        if (length === 1) failures++;
        else rows.push(length);
      failures += retried.length;
    } else if (retried.length > 0) failures++;
    else add(own);
  }
  return {
    isOpen,
    inARow,
    failures,
    episodes: rows,
    pullRequests,
    hasFailed: others.length > 0,
    hasFailedForThis: others.some((one) => one.cause === cause),
  };
}

/** Of failures, newest first, those without another run of the branch after them. */
function countStreak(mine: readonly PastFailure[], ordinals: ReadonlyMap<string, number>): number {
  let next = Math.max(-1, ...ordinals.values()) + 1;
  let count = 0;
  for (const { runId } of mine) {
    if (ordinals.get(runId) !== next - 1) break;
    next--;
    count++;
  }
  return count;
}

/** Failures of a line, oldest first, that follow each other. */
function toEpisodes(failures: readonly PastFailure[], ordinals: ReadonlyMap<string, number>): PastFailure[][] {
  const episodes: PastFailure[][] = [];
  const placeOf = (one: PastFailure | undefined) => (one && ordinals.get(one.runId)) ?? -1;
  for (const one of failures.toReversed()) {
    const last = episodes.at(-1);
    if (last && placeOf(one) === placeOf(last.at(-1)) + 1) last.push(one);
    else episodes.push([one]);
  }
  return episodes;
}

function toSightings({ results, sightings }: { results: number; sightings: readonly Sighting[] }) {
  return new Map(
    [...Map.groupBy(sightings, ({ cause }) => cause)].map(([cause, own]): [string, Sightings] => [
      cause,
      {
        ...{ hits: own.reduce((sum, one) => sum + one.hits, 0), results },
        isSpread: own.filter((one) => one.hits >= 3).length >= 2 || own.some((one) => one.hits >= 6),
      },
    ]),
  );
}
