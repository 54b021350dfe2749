/** `assay import`: uploads the reports of old builds in chronological order. */

import type { PastBuild } from "../history/build.ts";
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
import { ImportRefusedError, isStored, readExecutions, readProject } from "./import_server.ts";
import { type Invocation, locate } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { sendReports, type UploadEnd } from "./upload_request.ts";
import { listenForStop } from "./wrapped_command.ts";

const AWAY_CODE = 3;
const INTERRUPTED_CODE = 130;

/** Stops the import early; imported builds stay. */
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
    const history = readReports(given.directory, given);
    end.problems.push(...history.problems);
    for (const line of historyLines(history)) await say(line);
    const builds = history.builds.filter((build) => {
      const isExpired = retentionDays > 0 && build.completedAt.getTime() < Date.now() - retentionDays * 86_400_000;
      const isLeftOut = isTooRecent(build, given);
      end.expired += isExpired ? 1 : 0;
      end.recent += isLeftOut ? 1 : 0;
      return !isExpired && !isLeftOut;
    });
    const stored = await readExecutions(address, builds, patience);
    const missing = builds.filter((build) => !isStored(build, stored));
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
  !includesRecent && isRecent(build.completedAt.getTime());

async function printPlan(
  given: ImportArguments,
  say: (line: string) => Promise<void>,
  print: (line: string) => void,
): Promise<number> {
  const history = readReports(given.directory, given);
  const lines = [
    ...historyLines(history),
    ...history.builds.map((build) => plannedLine(build, isTooRecent(build, given))),
    ...problemLines(history.problems),
    ...(history.builds.length > 0 ? [RETENTION_NOTE] : []),
  ];
  for (const line of lines) await say(line);
  if (given.isJson) {
    const builds = history.builds.map((build) => ({ ...build, recent: isTooRecent(build, given) }));
    print(toJsonLine({ builds, problems: history.problems }));
  }
  return history.problems.length > 0 ? 1 : 0;
}

type Uploading = ImportArguments & {
  signal: AbortSignal;
  say: (line: string) => Promise<void>;
  end: ImportEnd;
};

async function uploadAll(address: ServerAddress, builds: readonly PastBuild[], uploading: Uploading): Promise<void> {
  const { say, end } = uploading;
  const began = performance.now();
  for (const [index, build] of builds.entries()) {
    const leftMs = index === 0 ? undefined : ((performance.now() - began) / index) * (builds.length - index);
    await say(importProgressLine(index + 1, builds.length, build, leftMs));
    const problem = await uploadBuild(address, build, uploading);
    if (problem === undefined) end.imported++;
    else end.problems.push({ name: build.name, message: problem });
  }
}

/** Returns why the server refused the build, if it did. Throws StoppedError where the next build would fail as well. */
async function uploadBuild(
  address: ServerAddress,
  build: PastBuild,
  { patienceMs, signal, say }: Uploading,
): Promise<string | undefined> {
  let reports: ReturnType<PastBuild["read"]>;
  try {
    reports = build.read();
  } catch (error) {
    return (error as Error).message;
  }
  const answer = await sendReports(address, reports, toParameters(build), { patienceMs, signal });
  if (answer.end === "uploaded") {
    for (const warning of answer.run.warnings) await say(toPlainLine(`  Warning: ${build.name}: ${warning}`));
    return undefined;
  }
  if (signal.aborted) throw new StoppedError("Interrupted", INTERRUPTED_CODE);
  if (answer.end === "away") throw new StoppedError(answer.problem, AWAY_CODE);
  if (!concernsReport(answer)) throw new StoppedError(answer.problem, 1);
  return answer.problem;
}

/** Whether the next build may be accepted all the same. */
const concernsReport = ({ status }: Exclude<UploadEnd, { end: "uploaded" }>): boolean =>
  status === 400 || status === 413;

function toParameters(build: PastBuild): Record<string, string> {
  const parameters = {
    execution_key: build.key,
    task_slug: build.task,
    branch: build.branch,
    commit: build.commit,
    build_url: build.buildUrl,
    format: build.format,
    completed_at: build.completedAt.toISOString(),
    complete: "true",
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
