/** Reads once a second what happens in the projects that are watched, for all who watch them from this server. */

import { before } from "../rules/position.ts";
import { executionVerdict, hasEnded } from "../rules/execution.ts";
import type { Batch, Live, LiveExecution, LiveState, LiveTask, Position } from "../schema/live.ts";
import type { Database } from "../database/connect.ts";
import { firstIdAt } from "../database/moment.ts";
import {
  type LiveRow,
  type LiveRows,
  selectHere,
  selectLiveExecutions,
  selectNews,
  settleForeign,
  updateWatched,
} from "../store/live.ts";
import { notifyLeases } from "../database/signals.ts";

const READ_EVERY_MS = 1_000;
/** Who watches learns that nothing could be read, and goes on: a database that is away may come back. */
const PATIENCE_MS = 5_000;
/** So many of those that have fallen behind read at a time: the pool is for others, too. */
const READERS = 2;
/** Runners tell more often while somebody looks. */
const LOOK_EVERY_MS = 5_000;
const LOOKS_SECONDS = 10;
/** What has ended is shown to slow readers for so long. */
const SHOW_ENDED_MS = 60_000;
/** Of a project, the newest, beside those that are watched by themselves. */
const SHOWN = 100;
/** Events are forgotten after as many; see work/prune.ts. */
const KEPT_DAYS = 7;
/** In a restored database events are found again by the time in their ids: no transaction takes longer. */
const LONGEST_SECONDS = 120;

type Watcher = {
  executionId: string | undefined;
  onKeys: (keys: readonly string[]) => void;
  resolve: ((batch: Batch | undefined) => void) | undefined;
  /** With the first reading that was for it, too. */
  isRead: boolean;
};

type State = LiveState & { text: string; taskTexts: Map<string, string>; endedAt: number | undefined };

type Project = {
  id: string;
  watchers: Set<Watcher>;
  states: Map<string, State>;
  position: Position | undefined;
  lookedAt: number;
  /** Somebody new waits for the next reading. */
  isWanted: boolean;
  wake: (() => void) | undefined;
};

type LiveOptions = { onError: (error: unknown) => void; monotonic?: () => number };

export function createLive(database: Pick<Database, "pool" | "begin">, options: LiveOptions): Live {
  const { pool, begin } = database;
  const { onError, monotonic = () => performance.now() } = options;
  const projects = new Map<string, Project>();
  const line: (() => void)[] = [];
  let reading = 0;
  let clock = 0;

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (reading < READERS) reading++;
    else await new Promise<void>((resolve) => line.push(resolve));
    try {
      return await work();
    } finally {
      const next = line.shift();
      if (next) next();
      else reading--;
    }
  }

  /** Nothing is changed here: what comes too late is not used. */
  async function read(project: Project) {
    const watchers = [...project.watchers];
    const followed = new Set(watchers.flatMap(({ executionId }) => executionId ?? []));
    const openToo = watchers.some(({ executionId }) => executionId === undefined);
    const asked = new Set([...followed, ...project.states.keys()]);
    // The states first: with the news that are read after them everything has been told that led to them.
    const rows = await selectLiveExecutions(pool, project.id, [...asked], openToo);
    const from = project.position ?? (await selectHere(pool));
    const page = await selectNews(pool, project.id, { after: from, executionIds: [...followed] });
    return { watchers, followed, openToo, rows, batch: { ...page, from } };
  }

  function take(project: Project, { watchers, followed, openToo, rows, batch }: Awaited<ReturnType<typeof read>>) {
    // Who may not see it any more is gone before it is there.
    for (const watcher of project.watchers) for (const keys of [rows.keys, batch.keys]) watcher.onKeys(keys);
    project.position = batch.to;
    note(project, rows);
    const there = new Set(rows.executions.map(({ id }) => id));
    let shown = 0;
    // By their ids, newest first.
    for (const [id, { endedAt }] of [...project.states].sort(([a], [b]) => (a < b ? 1 : -1))) {
      const isShown = openToo && (endedAt === undefined || monotonic() - endedAt < SHOW_ENDED_MS) && ++shown <= SHOWN;
      if (!there.has(id) || !(followed.has(id) || isShown)) project.states.delete(id);
    }
    for (const watcher of watchers) watcher.isRead = true;
    return batch;
  }

  function note(project: Project, { xmax, keys, executions }: LiveRows): void {
    for (const row of executions) {
      const { execution, tasks, isOver } = toLive(row);
      const state: State = project.states.get(row.id) ?? {
        ...{ version: 0, execution, executionVersion: 0, tasks: new Map(), isOver, xmax, keys },
        ...{ text: "", taskTexts: new Map(), endedAt: undefined },
      };
      project.states.set(row.id, state);
      const text = JSON.stringify(execution);
      if (text !== state.text) {
        Object.assign(state, { text, execution });
        state.version = state.executionVersion = ++clock;
      }
      for (const task of tasks) {
        const text = JSON.stringify(task);
        if (text === state.taskTexts.get(task.slug)) continue;
        state.taskTexts.set(task.slug, text);
        state.version = ++clock;
        state.tasks.set(task.slug, { task, version: clock });
      }
      Object.assign(state, { isOver, xmax, keys });
      state.endedAt = isOver ? (state.endedAt ?? monotonic()) : undefined;
    }
  }

  /** Runners send more often what is looked at, and those that wait are told at once when somebody begins to look. */
  async function look(project: Project): Promise<void> {
    if (monotonic() - project.lookedAt < LOOK_EVERY_MS) return;
    const followed = [...project.watchers].flatMap(({ executionId }) => executionId ?? []);
    const ids = followed.filter((id) => {
      const state = project.states.get(id);
      return state?.execution.mode === "run" && !hasEnded(state.execution.status);
    });
    if (ids.length === 0) return;
    project.lookedAt = monotonic();
    await begin(async (sql) => {
      if (await updateWatched(sql, project.id, [...new Set(ids)], LOOKS_SECONDS)) await notifyLeases(sql, project.id);
    });
  }

  async function follow(project: Project): Promise<void> {
    let running: Promise<Batch | undefined> | undefined;
    while (project.watchers.size > 0) {
      const began = monotonic();
      project.isWanted = false;
      let isLate = false;
      // One that takes too long is waited for, and what it has read is not used.
      running ??= read(project)
        .then((found) => (isLate ? undefined : take(project, found)))
        .catch((error) => void onError(error));
      const current = running.finally(() => (running = undefined));
      const batch = await Promise.race([current, Bun.sleep(PATIENCE_MS).then(() => undefined)]);
      isLate = true;
      for (const watcher of project.watchers) {
        watcher.resolve?.(batch);
        watcher.resolve = undefined;
      }
      if (batch) void look(project).catch(onError);
      if (batch && !batch.isWhole) continue;
      if (project.isWanted) continue;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, Math.max(0, READ_EVERY_MS - (monotonic() - began)));
      project.wake = resolve;
      await promise;
      clearTimeout(timer);
    }
    projects.delete(project.id);
  }

  return {
    watch(projectId, executionId, onKeys) {
      let project = projects.get(projectId);
      const isNew = project === undefined;
      project ??= {
        ...{ id: projectId, watchers: new Set(), states: new Map(), position: undefined, lookedAt: -Infinity },
        ...{ isWanted: false, wake: undefined },
      };
      projects.set(projectId, project);
      const watcher: Watcher = { executionId, onKeys, resolve: undefined, isRead: false };
      project.watchers.add(watcher);
      project.isWanted = true;
      // Somebody begins to look at this one.
      if (executionId !== undefined && !project.states.has(executionId)) project.lookedAt = -Infinity;
      project.wake?.();
      if (isNew) void follow(project);
      let isOver = false;
      return {
        next: () =>
          new Promise((resolve) => {
            if (isOver) resolve(undefined);
            else watcher.resolve = resolve;
          }),
        states() {
          if (executionId === undefined) return [...project.states.values()];
          const state = project.states.get(executionId);
          return state ? [state] : watcher.isRead ? "gone" : [];
        },
        end() {
          isOver = true;
          project.watchers.delete(watcher);
          watcher.resolve?.(undefined);
        },
      };
    },

    read: (projectId, executionId, after) =>
      inTurn(() =>
        selectNews(pool, projectId, {
          after,
          executionId,
          executionIds: executionId === undefined ? [] : [executionId],
        }),
      ),

    async enter(projectId, executionId, after) {
      const { here, xmax } = await inTurn(() => settleForeign(pool, projectId, executionId));
      // An execution is told from its beginning, a project from now on.
      if (!after) return { start: executionId === undefined ? here : before(0, here.at), gap: undefined };
      if (after.xact > xmax) {
        const event = firstIdAt((after.at - LONGEST_SECONDS) * 1000);
        const gap = "The database was restored: some of what follows may have been told before";
        return { start: { ...before(0, after.at), event }, gap };
      }
      const isOld = after.at < here.at - KEPT_DAYS * 86_400;
      const gap = `Events are kept for ${KEPT_DAYS} days: what was before the next one is not told`;
      return { start: after, gap: isOld ? gap : undefined };
    },
  };
}

function toLive({ running, tasks, ...row }: LiveRow) {
  const sum = (name: "passed" | "failed" | "skipped" | "flaky") => tasks.reduce((total, task) => total + task[name], 0);
  const [passed, failed, skipped] = [sum("passed"), sum("failed"), sum("skipped")];
  const counts = { passed, failed, skipped, total: passed + failed + skipped, flaky: sum("flaky") };
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
