/** Shows a status as a shape and a word, never by colour alone. */

import type { Html, Piece } from "../../http/html.ts";

/** The shape and the word of each status. */
const MARKS: Record<string, readonly [shape: string, word: string]> = {
  passed: ["●", "passed"],
  failed: ["✕", "failed"],
  flaky: ["◐", "flaky"],
  skipped: ["–", "skipped"],
  running: ["◌", "running"],
  queued: ["○", "queued"],
  cancelled: ["⊘", "cancelled"],
  timed_out: ["✕", "timed out"],
  incomplete: ["✕", "incomplete"],
  broken: ["✕", "broken"],
  healthy: ["●", "healthy"],
  new: ["○", "new"],
  removed: ["–", "removed"],
  open: ["○", "open"],
  in_progress: ["◌", "in progress"],
  resolved: ["●", "resolved"],
  ignored: ["–", "ignored"],
  regressed: ["▲", "regressed"],
};

export const wordOf = (status: string): string => MARKS[status]?.[1] ?? status.replaceAll("_", " ");

type MarkProperties = {
  status: string;
  /** The word for screen readers. Default: that of the status. False: the word is shown beside the mark. */
  word?: string | false;
};

/** Shows the coloured shape. */
export function Mark({ status, word }: MarkProperties): Html {
  const [shape, name] = MARKS[status] ?? ["○", status];
  const colour = status === "healthy" ? "passed" : status === "new" ? "queued" : status;
  return (
    <>
      <span class={`mark ${colour}`} aria-hidden="true">
        {shape}
      </span>
      {word === false ? null : <span class="visually-hidden">{word ?? name}</span>}
    </>
  );
}

const TASK_ORDER = ["timed_out", "incomplete", "failed", "running", "queued", "cancelled", "passed"];

/** Sorts tasks by status, the worst first, and then by the number of failures. */
export const worstFirst = <Task extends { status: string; failed: number }>(tasks: readonly Task[]): Task[] =>
  tasks.toSorted((a, b) => TASK_ORDER.indexOf(a.status) - TASK_ORDER.indexOf(b.status) || b.failed - a.failed);

/** Returns the status to show for a test: its health, but "failed" if a healthy or new test has failed last. */
export const testStatusOf = ({ health, lastStatus }: { health: string; lastStatus: string | null }): string =>
  lastStatus === "failed" && (health === "healthy" || health === "new") ? "failed" : health;

export const Tag = ({ kind = "", children }: { kind?: string; children?: Piece }): Html => (
  <span class={`tag${kind && ` ${kind}`}`}>{children}</span>
);
