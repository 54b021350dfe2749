/** Publishes the events of an execution that has ended or changed. */

import { lineOf } from "../../rules/branch.ts";
import { type BranchState, type BranchTask, isGreen } from "../../rules/branch_state.ts";
import { sumTasks } from "../../rules/execution.ts";
import { executionReason } from "../../wording/reasons.ts";
import type { EventData, ExecutionData, NewEvent } from "../../schema/events.ts";
import { countBlames } from "./failures.ts";
import type { BlameCounts } from "../../schema/failures.ts";
import { type Fragment, type Tx, writeTogether } from "../../database/connect.ts";
import { insertEvents, selectRedTasks, updateRedTasks } from "../../store/events.ts";
import { selectTasks, type TaskRow } from "../../store/execution_tasks.ts";
import type { LockedExecution } from "../../store/executions.ts";
import { selectBranchState, selectIsLeftBehind } from "../../store/state.ts";
import { toOrigin } from "./origin.ts";

/** An execution may have hundreds of tasks; who is told of it wants to read the worst ones. */
const MAX_TASKS = 20;
const MAX_RED_TASKS = 100;

/** By branch, and whether it is of the sample data. */
export type BranchStates = Map<string, BranchState>;

const isRed = ({ verdict, status }: TaskRow) => verdict === "failed" || status === "timed_out";

/** Also one whose runners were lost, which was over before its execution. */
const isMissed = ({ declared, attempt, status }: TaskRow) => declared && attempt === 0 && status === "timed_out";

type Ending = { origin: ExecutionData; tasks: readonly TaskRow[] };

/** Tells what the end of an execution, or a change after it, means for its branch. */
type BranchNews = { red: string[]; began: string[]; recovery: { stillRed: string[] } | null };
const NO_NEWS: BranchNews = { red: [], began: [], recovery: null };

/**
 * Notes the red tasks of the branch. Not all results are the newest ones of the branch: those of a rerun of an older build, of an execution
 * that ends or changes after a newer one has begun, or of a commit that was built before. Then the state of the branch decides.
 */
async function updateBranch(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  {
    origin,
    tasks,
    writes,
    isChange,
    states,
  }: Ending & { writes: Fragment[]; isChange: boolean; states?: BranchStates | undefined },
): Promise<BranchNews> {
  const { defaultBranch, buildId, sample } = execution;
  const branch = lineOf(origin, defaultBranch);
  const isDefault = branch === defaultBranch;
  const readState = async () => {
    if (writes.length > 0) states?.clear();
    await writeTogether(sql, writes.splice(0));
    const key = `${branch} ${sample}`;
    const state = states?.get(key) ?? (await selectBranchState(sql, projectId, { branch, isDefault, sample }));
    states?.set(key, state);
    return state;
  };
  let own = tasks.map((task) => ({ slug: task.slug, failed: isRed(task) }));
  if (own.length === 0) own = [{ slug: "", failed: origin.status !== "passed" }];
  if (!own.some(({ failed }) => failed) && (await selectRedTasks(sql, projectId, branch)).length === 0) return NO_NEWS;
  const isOld =
    buildId !== null || isChange || (await selectIsLeftBehind(sql, projectId, { ...origin, branch, isDefault }));
  if (isOld) {
    const red = (await readState()).tasks.flatMap((task) => (isGreen(task) ? [] : task.slug));
    own = own.map(({ slug }) => ({ slug, failed: red.includes(slug) }));
  }
  const { began, ended, left } = await updateRedTasks(sql, projectId, branch, own);
  const red = own.flatMap(({ slug, failed }) => (failed ? slug : []));
  if (ended.length === 0 || origin.status !== "passed") return { red, began, recovery: null };
  const state = await readState();
  const isStillRed = ({ slug, status }: BranchTask) => !isGreen({ status }) || left.includes(slug);
  const stillRed = state.tasks.filter(isStillRed).map(({ slug }) => slug);
  return { red, began, recovery: { stillRed: stillRed.slice(0, MAX_TASKS) } };
}

/** `writes` are made before the state of the branch is asked for, if it is. */
export async function announceEnd(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  {
    blames: known,
    states,
    ...ending
  }: Ending & { writes: Fragment[]; blames?: BlameCounts | undefined; states?: BranchStates | undefined },
): Promise<NewEvent[]> {
  const { origin, tasks } = ending;
  const blames = sumTasks(tasks, "failed") > 0 ? (known ?? (await countBlames(sql, projectId, origin.id))) : {};
  const news = await updateBranch(sql, projectId, execution, { ...ending, states, isChange: false });
  return toEndEvents(execution, { origin, tasks, blames, ...news });
}

/** A report has changed the results of an execution that had ended. It may have turned its branch red or green, as the end of another may. */
export async function announceResults(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  { origin, tasks, writes }: Ending & { writes: Fragment[] },
): Promise<NewEvent[]> {
  const changed = await toChangedEvents(sql, projectId, execution, { origin, tasks });
  const news = await updateBranch(sql, projectId, execution, { origin, tasks, writes, isChange: true });
  const data = changed[0]!.data.execution!;
  const isBroken = news.began.length > 0 && origin.status !== "passed";
  return [...changed, ...toBranchEvents(execution, data, isBroken ? { ...news, recovery: null } : news, isBroken)];
}

/** The results of an execution that had ended have changed, or it was cancelled. */
export async function toChangedEvents(
  sql: Tx,
  projectId: string,
  { depth }: Pick<LockedExecution, "depth">,
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

function toEndData({ origin, tasks, blames }: Outcome): EndData {
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

type EndData = EventData["execution"] & object;

/** The events for those who wait for a branch to turn red or green. */
function toBranchEvents(
  { depth }: Pick<LockedExecution, "depth">,
  execution: EndData,
  { red, recovery }: Pick<BranchNews, "red" | "recovery">,
  hasFailed: boolean,
): NewEvent[] {
  const toEvent = (type: NewEvent["type"], more: Partial<EndData>): NewEvent => ({
    ...{ type, depth, data: { execution: { ...execution, ...more } } },
  });
  if (hasFailed) return [toEvent("execution.failed", { redTasks: red.slice(0, MAX_RED_TASKS) })];
  return recovery ? [toEvent("execution.recovered", recovery)] : [];
}

export function toEndEvents(
  { depth, trigger }: LockedExecution,
  { red, recovery, ...outcome }: Outcome & Omit<BranchNews, "began">,
): NewEvent[] {
  const { origin, tasks } = outcome;
  const execution = toEndData(outcome);
  return [
    { type: "execution.completed", depth, data: { execution } },
    ...toBranchEvents({ depth }, execution, { red, recovery }, origin.status !== "passed"),
    // Only what a schedule has asked for was expected.
    ...(trigger === "schedule" ? tasks.filter(isMissed) : []).map(({ slug, reason }): NewEvent => ({
      type: "task.missed",
      depth,
      data: { execution, taskSlug: slug, ...(reason === null ? {} : { reason }) },
    })),
  ];
}
