/** Groups the test reports of a folder into builds with dates. */

import { basename } from "node:path";
import { findFormat, readReport } from "../reports/read.ts";
import type { Report } from "../reports/report.ts";
import { type PastBuilds, type PastBuild, type PastUpload, type FileProblem, toChronological, toKey } from "./build.ts";
import { type HistoryFile, listFiles } from "./files.ts";
import { type NamedPart, type NamePattern, readNameDate } from "./name_pattern.ts";

/** Where the date of a build may come from. `run`: what the CI system says of the run. */
export type DateSource = "run" | "report" | "name" | "mtime";

/** Facts about a build that its reports do not contain. */
export type KnownBuild = Pick<PastBuild, "branch" | "commit" | "buildUrl" | "untrusted"> & { at?: Date | undefined };

export type FolderOptions = {
  /** Undefined: every folder and every file directly in the folder is a build. */
  pattern: NamePattern | undefined;
  /** Whether the same build on another date is another build; undefined: unknown, so builds of several days are left out. */
  areBuildsDaily: boolean | undefined;
  /** In order of preference. */
  dates: readonly DateSource[];
  /** The offset of times that state none, in minutes ahead of UTC. */
  offsetMinutes: number;
  branch: string | undefined;
  task: string | undefined;
  format: string | undefined;
  /** Returns what is known of the build with this id. */
  find?: (build: string) => KnownBuild | undefined;
  /** Returns false for files that are not part of the results. */
  accepts?: (path: string) => boolean;
};

/** What a server decompresses at most with its usual limits. */
const MAX_INFLATED_BYTES = 128 * 2 ** 20;

/** Other files, such as screenshots, cannot be reports. */
const CANDIDATE = /\.(?:xml|trx|jsonl?|ndjson|tap|subunit|txt|log)(?:\.(?:gz|zst))?$/i;
/** A broken file of these kinds was meant to be a report; a broken text is just a text. */
const STRUCTURED = /\.(?:xml|trx|json|subunit)(?:\.(?:gz|zst))?$/i;

type Group = NamedPart & { files: HistoryFile[] };

/** Throws an Error if the folder cannot be read. */
export function readReports(folder: string, options: FolderOptions): PastBuilds {
  const { files, problems } = listFiles(folder);
  const accepted = files.filter(({ path }) => options.accepts?.(path) ?? true);
  const others: string[] = [];
  const reports = accepted.filter((file) => isReport(file, options.format, { problems, others }));
  const groups = toGroups(reports, options, problems);
  const broken = new Set(problems.flatMap(({ name }) => toPart(name, options)?.prefix ?? []));
  const uploads = groups.flatMap((group) => {
    // A build without one of its reports would look better than it was.
    if (!broken.has(group.prefix)) return toUpload(group, options, problems) ?? [];
    problems.push({ name: group.prefix, message: "left out, because one of its files cannot be read" });
    return [];
  });
  const clear = options.areBuildsDaily === undefined ? leaveOutAmbiguous(uploads, problems) : uploads;
  return { builds: toChronological(toBuilds(clear, options)), problems, others, notes: [] };
}

function isReport(
  file: HistoryFile,
  format: string | undefined,
  { problems, others }: { problems: FileProblem[]; others: string[] },
): boolean {
  if (!CANDIDATE.test(file.path)) {
    others.push(file.path);
    return false;
  }
  try {
    const isOne = format !== undefined || findFormat(file.read(), MAX_INFLATED_BYTES) !== undefined;
    if (!isOne) others.push(file.path);
    return isOne;
  } catch (error) {
    if (STRUCTURED.test(file.path)) problems.push({ name: file.path, message: (error as Error).message });
    else others.push(file.path);
    return false;
  }
}

const toPart = (path: string, { pattern }: FolderOptions): NamedPart | undefined =>
  pattern ? pattern.match(path) : { fields: {}, prefix: path.split("/")[0]! };

function toGroups(files: readonly HistoryFile[], options: FolderOptions, problems: FileProblem[]): Group[] {
  const groups = new Map<string, Group>();
  for (const file of files) {
    const part = toPart(file.path, options);
    if (!part) problems.push({ name: file.path, message: "its path does not match --pattern" });
    else {
      const group = groups.get(part.prefix) ?? { ...part, files: [] };
      group.files.push(file);
      groups.set(part.prefix, group);
    }
  }
  return [...groups.values()];
}

type DatedGroup = { group: Group; upload: PastUpload; known: KnownBuild | undefined; report: Report };

function toUpload(group: Group, options: FolderOptions, problems: FileProblem[]): DatedGroup | undefined {
  const { prefix, files, fields } = group;
  const read = () => files.map((file) => ({ name: basename(file.path), bytes: file.read() }));
  const known = fields.build === undefined ? undefined : options.find?.(fields.build);
  try {
    const { format } = options;
    const report = readReport(read(), { ...(format ? { format } : {}), maxInflatedBytes: MAX_INFLATED_BYTES });
    const completedAt = findDate(group, report, known, options);
    const upload = {
      ...{ name: prefix, task: options.task ?? fields.task, completedAt, read },
      ...(format === undefined ? {} : { format }),
    };
    return { group, upload, known, report };
  } catch (error) {
    problems.push({ name: prefix, message: (error as Error).message });
    return undefined;
  }
}

const WAYS: Record<DateSource, string> = {
  run: "run.json does not name the run",
  report: "its reports contain no time",
  name: "its name contains no date (--pattern)",
  mtime: "",
};

function findDate(group: Group, report: Report, known: KnownBuild | undefined, options: FolderOptions): Date {
  const { files, fields } = group;
  const readers: Record<DateSource, () => Date | undefined> = {
    run: () => known?.at,
    report: () => report.completedAt ?? latestLocalTime(files, options.offsetMinutes),
    name: () => (fields.date === undefined ? undefined : readNameDate(fields.date, options.offsetMinutes)),
    mtime: () => new Date(Math.max(...files.map(({ changedAt }) => changedAt.getTime()))),
  };
  for (const source of options.dates) {
    const date = readers[source]();
    if (date) return date;
  }
  const hint = options.dates.includes("mtime") ? "" : "; --date-from mtime takes the time when its files were changed";
  throw new Error(`Cannot find its date: ${options.dates.map((source) => WAYS[source]).join(", ")}${hint}`);
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

/** The dates in the names of one build are at most this many days apart, unless the numbers of builds begin anew every day. */
const MAX_DAYS_APART = 1;
const DAY_MS = 86_400_000;

/**
 * Leaves out builds whose names have dates of several days, if one of them has dates that are days apart: the numbers of builds probably
 * begin anew every day, and different builds would become one.
 */
function leaveOutAmbiguous(uploads: readonly DatedGroup[], problems: FileProblem[]): DatedGroup[] {
  const builds = [
    ...Map.groupBy(uploads, ({ group: { fields } }) =>
      JSON.stringify([fields.build, fields.branch, fields.commit]),
    ).values(),
  ].map((same) => ({ same, daysApart: daysApart(same) }));
  if (builds.every(({ daysApart }) => daysApart <= MAX_DAYS_APART)) return [...uploads];
  return builds.flatMap(({ same, daysApart }) => {
    const { prefix, fields } = same[0]!.group;
    if (daysApart === 0) return same;
    problems.push({
      name: prefix,
      message:
        `left out, like all ${same.length} reports of build "${fields.build}", which have dates of several days: ` +
        "--daily-builds makes a build of each date, --unique-builds makes one build of them",
    });
    return [];
  });
}

/** Returns how many days the dates in the names of a build are apart; 0 without `{build}` or `{date}`. */
function daysApart(same: readonly DatedGroup[]): number {
  const days = same.flatMap(({ group: { fields } }) => {
    const date = fields.build === undefined || fields.date === undefined ? undefined : readNameDate(fields.date, 0);
    return date ? [Math.floor(date.getTime() / DAY_MS)] : [];
  });
  return days.length === 0 ? 0 : Math.max(...days) - Math.min(...days);
}

/** Uploads that name the same build, branch and commit belong to one build. */
function toBuilds(
  uploads: readonly DatedGroup[],
  { branch: branchOption, areBuildsDaily }: FolderOptions,
): PastBuild[] {
  const keyOf = ({ group: { prefix, fields }, upload }: DatedGroup): string => {
    if (fields.build !== undefined)
      return areBuildsDaily && fields.date !== undefined ? `${fields.date} ${fields.build}` : fields.build;
    // A build with several tasks has the same name without the task.
    if (fields.task !== undefined && fields.date !== undefined)
      return `import ${[fields.date, fields.branch, fields.commit].filter(Boolean).join(" ")}`;
    // Folders of several imports into a project may have the same names.
    return `import ${prefix} ${upload.completedAt.toISOString()}`;
  };
  const origin = ({ group: { fields }, known, report: { context } }: DatedGroup) => ({
    branch: known?.branch ?? fields.branch ?? branchOption ?? context.branch,
    commit: known?.commit ?? fields.commit ?? context.commit,
    buildUrl: known?.buildUrl ?? context.buildUrl,
    untrusted: known?.untrusted,
  });
  const builds = Map.groupBy(uploads, (one) => JSON.stringify([keyOf(one), origin(one)]));
  return [...builds.values()].map((group): PastBuild => {
    const sorted = group.toSorted((a, b) => a.upload.completedAt.getTime() - b.upload.completedAt.getTime());
    return { key: toKey(keyOf(sorted[0]!)), ...origin(sorted[0]!), uploads: sorted.map(({ upload }) => upload) };
  });
}
