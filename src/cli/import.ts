/** `assay import`: uploads the reports of old builds in chronological order. */

import { buildEnd, type PastBuilds, type PastBuild, type PastUpload } from "../history/build.ts";
import { readAllureHistory } from "../history/read_allure_history.ts";
import { GITHUB_DATES, readGithubArtifacts } from "../history/read_github_artifacts.ts";
import { readReports } from "../history/read_reports.ts";
import { isRecent } from "../rules/recency.ts";
import { readServerAddress, type ServerAddress, ServerAwayError, toPatience } from "./client.ts";
import {
  importEndLines,
  historyLines,
  type ImportEnd,
  plannedLine,
  RETENTION_NOTE,
  problemLines,
  importProgressLine,
} from "./import_lines.ts";
import { type ImportArguments, readImportArguments } from "./import_options.ts";
import { findMissing, ImportRefusedError, readExecutions, readProject } from "./import_server.ts";
import { type Invocation, locate } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { sendReports, type UploadEnd } from "./upload_request.ts";
import { listenForStop } from "./wrapped_command.ts";

const USUAL_DATES = ["report", "name"] as const;
const AWAY_CODE = 3;
const INTERRUPTED_CODE = 130;

/** Ends the import before its end; what is imported stays so. */
class StoppedError extends Error {
  override name = "StoppedError";
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}

/** Returns the exit code. Throws UsageError, or an Error if the folder cannot be read. */
export async function importHistory(args: string[], invocation: Invocation): Promise<number> {
  const { environment, secrets, stdout, stderr, print } = invocation;
  const { directory, ...options } = readImportArguments(args);
  const given = { ...options, directory: locate(invocation, directory) };
  const output = given.isJson ? stderr : stdout;
  const say = (line: string) => output.write(`${secrets.mask(line)}\n`);
  if (given.isDryRun) return await printPlan(given, say, print);
  const address = readServerAddress(given.project ? { ...environment, ASSAY_PROJECT: given.project } : environment);
  const stop = listenForStop(invocation);
  const end: ImportEnd = { imported: 0, existing: 0, recent: 0, expired: 0, problems: [] };
  let retentionDays = 0;
  let code: number;
  try {
    const patience = () => toPatience({ patienceMs: given.patienceMs, signal: stop.signal });
    const project = await readProject(address, patience());
    ({ retentionDays } = project);
    const history = readHistory(given, project.defaultBranch);
    end.problems.push(...history.problems);
    for (const line of historyLines(history)) await say(line);
    const builds = history.builds.filter((build) => {
      const isExpired = retentionDays > 0 && buildEnd(build).getTime() < Date.now() - retentionDays * 86_400_000;
      const isLeftOut = isTooRecent(build, given);
      end.expired += isExpired ? 1 : 0;
      end.recent += isLeftOut ? 1 : 0;
      return !isExpired && !isLeftOut;
    });
    const stored = await readExecutions(address, builds, patience);
    const missing = builds
      .map((build) => ({ build, uploads: findMissing(build, stored) }))
      .filter(({ uploads }) => uploads.length > 0);
    end.existing = builds.length - missing.length;
    await uploadAll(address, missing, { ...given, signal: stop.signal, say, end });
    code = end.problems.length > 0 ? 1 : 0;
  } catch (error) {
    code = await sayWhyStopped(error, stop.signal, say);
  }
  for (const line of importEndLines(end, retentionDays)) await say(line);
  if (given.isJson) print(toJsonLine(end));
  return code;
}

/** Whether the server would send notifications of the build. */
const isTooRecent = (build: PastBuild, { includesRecent }: ImportArguments): boolean =>
  !includesRecent && isRecent(buildEnd(build).getTime());

function readHistory(given: ImportArguments, defaultBranch: string | undefined): PastBuilds {
  const { directory, from } = given;
  if (from === "allure-history") return readAllureHistory(directory, given);
  if (from === "reports") return readReports(directory, { ...given, dates: given.dates ?? USUAL_DATES });
  return readGithubArtifacts(directory, { ...given, dates: given.dates ?? GITHUB_DATES, defaultBranch });
}

async function printPlan(
  given: ImportArguments,
  say: (line: string) => Promise<void>,
  print: (line: string) => void,
): Promise<number> {
  const history = readHistory(given, undefined);
  const lines = [
    ...historyLines(history),
    ...history.builds.map((build) => plannedLine(build, isTooRecent(build, given))),
    ...problemLines(history.problems),
    ...(history.builds.length > 0 ? [RETENTION_NOTE] : []),
  ];
  for (const line of lines) await say(line);
  if (given.isJson) {
    const builds = history.builds.map((build) => ({
      ...build,
      recent: isTooRecent(build, given),
      uploads: build.uploads.map(({ name, task, completedAt }) => ({ name, task, completedAt })),
    }));
    print(toJsonLine({ builds, problems: history.problems }));
  }
  return history.problems.length > 0 ? 1 : 0;
}

type Uploading = ImportArguments & {
  signal: AbortSignal;
  say: (line: string) => Promise<void>;
  end: ImportEnd;
};

async function uploadAll(
  address: ServerAddress,
  missing: readonly { build: PastBuild; uploads: PastUpload[] }[],
  uploading: Uploading,
): Promise<void> {
  const { say, end } = uploading;
  const began = performance.now();
  for (const [index, { build, uploads }] of missing.entries()) {
    const leftMs = index === 0 ? undefined : ((performance.now() - began) / index) * (missing.length - index);
    await say(importProgressLine(index + 1, missing.length, build, leftMs));
    const problems = await uploadBuild(address, build, uploads, uploading);
    end.problems.push(...problems);
    end.imported += problems.length < uploads.length ? 1 : 0;
  }
}

/** Returns the reports that the server refused. Throws StoppedError where the next build would fail as well. */
async function uploadBuild(
  address: ServerAddress,
  build: PastBuild,
  uploads: readonly PastUpload[],
  { patienceMs, signal, say }: Uploading,
): Promise<PastBuilds["problems"]> {
  const problems: PastBuilds["problems"] = [];
  for (const [index, upload] of uploads.entries()) {
    let reports: ReturnType<PastUpload["read"]>;
    try {
      reports = upload.read();
    } catch (error) {
      problems.push({ name: upload.name, message: (error as Error).message });
      continue;
    }
    const parameters = toParameters(build, upload, index === uploads.length - 1);
    const answer = await sendReports(address, reports, parameters, { patienceMs, signal });
    if (answer.end === "uploaded") {
      for (const warning of answer.run.warnings) await say(toPlainLine(`  Warning: ${upload.name}: ${warning}`));
      continue;
    }
    if (signal.aborted) throw new StoppedError("Interrupted", INTERRUPTED_CODE);
    if (answer.end === "away") throw new StoppedError(answer.problem, AWAY_CODE);
    if (!concernsReport(answer)) throw new StoppedError(answer.problem, 1);
    problems.push({ name: upload.name, message: answer.problem });
  }
  return problems;
}

/** Whether the next build may be accepted all the same. */
const concernsReport = ({ status }: Exclude<UploadEnd, { end: "uploaded" }>): boolean =>
  status === 400 || status === 413;

function toParameters(build: PastBuild, upload: PastUpload, isLast: boolean): Record<string, string> {
  const parameters = {
    execution_key: build.key,
    task_slug: upload.task,
    branch: build.branch,
    commit: build.commit,
    build_url: build.buildUrl,
    untrusted: build.untrusted ? "true" : undefined,
    format: upload.format,
    completed_at: upload.completedAt.toISOString(),
    complete: isLast ? "true" : undefined,
  };
  const known = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(known) as Record<string, string>;
}

async function sayWhyStopped(
  error: unknown,
  signal: AbortSignal,
  say: (line: string) => Promise<void>,
): Promise<number> {
  const stopped = signal.aborted
    ? new StoppedError("Interrupted", INTERRUPTED_CODE)
    : error instanceof ServerAwayError
      ? new StoppedError(error.message, AWAY_CODE)
      : error instanceof ImportRefusedError
        ? new StoppedError(error.message, 1)
        : error;
  if (!(stopped instanceof StoppedError)) throw stopped;
  const hint = stopped.code === 1 ? "" : ". Start the same command again to continue";
  await say(toPlainLine(`Stopped: ${stopped.message}${hint}`));
  return stopped.code;
}
