/** Reads artifacts of GitHub Actions, as "gh run download" and the API give them, and what GitHub says of their runs. */

import { readFileSync } from "node:fs";
import { toFileError } from "../file_failure.ts";
import { join } from "node:path";
import type { PastBuilds, FileProblem } from "./build.ts";
import { readPattern } from "./name_pattern.ts";
import { type DateSource, type FolderOptions, type KnownBuild, readReports } from "./read_reports.ts";

/** The task has the name of its artifact, unless the options name it. */
const ARTIFACT = "{build}/{task}";

export const GITHUB_DATES: readonly DateSource[] = ["run", "report"];

const RUN_FILE = /^(?:[^/]+\/)?runs?\.json$/;

/** Throws an Error if the folder, or a "run.json" in it, cannot be read. */
export function readGithubArtifacts(
  folder: string,
  options: FolderOptions & { defaultBranch: string | undefined },
): PastBuilds {
  const pattern = options.pattern ?? readPattern(ARTIFACT);
  if ("problem" in pattern) throw new Error(pattern.problem);
  const runs = new Map<string, KnownBuild>();
  for (const name of ["run.json", "runs.json"]) addRuns(folder, name, options.defaultBranch, runs);
  const unknown = new Set<string>();
  const history = readReports(folder, {
    ...options,
    pattern,
    accepts: (path) => !RUN_FILE.test(path),
    find: (build) => {
      if (!runs.has(build)) addRuns(folder, `${build}/run.json`, options.defaultBranch, runs);
      const run = runs.get(build);
      if (!run) unknown.add(build);
      return run;
    },
  });
  const notes =
    unknown.size === 0
      ? []
      : [
          `run.json does not name ${unknown.size === 1 ? `run ${[...unknown][0]}` : `${unknown.size} runs`}: branch and commit ` +
            "are unknown, and the builds count as builds of the default branch unless --branch is set",
        ];
  return { ...history, problems: withoutPatternHint(history.problems), notes: [...history.notes, ...notes] };
}

/** The pattern is usually not an option that somebody has chosen. */
const withoutPatternHint = (problems: readonly FileProblem[]): FileProblem[] =>
  problems.map(({ name, message }) => ({
    name,
    message: /does not match --pattern$/.test(message) ? 'expected "RUN ID/ARTIFACT NAME/…" (or --pattern)' : message,
  }));

type Fields = Record<string, unknown>;

/** The names of "gh run list" and "gh run view", and those of the API. */
function toRun(fields: Fields, defaultBranch: string | undefined): [id: string, run: KnownBuild] | undefined {
  const text = (...names: string[]) => {
    const value = names.map((name) => fields[name]).find((one) => typeof one === "string" && one !== "");
    return value as string | undefined;
  };
  const id = fields["databaseId"] ?? fields["id"];
  if (typeof id !== "number" && typeof id !== "string") return undefined;
  const created = Date.parse(text("createdAt", "created_at") ?? "");
  const headBranch = text("headBranch", "head_branch");
  const owner = toForkOwner(fields);
  // A pull request from the default branch is one of a fork, whose default branch has the same name.
  const isFork =
    owner !== undefined ||
    (/^pull_request/.test(text("event") ?? "") && headBranch !== undefined && headBranch === defaultBranch);
  return [
    String(id),
    {
      at: Number.isNaN(created) ? undefined : new Date(created),
      branch: isFork && headBranch !== undefined ? `${owner ?? "fork"}:${headBranch}` : headBranch,
      commit: text("headSha", "head_sha"),
      buildUrl: text("html_url", "url"),
      untrusted: isFork ? true : undefined,
    },
  ];
}

/** Only the API names the repositories. The repository of a fork that was deleted is null. */
function toForkOwner({ head_repository: head, repository }: Fields): string | undefined {
  const nameOf = (value: unknown) => (value as { full_name?: unknown } | null | undefined)?.full_name;
  if (repository === undefined || head === undefined || nameOf(head) === nameOf(repository)) return undefined;
  return String(nameOf(head) ?? "unknown").split("/")[0]!;
}

function addRuns(folder: string, name: string, defaultBranch: string | undefined, runs: Map<string, KnownBuild>): void {
  let text: string;
  try {
    text = readFileSync(join(folder, name), "utf8");
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT" || (error as { code?: unknown }).code === "ENOTDIR") return;
    throw toFileError(error, "read", name);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw toFileError(error, "read", name);
  }
  const { workflow_runs: listed } = Object(json) as { workflow_runs?: unknown };
  for (const one of [listed ?? json].flat()) {
    const run = typeof one === "object" && one !== null ? toRun(one as Fields, defaultBranch) : undefined;
    if (run) runs.set(...run);
  }
}
