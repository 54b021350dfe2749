/** Outages of a whole execution: what a task shows of it may be seen only when others have reported. */

import { isOutageTogether, mayBeOutage } from "../../rules/run_outcome.ts";
import type { RunRow } from "../../store/test_runs.ts";

/** Picks the complete runs that are judged otherwise now that all of these are known. A run that is counted stays as it is. */
export const changedByOthers = (runs: readonly RunRow[]): RunRow[] => {
  const complete = runs.filter(({ completedAt }) => completedAt !== null);
  const outage = isOutageTogether(complete);
  return (
    complete
      .filter((run) => mayBeOutage(run) && run.healthApplied !== true && run.outage !== outage)
      // Tasks that pass show that it never was one.
      .map((run) => ({ ...run, outage, wasOutage: outage }))
  );
};
