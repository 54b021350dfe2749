/** The export of a project: its query, and the lines that the API itself does not answer. */

import * as v from "valibot";
import { described, listText, timestamp } from "./fields.ts";

/** The version of the format. It increases when a reader of the one before would misread a file. */
export const EXPORT_VERSION = 1;

/** The types of lines in the order of an export. Those of an execution follow it, as do the occurrences of a bug report. */
export const EXPORT_TYPES = [
  ...(["project", "owners", "testCase", "execution", "testRun", "result", "attachment"] as const),
  ...(["bugReport", "bugOccurrence"] as const),
];
export type ExportType = (typeof EXPORT_TYPES)[number];

export const exportQuery = v.strictObject({
  types: described(
    v.optional(listText(EXPORT_TYPES)),
    `Only lines of these types, separated by commas: ${EXPORT_TYPES.join(", ")}. Default: all`,
    "execution,result",
  ),
  created_after: described(
    v.optional(timestamp),
    "Only executions created after this time, with their runs and results",
  ),
  created_before: described(
    v.optional(timestamp),
    "Only executions created before this time, with their runs and results",
  ),
});
export type ExportQuery = v.InferOutput<typeof exportQuery>;

/** The first line. */
export type ExportHeader = {
  type: "header";
  format: "assay-export";
  version: typeof EXPORT_VERSION;
  projectId: string;
  /** The moment that all lines show. */
  takenAt: string;
  types: readonly ExportType[];
  createdAfter: string | null;
  createdBefore: string | null;
};

/** The last line of a complete export: the number of lines of each type. */
export type ExportEnd = { type: "end"; counts: Partial<Record<ExportType, number>> };

/** The last line of an export that the server could not complete. */
export type ExportError = { type: "error"; message: string };
