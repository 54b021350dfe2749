/** Counts the red builds that a gate would have passed with another share, for a project that chooses one. */

import type { Blame } from "../schema/failures.ts";
import type { GatePreview } from "../schema/gate.ts";
import { ABSENT_PERCENT, type AbsentCases, isAbove } from "./absent_tests.ts";
import { forgivenBlames, type GatedBuild } from "./gate.ts";

/** A red build as it is stored. */
export type RedBuild = GatedBuild & {
  /** The largest share of the change by blame; unclear failures have the blame of their best other explanation. */
  shares: Partial<Record<Blame, number>>;
  /** The change of its branch was the cause after all. */
  isGuilty: boolean;
  /** Whether it is red for a reason other than its failed tests. */
  isRedAnyway: boolean;
  /** Tests of the baseline that its runs do not have. */
  absences: readonly Pick<AbsentCases, "of" | "missing" | "skipped">[];
};

function passes(build: RedBuild, share: number): boolean {
  if (build.isRedAnyway || build.absences.some((absence) => isAbove(absence, ABSENT_PERCENT))) return false;
  const forgiving = forgivenBlames("new", build);
  // The shares are stored with single precision.
  const limit = Math.fround(share);
  return Object.entries(build.shares).every(
    ([blame, change]) =>
      blame === "quarantined" || (forgiving.includes(blame as Blame) && Math.fround(change) <= limit),
  );
}

type Counts = Pick<GatePreview, "guiltyBuilds" | "guiltyPassed" | "otherBuilds" | "otherStopped">;

/** Returns the decisions of the gate "new" with this share. */
export function previewGate(builds: readonly RedBuild[], share: number): Counts {
  const [guilty, others] = [builds.filter(({ isGuilty }) => isGuilty), builds.filter(({ isGuilty }) => !isGuilty)];
  return {
    guiltyBuilds: guilty.length,
    guiltyPassed: guilty.filter((build) => passes(build, share)).length,
    otherBuilds: others.length,
    otherStopped: others.filter((build) => !passes(build, share)).length,
  };
}
