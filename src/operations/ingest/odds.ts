/** Puts together what the odds of the failures of a run are weighed by. */

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
  const runs = await selectStateRuns(sql, projectId, run, place.line);
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
  const again = new Set(passedAgain.map(keyOf));
  const lineFacts = createLine({
    ...{ runs, asked, absent },
    // The line is not explained by its branches.
    siblings: place.isOnLine ? [] : siblings,
    isBaseNamed: place.isBaseNamed,
    states: failed.filter((state) => !again.has(keyOf(state))),
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
    const own = weighPast(pastOf.get(testCase) ?? [], {
      ...{ testCase, cause, isOnLine: place.isOnLine, line: place.line },
      ...lineFacts,
    });
    const inheritance = lineFacts.inheritanceOf(testCase, cause);
    // None of the runs that are asked has it: its last result on the line counts, however old that is.
    if (inheritance.last === "none" && own.isOpen) inheritance.last = "this cause";
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
    disturbed: (place.disturbed + CONSTANTS.unrestA) / (place.builds + CONSTANTS.unrestB),
    rates: readRates(place.rates),
    rows,
    flakyAt: new Map([...pastOf].map(([testCase, [last]]) => [testCase, last!.at])),
  };
}

const saysOutside = ({ kind, message, stack, suite, file }: FailedRow) =>
  isFromOutside({ kind, message, stack, suite, name: "", file });

type LineFacts = {
  runs: readonly StateRun[];
  asked: readonly StateRun[];
  siblings: readonly StateRun[];
  /** The build says into which branch it goes. */
  isBaseNamed: boolean;
  states: readonly CaseState[];
  absent: readonly RunCase[];
};
type RunCase = { runId: string; testCase: number };

const keyOf = ({ runId, testCase }: RunCase) => `${runId} ${testCase}`;

function createLine({ runs, asked, siblings, isBaseNamed, states, absent }: LineFacts) {
  const failed = new Map(states.map((state) => [keyOf(state), state]));
  const missing = new Set(absent.map(keyOf));
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
