/** The command line of `assay import`. */

import { readPattern, type NamePattern } from "../history/name_pattern.ts";
import type { DateSource } from "../history/read_reports.ts";
import { parseFileOptions, readSeconds, UsageError } from "./usage.ts";

export const IMPORT_HELP = `Usage: assay import DIR [options]

Uploads a folder of old test reports in chronological order. If you stop the command, start it again: it continues where it
stopped, because builds that the server has already are skipped.

  --from SOURCE            reports (default): every folder and every file directly in DIR is a build, unless --pattern says
                           otherwise; ZIP files count as folders
                           github-artifacts: DIR contains RUN ID/ARTIFACT NAME/…, as "gh run download" writes it, or
                           RUN ID/ARTIFACT NAME.zip, and run.json with what "gh run list --json" prints
                           allure-history: DIR is an Allure report, its folder "history", or a history file of Allure 3
  --pattern PATTERN        what the names below DIR mean, with {date}, {build}, {commit}, {branch} and {task}; * matches any
                           text in a name. Example: '{branch}/{date}-{build}/{task}.xml'
  --daily-builds           the same {build} on another {date} is another build
  --unique-builds          the same {build} is one build, whatever its dates; without either option, builds with dates that
                           are days apart are left out and named
  --date-from SOURCES      where the dates of builds come from, in order of preference: run, report, name, mtime
                           (default: report,name; for github-artifacts run,report)
  --utc-offset +HH:MM      the offset of times that state none (default: UTC)
  --branch NAME            the branch of builds whose names and reports state none (default: the default branch)
  --task NAME              the task of all reports (default: from the pattern, the artifact or the report)
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

const SOURCES = ["reports", "github-artifacts", "allure-history"] as const;
export type ImportSource = (typeof SOURCES)[number];
const DATES: readonly DateSource[] = ["run", "report", "name", "mtime"];

const TEXTS = [
  "from",
  "pattern",
  "date-from",
  "utc-offset",
  "branch",
  "task",
  "format",
  "project",
  "patience",
] as const;
const FLAGS = ["daily-builds", "unique-builds", "include-recent", "dry-run"];

export type ImportArguments = {
  directory: string;
  from: ImportSource;
  pattern: NamePattern | undefined;
  /** Undefined: unknown. */
  areBuildsDaily: boolean | undefined;
  /** Undefined: the usual ones of the source. */
  dates: readonly DateSource[] | undefined;
  offsetMinutes: number;
  branch: string | undefined;
  task: string | undefined;
  format: string | undefined;
  project: string | undefined;
  includesRecent: boolean;
  isDryRun: boolean;
  isJson: boolean;
  patienceMs: number;
};

const PATIENCE_MS = 600_000;

/** Throws UsageError. */
export function readImportArguments(args: string[]): ImportArguments {
  const { file: directory, values, json } = parseFileOptions(args, FLAGS, { names: TEXTS, noun: "folder" });
  const text = (name: (typeof TEXTS)[number]) => values[name]?.trim() || undefined;
  const from = text("from") ?? "reports";
  if (!(SOURCES as readonly string[]).includes(from))
    throw new UsageError(`--from: expected ${SOURCES.join(", ")}, got "${from}"`);
  return {
    ...{ directory, from: from as ImportSource },
    pattern: toPattern(text("pattern"), from),
    areBuildsDaily: readDaily(values["daily-builds"] !== undefined, values["unique-builds"] !== undefined),
    dates: toDates(text("date-from"), from),
    offsetMinutes: toOffset(text("utc-offset")),
    ...{ branch: text("branch"), task: text("task"), format: text("format"), project: text("project") },
    includesRecent: values["include-recent"] !== undefined,
    isDryRun: values["dry-run"] !== undefined,
    isJson: json,
    patienceMs: readSeconds("patience", text("patience")) ?? PATIENCE_MS,
  };
}

function readDaily(isDaily: boolean, isUnique: boolean): boolean | undefined {
  if (isDaily && isUnique) throw new UsageError("--daily-builds and --unique-builds exclude each other");
  return isDaily ? true : isUnique ? false : undefined;
}

function toPattern(text: string | undefined, from: string): NamePattern | undefined {
  if (text === undefined) return undefined;
  if (from === "allure-history") throw new UsageError("--pattern: an Allure history has no names of builds");
  const pattern = readPattern(text);
  if ("problem" in pattern) throw new UsageError(`--pattern: ${pattern.problem}`);
  return pattern;
}

function toDates(text: string | undefined, from: string): readonly DateSource[] | undefined {
  if (text === undefined) return undefined;
  if (from === "allure-history") throw new UsageError("--date-from: an Allure history contains the times");
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
