/** `assay upload`: sends test reports from a CI job, after the tests or around them, and prints the result. */

import { appendFileSync, existsSync, statSync } from "node:fs";
import { relative, resolve } from "node:path";
import * as v from "valibot";
import { ANNOTATION_ENCODINGS, toAnnotations, type AnnotatedFailure } from "./annotations.ts";
import type { CiSystemName } from "../rules/ci_systems.ts";
import { detectBuild } from "./ci.ts";
import { ask, type ServerAddress, toPatience } from "./client.ts";
import { sendOwnersFile } from "./owners_file.ts";
import { endGate, type GateEnd, toGateParameters } from "./gate.ts";
import { SUMMARY_ENCODINGS, toSummary } from "./job_summary.ts";
import { detectMachine } from "./machine.ts";
import { cleanTexts, createOutputMask, secretsOf, toJsonLine, toPlainLine } from "./output.ts";
import { findReports, type FoundReports, keepFresh, readReportFiles } from "./report_files.ts";
import { findAddress, type NoAddress, openAddress } from "./upload_address.ts";
import { type UploadArguments, readArguments, toParameters } from "./upload_options.ts";
import { uploadAttachments } from "./upload_attachments.ts";
import { type AnsweredRun, MAX_ANSWER_BYTES, type Reports, sendReports, type UploadEnd } from "./upload_request.ts";
import { type EndedCommand, listenForStop, runCommand } from "./wrapped_command.ts";
import { toRunLine } from "../wording/run_line.ts";
import { slowerLine } from "../wording/slower.ts";
import { fileClockMs } from "../runner/report_files.ts";

type Environment = Record<string, string | undefined>;

/** Distinguishes our messages on stderr from those of the command. */
const PREFIX = "assay: ";

type Voice = {
  /** Writes the result, to stdout unless a command uses stdout. */
  tell: (line: string) => Promise<void>;
  /** Writes lines for the CI system. */
  annotate: (line: string) => Promise<void>;
  /** Writes a message to stderr. */
  note: (line: string) => Promise<void>;
  /** Masks secrets in a text. */
  clean: (text: string) => string;
  /** From then on also without the secrets that were received since. */
  renewMask: () => void;
};

/** Creates the functions that write output, all of which mask secrets. */
const ENCODINGS = [
  ...ANNOTATION_ENCODINGS,
  ...SUMMARY_ENCODINGS,
  toPlainLine,
  encodeURIComponent,
  (text: string) => toJsonLine(text).slice(1, -1),
];

function createVoice(environment: Environment, { isWrapped, json }: { isWrapped: boolean; json: boolean }): Voice {
  let mask = createOutputMask(secretsOf(environment), ENCODINGS);
  const clean = (text: string) => mask(text);
  const write = async (to: typeof Bun.stderr, line: string) => void (await Bun.write(to, `${clean(line)}\n`));
  return {
    tell: (line) => write(isWrapped ? Bun.stderr : Bun.stdout, line),
    annotate: (line) => write(isWrapped || json ? Bun.stderr : Bun.stdout, line),
    note: (line) => write(Bun.stderr, `${PREFIX}${toPlainLine(line)}`),
    clean,
    renewMask: () => void (mask = createOutputMask(secretsOf(environment), ENCODINGS)),
  };
}

/** An empty report, for recording a failure without a report. */
const NOTHING: Reports = [{ name: "no report", bytes: new Uint8Array() }];

type Delivery = {
  given: UploadArguments;
  parameters: Record<string, string>;
  /** The report files; reasons why files are unusable are added to its problems. */
  found: FoundReports;
  ended: EndedCommand | undefined;
  publicUrl: string | undefined;
  voice: Voice;
};
type End = UploadEnd | { end: "nothing" | "stopped"; problem: string };

function tryToRead(found: FoundReports): Reports {
  try {
    return readReportFiles(found.files);
  } catch (error) {
    found.problems.push((error as Error).message);
    return [];
  }
}

/**
 * If there is no usable report but the exit code of the tests is known, a failure is recorded in its place: a task without a
 * report would look like one that passed.
 */
async function deliver(
  address: ServerAddress | NoAddress,
  delivery: Delivery,
  signal: AbortSignal | undefined,
): Promise<End> {
  const { given, parameters, found, ended, publicUrl, voice } = delivery;
  if (signal?.aborted) return { end: "stopped", problem: "Interrupted" };
  const sending = { patienceMs: given.patienceMs, signal, publicUrl };
  const exitCode = ended ? String(ended.exitCode) : parameters["exit_code"];
  const hasFailed = Number(exitCode ?? 0) !== 0;
  const mayBeEmpty = given.flags["allow-empty"] === true;
  const reports = tryToRead(found);
  if (ended?.problem !== undefined) await voice.note(ended.problem);
  for (const problem of found.problems) await voice.note(problem);
  if ("problem" in address) return address;
  const sent = {
    ...parameters,
    ...(exitCode === undefined ? {} : { exit_code: exitCode }),
    ...toGateParameters(given.gate, found.problems),
  };
  if (reports.length > 0) {
    const end = await sendReports(address, reports, sent, sending);
    const isUnknown = exitCode === undefined || (mayBeEmpty && !hasFailed);
    if (end.end !== "refused" || end.status !== 400 || isUnknown) return end;
    found.problems.push(end.problem);
    await voice.note(end.problem);
  } else if (exitCode === undefined && !mayBeEmpty) return { end: "nothing", problem: "No report found" };
  const failure = hasFailed ? exitCode : "-1";
  if (mayBeEmpty && !hasFailed) return await sendReports(address, NOTHING, sent, sending);
  const end = await sendReports(address, NOTHING, { ...sent, exit_code: failure! }, sending);
  if (end.end === "uploaded")
    await voice.note(`Without a report, this is recorded as a failure: runner exited ${failure}`);
  return end;
}

const STRICT_CODES: Record<End["end"], number> = { uploaded: 0, stopped: 0, nothing: 1, refused: 1, away: 3 };

/** Answers the exit code. Throws UsageError. */
export async function upload(args: string[], environment: Environment = process.env): Promise<number> {
  const given = readArguments(args);
  const { command, flags } = given;
  const build = detectBuild(environment);
  const parameters = toParameters(given, environment, build, detectMachine(environment, build.system));
  const source = findAddress(environment, command !== undefined || build.system !== undefined);
  const voice = createVoice(environment, { isWrapped: command !== undefined, json: flags.json === true });

  const before = {
    reports: command ? findReports(given.reports).files : [],
    attachments: command ? findReports(given.attachments.attach).files : [],
  };
  const beganAt = command ? fileClockMs(process.cwd()) : Date.now();
  const stop = command && listenForStop();
  const ended = command && (await runCommand(command, stop!));
  const there = findReports(given.reports);
  const found = ended ? keepFresh(there, before.reports, beganAt) : there;

  const publicUrl = environment["ASSAY_PUBLIC_URL"]?.trim();
  const sending = { patienceMs: given.patienceMs, signal: stop?.signal, publicUrl };
  const address = await openAddress(source, toPatience(sending), stop?.signal);
  voice.renewMask();
  const end = await deliver(address, { given, parameters, found, ended, publicUrl, voice }, stop?.signal);
  const isJson = flags.json === true;
  if (end.end === "uploaded" && flags["no-owners"] !== true) {
    const { branch, commit, pull_request: pullRequest, shard } = parameters;
    const origin = { branch, commit, pullRequest, shard, defaultBranch: build.defaultBranch };
    for (const line of await sendOwnersFile(address as ServerAddress, build.system, origin)) await voice.note(line);
  }
  if (end.end === "uploaded") {
    try {
      await tellRun(address as ServerAddress, end, { environment, system: build.system, voice, json: isJson });
    } catch (error) {
      // The results are uploaded, and the exit code is that of the tests.
      await voice.note(`Cannot report the run: ${(error as Error).message}`);
    }
    const attach = findAttachments(given, before.attachments, command ? beganAt : undefined);
    for (const problem of attach.problems) await voice.note(problem);
    const { scope, root } = given.attachments;
    const lines = await uploadAttachments(address as ServerAddress, {
      ...{
        run: end.run,
        scope,
        root,
        format: parameters["format"],
        patienceMs: given.patienceMs,
        signal: stop?.signal,
      },
      reports: found.files.map(({ path }) => path),
      attach: attach.files.map(({ path }) => path),
    });
    for (const line of lines) await voice.note(line);
  } else {
    await voice.note(`Results were not uploaded: ${end.problem}`);
    if (isJson) await voice.tell(toJsonLine({ error: { message: end.problem } }));
  }
  const own = ended?.exitCode ?? 0;
  if (given.gate) {
    const exitCode =
      ended?.exitCode ?? (parameters["exit_code"] === undefined ? undefined : Number(parameters["exit_code"]));
    const gated = endGate(given.gate, { exitCode, ...gateEndOf(end, found, voice) });
    for (const line of gated.lines) await voice.note(line);
    if (exitCode !== 0) return gated.code;
  }
  if (own !== 0 || !flags.strict) return own;
  return STRICT_CODES[end.end] || (found.problems.length > 0 && !flags["allow-empty"] ? 1 : 0);
}

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
  before: FoundReports["files"],
  beganAt: number | undefined,
): FoundReports {
  const there = findReports(attachments.attach);
  return beganAt === undefined ? there : keepFresh(there, before, beganAt, "file");
}

/** The part of the answer that is used here. */
const failuresAnswer = v.object({
  causes: v.array(
    v.object({
      message: v.nullable(v.string()),
      failures: v.array(
        v.object({
          taskSlug: v.string(),
          suite: v.string(),
          name: v.string(),
          file: v.nullable(v.string()),
          line: v.nullable(v.number()),
          blame: v.nullable(v.string()),
        }),
      ),
    }),
  ),
});

/** Returns the new failures with line and message, which the answer to an upload omits; falls back to that answer. */
async function readFailures(address: ServerAddress, run: AnsweredRun): Promise<AnnotatedFailure[]> {
  const known = run.newFailures.map(({ suite, name, file }) => ({
    suite,
    name,
    file,
    line: null,
    message: null,
    blame: "new",
  }));
  try {
    const { status, text } = await ask(address, {
      path: `/executions/${encodeURIComponent(run.executionId)}/failures`,
      timeoutMs: 10_000,
      maxBytes: MAX_ANSWER_BYTES,
    });
    if (status !== 200) return known;
    const { causes } = v.parse(failuresAnswer, JSON.parse(text));
    return causes
      .flatMap(({ message, failures }) => failures.map((failure) => ({ ...failure, message })))
      .filter(({ taskSlug }) => taskSlug === run.taskSlug);
  } catch {
    return known;
  }
}

type Telling = { environment: Environment; system: CiSystemName | undefined; voice: Voice; json: boolean };

const MAX_WARNINGS = 10;

async function tellRun(
  address: ServerAddress,
  { run: answered, answer, foreignOrigin }: Extract<UploadEnd, { end: "uploaded" }>,
  { environment, system, voice, json }: Telling,
): Promise<void> {
  const { clean } = voice;
  // Secrets are masked before texts are cut or escaped: the name of a test may contain a value of its environment.
  const run = cleanTexts(answered, clean);
  for (const warning of run.warnings.slice(0, MAX_WARNINGS)) await voice.note(`Warning: ${warning}`);
  if (foreignOrigin !== null)
    await voice.note(
      `The public address of the server is "${foreignOrigin}", not ASSAY_URL: set ASSAY_PUBLIC_URL to link there`,
    );
  const slower = slowerLine(run.slowerTests);
  await voice.tell(json ? toJsonLine(cleanTexts(answer, clean)) : toPlainLine(toRunLine(run)));
  if (!json && slower) await voice.tell(toPlainLine(slower));
  const summary = environment["GITHUB_STEP_SUMMARY"]?.trim();
  const agent = system === "buildkite" ? Bun.which("buildkite-agent", { PATH: environment["PATH"] ?? "" }) : null;
  const isTold = summary || agent || system === "github";
  const failures = cleanTexts(run.failed > 0 && isTold ? await readFailures(address, answered) : [], clean);

  const workspace = environment["GITHUB_WORKSPACE"]?.trim() || process.cwd();
  const placeOf = (file: string) => {
    // A report names files from where its tool was started, which may be a folder of the repository.
    const path = existsSync(resolve(file)) ? relative(workspace, resolve(file)) : file;
    return path.startsWith("..") ? file : path;
  };
  const newFailures = failures.filter(({ blame }) => blame === "new");
  const lines = toAnnotations(system, run, newFailures, placeOf);
  for (const line of lines) await voice.annotate(line);
  if (summary) await appendSummary(summary, run, failures, voice);
  if (agent) await annotate(agent, run, clean(toSummary(run, failures, MAX_SUMMARY)));
}

/** The maximum size of the job summary of a step that GitHub accepts, in bytes. */
const MAX_SUMMARY = 2 ** 20;

async function appendSummary(
  path: string,
  run: AnsweredRun,
  failures: readonly AnnotatedFailure[],
  voice: Voice,
): Promise<void> {
  try {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    // The existing text may not end with a line break.
    const begin = size > 0 ? "\n\n" : "";
    // Masking never makes a text longer.
    const text = voice.clean(toSummary(run, failures, MAX_SUMMARY - size - begin.length));
    if (text !== "") appendFileSync(path, begin + text);
  } catch (error) {
    await voice.note(`Cannot write the job summary: ${(error as Error).message}`);
  }
}

/** An agent that does not answer costs ten seconds, and nothing else. */
async function annotate(agent: string, run: AnsweredRun, summary: string): Promise<void> {
  const context = `assay-${run.taskSlug.replace(/[^\w-]+/g, "-").slice(0, 100)}`;
  const style = run.verdict === "failed" ? "error" : "success";
  const child = Bun.spawn([agent, "annotate", "--style", style, "--context", context], {
    stdin: new Blob([summary]),
    stdout: "ignore",
    stderr: "ignore",
    timeout: 10_000,
  });
  await child.exited;
}
