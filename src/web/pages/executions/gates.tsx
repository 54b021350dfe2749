/** The decisions of gates on the page of an execution, by task. */

import type { Sql } from "../../../database/connect.ts";
import type { Html } from "../../../http/html.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import { selectGatesOfExecution, type TaskStoredGates } from "../../../store/gate.ts";
import { sumTasks } from "../../../rules/execution.ts";
import { forgivenWords } from "../../../wording/gate.ts";
import { counted } from "../../../wording/numbers.ts";
import { Breakable } from "../../components/text.tsx";
import { taskPath } from "../../site/paths.ts";

/** Maximum number of tasks whose gates are shown. */
const MAX_TASKS = 20;

export const readGates = async (
  sql: Sql,
  projectId: string,
  { id, tasks }: ExecutionRow,
): Promise<TaskStoredGates[]> =>
  sumTasks(tasks, "failed") === 0 ? [] : await selectGatesOfExecution(sql, projectId, id, MAX_TASKS);

type GatesProperties = { projectId: string; executionId: string; tasks: readonly TaskStoredGates[] };

/** Names the tasks that a gate has let pass; each links to the page with the names of the failures. */
export function TaskGates({ projectId, executionId, tasks }: GatesProperties): Html | null {
  const passed = tasks.flatMap(({ taskSlug, gates }) => {
    const passing = gates.filter(({ pass, forgivenCount }) => pass && forgivenCount > 0);
    const forgiven = passing.flatMap((gate) => gate.forgiven);
    const count = passing.reduce((sum, gate) => sum + gate.forgivenCount, 0);
    return count === 0 ? [] : [{ taskSlug, count, reasons: reasonCounts(forgiven) }];
  });
  if (passed.length === 0) return null;
  const total = passed.reduce((sum, { count }) => sum + count, 0);
  return (
    <div class="message good" role="note">
      <p>Passed the gate: {forgivenWords(total)}</p>
      <ul class="plain small">
        {passed.map(({ taskSlug, count, reasons }) => (
          <li>
            <a href={taskPath(projectId, executionId, taskSlug)}>
              <Breakable text={taskSlug} />
            </a>
            : {counted(count, "failure")} <span class="soft">{reasons.join("; ")}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

const MAX_REASONS = 5;

/** The reasons of forgiven failures, the most frequent first. */
function reasonCounts(forgiven: readonly { reason: string }[]): string[] {
  const byReason = [...Map.groupBy(forgiven, ({ reason }) => reason)].sort(([, a], [, b]) => b.length - a.length);
  return byReason.slice(0, MAX_REASONS).map(([reason]) => reason);
}
