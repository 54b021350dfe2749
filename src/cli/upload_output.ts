/** Writes the result of `assay upload` to the terminal, into the log of the CI system and into the summary of its job. */

import { appendFileSync, existsSync, statSync } from "node:fs";
import { relative, resolve } from "node:path";
import * as v from "valibot";
import type { CiSystemName } from "../rules/ci_systems.ts";
import { absentLines } from "../wording/absent_tests.ts";
import { toRunLine } from "../wording/run_line.ts";
import { slowerLine } from "../wording/slower.ts";
import { ANNOTATION_ENCODINGS, toAnnotations, toWarning, type AnnotatedFailure } from "./annotations.ts";
import { ask, type ServerAddress } from "./client.ts";
import { SUMMARY_ENCODINGS, toProblemSummary, toSummary } from "./job_summary.ts";
import type { BuildContext, Invocation, OutputStream } from "./invocation.ts";
import { cleanTexts, createOutputMask, toJsonLine, toPlainLine } from "./output.ts";
import { type AnsweredRun, MAX_ANSWER_BYTES, type UploadEnd } from "./upload_request.ts";

/** Distinguishes our messages on stderr from those of the command. */
const PREFIX = "assay: ";

export type Voice = {
  /** Writes the result, to stdout unless a command uses stdout. */
  tell: (line: string) => Promise<void>;
  /** Writes lines for the CI system. */
  annotate: (line: string) => Promise<void>;
  /** Writes a message to stderr. */
  note: (line: string) => Promise<void>;
  /** Masks secrets in a text. */
  clean: (text: string) => string;
};

const ENCODINGS = [
  ...ANNOTATION_ENCODINGS,
  ...SUMMARY_ENCODINGS,
  toPlainLine,
  encodeURIComponent,
  (text: string) => toJsonLine(text).slice(1, -1),
];

/** Creates the functions that write output, all of which mask the secrets that are known by now. */
export function createVoice(
  { secrets, stdout, stderr }: Pick<Invocation, "secrets" | "stdout" | "stderr">,
  { isWrapped, json }: { isWrapped: boolean; json: boolean },
): Voice {
  const clean = createOutputMask(secrets.list(), ENCODINGS);
  const write = (to: OutputStream, line: string) => to.write(`${clean(line)}\n`);
  return {
    tell: (line) => write(isWrapped ? stderr : stdout, line),
    annotate: (line) => write(isWrapped || json ? stderr : stdout, line),
    note: (line) => write(stderr, `${PREFIX}${toPlainLine(line)}`),
    clean,
  };
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
          reason: v.nullable(v.string()),
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

type RunOutput = { invocation: BuildContext; system: CiSystemName | undefined; voice: Voice; json: boolean };

const MAX_WARNINGS = 10;

/** Prints the result of a run, and writes it where the CI system shows it. */
export async function tellRun(
  address: ServerAddress,
  { run: answered, answer, foreignOrigin }: Extract<UploadEnd, { end: "uploaded" }>,
  { invocation, system, voice, json }: RunOutput,
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
  for (const line of json ? [] : absentLines(run)) await voice.tell(toPlainLine(line));
  if (!json && slower) await voice.tell(toPlainLine(slower));
  const { summary, agent } = findCiOutputs(invocation, system);
  const isTold = summary || agent || system === "github";
  const failures = cleanTexts(run.failed > 0 && isTold ? await readFailures(address, answered) : [], clean);

  const { environment, directory } = invocation;
  const workspace = environment["GITHUB_WORKSPACE"]?.trim() || directory;
  const placeOf = (file: string) => {
    // A report names files relative to the directory of its tool, which may be a folder of the repository.
    const absolute = resolve(directory, file);
    const path = existsSync(absolute) ? relative(workspace, absolute) : file;
    return path.startsWith("..") ? file : path;
  };
  const newFailures = failures.filter(({ blame }) => blame === "new");
  const lines = toAnnotations(system, run, newFailures, placeOf);
  for (const line of lines) await voice.annotate(line);
  if (summary) await appendSummary(summary, (maxBytes) => toSummary(run, failures, maxBytes), voice);
  const outputs = environment["GITHUB_OUTPUT"]?.trim();
  if (outputs) await writeOutputs(resolve(directory, outputs), run, voice);
  if (!agent) return;
  const context = `assay-${run.taskSlug.replace(/[^\w-]+/g, "-").slice(0, 100)}`;
  const style = run.verdict === "failed" ? "error" : "success";
  await annotate(agent, { style, context, text: clean(toSummary(run, failures, MAX_SUMMARY)) });
}

/** Says why nothing was uploaded, also where the CI system shows it: the job may be green and its log unread. */
export async function tellProblem(
  problem: string,
  { invocation, system, voice, json, isExpected }: RunOutput & { isExpected: boolean },
): Promise<void> {
  const message = `Results were not uploaded: ${problem}`;
  await voice.note(message);
  if (json) await voice.tell(toJsonLine({ error: { message: problem } }));
  if (isExpected) return;
  const { summary, agent } = findCiOutputs(invocation, system);
  const masked = voice.clean(message);
  for (const line of toWarning(system, masked)) await voice.annotate(line);
  if (summary) await appendSummary(summary, (maxBytes) => toProblemSummary(masked, maxBytes), voice);
  if (agent)
    await annotate(agent, {
      ...{ style: "warning", context: "assay-upload", text: voice.clean(toProblemSummary(masked, MAX_SUMMARY)) },
    });
}

/** Returns the job summary of GitHub and the agent of Buildkite, where there are any. */
function findCiOutputs({ environment, directory }: BuildContext, system: CiSystemName | undefined) {
  const summary = environment["GITHUB_STEP_SUMMARY"]?.trim();
  const path =
    system === "buildkite" ? Bun.which("buildkite-agent", { PATH: environment["PATH"] ?? "", cwd: directory }) : null;
  return {
    summary: summary && resolve(directory, summary),
    agent: path === null ? undefined : { path, environment, directory },
  };
}

/** The maximum size of the job summary of a step that GitHub accepts, in bytes. */
const MAX_SUMMARY = 2 ** 20;

async function appendSummary(path: string, toText: (maxBytes: number) => string, voice: Voice): Promise<void> {
  try {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    // The existing text may not end with a line break.
    const begin = size > 0 ? "\n\n" : "";
    // Masking never makes a text longer.
    const text = voice.clean(toText(MAX_SUMMARY - size - begin.length));
    if (text !== "") appendFileSync(path, begin + text);
  } catch (error) {
    await voice.note(`Cannot write the job summary: ${(error as Error).message}`);
  }
}

/** Outputs of the step, for later steps of the job. */
async function writeOutputs(path: string, run: AnsweredRun, { clean, note }: Voice): Promise<void> {
  const { verdict, executionId, url, counts, flaky } = run;
  const values = { verdict, "execution-id": executionId, url, "new-failures": counts.newFailures, flaky };
  const lines = Object.entries(values).map(([name, value]) => `${name}=${toPlainLine(clean(String(value)))}\n`);
  try {
    appendFileSync(path, lines.join(""));
  } catch (error) {
    await note(`Cannot write the outputs of the step: ${(error as Error).message}`);
  }
}

type Agent = BuildContext & { path: string };

/** Annotates the build. An agent that does not answer only costs ten seconds. */
async function annotate(
  { path, environment, directory }: Agent,
  { style, context, text }: Record<"style" | "context" | "text", string>,
) {
  const child = Bun.spawn([path, "annotate", "--style", style, "--context", context], {
    ...{ cwd: directory, env: environment },
    stdin: new Blob([text]),
    stdout: "ignore",
    stderr: "ignore",
    timeout: 10_000,
  });
  await child.exited;
}
