/** A watched project: it is read once a second for all subscribers. */

import type { Database } from "../../database/connect.ts";
import { hasEnded } from "../../rules/execution.ts";
import type { LiveReading, Position, LiveWatch } from "../../schema/live.ts";
import { watchExecutions } from "./watched.ts";
import { selectHere, selectLiveExecutions, selectLiveEvents } from "../../store/live.ts";
import { createLiveStates, type LiveStates } from "./live_states.ts";

const READ_EVERY_MS = 1_000;
/** After this time watchers learn that nothing could be read. They go on: a database that is down may come back. */
const READ_TIMEOUT_MS = 5_000;
/** Runners send logs more often while an execution is watched. The mark is renewed at this interval. */
const MARK_WATCHED_EVERY_MS = 5_000;
const WATCHED_SECONDS = 10;

type LiveSource = Pick<Database, "pool" | "begin"> & {
  onError: (error: unknown) => void;
  monotonic: () => number;
};

type Watcher = {
  executionId: string | undefined;
  onKeys: (keys: readonly string[]) => void;
  resolve: ((batch: LiveReading | undefined) => void) | undefined;
  /** Whether a reading has included what this watcher shows. */
  isRead: boolean;
};

type Project = {
  id: string;
  source: LiveSource;
  watchers: Set<Watcher>;
  states: LiveStates;
  position: Position | undefined;
  markedAt: number;
  /** A new watcher waits for the next reading. */
  isWanted: boolean;
  wake: (() => void) | undefined;
};

export type WatchedProject = {
  watch(executionId: string | undefined, onKeys: Watcher["onKeys"]): LiveWatch;
  /** Reads as long as there are watchers, and then calls `onEnd`. Call it once, after the first watch. */
  follow(onEnd: () => void): Promise<void>;
};

export function createWatchedProject(id: string, source: LiveSource): WatchedProject {
  const project: Project = {
    ...{ id, source, watchers: new Set(), states: createLiveStates(source.monotonic), position: undefined },
    ...{ markedAt: -Infinity, isWanted: false, wake: undefined },
  };
  return {
    watch: (executionId, onKeys) => watch(project, executionId, onKeys),
    follow: (onEnd) => follow(project, onEnd),
  };
}

function watch(project: Project, executionId: string | undefined, onKeys: Watcher["onKeys"]): LiveWatch {
  const watcher: Watcher = { executionId, onKeys, resolve: undefined, isRead: false };
  project.watchers.add(watcher);
  project.isWanted = true;
  // A new subscriber watches this execution; its runners are notified with the next reading.
  if (executionId !== undefined && !project.states.has(executionId)) project.markedAt = -Infinity;
  project.wake?.();
  let isOver = false;
  return {
    next: () =>
      new Promise((resolve) => {
        if (isOver) resolve(undefined);
        else watcher.resolve = resolve;
      }),
    states() {
      if (executionId === undefined) return project.states.all();
      const state = project.states.get(executionId);
      return state ? [state] : watcher.isRead ? "gone" : [];
    },
    end() {
      isOver = true;
      project.watchers.delete(watcher);
      watcher.resolve?.(undefined);
    },
  };
}

const followedIn = ({ watchers }: Project): string[] => [...watchers].flatMap(({ executionId }) => executionId ?? []);

/** Changes nothing: a reading that comes too late is not used. */
async function read(project: Project) {
  const { pool } = project.source;
  const watchers = [...project.watchers];
  const followed = new Set(followedIn(project));
  const openToo = watchers.some(({ executionId }) => executionId === undefined);
  const asked = new Set([...followed, ...project.states.ids()]);
  // The states first: the news that are read after them include everything that led to them.
  const rows = await selectLiveExecutions(pool, project.id, [...asked], openToo);
  const from = project.position ?? (await selectHere(pool));
  const page = await selectLiveEvents(pool, project.id, { after: from, executionIds: [...followed] });
  return { watchers, shown: { followed, openToo }, rows, batch: { ...page, from } };
}

function take(project: Project, { watchers, shown, rows, batch }: Awaited<ReturnType<typeof read>>): LiveReading {
  // Checks keys first, so that a watcher without access ends before it gets anything.
  for (const watcher of project.watchers) for (const keys of [rows.keys, batch.keys]) watcher.onKeys(keys);
  project.position = batch.to;
  project.states.update(rows, shown);
  for (const watcher of watchers) watcher.isRead = true;
  return batch;
}

/** Marks the watched executions. Runners send more often for them, and waiting ones are notified at once when watching begins. */
async function markWatched(project: Project): Promise<void> {
  const { begin, monotonic } = project.source;
  if (monotonic() - project.markedAt < MARK_WATCHED_EVERY_MS) return;
  const ids = followedIn(project).filter((id) => {
    const state = project.states.get(id);
    return state?.execution.mode === "run" && !hasEnded(state.execution.status);
  });
  if (ids.length === 0) return;
  project.markedAt = monotonic();
  await begin((sql) => watchExecutions(sql, project.id, [...new Set(ids)], WATCHED_SECONDS));
}

async function follow(project: Project, onEnd: () => void): Promise<void> {
  const { onError, monotonic } = project.source;
  let running: Promise<LiveReading | undefined> | undefined;
  while (project.watchers.size > 0) {
    const began = monotonic();
    project.isWanted = false;
    let isLate = false;
    // A reading that takes too long is waited for, and its result is not used.
    running ??= read(project)
      .then((reading) => (isLate ? undefined : take(project, reading)))
      .catch((error) => void onError(error));
    const current = running.finally(() => (running = undefined));
    const batch = await Promise.race([current, Bun.sleep(READ_TIMEOUT_MS).then(() => undefined)]);
    isLate = true;
    for (const watcher of project.watchers) {
      watcher.resolve?.(batch);
      watcher.resolve = undefined;
    }
    if (batch) void markWatched(project).catch(onError);
    if (batch && !batch.isWhole) continue;
    if (project.isWanted) continue;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(0, READ_EVERY_MS - (monotonic() - began)));
    project.wake = resolve;
    await promise;
    clearTimeout(timer);
  }
  // In the same synchronous step as the check above, because a later watcher needs a new project.
  onEnd();
}
