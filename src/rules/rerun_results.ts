/** Combines the results of a rerun with those of its build: a rerun replaces only what it repeats. */

type Counts = { passed: number; failed: number; skipped: number };

/** Results of earlier runs of the build, of test cases that did not run in the rerun: see `store/rerun_results.ts`. */
type Earlier = { notRerun: readonly number[]; passed: number; skipped: number; skippedHere: number };

/** Null, where it is no rerun. `notRerun`: test cases that are failed in the build, and have no result in the rerun. */
export type BuildResults = {
  buildPassed: number | null;
  buildFailed: number | null;
  buildSkipped: number | null;
  notRerun: number[];
};

/** `own` are the counts of the rerun alone; `earlier` undefined: it is no rerun. */
export function toBuildResults(own: Counts, earlier: Earlier | undefined): BuildResults {
  if (!earlier) return { buildPassed: null, buildFailed: null, buildSkipped: null, notRerun: [] };
  return {
    buildPassed: own.passed + earlier.passed,
    buildFailed: own.failed + earlier.notRerun.length,
    buildSkipped: own.skipped - earlier.skippedHere + earlier.skipped,
    notRerun: [...earlier.notRerun],
  };
}
