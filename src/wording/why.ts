/** Says why a branch, a pull request or an execution is red: what the tool for assistants and the command line have in common. */

import type { BranchStateAnswer } from "../schema/state.ts";
import { BLAME_LISTS, WORD_OF } from "../rules/blame.ts";
import type { Blame, Cause } from "../schema/failures.ts";
import { BLAME_PHRASES } from "./blame.ts";
import { caseTitle } from "./case_title.ts";
import { firstPlainLine } from "./first_line.ts";
import { joinedBugTitle } from "./known_bug.ts";
import { counted, toDay } from "./numbers.ts";
import { redTaskWords } from "./task.ts";

const MAX_TASKS = 3;
const MAX_OWNERS = 3;

/** Returns "main is red: unit: 2 failures, e2e: has not reported and 1 more task"; `null` if no task of the branch has a result. */
export function branchSentence({ branch, state, tasks }: BranchStateAnswer): string | null {
  if (state === null) return null;
  const red = tasks.filter(({ status }) => status !== "passed");
  if (red.length === 0) return `${branch} is green`;
  const named = red.slice(0, MAX_TASKS).map((task) => `${task.slug}: ${redTaskWords(task)}`);
  const more = red.length - named.length;
  return `${branch} is red: ${named.join(", ")}${more > 0 ? ` and ${counted(more, "more task")}` : ""}`;
}

/** Returns the red tasks of the branch by the execution of their latest result, except those of `executionId`. */
export function redElsewhere({ tasks }: BranchStateAnswer, executionId: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { slug, status, lastExecutionId } of tasks)
    if (status !== "passed" && lastExecutionId !== executionId)
      found.set(lastExecutionId, [...(found.get(lastExecutionId) ?? []), slug]);
  return found;
}

/** Says that a branch, or a pull request, has no execution. */
export const noExecution = (of: "branch" | "pull request"): string => `There is no execution of this ${of}`;

/** Returns the blame of a failure as people read it: "new", "failing on the default branch too". */
export function blamePhrase(word: string | null): string | null {
  const blame = (Object.keys(BLAME_LISTS) as Blame[]).find((one) => WORD_OF[one] === word);
  return blame === undefined ? null : BLAME_PHRASES[blame];
}

/** Returns what a cause is called: its only test, or what all of its failures say. */
export function causeTitle({ message, stack, failed, failures }: Cause): string {
  const said = firstPlainLine(message) || firstPlainLine(stack);
  const [first] = failures;
  return first !== undefined && (failed === 1 || said === "") ? caseTitle(first) : said;
}

/** Returns "owner ada, grace"; `null` if nobody owns one of the tests. */
export function ownerWords(owners: readonly string[]): string | null {
  const names = [...new Set(owners)];
  return names.length === 0 ? null : `owner ${names.slice(0, MAX_OWNERS).join(", ")}`;
}

/** Returns "only with browser:webkit"; `null` if nothing explains all failures, or not all by the same tags. */
export function onlyWithWords(failures: readonly { onlyWith: readonly string[] }[]): string | null {
  const [words = "", ...others] = new Set(failures.map(({ onlyWith }) => onlyWith.join(", ")));
  return words === "" || others.length > 0 ? null : `only with ${words}`;
}

/** Returns "since 4 Nov"; "since before" if the time of the first failure is unknown. */
export const sinceWords = (at: string | null): string => `since ${at === null ? "before" : toDay(at)}`;

/** Returns "bug 17". */
export const bugWords = (number: number): string => `bug ${number}`;

/** Returns facts about a cause: "3 tests", "new", "owner ada", "since 4 Nov", "bug 17". `bugLines` names a known bug. */
export function causeFacts({ failed, failures, bugReport }: Cause, executionId: string): string[] {
  const [first] = failures;
  const since = first?.since ?? null;
  return [
    failed === 1 ? null : counted(failed, "test"),
    blamePhrase(first?.blame ?? null),
    onlyWithWords(failures),
    ownerWords(failures.flatMap(({ owners }) => owners)),
    since !== null && since.executionId !== executionId ? sinceWords(since.at) : null,
    bugReport === null || bugReport.known ? null : bugWords(bugReport.number),
  ].filter((fact) => fact !== null);
}

/** Returns the known bug of a cause, and the sentence that proves which commit broke its test. */
export const bugLines = ({ bugReport }: Cause): string[] => [
  ...(bugReport?.known ? [joinedBugTitle(bugReport)] : []),
  ...(bugReport?.culprit ? [bugReport.culprit.summary] : []),
];
