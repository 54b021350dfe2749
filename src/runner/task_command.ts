/** The command of a task: for the whole task, for the tests that failed, or for those of a probe. */

import { existsSync, writeFileSync } from "node:fs";
import { LIST_VARIABLE } from "../rules/rerun_cases.ts";
import { toRerunCommand } from "../rules/rerun_command.ts";
import type { TaskConfig } from "./config.ts";
import type { RunnerLease } from "./protocol.ts";
import { toLogNote } from "./task_log.ts";

type CommandOptions = {
  lease: RunnerLease;
  config: TaskConfig;
  /** Gets what runs, and why it is more than the failed tests; the task's log gets it as well. */
  onNote: (note: string) => void;
  onOutput: (bytes: Uint8Array) => void;
};

type TaskCommand = {
  command: string;
  environment: Record<string, string>;
  /** Why a probe cannot run: it never runs the whole task. */
  unselectable?: string;
};

/** Returns the command for the whole task, or for its failed tests if they were requested and the tool can select them. */
export function commandOf({ lease, config, onNote, onOutput }: CommandOptions, listPath: string): TaskCommand {
  const whole = { command: config.command, environment: {} };
  if (lease.only === undefined)
    return lease.probe
      ? { ...whole, unselectable: "Cannot run the test case alone: it does not exist any more" }
      : whole;
  const note = (text: string) => {
    onNote(text);
    onOutput(toLogNote(text));
  };
  const { rerun, command, workingDirectory: directory } = config;
  if (rerun === undefined) {
    note(`The whole task runs again: assay.yaml has no "rerun" for it`);
    return whole;
  }
  const select = (only: NonNullable<RunnerLease["only"]>) =>
    toRerunCommand({ rerun, command, only, directory, exists: existsSync });
  // The commit of a probe may lack some of its test cases: the others run.
  const only = lease.probe ? selectable(lease.only, (one) => !select([one]).whole) : lease.only;
  const again = select(only);
  if (again.whole && lease.probe) return { ...whole, unselectable: `Cannot run the test case alone: ${again.reason}` };
  if (again.whole) {
    note(`The whole task runs again: ${again.reason}`);
    return whole;
  }
  note(
    `${lease.probe ? aloneNote(only.length) : againNote(only.length)}${again.note === null ? "" : `. ${again.note}`}`,
  );
  if (again.list !== null) writeFileSync(listPath, again.list);
  return { command: again.command, environment: again.list === null ? {} : { [LIST_VARIABLE]: listPath } };
}

const againNote = (count: number): string =>
  count === 1 ? "The test case that failed runs again" : `The ${count} test cases that failed run again`;

const aloneNote = (count: number): string =>
  count === 1 ? "The test case runs alone" : `The ${count} test cases of the probe run alone`;

/** All cases if none can be selected, or if there is only one. */
function selectable<Case>(cases: Case[], isSelectable: (one: Case) => boolean): Case[] {
  if (cases.length === 1) return cases;
  const found = cases.filter(isSelectable);
  return found.length === 0 ? cases : found;
}
