/** Counts how often the causes of a judged run were seen in other builds, and in incidents of other tasks of the same build. */

import type { Sightings } from "../../rules/odds_facts.ts";
import { type Incident, type OtherRun, type Sighting, SPREAD } from "../../store/judged_runs.ts";

/** The sightings and incidents that were read for all judged runs. */
type SightingFacts = {
  /** Sightings by run id. */
  sightings: ReadonlyMap<string, readonly Sighting[]>;
  /** Incidents in the executions of the judged runs. */
  incidents: readonly Incident[];
  /**
   * Whether a failure is explained by a change, in a run that is judged in the same transaction. `selectSightings` leaves out only such
   * failures that are already stored.
   */
  isOfChange: (runId: string, testCase: number) => boolean;
};

type JudgedRun = { id: string; executionId: string; outside: readonly OtherRun[] };

/** Returns the sightings by cause. */
export function toSightings(
  { id, executionId, outside }: JudgedRun,
  { sightings, incidents, isOfChange }: SightingFacts,
): Map<string, Sightings> {
  const results = outside.reduce((sum, { tests }) => sum + tests, 0);
  const found = outside
    .flatMap((one) => sightings.get(one.id) ?? [])
    .map(({ runId, cause, hits, testCases }) => ({
      cause,
      hits: testCases ? new Set(testCases.filter((testCase) => !isOfChange(runId, testCase))).size : hits,
    }));
  const beside = incidents.filter((one) => one.executionId === executionId && one.runId !== id);
  const seen = [...found, ...beside].filter(({ hits }) => hits > 0);
  return new Map(
    [...Map.groupBy(seen, ({ cause }) => cause)].map(([cause, own]): [string, Sightings] => {
      const here = beside.filter((one) => one.cause === cause);
      return [
        cause,
        {
          hits: own.reduce((sum, one) => sum + one.hits, 0),
          results: results + here.reduce((sum, { tests }) => sum + tests, 0),
          isSpread:
            here.length > 0 ||
            own.filter(({ hits }) => hits >= SPREAD).length >= 2 ||
            own.some(({ hits }) => hits >= 2 * SPREAD),
        },
      ];
    }),
  );
}
