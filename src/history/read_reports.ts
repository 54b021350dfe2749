/** Reads a folder of test reports as builds with dates. */

import { basename } from "node:path";
import { DEFAULT_MAX_INFLATED_BYTES, findFormat, readReport } from "../reports/read.ts";
import type { Report } from "../reports/report.ts";
import { type FileProblem, type PastBuild, type PastBuilds, toChronological, toKey } from "./build.ts";
import { type HistoryFile, listFiles } from "./files.ts";

/** Possible sources of the date of a build. */
export type DateSource = "report" | "name" | "mtime";

export type FolderOptions = {
  /** Sources of dates in order of preference. */
  dates: readonly DateSource[];
  /** The offset of times that state none, in minutes ahead of UTC. */
  offsetMinutes: number;
  branch: string | undefined;
  task: string | undefined;
  format: string | undefined;
};

/** Other files, such as screenshots, cannot be reports. */
const CANDIDATE = /\.(?:xml|trx|jsonl?|ndjson|tap|subunit|txt|log)(?:\.(?:gz|zst))?$/i;
/** A broken file of these kinds was meant to be a report; a broken text is just a text. */
const STRUCTURED = /\.(?:xml|trx|json|subunit)(?:\.(?:gz|zst))?$/i;

/** Every folder and every file directly in the folder is a build. */
const buildNameOf = (path: string): string => path.split("/")[0]!;

/** Throws an Error if the folder cannot be read. */
export function readReports(folder: string, options: FolderOptions): PastBuilds {
  const { files, problems } = listFiles(folder);
  const others: string[] = [];
  const reports = files.filter((file) => isReport(file, options.format, { problems, others }));
  const broken = new Set(problems.map(({ name }) => buildNameOf(name)));
  const builds: PastBuild[] = [];
  for (const [name, group] of Map.groupBy(reports, ({ path }) => buildNameOf(path))) {
    try {
      // A build without one of its reports would look better than it was.
      if (broken.has(name)) throw new Error("left out, because one of its files cannot be read");
      builds.push(toBuild(name, group, options));
    } catch (error) {
      problems.push({ name, message: (error as Error).message });
    }
  }
  return { builds: toChronological(builds), problems, others };
}

function isReport(
  file: HistoryFile,
  format: string | undefined,
  { problems, others }: { problems: FileProblem[]; others: string[] },
): boolean {
  try {
    if (
      CANDIDATE.test(file.path) &&
      (format !== undefined || findFormat(file.read(), DEFAULT_MAX_INFLATED_BYTES) !== undefined)
    )
      return true;
  } catch (error) {
    if (STRUCTURED.test(file.path)) {
      problems.push({ name: file.path, message: (error as Error).message });
      return false;
    }
  }
  others.push(file.path);
  return false;
}

function toBuild(name: string, files: readonly HistoryFile[], options: FolderOptions): PastBuild {
  const { format, task } = options;
  const read = () => files.map((file) => ({ name: basename(file.path), bytes: file.read() }));
  const report = readReport(read(), { ...(format ? { format } : {}), maxInflatedBytes: DEFAULT_MAX_INFLATED_BYTES });
  const completedAt = findDate(name, files, report, options);
  const { branch, commit, buildUrl } = report.context;
  // An import for each task makes one build of folders with the same date. Other names may occur in unrelated imports.
  const isShared = task !== undefined && readNameDate(name, 0) !== undefined;
  const key = isShared ? `import ${name}` : `import ${name} ${completedAt.toISOString()}`;
  return {
    ...{ key: toKey(key), name, task, branch: options.branch ?? branch, commit, buildUrl, format },
    ...{ completedAt, read },
  };
}

const MISSING: Record<DateSource, string> = {
  report: "its reports contain no time",
  name: "its name does not begin with a date",
  mtime: "",
};

function findDate(
  name: string,
  files: readonly HistoryFile[],
  report: Report,
  { dates, offsetMinutes }: FolderOptions,
): Date {
  const readers: Record<DateSource, () => Date | undefined> = {
    report: () => report.completedAt ?? latestLocalTime(files, offsetMinutes),
    name: () => readNameDate(name, offsetMinutes),
    mtime: () => new Date(Math.max(...files.map(({ changedAt }) => changedAt.getTime()))),
  };
  for (const source of dates) {
    const date = readers[source]();
    if (date) return date;
  }
  const reasons = dates.map((source) => MISSING[source]).join(", ");
  throw new Error(`Cannot find its date: ${reasons}; --date-from mtime takes the time when its files were changed`);
}

const NAME_DATE = /^(\d{4})-?(\d{2})-?(\d{2})(?:[T_](\d{2})[:.-]?(\d{2})(?:[:.-]?(\d{2}))?(Z?))?(?!\d)/;

/**
 * Reads the date that a name begins with: "2026-01-02", "20260102T030405Z" or "2026-01-02_03-04-05". A time without "Z" is
 * `offsetMinutes` ahead of UTC. Returns undefined for a day or a time that does not exist.
 */
export function readNameDate(name: string, offsetMinutes: number): Date | undefined {
  const [, year, month, day, hour = "00", minute = "00", second = "00", zone] = NAME_DATE.exec(name) ?? [];
  const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // Date reads February 30 as March 2.
  if (Number.isNaN(date.getTime()) || date.getUTCDate() !== Number(day)) return undefined;
  return zone === "Z" ? date : new Date(date.getTime() - offsetMinutes * 60_000);
}

const HEAD_BYTES = 65_536;
const LOCAL_TIME = /<testsuites?\s[^>]{0,2000}?\btimestamp="(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.\d{1,9})?"/;

/** JUnit reports often state a time without its offset, which a server cannot use: the offset is an option of the import. */
function latestLocalTime(files: readonly HistoryFile[], offsetMinutes: number): Date | undefined {
  const times = files.map((file) => {
    const [, day, time] = LOCAL_TIME.exec(new TextDecoder().decode(file.read().subarray(0, HEAD_BYTES))) ?? [];
    return day === undefined ? undefined : Date.parse(`${day}T${time}Z`) - offsetMinutes * 60_000;
  });
  const known = times.filter((time) => time !== undefined && !Number.isNaN(time)) as number[];
  return known.length === 0 ? undefined : new Date(Math.max(...known));
}
