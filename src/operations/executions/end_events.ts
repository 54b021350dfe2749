/** Publishes the events of an execution that has ended or changed. */

import { lineOf } from "../../rules/branch.ts";
import { isGreen } from "../../rules/branch_state.ts";
import { sumTasks } from "../../rules/execution.ts";
import { executionReason } from "../../wording/reasons.ts";
import type { EventData, ExecutionData, NewEvent } from "../../schema/events.ts";
import { countBlames } from "./failures.ts";
import type { BlameCounts } from "../../schema/failures.ts";
import { type Fragment, type Tx, writeTogether } from "../../database/connect.ts";
import { insertEvents, updateRedTasks } from "../../store/events.ts";
import { selectTasks, type TaskRow } from "../../store/execution_tasks.ts";
import type { LockedExecution } from "../../store/executions.ts";
import { selectBranchState } from "../../store/state.ts";
import { toOrigin } from "./origin.ts";

/** An execution may have hundreds of tasks; who is told of it wants to read the worst ones. */
const MAX_TASKS = 20;

const isRed = ({ verdict, status }: TaskRow) => verdict === "failed" || status === "timed_out";

/** Also one whose runners were lost, which was over before its execution. */
const isMissed = ({ declared, attempt, status }: TaskRow) => declared && attempt === 0 && status === "timed_out";

type Ending = { origin: ExecutionData; tasks: readonly TaskRow[] };

/** `writes` are made before the state of the branch is asked for, if it is. */
export async function announceEnd(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  { origin, tasks, writes }: Ending & { writes: Fragment[] },
): Promise<NewEvent[]> {
  const branch = lineOf(origin, execution.defaultBranch);
  const blames = sumTasks(tasks, "failed") > 0 ? await countBlames(sql, projectId, origin.id) : {};
  const selectStillRed = async () => {
    await writeTogether(sql, writes.splice(0));
    const of = { branch, isDefault: branch === execution.defaultBranch, sample: execution.sample };
    const { tasks } = await selectBranchState(sql, projectId, of);
    return tasks.filter((task) => !isGreen(task)).map(({ slug }) => slug);
  };
  let own = tasks.map((task) => ({ slug: task.slug, failed: isRed(task) }));
  if (own.length === 0) own = [{ slug: "", failed: origin.status !== "passed" }];
  // A rerun of an older build is not the newest result of the branch.
  if (execution.buildId !== null) {
    const red = await selectStillRed();
    own = own.map(({ slug }) => ({ slug, failed: red.includes(slug) }));
  }
  const ended = await updateRedTasks(sql, projectId, branch, own);
  if (ended.length === 0 || origin.status !== "passed")
    return toEndEvents(execution, { origin, tasks, blames, recovery: null });
  const stillRed = await selectStillRed();
  return toEndEvents(execution, { origin, tasks, blames, recovery: { stillRed: stillRed.slice(0, MAX_TASKS) } });
}

/** A report has changed the results of an execution that had ended. */
export async function toChangedEvents(
  sql: Tx,
  projectId: string,
  { depth }: LockedExecution,
  { origin, tasks }: Ending,
): Promise<NewEvent[]> {
  const blames = sumTasks(tasks, "failed") > 0 ? await countBlames(sql, projectId, origin.id) : {};
  return [{ type: "execution.changed", depth, data: { execution: toEndData({ origin, tasks, blames }) } }];
}

/** Announces a change of a locked execution that has ended, such as the results of its new tests. */
export async function announceChange(sql: Tx, projectId: string, execution: LockedExecution): Promise<void> {
  const tasks = await selectTasks(sql, projectId, execution.id);
  const events = await toChangedEvents(sql, projectId, execution, { origin: toOrigin(execution), tasks });
  await insertEvents(sql, projectId, events);
}

type Outcome = Ending & { blames: Partial<BlameCounts> };

function toEndData({ origin, tasks, blames }: Outcome): EventData["execution"] & object {
  const [passed, failed, skipped] = [sumTasks(tasks, "passed"), sumTasks(tasks, "failed"), sumTasks(tasks, "skipped")];
  const reason = executionReason(origin.status, tasks);
  const worstFirst = tasks.toSorted((a, b) => Number(isRed(b)) - Number(isRed(a)));
  return {
    ...origin,
    passed,
    failed,
    skipped,
    total: passed + failed + skipped,
    flaky: sumTasks(tasks, "flaky"),
    ...blames,
    ...(tasks.some(({ outage }) => outage) ? { outage: true } : {}),
    ...(reason === null ? {} : { reason }),
    redTaskCount: tasks.filter(isRed).length,
    taskCount: tasks.length,
    tasks: worstFirst.slice(0, MAX_TASKS).map(({ slug, status, passed, failed, skipped, verdict }) => {
      return { slug, status, passed, failed, skipped, verdict };
    }),
  };
}

export function toEndEvents(
  { depth, trigger }: LockedExecution,
  { recovery, ...outcome }: Outcome & { recovery: { stillRed: string[] } | null },
): NewEvent[] {
  const { origin, tasks } = outcome;
  const execution = toEndData(outcome);
  const toEvent = (type: NewEvent["type"], more: EventData = {}): NewEvent => ({
    type,
    depth,
    data: { execution, ...more },
  });
  const recovered = recovery ? [toEvent("execution.recovered", { execution: { ...execution, ...recovery } })] : [];
  return [
    toEvent("execution.completed"),
    ...(origin.status !== "passed" ? [toEvent("execution.failed")] : recovered),
    // Only what a schedule has asked for was expected.
    ...(trigger === "schedule" ? tasks.filter(isMissed) : []).map(({ slug, reason }) =>
      toEvent("task.missed", { taskSlug: slug, ...(reason === null ? {} : { reason }) }),
    ),
  ];
}
