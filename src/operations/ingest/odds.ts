/** Puts together what the odds of the failures of runs are weighed by. */

import { isSameCommit } from "../../rules/commit.ts";
import { isFromOutside } from "../../rules/outside.ts";
import {
  CONSTANTS,
  type FailedRun,
  type FailedTestFacts,
  type Inheritance,
  type Sightings,
} from "../../rules/odds_facts.ts";
import { type Rate, readRates } from "../../rules/flaky_rates.ts";
import { weighPast } from "./past_failures.ts";
import type { Tx } from "../../database/connect.ts";
import type { JudgedRun } from "../../store/failures.ts";
import {
  type CaseState,
  type FailedRow,
  MAX_WITH_HISTORY,
  PAST_FAILURES,
  type PastFailure,
  selectAbsent,
  selectFailed,
  selectPassedAgain,
  selectPast,
  selectPastRuns,
  selectResultCounts,
  selectStates,
} from "../../store/failure_facts.ts";
import {
  type FailedRunKey,
  type OtherRun,
  type RunPlace,
  selectOtherRuns,
  selectRunPlaces,
  selectStateRuns,
  SIBLINGS,
  type StateRun,
  untilOf,
} from "../../store/judged_runs.ts";

/** What is known of the failures of a run. */
export type OddsFacts = {
  run: FailedRun;
  disturbed: number;
  rates: readonly Rate[];
  rows: readonly FailedRow[];
  /** When each test case failed last by itself, as far as it is known. */
  flakyAt: ReadonlyMap<number, string>;
};

/** What is known of the failures of runs that are judged one after the other. */
export type OddsHistory = {
  factsOf(run: JudgedRun): OddsFacts;
  /** Adds what explains the failures of a run: the next ones see it. */
  add(run: JudgedRun, failures: readonly Explained[]): void;
};
type Explained = Omit<PastFailure, "runId" | "isRetried"> & { shares: { flaky: number } };

/** So many runs of the line after the base are asked for the state of a test case. */
const AFTER_BASE = 20;

/** The runs of commits that the line has seen after the baseline; a commit of the line itself is not explained by its other builds. */
function afterBase(ofLine: readonly StateRun[], { baselineId, isOnLine, commit: mine, rerunOf }: RunPlace): StateRun[] {
  const isAfter = ({ executionId }: StateRun) => baselineId === null || executionId > baselineId;
  const before = new Set(ofLine.flatMap((run) => (isAfter(run) ? [] : (run.commit?.toLowerCase() ?? []))));
  const isSeen = ({ commit }: StateRun) => commit !== null && before.has(commit.toLowerCase());
  const isSame = ({ commit, executionId }: StateRun) =>
    (commit !== null && mine !== null && isSameCommit(commit, mine)) || executionId === rerunOf;
  return ofLine.filter((run) => isAfter(run) && !(isOnLine && isSame(run)) && !isSeen(run)).slice(0, AFTER_BASE);
}

/** A run with what is beside it. */
type Asking = FailedRunKey & {
  rows: readonly FailedRow[];
  place: RunPlace;
  /** On the line, on its branch, and the last ones of a few others, oldest first. */
  runs: readonly StateRun[];
  /** Those that its baseline is made of, and those of the line after it. */
  asked: readonly StateRun[];
  siblings: readonly StateRun[];
};

function toAsking(
  key: FailedRunKey & { rows: readonly FailedRow[] },
  place: RunPlace,
  seen: readonly StateRun[],
): Asking {
  const of = (wanted: StateRun["of"]) => seen.filter((run) => run.of === wanted);
  const siblings = new Map<string | null, StateRun>();
  for (const run of of("sibling").toReversed())
    if (siblings.size < SIBLINGS && !siblings.has(run.origin)) siblings.set(run.origin, run);
  const asked = [...of("base"), ...afterBase(of("line"), place)];
  return { ...key, place, runs: seen, asked, siblings: [...siblings.values()].toReversed() };
}

/** What each of the judged runs sees of others, which were complete by then. */
const seenBy = <Run extends Pick<StateRun, "places" | "completedAt">>(
  keys: readonly FailedRunKey[],
  runs: readonly Run[],
): Run[][] => {
  const seen = keys.map((): Run[] => []);
  for (const run of runs) {
    const at = run.completedAt === null ? 0 : Date.parse(run.completedAt);
    for (const place of run.places) if (at <= keys[place]!.at) seen[place]!.push(run);
  }
  return seen;
};

/** In the transaction of uploads, after their results are stored. Each statement is about all of the runs. */
export async function loadOdds(sql: Tx, projectId: string, judged: readonly JudgedRun[]): Promise<OddsHistory> {
  const ids = judged.map(({ id }) => id);
  const failed = Map.groupBy(await selectFailed(sql, projectId, ids), ({ runId }) => runId);
  const now = Date.now();
  const keys = judged.map((run) => {
    const rows = failed.get(run.id) ?? [];
    const causes = [...new Set(rows.flatMap(({ cause }) => cause ?? []))].slice(0, MAX_WITH_HISTORY);
    const testCases = rows.slice(0, MAX_WITH_HISTORY).map(({ testCase }) => testCase);
    return { ...run, rows, causes, testCases, at: run.completedAt === null ? now : Date.parse(run.completedAt) };
  });
  const first = [...new Set(keys.flatMap(({ testCases }) => testCases))];
  const [places, past, counts, others, stateRuns] = await Promise.all([
    selectRunPlaces(sql, projectId, keys),
    selectPast(sql, projectId, keys),
    selectResultCounts(sql, projectId, first),
    keys.every(({ causes }) => causes.length === 0) ? [] : selectOtherRuns(sql, projectId, keys),
    selectStateRuns(sql, projectId, keys),
  ]);
  const seen = seenBy(keys, stateRuns);
  const asking = new Map(keys.map((key, index) => [key.id, toAsking(key, places[index]!, seen[index]!)]));
  const askedRuns = new Map(
    [...asking.values()].flatMap(({ asked, siblings }) => [...asked, ...siblings].map((run) => [run.id, run])),
  );
  const asked = [...askedRuns.keys()];
  const numbers = [...new Set(keys.flatMap(({ rows }) => rows.map(({ testCase }) => testCase)))];
  const pastIds = new Set([...past.map(({ runId }) => runId), ...(judged.length > 1 ? ids : [])]);
  const [states, absent, passedAgain, pastRuns] = await Promise.all([
    asked.length === 0 ? [] : selectStates(sql, projectId, asked, numbers),
    asked.length === 0 ? [] : selectAbsent(sql, projectId, asked, first),
    asked.length === 0 ? [] : selectPassedAgain(sql, projectId, asked, numbers),
    pastIds.size === 0 ? [] : selectPastRuns(sql, projectId, keys, [...pastIds]),
  ]);
  const again = new Set(passedAgain.map(keyOf));
  const known: Known = {
    states: new Map(
      states.flatMap((state): [string, CaseState][] => (again.has(keyOf(state)) ? [] : [[keyOf(state), state]])),
    ),
    absent: new Set(absent.flatMap(({ runId, testCases }) => testCases.map((testCase) => keyOf({ runId, testCase })))),
    past: Map.groupBy(past, (one) => `${one.until} ${one.testCase}`),
    judged: [],
    pastRuns: new Map(pastRuns.map((one) => [one.id, one])),
    countOf: new Map(counts.map(({ testCase, runs }) => [testCase, runs])),
  };
  const seenOthers = seenBy(keys, others);
  const placeOf = new Map(ids.map((id, index) => [id, index]));
  return {
    factsOf: ({ id }) => toFacts(asking.get(id)!, placeOf.get(id)!, seenOthers[placeOf.get(id)!]!, known),
    add({ id }, failures) {
      for (const { shares, ...failure } of failures) {
        const state = { ...failure, runId: id, flaky: shares.flaky };
        if (!again.has(keyOf(state))) known.states.set(keyOf(state), state);
        known.judged.push({ ...failure, runId: id, isRetried: false });
      }
    },
  };
}

/** What is known of others than the run that is judged. */
type Known = {
  states: Map<string, CaseState>;
  absent: ReadonlySet<string>;
  past: ReadonlyMap<string, readonly PastFailure[]>;
  /** Failures of the runs that were judged before it, together with it. */
  judged: PastFailure[];
  pastRuns: ReadonlyMap<string, Awaited<ReturnType<typeof selectPastRuns>>[number]>;
  countOf: ReadonlyMap<number, number>;
};

function toFacts(own: Asking, index: number, others: readonly OtherRun[], known: Known): OddsFacts {
  const { rows, place } = own;
  const lineFacts = createLine({
    ...own,
    // The line is not explained by its branches.
    siblings: place.isOnLine ? [] : own.siblings,
    isBaseNamed: place.isBaseNamed,
    ...{ failed: known.states, missing: known.absent },
  });
  const pastOf = new Map(own.testCases.map((testCase) => [testCase, toPast(own, index, testCase, known)]));
  const passed = new Set(place.passed);
  const sampleOf = new Map(
    rows.flatMap((row) => (row.kind !== null || row.message !== null ? [[row.cause, row]] : [])),
  );
  const failures = rows.map((row): FailedTestFacts => {
    const { testCase, cause, file, suite } = row;
    const sample = sampleOf.get(cause);
    const { isOpen, ...past } = weighPast(pastOf.get(testCase) ?? [], {
      ...{ testCase, cause, isOnLine: place.isOnLine, line: place.line },
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
      results: Math.max(0, (known.countOf.get(testCase) ?? 0) - past.inARow + 1),
      ...past,
      inheritance,
    };
  });
  return {
    run: {
      tests: place.tests,
      failures,
      sightings: toSightings(others, known.states),
      onHost: place.host === null ? null : { runs: place.hostRuns, disturbed: place.hostDisturbed },
    },
    disturbed: (place.disturbed + CONSTANTS.unrestA) / (place.builds + CONSTANTS.unrestB),
    rates: readRates(place.rates),
    rows,
    flakyAt: new Map([...pastOf].flatMap(([testCase, [last]]) => (last ? [[testCase, last.at]] : []))),
  };
}

/** The last failures of a test case that the run may learn from, newest first. */
function toPast(own: FailedRunKey, index: number, testCase: number, { past, judged, pastRuns }: Known) {
  const until = untilOf(own);
  const together = judged.filter((one) => one.testCase === testCase && one.runId < until);
  const before = past.get(`${until} ${testCase}`) ?? [];
  const all = together.length === 0 ? before : [...together, ...before].sort((a, b) => (a.runId < b.runId ? 1 : -1));
  return all.slice(0, PAST_FAILURES).flatMap((one) => {
    const run = pastRuns.get(one.runId);
    const seen = run?.seenBy.find(([place]) => place === index);
    return run && seen ? { ...run, isMine: seen[1], isSameCommit: seen[2], ...one } : [];
  });
}

const saysOutside = ({ kind, message, stack, suite, file }: FailedRow) =>
  isFromOutside({ kind, message, stack, suite, name: "", file });

type LineFacts = {
  runs: readonly StateRun[];
  asked: readonly StateRun[];
  siblings: readonly StateRun[];
  /** The build says into which branch it goes. */
  isBaseNamed: boolean;
  /** What failed, and what has no result, by `keyOf`. */
  failed: ReadonlyMap<string, CaseState>;
  missing: ReadonlySet<string>;
};
type RunCase = { runId: string; testCase: number };

const keyOf = ({ runId, testCase }: RunCase) => `${runId} ${testCase}`;

function createLine({ runs, asked, siblings, isBaseNamed, failed, missing }: LineFacts) {
  const ordinalsOf = (wanted: StateRun["of"]) =>
    new Map(runs.filter(({ of }) => of === wanted).map(({ id }, index) => [id, index]));

  function stateOf({ id: runId }: StateRun, testCase: number, cause: string | null): Inheritance["last"] {
    const key = keyOf({ runId, testCase });
    if (missing.has(key)) return "none";
    const found = failed.get(key);
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
        doubt: (at === -1 ? undefined : failed.get(keyOf({ runId: known[at]!.run.id, testCase }))?.flaky) ?? 0,
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

function toSightings(others: readonly OtherRun[], states: ReadonlyMap<string, CaseState>) {
  const results = others.reduce((sum, { tests }) => sum + tests, 0);
  const found = new Map<string, number[]>();
  for (const { id: runId, hits } of others)
    for (const [cause, count, testCases] of hits ?? []) {
      // What was a change's there says nothing of the surroundings.
      const isTheirs = (testCase: number) =>
        ["change", "inherited"].includes(states.get(keyOf({ runId, testCase }))?.explained ?? "");
      const own = testCases === null ? count : new Set(testCases.filter((testCase) => !isTheirs(testCase))).size;
      if (own > 0) found.set(cause, [...(found.get(cause) ?? []), own]);
    }
  return new Map(
    [...found].map(([cause, hits]): [string, Sightings] => [
      cause,
      {
        ...{ hits: hits.reduce((sum, one) => sum + one, 0), results },
        isSpread: hits.filter((one) => one >= 3).length >= 2 || hits.some((one) => one >= 6),
      },
    ]),
  );
}
