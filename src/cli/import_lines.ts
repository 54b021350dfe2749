/** The lines that `assay import` prints. */

import type { PastBuild, PastBuilds } from "../history/build.ts";
import { counted, toCount } from "../wording/numbers.ts";
import { toPlainLine } from "./output.ts";

const MAX_NAME = 80;
const MAX_OTHERS = 3;

/** Returns a line of a build: date, name, branch, commit. */
export function buildLine({ name, branch, commit, completedAt }: PastBuild): string {
  const origin = [branch, commit?.slice(0, 10)].filter((one) => one !== undefined && one !== "").join(" ");
  const time = completedAt.toISOString().slice(0, 19);
  return `${time}Z  ${name.slice(0, MAX_NAME)}${origin === "" ? "" : `  ${origin}`}`;
}

/** Returns the line of a build that is not imported yet. */
export const plannedLine = (build: PastBuild, isTooRecent: boolean): string =>
  toPlainLine(`  ${buildLine(build)}${isTooRecent ? "  (left out: less than a day old)" : ""}`);

/** `--dry-run` asks no server how long the project keeps results. */
export const RETENTION_NOTE = "Builds that are older than the project keeps results are left out as well";

/** `leftMs`: how long the rest takes at the pace so far; undefined before the first build. */
export function importProgressLine(
  position: number,
  total: number,
  build: PastBuild,
  leftMs: number | undefined,
): string {
  const place = `${String(position).padStart(String(total).length)}/${total}`;
  const left = leftMs === undefined ? "" : `  (${toWords(leftMs)} left)`;
  return toPlainLine(`${place}  ${buildLine(build)}${left}`);
}

function toWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns what the folder contains, in one or two lines. */
export function historyLines({ builds, others }: PastBuilds): string[] {
  const [first, last] = [builds[0], builds.at(-1)];
  const span =
    first && last
      ? `, ${first.completedAt.toISOString().slice(0, 10)} to ${last.completedAt.toISOString().slice(0, 10)}`
      : "";
  const examples = others.slice(0, MAX_OTHERS).map((path) => `"${path}"`);
  return [
    `Found ${counted(builds.length, "build")}${span}`,
    ...(others.length === 0
      ? []
      : [
          `Ignored ${counted(others.length, "file")} that ${others.length === 1 ? "is not a test report" : "are not test reports"}, such as ${examples.join(", ")}`,
        ]),
  ].map(toPlainLine);
}

export type ImportEnd = {
  imported: number;
  existing: number;
  recent: number;
  expired: number;
  problems: PastBuilds["problems"];
};

/** Returns the summary of an import; `retentionDays` are those of the project. */
export function importEndLines(
  { imported, existing, recent, expired, problems }: ImportEnd,
  retentionDays: number,
): string[] {
  return [
    `Imported ${counted(imported, "build")}${existing > 0 ? `, ${toCount(existing)} already there` : ""}`,
    ...(expired > 0
      ? [
          `${counted(expired, "build")} left out: older than the ${retentionDays} days for which the project keeps results. Raise its ` +
            "retention and start the import again",
        ]
      : []),
    ...(recent > 0
      ? [
          `${counted(recent, "build")} left out: less than a day old, and the server would send notifications (--include-recent)`,
        ]
      : []),
    ...problemLines(problems),
  ].map(toPlainLine);
}

export const problemLines = (problems: PastBuilds["problems"]): string[] =>
  problems.length === 0
    ? []
    : [
        `${counted(problems.length, "problem")}:`,
        ...problems.map(({ name, message }) => toPlainLine(`  ${name}: ${message}`)),
      ];
