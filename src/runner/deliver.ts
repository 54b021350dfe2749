/** Tells the server how a task ended: its report, or a failure that says why there is none. */

import * as v from "valibot";
import type { GateMode } from "../schema/gate.ts";
import type { TaskConfig } from "./config.ts";
import { keepAsking, type ServerConnection } from "./line.ts";
import type { Mask } from "../secrets/mask.ts";
import type { RunnerRequest, TaskLogPart, Server, ServerAnswer } from "./protocol.ts";
import type { TaskOutcome } from "./task_outcome.ts";
import { listPaths } from "./report_files.ts";
import { findRepositoryRoot } from "./repository_root.ts";
import { type ReportBody, readReportBody } from "./upload.ts";

const UPLOAD_MS = 120_000;
/** The report of a shard without files. */
const NO_REPORT: ReportBody = { body: new Uint8Array(), headers: {} };
/** The maximum size that the server accepts. */
const MAX_MESSAGE = 60_000;

export type ReportDelivery = {
  leaseId: string;
  /** The lease is of a probe: only a probe may end for a reason. */
  isProbe: boolean;
  config: TaskConfig;
  mask: Mask;
  end: TaskOutcome;
  /** Where the task ran, as parameters of an upload. */
  machine: Readonly<Record<string, string>>;
  /** The end of the log, with all that the server does not have of it. */
  tail: () => TaskLogPart | undefined;
  /** The server says that the lease is over. */
  isGone: () => boolean;
};

/** The result of a delivery: the verdict of the server, or why it was refused. */
export type Delivered =
  | { result: "passed" | "failed" | "incomplete" | "cancelled" | "given to another runner" }
  /** The tests failed, and the gate of the task forgives all failures. */
  | { result: "passed"; forgiven: number }
  | { refused: string };

/** Throws a RunnerError where the key is refused. */
export async function deliver(
  line: ServerConnection,
  { messageOf }: Server,
  delivery: ReportDelivery,
): Promise<Delivered> {
  const { end, config, mask } = delivery;
  // It may be over because the try before was heard: then the same again is answered as that was.
  const patiently = (asking: RunnerRequest) => keepAsking(line, asking, delivery.isGone);
  if (end.kind === "infrastructure") return await fail(end.message, end.exitCode, true);
  if (end.kind === "failure") {
    const answer = end.mayHaveNoFiles ? await upload(NO_REPORT, { allow_empty: "if_no_files" }) : undefined;
    if (answer && answer.status < 300) return toResult(answer, config.gate);
    return await fail(end.message, end.exitCode, false);
  }
  if (end.kind === "commits") {
    const answer = await patiently({
      method: "POST",
      path: `/leases/${delivery.leaseId}/commits`,
      headers: { "Content-Type": "application/json", "Idempotency-Key": `${delivery.leaseId}-commits` },
      body: JSON.stringify({ commits: end.commits }, (name, value: unknown) =>
        typeof value === "string" && name !== "hash" ? mask.text(value) : value,
      ),
    });
    if (!answer) return { refused: "no answer" };
    return answer.status < 300 ? { result: "passed" } : await fail(messageOf(answer), undefined, false);
  }
  const { paths, directory, problem } = end;
  let report;
  try {
    report = await readReportBody(paths, directory, mask);
  } catch (error) {
    return await fail((error as Error).message, end.exitCode, false);
  }
  const root = findRepositoryRoot(directory);
  const answer = await upload(report, {
    ...(problem === undefined ? {} : { failure: problem }),
    ...(root === undefined ? {} : { repository_root: root }),
    ...(end.commitLines === "" ? {} : { commits: mask.text(end.commitLines) }),
    ...(end.mayHaveNoFiles ? { allow_empty: "if_no_files" } : {}),
    ...(config.attachments === "all" ? { attachments: "all" } : {}),
    ...(config.format === undefined ? {} : { format: config.format }),
  });
  if (!answer) return { refused: "no answer" };
  if (answer.status < 300) return toResult(answer, config.gate);
  const names = listPaths(paths, directory);
  return await fail(`The report ${names} was refused: ${messageOf(answer)}`, end.exitCode, false);

  async function upload({ body, headers }: ReportBody, more: Record<string, string>) {
    const exitCode = "exitCode" in end ? end.exitCode : undefined;
    const query = new URLSearchParams({
      ...{ lease_id: delivery.leaseId, ...delivery.machine },
      ...(exitCode === undefined ? {} : { exit_code: String(exitCode) }),
      ...(config.gate === undefined ? {} : { gate: config.gate }),
      ...more,
    });
    return await patiently({
      method: "POST",
      path: `/test-runs?${query}`,
      headers: { ...headers, "Idempotency-Key": `${delivery.leaseId}-report` },
      body,
      timeoutMs: UPLOAD_MS,
    });
  }

  async function fail(message: string, exitCode: number | undefined, infrastructure: boolean): Promise<Delivered> {
    const log = delivery.tail();
    const reason = delivery.isProbe && end.kind === "failure" ? end.reason : undefined;
    const answer = await patiently({
      method: "POST",
      path: `/leases/${delivery.leaseId}/fail`,
      headers: { "Content-Type": "application/json", "Idempotency-Key": `${delivery.leaseId}-fail` },
      body: JSON.stringify({
        ...(exitCode === undefined ? {} : { exitCode }),
        message: mask.text(message).slice(0, MAX_MESSAGE).toWellFormed(),
        ...(log ? { log } : {}),
        ...delivery.machine,
        ...(infrastructure ? { infrastructure } : {}),
        ...(reason ? { reason } : {}),
      }),
    });
    if (!answer) return { refused: "no answer" };
    if (answer.status >= 300) return { refused: messageOf(answer) };
    const status = statusIn(answer);
    if (status === "queued") return { result: "given to another runner" };
    return { result: status === "cancelled" || status === "incomplete" ? status : "failed" };
  }
}

const answeredRun = v.object({
  verdict: v.string(),
  gate: v.fallback(v.optional(v.object({ gate: v.string(), pass: v.boolean(), forgivenCount: v.number() })), undefined),
});

/** A gate turns no passed task red. */
function toResult({ text }: ServerAnswer, mode: GateMode | undefined): Delivered {
  const { success, output } = v.safeParse(v.pipe(v.string(), v.parseJson(), answeredRun), text);
  if (!success) return { result: "failed" };
  if (output.verdict === "passed") return { result: "passed" };
  const { gate } = output;
  const passes = mode !== undefined && gate?.gate === mode && gate.pass;
  return passes ? { result: "passed", forgiven: gate.forgivenCount } : { result: "failed" };
}

function statusIn({ text }: ServerAnswer): unknown {
  try {
    return (JSON.parse(text) as Record<string, unknown>)["status"];
  } catch {
    return;
  }
}
