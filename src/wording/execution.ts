/** Says the outcome of an execution in words: in a list, as the headline of its page, and in one line of text. */

import { BLAME_PHRASES } from "./blame.ts";
import { lineName } from "./execution_name.ts";
import { hasEnded, sumTasks } from "../rules/execution.ts";
import type { TaskEnd } from "../rules/red_reason.ts";
import { toShardList } from "../rules/shards.ts";
import type { Execution, ExecutionStatus } from "../schema/executions.ts";
import type { Blame } from "../schema/failures.ts";
import { toCount, counted, toDuration } from "./numbers.ts";
import { executionReason } from "./reasons.ts";
import { singleLine } from "./single_line.ts";
import type { TaskFigures } from "./task.ts";

export type ExecutionFigures = {
  status: string;
  mode: string;
  newFailures: number;
  unclearFailures: number;
  failed: number;
  passed: number;
  flaky: number;
  skipped: number;
  tasks: number;
  openTasks: number;
  outageFailures: number;
  redTasks: readonly TaskEnd[];
};

const OPEN = ["queued", "running"];

/** Returns the outcome of an execution in a list, the worst first: "3 new failures", "1,210 passed, 1 flaky", "running, 3 of 5 tasks". */
export function executionOutcome(execution: ExecutionFigures): string {
  const { status, newFailures, unclearFailures, failed, passed, flaky, skipped, tasks, openTasks, outageFailures } =
    execution;
  // No known task is running: the last upload or a time limit ends the execution.
  if (status === "running" && tasks > 0 && openTasks === 0 && execution.mode === "report")
    return `waiting for more reports, ${counted(passed + failed + skipped, "test")} so far${failed > 0 ? `, ${failed} failed` : ""}`;
  if (OPEN.includes(status)) {
    const progress = tasks === 0 ? "" : `, ${tasks - openTasks} of ${counted(tasks, "task")}`;
    return `${status}${progress}${failed > 0 ? `, ${counted(failed, "failure")} so far` : ""}`;
  }
  if (status === "cancelled") return "cancelled";
  const { redTasks } = execution;
  const isKnown = tasks === 0 || redTasks.length > 0;
  const reason = isKnown ? executionReason(status as ExecutionStatus, redTasks) : null;
  const known = reason === null ? "" : `; ${reason}`;
  if (outageFailures > 0) {
    const others = failed - outageFailures - newFailures - unclearFailures;
    const parts = [
      `an outage: ${counted(outageFailures, "failure")}`,
      newFailures > 0 && counted(newFailures, "new failure"),
      unclearFailures > 0 && counted(unclearFailures, "unclear failure"),
      others > 0 && counted(others, "known failure"),
    ];
    return `${parts.filter(Boolean).join(", ")}${known}`;
  }
  const others = failed - newFailures - unclearFailures;
  const more = others > 0 ? `, ${others} known` : "";
  if (newFailures > 0)
    return `${counted(newFailures, "new failure")}${unclearFailures > 0 ? `, ${unclearFailures} unclear` : ""}${more}${known}`;
  if (unclearFailures > 0) return `${counted(unclearFailures, "unclear failure")}${more}${known}`;
  if (failed > 0)
    return reason === null ? counted(failed, "known failure") : `${reason}; ${counted(failed, "known failure")}`;
  if (reason !== null) return reason;
  if (passed + skipped === 0) return status === "failed" ? "failed without results" : "nothing ran";
  return [`${passed.toLocaleString("en-US")} passed`, flaky > 0 && `${flaky} flaky`].filter(Boolean).join(", ");
}

/** The words of a sentence, some of which may be links. */
export type HeadlineWord = string | { text: string; href: `/${string}` };

type Headline = {
  execution: { status: ExecutionStatus; durationMs: number; tasks: readonly (TaskFigures & { outage: boolean })[] };
  counts: Partial<Record<Blame, number>>;
  baseline: HeadlineWord | null;
  defaultBranch: string;
  /** The words that may be a link: "2 flaky". */
  flaky: HeadlineWord;
};

/** Returns "2 flaky": the tests that failed before they passed. */
export const flakyWords = (tasks: readonly TaskFigures[]): string => `${toCount(sumTasks(tasks, "flaky"))} flaky`;

/** Returns the words of a headline without their links. */
export const headlineText = (words: readonly HeadlineWord[]): string =>
  words.map((word) => (typeof word === "string" ? word : word.text)).join("");

/** Returns "3 new failures since #412, 1 also failing on main". */
function failuresOf({ counts, baseline, defaultBranch }: Headline): HeadlineWord[] {
  const { new: fresh = 0, unclear = 0, main = 0, still = 0, flaky = 0, incident = 0, quarantined = 0 } = counts;
  const since: HeadlineWord[] = baseline === null ? [] : [" since ", baseline];
  const known = [
    fresh > 0 && unclear > 0 && `${toCount(unclear)} ${BLAME_PHRASES.unclear}`,
    main > 0 && `${toCount(main)} also failing on ${defaultBranch}`,
    still > 0 && `${toCount(still)} ${BLAME_PHRASES.still}`,
    flaky > 0 && `${toCount(flaky)} ${BLAME_PHRASES.flaky}`,
    incident > 0 && `${toCount(incident)} ${BLAME_PHRASES.incident}`,
    quarantined > 0 && `${toCount(quarantined)} ${BLAME_PHRASES.quarantined}`,
  ].filter((words) => words !== false);
  if (fresh + unclear > 0) {
    const first = fresh > 0 ? counted(fresh, "new failure") : counted(unclear, "unclear failure");
    return [first, ...since, ...known.map((words) => `, ${words}`)];
  }
  return ["Nothing new", ...since, known.length === 0 ? "" : `: ${known.join(", ")}`];
}

const MAX_NAMED_TASKS = 3;
const namesOf = (tasks: readonly TaskFigures[]): string => {
  const more = tasks.length - MAX_NAMED_TASKS;
  const names = tasks.slice(0, MAX_NAMED_TASKS).map(({ slug }) => slug);
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
};

/** Returns the outcome of one execution as the headline of its page, the worst first. */
export function executionHeadline(headline: Headline): HeadlineWord[] {
  const { execution, counts } = headline;
  const { status, tasks, durationMs } = execution;
  const [passed, failed, flaky] = [sumTasks(tasks, "passed"), sumTasks(tasks, "failed"), sumTasks(tasks, "flaky")];
  const over = tasks.filter((task) => hasEnded(task.status)).length;
  const broken: HeadlineWord[] = failed === 0 ? [] : [", ", ...failuresOf(headline)];
  if (!hasEnded(status)) {
    const progress = tasks.length === 0 ? "" : `, ${over} of ${counted(tasks.length, "task")}`;
    const fresh = counts.new ?? 0;
    const soFar =
      fresh > 0
        ? `, ${counted(fresh, "new failure")} so far`
        : failed > 0
          ? `, ${counted(failed, "failure")} so far`
          : "";
    return [`${status === "queued" ? "Queued" : "Running"}${progress}${soFar}`];
  }
  if (status === "cancelled") {
    const had = tasks.filter(({ attempt }) => attempt > 0).length;
    return [
      `Cancelled${tasks.length === 0 ? "" : `, ${had} of ${counted(tasks.length, "task")} had reported`}`,
      ...broken,
    ];
  }
  const reason = executionReason(status, tasks);
  const known = reason === null ? [] : [`; ${reason}`];
  const down = tasks.filter(({ outage }) => outage);
  if (down.length > 0) {
    const [its, all] = [sumTasks(down, "failed"), sumTasks(down, "passed") + sumTasks(down, "failed")];
    const where = down.length === tasks.length ? "" : ` of ${namesOf(down)}`;
    const others: HeadlineWord[] = failed === its ? [] : ["; ", ...failuresOf(headline)];
    return [`An outage${where}: ${toCount(its)} of ${counted(all, "test")} failed`, ...others, ...known];
  }
  const counting = failed - (counts.quarantined ?? 0);
  if (counting > 0 && status !== "passed") return [...failuresOf(headline), ...known];
  if (reason !== null) return [reason];
  if (failed > 0 && status === "failed") return failuresOf(headline);
  if (status === "failed") return ["Failed without a failing test"];
  if (passed + failed === 0) return [sumTasks(tasks, "skipped") > 0 ? "All tests were skipped" : "Nothing ran"];
  return [
    `${toCount(passed)} passed${durationMs > 0 ? ` in ${toDuration(durationMs)}` : ""}`,
    ...(flaky > 0 ? [", ", headline.flaky] : []),
    failed > 0 ? `, ${counted(failed, "quarantined failure")}` : "",
  ];
}

/** Returns an execution in one line that ends with a line break: "FAILED 412 on main: 3 passed, 1 failed, 0 skipped https://…". */
export function executionLine({
  status,
  key,
  branch,
  baseBranch,
  passed,
  failed,
  skipped,
  reason,
  tasks,
  url,
}: Execution): string {
  const line = lineName({ branch, baseBranch });
  const name = [key, line && `on ${line}`].filter(Boolean).join(" ") || "execution";
  const silent = tasks.flatMap(({ slug, status, missingShards }) => {
    if (status === "timed_out" || status === "queued") return [`${slug} without report`];
    return missingShards.length === 0 ? [] : [`${slug} without ${toShardList(missingShards)}`];
  });
  const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
  const parts = reason === null ? [counts, ...silent] : [reason, counts];
  return `${singleLine(`${status.toUpperCase()} ${name}: ${parts.join("; ")} ${url}`)}\n`;
}
