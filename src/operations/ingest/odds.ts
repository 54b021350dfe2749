/** Collects the facts that the failures of runs are weighed by; see rules/odds.ts. */

import { isFromOutside } from "../../rules/outside.ts";
import { CONSTANTS, type FailedRun, type FailedTestFacts, type Inheritance } from "../../rules/odds_facts.ts";
import { type Rate, readRates } from "../../rules/flaky_rates.ts";
import { byPlace, type PastRun, toLineRuns, toOtherRuns, toPastRun } from "./odds_runs.ts";
import { weighPast } from "./past_failures.ts";
import { toSightings } from "./sightings.ts";
import type { Tx } from "../../database/connect.ts";
import type { JudgedRun } from "../../store/failures.ts";
import {
  type CaseState,
  type FailedRow,
  MAX_WITH_HISTORY,
  PAST_FAILURES,
  type PastFailure,
  type PastOrigin,
  selectAbsent,
  selectFailed,
  selectOrigins,
  selectPassedAgain,
  selectPast,
  selectResultCounts,
  selectStates,
} from "../../store/failure_facts.ts";
import {
  type FailedRunKey,
  type Incident,
  type LineRun,
  type OtherRun,
  type RunPlace,
  selectIncidents,
  selectLineRuns,
  selectOtherRuns,
  selectRunPlaces,
  selectSightings,
  type Sighting,
  SPREAD,
  untilOf,
} from "../../store/judged_runs.ts";

/** The facts about the failures of one run. */
export type OddsFacts = {
  run: FailedRun;
  /** The share of recent builds that were disturbed. */
  disturbed: number;
  rates: readonly Rate[];
  rows: readonly FailedRow[];
  /** The time of the newest failure of each test case that the run may learn from. */
  flakyAt: ReadonlyMap<number, string>;
};

/** Holds the facts of runs that are judged one after the other. */
export type OddsHistory = {
  factsOf(run: JudgedRun): OddsFacts;
  /** Adds the explanations of the failures of a run, so that the runs judged after it take them into account. */
  add(run: JudgedRun, failures: readonly Explained[]): void;
};
type Explained = Omit<PastFailure, "runId" | "isRetried" | "inARow"> & {
  shares: { flaky: number };
  evidence: { inARow: number };
};

/** A run to judge, with its failures and the runs that it is compared with. */
type Asking = FailedRunKey &
  ReturnType<typeof toLineRuns> &
  ReturnType<typeof toOtherRuns> & { rows: readonly FailedRow[]; place: RunPlace };

/** Loads the facts in the transaction of the uploads, after their results are stored. Each statement reads for all of the runs. */
export async function loadOdds(sql: Tx, projectId: string, judged: readonly JudgedRun[]): Promise<OddsHistory> {
  const ids = judged.map(({ id }) => id);
  const failed = Map.groupBy(await selectFailed(sql, projectId, ids), ({ runId }) => runId);
  const now = new Date();
  const keys = judged.map((run) => {
    const rows = failed.get(run.id) ?? [];
    const causes = [...new Set(rows.flatMap(({ cause }) => cause ?? []))].slice(0, MAX_WITH_HISTORY);
    const testCases = rows.slice(0, MAX_WITH_HISTORY).map(({ testCase }) => testCase);
    const at = new Date(run.completedAt ?? now).toISOString();
    return { ...run, rows, causes, testCases, at, seenAt: run.isSeenLater ? now.toISOString() : at };
  });
  const first = [...new Set(keys.flatMap(({ testCases }) => testCases))];
  const [places, past, counts, lineRuns, otherRuns] = await Promise.all([
    selectRunPlaces(sql, projectId, keys),
    selectPast(sql, projectId, keys),
    selectResultCounts(sql, projectId, first),
    selectLineRuns(sql, projectId, keys),
    selectOtherRuns(sql, projectId, keys),
  ]);
  const [ofLines, ofOthers] = [byPlace(lineRuns, keys.length), byPlace(otherRuns, keys.length)];
  const asking = keys.map((key, index): Asking => {
    const place = places[index]!;
    return { ...key, place, ...toLineRuns(key, place, ofLines[index]!), ...toOtherRuns(key, place, ofOthers[index]!) };
  });
  const asked = distinct(asking.flatMap(({ asked, siblings }) => [...asked, ...siblings]));
  const failing = distinct(
    asking.flatMap(({ causes, outside }) => (causes.length === 0 ? [] : outside.filter(({ hasFailed }) => hasFailed))),
  );
  const numbers = [...new Set(keys.flatMap(({ rows }) => rows.map(({ testCase }) => testCase)))];
  const pastIds = new Set([...past.map(({ runId }) => runId), ...(judged.length > 1 ? ids : [])]);
  const [states, absent, passedAgain, origins, sightings, incidents] = await Promise.all([
    asked.length === 0 ? [] : selectStates(sql, projectId, asked, numbers),
    asked.length === 0 ? [] : selectAbsent(sql, projectId, asked, first),
    asked.length === 0 ? [] : selectPassedAgain(sql, projectId, asked, numbers),
    pastIds.size === 0 ? [] : selectOrigins(sql, projectId, [...pastIds]),
    failing.length === 0 ? [] : selectSightings(sql, projectId, keys, failing),
    selectIncidents(sql, projectId, keys),
  ]);
  const again = new Set(passedAgain.map(keyOf));
  const known: Known = {
    states: new Map(
      states.flatMap((state): [string, CaseState][] => (again.has(keyOf(state)) ? [] : [[keyOf(state), state]])),
    ),
    absent: new Set(absent.flatMap(({ runId, testCases }) => testCases.map((testCase) => keyOf({ runId, testCase })))),
    past: Map.groupBy(past, (one) => `${one.until} ${one.testCase}`),
    judged: new Map(),
    rates: readRates(places[0]?.rates ?? null),
    origins: new Map(origins.map((one) => [one.id, one])),
    countOf: new Map(counts.map(({ testCase, runs }) => [testCase, runs])),
    sightings: Map.groupBy(sightings, ({ runId }) => runId),
    incidents,
  };
  const byId = new Map(asking.map((one) => [one.id, one]));
  return {
    factsOf: ({ id }) => toFacts(byId.get(id)!, known),
    add({ id, executionId }, failures) {
      const outside = failures.filter(({ explained }) => explained === "outside");
      for (const [cause, { length: hits }] of Map.groupBy(outside, ({ cause }) => cause))
        if (cause !== null && hits >= SPREAD)
          known.incidents.push({ executionId, runId: id, cause, hits, tests: byId.get(id)!.place.tests });
      for (const { shares, evidence, ...failure } of failures) {
        const state = { ...failure, runId: id, flaky: shares.flaky };
        if (!again.has(keyOf(state))) known.states.set(keyOf(state), state);
        const before = known.judged.get(failure.testCase) ?? [];
        known.judged.set(failure.testCase, [...before, { ...failure, ...evidence, runId: id, isRetried: false }]);
      }
    },
  };
}

const distinct = (runs: readonly { id: string }[]): string[] => [...new Set(runs.map(({ id }) => id))];

/** Holds the facts that do not depend on the run that is judged. */
type Known = {
  states: Map<string, CaseState & { isOfMany?: boolean }>;
  absent: ReadonlySet<string>;
  past: ReadonlyMap<string, readonly PastFailure[]>;
  /** Failures of runs that were judged earlier in the same transaction, by test case. */
  judged: Map<number, PastFailure[]>;
  rates: readonly Rate[];
  origins: ReadonlyMap<string, PastOrigin>;
  countOf: ReadonlyMap<number, number>;
  sightings: ReadonlyMap<string, readonly Sighting[]>;
  /** Incidents in the executions of the judged runs. */
  incidents: Incident[];
};

function toFacts(own: Asking, known: Known): OddsFacts {
  const { rows, place } = own;
  const lineFacts = createLine({
    ...own,
    // A failure on the line is not explained by failures on branches that started from it.
    siblings: place.isOnLine ? [] : own.siblings,
    isBaseNamed: place.isBaseNamed,
    ...{ failed: known.states, missing: known.absent },
  });
  const until = untilOf(own);
  const whereOf = new Map([...known.origins].map(([id, one]) => [id, toPastRun(own, until, place, one)]));
  const pastOf = new Map(own.testCases.map((testCase) => [testCase, toPast(until, testCase, known, whereOf)]));
  const passed = new Set(place.passed);
  const outside = new Set(rows.flatMap((row) => (saysOutside(row) ? [row.cause] : [])));
  const failures = rows.map((row): FailedTestFacts => {
    const { testCase, cause, file, suite } = row;
    const past = weighPast(pastOf.get(testCase) ?? [], {
      ...{ testCase, cause, isOnLine: place.isOnLine, line: place.line },
      ...lineFacts,
    });
    const inheritance = lineFacts.inheritanceOf(testCase, cause);
    // None of the runs that were read has a result of the test: its last known result on the line counts, whatever its age.
    if (inheritance.last === "none" && past.isOpen) inheritance.last = "this cause";
    return {
      test: testCase,
      cause: cause ?? "",
      file: file ?? suite,
      isOnLine: place.isOnLine,
      saysOutside: outside.has(cause),
      passedAtCommit: passed.has(testCase),
      results: Math.max(past.failed, (known.countOf.get(testCase) ?? 0) - past.inARow + (own.isCounted ? 0 : 1)),
      ...past,
      inheritance,
    };
  });
  return {
    run: {
      tests: place.tests,
      failures,
      sightings: toSightings(own, {
        ...known,
        isOfChange: (runId, testCase) => isOfChange(known, { runId, testCase }),
      }),
      onHost: place.host === null ? null : { runs: place.hostRuns, disturbed: place.hostDisturbed },
    },
    disturbed: (place.disturbed + CONSTANTS.unrestA) / (place.builds + CONSTANTS.unrestB),
    rates: known.rates,
    rows,
    flakyAt: new Map([...pastOf].flatMap(([testCase, [last]]) => (last ? [[testCase, last.at]] : []))),
  };
}

/** Returns the last failures of a test case that the run may learn from, newest first. */
function toPast(
  until: string,
  testCase: number,
  { past, judged }: Known,
  whereOf: ReadonlyMap<string, PastRun | undefined>,
) {
  const together = (judged.get(testCase) ?? []).filter(({ runId }) => runId < until);
  const before = past.get(`${until} ${testCase}`) ?? [];
  const all = together.length === 0 ? before : [...together, ...before].sort((a, b) => (a.runId < b.runId ? 1 : -1));
  return all.slice(0, PAST_FAILURES).flatMap((one) => {
    const where = whereOf.get(one.runId);
    return where ? { ...where, ...one } : [];
  });
}

/** Whether the text of a failure names a cause outside of the code. Only the first failure of each cause has its text. */
const saysOutside = ({ kind, message, stack, suite, file }: FailedRow) =>
  (kind !== null || message !== null) && isFromOutside({ kind, message, stack, suite, name: "", file });

type LineFacts = {
  ofLine: readonly LineRun[];
  ofMine: readonly LineRun[];
  asked: readonly LineRun[];
  siblings: readonly (OtherRun & { isLine: boolean })[];
  /** Whether the build names its target branch. */
  isBaseNamed: boolean;
  /** The failed results, and the test cases without a result, by `keyOf`. */
  failed: ReadonlyMap<string, CaseState>;
  missing: ReadonlySet<string>;
};
type RunCase = { runId: string; testCase: number };

function isOfChange({ states }: Known, one: RunCase): boolean {
  const state = states.get(keyOf(one));
  return state !== undefined && !state.isOfMany && ["change", "inherited"].includes(state.explained ?? "");
}

const keyOf = ({ runId, testCase }: RunCase) => `${runId} ${testCase}`;

function createLine({ ofLine, ofMine, asked, siblings, isBaseNamed, failed, missing }: LineFacts) {
  const toOrdinals = (runs: readonly LineRun[]) => new Map(runs.map(({ id }, index) => [id, index]));

  function stateOf({ id: runId }: { id: string }, testCase: number, cause: string | null): Inheritance["last"] {
    const key = keyOf({ runId, testCase });
    if (missing.has(key)) return "none";
    const found = failed.get(key);
    if (!found) return "passed";
    if (found.explained === "outside") return "none";
    if (found.cause === cause) return "this cause";
    return found.explained === "flaky" ? "passed" : "other cause";
  }

  return {
    ofLine: toOrdinals(ofLine),
    ofMine: toOrdinals(ofMine),
    hasPassedSince: (testCase: number, runId: string) =>
      asked.some((run) => run.id > runId && stateOf(run, testCase, null) === "passed"),
    inheritanceOf(testCase: number, cause: string | null): Inheritance {
      // A run may lack the test, for instance because a shard is missing.
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
        // A test that passed in a named target branch is not inherited.
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
