/** The live stream of a project or an execution: its requests, its events, and the position of a client. */

import * as v from "valibot";
import type { EventData, EventType } from "./events.ts";
import { execution, task } from "./executions.ts";
import { uuid } from "./fields.ts";

export const eventsQuery = v.strictObject({
  execution_id: v.pipe(
    v.optional(uuid),
    v.description("Only events of this execution, and the output of its tasks; the stream ends with it"),
  ),
});

/**
 * The position of a stream: everything of transactions before `xact` was sent, and of that transaction the events up to `event`, then the
 * parts of logs up to `start` of `lease`. `at` is the approximate time in Unix seconds.
 */
export type Position = { xact: number; event: string; lease: string; start: number; at: number };

/** An event or part of a log, sent once. */
export type LiveItem = { position: Position } & (
  | { kind: "event"; id: string; type: EventType; data: EventData; occurredAt: string }
  | {
      kind: "log";
      executionId: string;
      taskSlug: string;
      /** 0: the whole task. */
      shard: number;
      leaseId: string;
      /** Offset of the first byte within the whole log. */
      offset: number;
      bytes: Uint8Array;
    }
);

/** The events and logs between two positions. `isWhole`: up to the time of the reading. */
export type LivePage = {
  news: LiveItem[];
  to: Position;
  isWhole: boolean;
  /** The keys of the project that were live when this was read. */
  keys: string[];
};

/** A task as streams show it: what changes while it runs. */
export const liveTask = v.omit(task, ["tags", "missingShards", "slower"]);
export type LiveTask = v.InferOutput<typeof liveTask>;

/** An execution as streams show it, without its tasks and its address. */
export const liveExecution = v.omit(execution, [
  ...(["commitAuthor", "commitSubject", "repeatedStatus", "tasks", "durationMs", "machineTimeMs"] as const),
  ...(["reason", "untrusted", "probe", "newTests", "url", "sample"] as const),
]);
export type LiveExecution = v.InferOutput<typeof liveExecution>;

/** An execution as last read, with counters of the last change of each part. */
export type LiveState = {
  version: number;
  execution: LiveExecution;
  executionVersion: number;
  tasks: Map<string, { task: LiveTask; version: number }>;
  /** Whether it has ended, and no lease of it is open any more. */
  isOver: boolean;
  /** The snapshot that it was read from shows no transaction from this number on. */
  xmax: number;
  keys: string[];
};

/** The result of one reading of a project, shared by all subscribers. */
export type LiveReading = LivePage & { from: Position };

export type LiveWatch = {
  /** The next reading; undefined where it failed, or the watch has ended. */
  next(): Promise<LiveReading | undefined>;
  /** The watched executions as last read; "gone": the watched one was deleted. */
  states(): LiveState[] | "gone";
  end(): void;
};

export type Live = {
  /** `onKeys` gets the live keys of the project with every reading. */
  watch(projectId: string, executionId: string | undefined, onKeys: (keys: readonly string[]) => void): LiveWatch;
  /** Reads what follows a position, for subscribers that have fallen behind. */
  read(projectId: string, executionId: string | undefined, after: Position): Promise<LivePage>;
  /** Before anything is read: where a stream begins that has come to `after`, and whether something is missing there. */
  enter(
    projectId: string,
    executionId: string | undefined,
    after: Position | undefined,
  ): Promise<{ start: Position; gap: string | undefined }>;
};
