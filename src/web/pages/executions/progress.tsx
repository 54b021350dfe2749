/** The progress of a live execution, and its estimated end. */

import type { Html } from "../../../http/html.ts";
import { progressOf } from "../../../rules/execution.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import { toSpan } from "../../components/text.tsx";

type ProgressProperties = { execution: ExecutionRow; usual: ReadonlyMap<string, number>; now: Date };

/** Shows nothing for an execution that has ended or whose tasks are not known yet. */
export function ExecutionProgress({ execution: { status, tasks }, usual, now }: ProgressProperties): Html | null {
  const progress = progressOf(status, tasks, usual, now.getTime());
  if (progress === null) return null;
  const { share, remainingMs } = progress;
  const percent = Math.floor(Math.min(0.99, share) * 100);
  return (
    <div class="progress">
      <progress max="100" value={percent} aria-label="Progress of the execution">
        {percent} %
      </progress>
      <span class="small soft">
        {remainingMs === null
          ? `${percent} % of tasks finished`
          : remainingMs === 0
            ? "taking longer than usual"
            : `about ${remainingMs < 60_000 ? `${Math.ceil(remainingMs / 1_000)} seconds` : toSpan(remainingMs)} left, estimated from recent runs of its tasks`}
      </span>
    </div>
  );
}
