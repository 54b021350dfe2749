/** Sentences about deletions by age that have been announced. */

import type { AgedKind, PlannedDeletionRow } from "../rules/retention.ts";
import { counted, toCount } from "./numbers.ts";

const OBJECTS: Record<AgedKind, (objects: number) => string> = {
  results: (objects) => `the results of ${counted(objects, "test run")}`,
  attachments: (objects) => counted(objects, "attachment"),
  executions: (objects) => `${counted(objects, "execution")} with their test runs`,
};

const toMinute = (iso: string): string => `${new Date(iso).toISOString().slice(0, 16).replace("T", " ")} UTC`;

/** Returns one sentence without a period. */
export function toPlanText({ projectName, kind, objects, days, before, beginsAt }: PlannedDeletionRow): string {
  const what = `Project ${JSON.stringify(projectName)}: ${OBJECTS[kind](objects)}`;
  const older = `older than ${toCount(days)} days (before ${toMinute(before)})`;
  if (beginsAt === null) return `${what}, ${older}, are kept forever`;
  return `${what}, ${older}, will be deleted from ${toMinute(beginsAt)} on`;
}

/** `command` runs Assay. */
export const toPlanRemedy = (command: string): string =>
  `Correct RETENTION_DAYS and the other settings of retention, or run ${command} admin planned-deletions with --confirm or --keep`;
