/** Reads changes of projects for the subscribers of this server: each project is read once for all of them. */

import type { Database } from "../../database/connect.ts";
import { firstIdAt } from "../../database/time_bounds.ts";
import { before } from "../../rules/stream_position.ts";
import type { Live } from "../../schema/live.ts";
import { selectLiveEvents, settleForeign } from "../../store/live.ts";
import { createLimit } from "../../turns.ts";
import { createWatchedProject, type WatchedProject } from "./live_project.ts";

/** Maximum clients that catch up at the same time: the pool is for others, too. */
const MAX_CATCHING_UP = 2;
/** Events are deleted after this time; see work/prune.ts. */
const KEPT_DAYS = 7;
/** In a restored database the position is found by the time in ids of events. No transaction takes longer than this. */
const LONGEST_TRANSACTION_SECONDS = 120;

type LiveOptions = { onError: (error: unknown) => void; monotonic?: () => number };

export function createLive(database: Pick<Database, "pool" | "begin">, options: LiveOptions): Live {
  const { pool, begin } = database;
  const { onError, monotonic = () => performance.now() } = options;
  const source = { pool, begin, onError, monotonic };
  const projects = new Map<string, WatchedProject>();
  const catchingUp = createLimit(MAX_CATCHING_UP);

  return {
    watch(projectId, executionId, onKeys) {
      const known = projects.get(projectId);
      if (known) return known.watch(executionId, onKeys);
      const project = createWatchedProject(projectId, source);
      projects.set(projectId, project);
      const watch = project.watch(executionId, onKeys);
      void project.follow(() => projects.delete(projectId));
      return watch;
    },

    read: (projectId, executionId, after) =>
      catchingUp.run(() =>
        selectLiveEvents(pool, projectId, {
          after,
          executionId,
          executionIds: executionId === undefined ? [] : [executionId],
        }),
      ),

    async enter(projectId, executionId, after) {
      const { here, xmax } = await catchingUp.run(() => settleForeign(pool, projectId, executionId));
      // The stream of an execution starts with its beginning, that of a project now.
      if (!after) return { start: executionId === undefined ? here : before(0, here.at), gap: undefined };
      if (after.xact > xmax) {
        const event = firstIdAt((after.at - LONGEST_TRANSACTION_SECONDS) * 1000);
        const gap = "The database was restored: some of the following events may have been sent before";
        return { start: { ...before(0, after.at), event }, gap };
      }
      const isOld = after.at < here.at - KEPT_DAYS * 86_400;
      const gap = `Events are kept for ${KEPT_DAYS} days: older events are not sent`;
      return { start: after, gap: isOld ? gap : undefined };
    },
  };
}
