/** `assay upload`: sends test reports from a CI job, after the tests or around them, and prints the result. */

import { resolve } from "node:path";
import { findCiBuild } from "./ci.ts";
import { type ServerAddress, toPatience } from "./client.ts";
import { sendOwnersFile } from "./owners_file.ts";
import { endGate, type GateEnd, toGateParameters } from "./gate.ts";
import { detectMachine } from "./machine.ts";
import type { Invocation } from "./invocation.ts";
import { cleanTexts } from "./output.ts";
import { findReports, type FoundReports, keepFresh, readReportFiles } from "./report_files.ts";
import { findAddress, type NoAddress, openAddress } from "./upload_address.ts";
import { type UploadArguments, readArguments, toParameters } from "./upload_options.ts";
import { holdAttachments, uploadAttachments } from "./upload_attachments.ts";
import { createVoice, tellProblem, tellRun, type Voice } from "./upload_output.ts";
import { type Reports, sendReports, type UploadEnd } from "./upload_request.ts";
import type { AttemptReport, TestedCommand } from "./attempts.ts";
import { type EndedCommand, listenForStop, runCommand } from "./wrapped_command.ts";
import { fileClockMs } from "../runner/report_files.ts";

/** An empty report, for recording a failure without a report. */
const NOTHING: Reports = [{ name: "no report", bytes: new Uint8Array() }];

/** Maximum number of files that are left out, one request each, because the server cannot read them. */
const MAX_UNREADABLE = 10;

/** Nothing stands before such a report, so the readers of all formats need not be loaded. */
const beginsAsXml = (bytes: Uint8Array): boolean => bytes.find((byte) => byte > 0x20) === 0x3c;

type Delivery = {
  given: UploadArguments;
  parameters: Record<string, string>;
  /** The report files; reasons why files are unusable are added to its problems. */
  found: FoundReports;
  /** The contents of these files, and those that earlier attempts have written. */
  reports: AttemptReport[];
  ended: EndedCommand | undefined;
  /** Why new tests fail the run; undefined: they do not. */
  unstable: string | undefined;
  publicUrl: string | undefined;
  voice: Voice;
};
type End = UploadEnd | { end: "nothing" | "stopped"; problem: string };

/** Reads the files, without the lines of other programs before their reports. */
async function load(found: FoundReports, voice: Voice): Promise<Reports> {
  const reports: Reports = [];
  try {
    reports.push(...readReportFiles(found.files));
  } catch (error) {
    found.problems.push((error as Error).message);
  }
  for (const report of reports) {
    if (beginsAsXml(report.bytes)) continue;
    const { cutPrelude } = await import("../reports/read.ts");
    const begun = cutPrelude(report.bytes);
    if (begun === null) continue;
    report.bytes = begun.bytes;
    await voice.note(`In "${report.name}" a report begins at line ${begun.line}: it is read from there`);
  }
  return reports;
}

/** Maximum length of the message of a failure that is no exit code. */
const MAX_FAILURE = 1_000;

/**
 * Records a failure if there is no usable report but the tests are known to have run, because a task without a report would look like one
 * that passed. The same applies if they were stopped before they could exit.
 */
async function deliver(
  address: ServerAddress | NoAddress,
  delivery: Delivery,
  signal: AbortSignal | undefined,
): Promise<End> {
  const { given, parameters, found, reports, ended, unstable, publicUrl, voice } = delivery;
  if (signal?.aborted) return { end: "stopped", problem: "Interrupted" };
  const sending = { patienceMs: given.patienceMs, signal, publicUrl };
  const exitCode = ended ? String(ended.exitCode) : parameters["exit_code"];
  const hasFailed = Number(exitCode ?? 0) !== 0;
  const mayBeEmpty = given.flags["allow-empty"] === true;
  if (ended?.problem !== undefined) await voice.note(ended.problem);
  for (const problem of found.problems) await voice.note(problem);
  if ("problem" in address) return address;
  const hasOwnCode = exitCode !== undefined && ended?.isOwnCode !== false;
  const failureOf = (problems: readonly (string | undefined)[]) => {
    const text = problems.filter((problem) => problem !== undefined).join("; ");
    return text === "" ? {} : { failure: voice.clean(text).slice(0, MAX_FAILURE).toWellFormed() };
  };
  // The split may have given a shard no files.
  const mayHaveNoFiles = parameters["shard"] !== undefined && !hasFailed && !mayBeEmpty;
  const { exit_code: _, ...others } = parameters;
  const sent = {
    ...others,
    ...(hasOwnCode ? { exit_code: exitCode } : {}),
    ...(mayHaveNoFiles ? { allow_empty: "if_no_files" } : {}),
    ...toGateParameters(given.gate, found.problems),
  };
  if (reports.length > 0) {
    // A file that was named and is not there stands for tests that did not run.
    const absent = hasFailed || mayBeEmpty ? [] : [...found.absent];
    const send = async () => {
      const short = absent.length > 0 ? `No report: ${absent.join("; ")}` : undefined;
      const others = { ...attemptsOf(reports), ...failureOf([ended?.problem, short, unstable]) };
      return await sendReports(address, reports, { ...sent, ...others }, sending);
    };
    let end = await send();
    for (let tries = 0; tries < MAX_UNREADABLE; tries++) {
      const unreadable = findUnreadable(reports, end);
      if (!unreadable) break;
      // The results of the others count.
      reports.splice(unreadable.index, 1);
      absent.push(unreadable.problem);
      found.problems.push(unreadable.problem);
      await voice.note(unreadable.problem);
      end = await send();
    }
    if (absent.length > 0 && end.end === "uploaded") await voice.note("The missing report is recorded as a failure");
    const isUnknown = exitCode === undefined || (mayBeEmpty && !hasFailed);
    if (end.end !== "refused" || end.status !== 400 || isUnknown) return end;
    found.problems.push(end.problem);
    await voice.note(end.problem);
  } else if (exitCode === undefined && !mayBeEmpty) return { end: "nothing", problem: "No report found" };
  if (mayBeEmpty && !hasFailed) return await sendReports(address, NOTHING, sent, sending);
  if (mayHaveNoFiles && ended?.problem === undefined) {
    const end = await sendReports(address, NOTHING, { ...sent, ...toGateParameters(given.gate, []) }, sending);
    if (end.end === "uploaded") found.problems.length = 0;
    if (end.end !== "refused" || end.status !== 400) return end;
  }
  const why = failureOf([ended?.problem, `No report: ${found.problems.join("; ")}`]);
  const end = await sendReports(address, NOTHING, { ...sent, ...why }, sending);
  if (end.end === "uploaded") await voice.note("Without a report, this is recorded as a failure");
  return end;
}

/** The attempts of several files, unless all are from the first. */
const attemptsOf = (reports: readonly AttemptReport[]): Record<string, string> =>
  reports.every(({ attempt }) => attempt === 1) ? {} : { attempts: reports.map(({ attempt }) => attempt).join(",") };

/** Returns the place of the report that the server could not read, and why; undefined: there is none, or there are no others. */
function findUnreadable(reports: Reports, end: UploadEnd): { index: number; problem: string } | undefined {
  if (end.end !== "refused" || end.status !== 400 || reports.length < 2) return undefined;
  const index = reports.findIndex(({ name }) => end.problem.includes(`Cannot read ${JSON.stringify(name)}:`));
  return index === -1 ? undefined : { index, problem: end.problem };
}

const STRICT_CODES: Record<End["end"], number> = { uploaded: 0, stopped: 0, nothing: 1, refused: 1, away: 3 };

/** Returns the exit code. Throws UsageError. */
export async function upload(args: string[], invocation: Invocation): Promise<number> {
  const { environment, directory, secrets } = invocation;
  const given = readArguments(args);
  const { command, flags } = given;
  const build = findCiBuild(invocation);
  const parameters = toParameters(given, invocation, build, detectMachine(environment, build.system));
  const source = findAddress(environment, command !== undefined || build.system !== undefined);

  const attachmentsBefore = command ? findReports(given.attachments.attach, directory).files : [];
  const stop = command && listenForStop(invocation);
  const voice = createVoice(invocation, { isWrapped: command !== undefined, json: flags.json === true });
  const publicUrl = environment["ASSAY_PUBLIC_URL"]?.trim();
  const sending = { patienceMs: given.patienceMs, signal: stop?.signal, publicUrl };
  const open = () => openAddress(source, { patience: toPatience(sending), signal: stop?.signal, secrets });
  const run = flags["skip-quarantined"]
    ? await (await import("./skip_tests.ts")).skipTests(command!, parameters, await open(), { voice, directory })
    : command;
  const runTests = async (words: string[], extra: Record<string, string> = {}) => {
    const { files } = findReports(given.reports, directory);
    const since = fileClockMs(directory);
    const inner = { ...invocation, environment: { ...environment, ...extra } };
    const ended = await runCommand(words, stop!, inner);
    const found = keepFresh(findReports(given.reports, directory), files, since);
    return { ended, found, since, reports: await load(found, voice) };
  };
  const first = run && (await runTests(run));
  let ended = first?.ended;
  const found = first?.found ?? findReports(given.reports, directory);
  let reports = (first?.reports ?? (await load(found, voice))).map((one): AttemptReport => ({ ...one, attempt: 1 }));
  const { scope, root } = given.attachments;
  const naming = {
    ...{ scope, root: resolve(directory, root), format: parameters["format"] },
    reports: found.files.map(({ path }) => path),
  };
  let held: Awaited<ReturnType<typeof holdAttachments>> = [];
  let unstable: string | undefined;
  const { rerun, retry, newTests } = given.attempts;
  const attempts = (): TestedCommand => ({
    ...{ command: command!, rerun, invocation, signal: stop!.signal, note: voice.note },
    ...{ format: parameters["format"], repositoryRoot: parameters["repository_root"] },
    async selectNew(cases, suite) {
      const { askNewTests } = await import("./new_tests_request.ts");
      return await askNewTests(await open(), parameters, { cases, suite }, sending);
    },
    run: runTests,
  });
  if (ended && retry && ended.exitCode !== 0 && isWhole(ended, found, reports)) {
    held = await holdAttachments(naming);
    const { retryFailed } = await import("./retry.ts");
    ({ ended, reports } = await retryFailed(attempts(), retry, { ended, reports }));
  }
  if (ended && newTests && isWhole(ended, found, reports)) {
    const { runNewTests } = await import("./new_tests.ts");
    ({ reports, unstable } = await runNewTests(attempts(), newTests, reports));
    if (!newTests.isStrict) unstable = undefined;
  }
  const address = await open();
  const delivery = { given, parameters, found, reports, ended, unstable, publicUrl, voice };
  const end = await deliver(address, delivery, stop?.signal);
  const output = { invocation, system: build.system, voice, json: flags.json === true };
  if (end.end === "uploaded" && flags["no-owners"] !== true) {
    const { branch, commit, pull_request: pullRequest, shard } = parameters;
    const { system, defaultBranch } = build;
    const origin = { system, branch, commit, pullRequest, shard, defaultBranch };
    for (const line of await sendOwnersFile(address as ServerAddress, origin, invocation)) await voice.note(line);
  }
  if (end.end === "uploaded") {
    try {
      await tellRun(address as ServerAddress, end, output);
    } catch (error) {
      // The results are uploaded, and the exit code is that of the tests.
      await voice.note(`Cannot report the run: ${(error as Error).message}`);
    }
    const attach = findAttachments(given, directory, attachmentsBefore, first?.since);
    for (const problem of attach.problems) await voice.note(problem);
    const lines = await uploadAttachments(address as ServerAddress, {
      ...{ ...naming, held, run: end.run, patienceMs: given.patienceMs, signal: stop?.signal },
      attach: attach.files.map(({ path }) => path),
    });
    for (const line of lines) await voice.note(line);
  } else {
    // The builds of forks have no secrets, so that they upload nothing is not worth an annotation. Only their branches have an owner.
    const isForkWithoutKey = "problem" in source && build.branch?.includes(":") === true;
    await tellProblem(end.problem, { ...output, isExpected: isForkWithoutKey });
  }
  const own = (ended?.exitCode ?? 0) || (unstable === undefined ? 0 : 1);
  if (given.gate) {
    const exitCode = ended ? own : parameters["exit_code"] === undefined ? undefined : Number(parameters["exit_code"]);
    const gated = endGate(given.gate, { exitCode, ...gateEndOf(end, found, voice) });
    for (const line of gated.lines) await voice.note(line);
    if (exitCode !== 0) return gated.code;
  }
  if (own !== 0 || !flags.strict) return own;
  return STRICT_CODES[end.end] || (found.problems.length > 0 && !flags["allow-empty"] ? 1 : 0);
}

/** Whether the command has ended by itself, and has left all of its reports. */
const isWhole = (
  { problem, isOwnCode }: EndedCommand,
  { problems }: FoundReports,
  reports: readonly AttemptReport[],
): boolean => problem === undefined && isOwnCode && problems.length === 0 && reports.length > 0;

/** Returns the decision of the gate, or why there is none. Secrets are masked before names are shortened or escaped. */
function gateEndOf(end: End, { problems }: FoundReports, { clean }: Voice): Pick<GateEnd, "problem" | "decision"> {
  if (problems.length > 0) return { problem: `a report is unusable: ${problems[0]}`, decision: undefined };
  if (end.end !== "uploaded") return { problem: `the results were not uploaded: ${end.problem}`, decision: undefined };
  const { gate } = end.run;
  return { problem: undefined, decision: gate && cleanTexts(gate, clean) };
}

/** The files of `--attach`; with a command only those that it has written. */
function findAttachments(
  { attachments }: UploadArguments,
  directory: string,
  before: FoundReports["files"],
  beganAt: number | undefined,
): FoundReports {
  const there = findReports(attachments.attach, directory);
  return beganAt === undefined ? there : keepFresh(there, before, beganAt, "file");
}
