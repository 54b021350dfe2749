/** Sentences about deletions by age that have been announced. */

import {
  AGED_KINDS,
  type AgedKind,
  type PlannedDeletionRow,
  type RetentionSettings,
  type ServerRetention,
  toCommonRetention,
} from "../rules/retention.ts";
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

const VARIABLES: Record<AgedKind, string> = {
  results: "RETENTION_DAYS",
  attachments: "ATTACHMENT_RETENTION_DAYS",
  executions: "EXECUTION_RETENTION_DAYS",
};

const MAX_NAMED_SERVERS = 10;

/** Returns a sentence without a period for each setting in which the servers of a database differ. */
export function toRetentionDifferences(servers: readonly ServerRetention[]): string[] {
  const common: RetentionSettings = toCommonRetention(servers.map(({ settings }) => settings));
  return AGED_KINDS.filter((kind) => servers.some(({ settings }) => settings[kind] !== common[kind])).map((kind) => {
    const values = servers.slice(0, MAX_NAMED_SERVERS).map(({ host, settings }) => `${settings[kind]} on ${host}`);
    const applies = common[kind] === 0 ? "0 (forever)" : String(common[kind]);
    return `The servers differ in ${VARIABLES[kind]} (${values.join(", ")}): ${applies} applies`;
  });
}
