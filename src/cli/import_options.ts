/** The command line of `assay import`. */

import type { DateSource, FolderOptions } from "../history/read_reports.ts";
import { parseFileOptions, readSeconds, UsageError } from "./usage.ts";

export const IMPORT_HELP = `Usage: assay import DIR [options]

Uploads a folder of old test reports in chronological order. Every folder and every file directly in DIR is a build. If you
stop the command, start it again: it continues where it stopped, because builds that the server has already are skipped.

  --date-from SOURCES      where the dates of builds come from, in order of preference: report, name (if it begins with a date
                           such as 2026-01-02 or 20260102T030405Z), mtime (default: report,name)
  --utc-offset +HH:MM      the offset of times that state none (default: UTC)
  --branch NAME            the branch of all builds (default: from the report, else the default branch)
  --task NAME              the task of all reports (default: from the report)
  --format NAME            the format of the reports, such as "junit" (default: recognised from the content)
  --project ID             the project (default: ASSAY_PROJECT)
  --include-recent         also import builds of the last 24 hours, for which the server sends notifications
  --patience SECONDS       how long to try to reach an unavailable server, and to wait for its rate limit (default: 600)
  --dry-run                print the builds without a request to the server
  --json                   print one line of JSON at the end

Required: ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY. Use a key of its own with the scope "upload", so that the import does not use
up the rate limit of CI.

The server dates the results as the builds and sends no notifications for builds that are older than a day. An old build does
not change the state after a newer one. Builds that are older than the project keeps results are left out.

Exit code: 0 if the server has all builds, 1 if some cannot be imported, 3 if the server is unavailable, 130 if the command is
interrupted, 2 for wrong usage.`;

const DATES: readonly DateSource[] = ["report", "name", "mtime"];
const USUAL_DATES: readonly DateSource[] = ["report", "name"];

const TEXTS = ["date-from", "utc-offset", "branch", "task", "format", "project", "patience"] as const;

export type ImportArguments = FolderOptions & {
  directory: string;
  project: string | undefined;
  includesRecent: boolean;
  isDryRun: boolean;
  isJson: boolean;
  patienceMs: number;
};

const PATIENCE_MS = 600_000;

/** Throws UsageError. */
export function readImportArguments(args: string[]): ImportArguments {
  const flags = ["include-recent", "dry-run"];
  const { file: directory, values, json } = parseFileOptions(args, flags, { names: TEXTS, noun: "folder" });
  const text = (name: (typeof TEXTS)[number]) => values[name]?.trim() || undefined;
  return {
    directory,
    dates: toDates(text("date-from")),
    offsetMinutes: toOffset(text("utc-offset")),
    ...{ branch: text("branch"), task: text("task"), format: text("format"), project: text("project") },
    includesRecent: values["include-recent"] !== undefined,
    isDryRun: values["dry-run"] !== undefined,
    isJson: json,
    patienceMs: readSeconds("patience", text("patience")) ?? PATIENCE_MS,
  };
}

function toDates(text: string | undefined): readonly DateSource[] {
  if (text === undefined) return USUAL_DATES;
  const dates = text.split(/[\s,]+/) as DateSource[];
  const unknown = dates.find((one) => !DATES.includes(one));
  if (unknown !== undefined) throw new UsageError(`--date-from: expected ${DATES.join(", ")}, got "${unknown}"`);
  return dates;
}

function toOffset(text: string | undefined): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(text ?? "+00:00") ?? [];
  if (hours === undefined || Number(hours) > 14 || Number(minutes) > 59)
    throw new UsageError(`--utc-offset: expected an offset such as "+02:00", got "${text}"`);
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}
