/** The state of a branch: the latest result of each of its tasks. All code that shows a branch as red or green uses it. */

/** A task that has not run in so many of a branch's newest builds does not count any more. */
const CURRENT_BUILDS = 50;
/** Nor does one that has not run for so many days before the branch's newest build. */
const CURRENT_DAYS = 14;
/** The number of executions of a branch that are looked through for the moment at which a task became red or green. */
export const LOOKED_THROUGH = 200;

const DAY_MS = 86_400_000;

/** A result of a task in a build; of several executions of one build, the last. */
export type TaskResult = {
  slug: string;
  status: "passed" | "failed" | "incomplete" | "timed_out";
  passed: number;
  failed: number;
  /** The build; where it was repeated, `executionId` is the rerun that has the result. */
  buildId: string;
  executionId: string;
  /** `createdAt`: when the build began; `endedAt`: when the task ended in it. */
  createdAt: string;
  endedAt: string;
  /** 1: there is no newer build with results. */
  buildsAgo: number;
};

export type BranchTask = Pick<TaskResult, "slug" | "status" | "passed" | "failed"> & {
  /** When the task ended in the first build of the current streak of passes or failures. */
  since: string;
  /** The execution of `since`. */
  executionId: string;
  /** Whether the state is the same in all builds that were searched, so that it may have begun earlier. */
  isLonger: boolean;
  /** The execution with its latest result, and when the task ended in it. */
  lastExecutionId: string;
  lastAt: string;
};

export type BranchState = {
  /** Null: no task has a result. */
  state: "passed" | "failed" | null;
  /** If red: the first build of the task that has been red for longest; if green: the build in which the last task became green. */
  since: string | null;
  executionId: string | null;
  isLonger: boolean;
  /** The tasks that count: red ones first, each group in the order in which they became red or green. */
  tasks: BranchTask[];
  /** Tasks that have not run lately, and do not count. */
  missing: BranchTask[];
};

export const isGreen = ({ status }: Pick<TaskResult, "status">): boolean => status === "passed";

/**
 * `results` are, of each task in the order of the builds, at least the last one, and each whose colour differs from that of the one before.
 * `isAll`: there are no older ones.
 */
export function toBranchState(results: readonly TaskResult[], isAll: boolean): BranchState {
  const newest = Math.max(0, ...results.map(({ createdAt }) => Date.parse(createdAt)));
  const tasks: BranchTask[] = [];
  const missing: BranchTask[] = [];
  for (const [slug, own] of Map.groupBy(results, (result) => result.slug)) {
    const last = own.at(-1)!;
    const turn = own.findLastIndex((result) => isGreen(result) !== isGreen(last));
    const first = own[turn + 1]!;
    const task: BranchTask = {
      slug,
      status: last.status,
      passed: last.passed,
      failed: last.failed,
      since: first.endedAt,
      executionId: first.buildId,
      isLonger: turn === -1 && !isAll,
      lastExecutionId: last.executionId,
      lastAt: last.endedAt,
    };
    const isCurrent = last.buildsAgo <= CURRENT_BUILDS && Date.parse(last.createdAt) >= newest - CURRENT_DAYS * DAY_MS;
    (isCurrent ? tasks : missing).push(task);
  }
  const byTime = (a: BranchTask, b: BranchTask) =>
    Date.parse(a.since) - Date.parse(b.since) || (a.slug < b.slug ? -1 : 1);
  tasks.sort((a, b) => Number(isGreen(a)) - Number(isGreen(b)) || byTime(a, b));
  missing.sort((a, b) => Date.parse(b.lastAt) - Date.parse(a.lastAt) || (a.slug < b.slug ? -1 : 1));
  const red = tasks.filter((task) => !isGreen(task));
  const decides = red[0] ?? tasks.at(-1);
  return {
    state: decides === undefined ? null : red.length > 0 ? "failed" : "passed",
    since: decides?.since ?? null,
    executionId: decides?.executionId ?? null,
    isLonger: decides?.isLonger ?? false,
    tasks,
    missing,
  };
}
