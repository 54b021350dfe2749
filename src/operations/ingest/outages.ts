/** Recognises outages of a whole execution. One task alone may not show an outage; several together do. */

import { isOutageTogether, mayBeOutage } from "../../rules/run_outcome.ts";
import type { RunRow } from "../../store/test_runs.ts";

/** Returns the complete runs whose `outage` differs now that all of these runs are known. A run that is counted does not change. */
export const changedByOthers = (runs: readonly RunRow[]): RunRow[] => {
  const complete = runs.filter(({ completedAt }) => completedAt !== null);
  const outage = isOutageTogether(complete);
  return (
    complete
      .filter((run) => mayBeOutage(run) && run.healthApplied !== true && run.outage !== outage)
      // If other tasks pass, the run never was an outage, so `wasOutage` is cleared too.
      .map((run) => ({ ...run, outage, wasOutage: outage }))
  );
};
