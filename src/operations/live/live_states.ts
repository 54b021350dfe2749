/** The executions of a watched project as last read, with the version of each part: a part is sent only after it has changed. */

import { executionVerdict, hasEnded, sumTasks } from "../../rules/execution.ts";
import type { LiveExecution, LiveState, LiveTask } from "../../schema/live.ts";
import type { LiveRow, LiveRows } from "../../store/live.ts";

/** How long an execution is shown after its end, for slow readers. */
const SHOW_ENDED_MS = 60_000;
/** Maximum executions of a project, the newest, besides those that are followed by themselves. */
const MAX_SHOWN_EXECUTIONS = 100;

type State = LiveState & { text: string; taskTexts: Map<string, string>; endedAt: number | undefined };

/** The executions that the subscribers of a project want: single ones, and with `openToo` all that have not ended. */
export type Shown = { followed: ReadonlySet<string>; openToo: boolean };

export type LiveStates = {
  get(id: string): LiveState | undefined;
  has(id: string): boolean;
  ids(): string[];
  all(): LiveState[];
  /** Updates the states, and drops executions that are no longer shown. */
  update(rows: LiveRows, shown: Shown): void;
};

export function createLiveStates(monotonic: () => number): LiveStates {
  const states = new Map<string, State>();
  let version = 0;

  function apply(row: LiveRow, { xmax, keys }: LiveRows): void {
    const { execution, tasks, isOver } = toLive(row);
    const state: State = states.get(row.id) ?? {
      ...{ version: 0, execution, executionVersion: 0, tasks: new Map(), isOver, xmax, keys },
      ...{ text: "", taskTexts: new Map(), endedAt: undefined },
    };
    states.set(row.id, state);
    const text = JSON.stringify(execution);
    if (text !== state.text) {
      Object.assign(state, { text, execution });
      state.version = state.executionVersion = ++version;
    }
    for (const task of tasks) {
      const text = JSON.stringify(task);
      if (text === state.taskTexts.get(task.slug)) continue;
      state.taskTexts.set(task.slug, text);
      state.version = ++version;
      state.tasks.set(task.slug, { task, version });
    }
    Object.assign(state, { isOver, xmax, keys });
    state.endedAt = isOver ? (state.endedAt ?? monotonic()) : undefined;
  }

  function forget(existing: ReadonlySet<string>, { followed, openToo }: Shown): void {
    let count = 0;
    // Newest first: ids begin with the time of their creation.
    for (const [id, { endedAt }] of [...states].sort(([a], [b]) => (a < b ? 1 : -1))) {
      const isRecent = endedAt === undefined || monotonic() - endedAt < SHOW_ENDED_MS;
      const isShown = openToo && isRecent && ++count <= MAX_SHOWN_EXECUTIONS;
      if (!existing.has(id) || !(followed.has(id) || isShown)) states.delete(id);
    }
  }

  return {
    get: (id) => states.get(id),
    has: (id) => states.has(id),
    ids: () => [...states.keys()],
    all: () => [...states.values()],
    update(rows, shown) {
      for (const row of rows.executions) apply(row, rows);
      forget(new Set(rows.executions.map(({ id }) => id)), shown);
    },
  };
}

function toLive({ running, tasks, ...row }: LiveRow) {
  const [passed, failed, skipped] = [sumTasks(tasks, "passed"), sumTasks(tasks, "failed"), sumTasks(tasks, "skipped")];
  const counts = { passed, failed, skipped, total: passed + failed + skipped, flaky: sumTasks(tasks, "flaky") };
  const execution: LiveExecution = { ...row, ...counts, verdict: executionVerdict(row.status, tasks) };
  return {
    execution,
    tasks: tasks.map(({ flaky: _, verdict: __, declared: ___, ...task }): LiveTask => ({
      ...task,
      total: task.passed + task.failed + task.skipped,
    })),
    isOver: hasEnded(execution.status) && running === 0,
  };
}
