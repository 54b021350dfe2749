/** The requests of `assay split`: the execution, the plan of a shard, its next files. */

import * as v from "valibot";
import { batchesPath, planPath, type ShardPlan } from "../rules/plan.ts";
import type { Shard } from "../schema/fields.ts";
import { MAX_SPLIT_FILES } from "../schema/plans.ts";
import type { CiBuild } from "./ci.ts";
import { readAddressSource, toServerAddress } from "./ci_key.ts";
import {
  type ServerRequest,
  askPatiently,
  askSocket,
  messageOf,
  type Patience,
  type ServerAddress,
  ServerAwayError,
} from "./client.ts";
import type { Invocation } from "./invocation.ts";
import { UsageError } from "./usage.ts";
import type { ServerAnswer } from "../runner/protocol.ts";

/** Which files are asked for. */
type SplitRequest = {
  shard: Shard;
  task: string;
  executionId: string | undefined;
  build: CiBuild;
  baseCommit: string | undefined;
  patienceMs: number;
};

/** The answer of the server. Fields of newer servers are ignored. */
export const planAnswer = v.object({
  files: v.array(v.string()),
  timings: v.record(v.string(), v.number()),
  runs: v.number(),
});
export type AskedPlan = ShardPlan & { runs: number };

const executionAnswer = v.object({ id: v.string() });

/** A proxy may answer with a page of its own. */
export function readAs<Schema extends v.GenericSchema>(
  schema: Schema,
  what: string,
  text: string,
): v.InferOutput<Schema> {
  try {
    return v.parse(schema, JSON.parse(text));
  } catch {
    throw new Error(`Cannot read the ${what}: it is not an answer of Assay`);
  }
}

/** A server that restarts is back within this time. */
export const SPLIT_PATIENCE_MS = 15_000;
const WAITS = [1 / 15, 4 / 15, 10 / 15];
/** The shards of a build ask at the same moment, and may be over the rate limit, whose window is a minute. */
const RATE_LIMIT_MS = 130_000;
/** Timeout of one attempt. It is short, because a client that falls back to splitting by hash should do so soon. */
const TIMEOUT_MS = 15_000;

const toSplitPatience = (patienceMs: number): Patience => ({
  waitsMs: patienceMs === 0 ? [] : WAITS.map((part) => part * patienceMs),
  withinMs: RATE_LIMIT_MS + patienceMs,
});

type KeySource = Pick<Invocation, "environment" | "secrets">;

/** Throws UsageError, ServerAwayError and CiKeyRefusedError. */
const openServerAddress = ({ patienceMs }: SplitRequest, { environment, secrets }: KeySource): Promise<ServerAddress> =>
  toServerAddress(readAddressSource(environment), { patience: toSplitPatience(patienceMs), secrets });

/** Undefined: the server refuses these names. */
async function postPlan(
  address: ServerAddress,
  path: string,
  files: readonly string[],
  wish: SplitRequest,
  failing: string,
): Promise<ServerAnswer | undefined> {
  const asking = { method: "POST", path, headers: JSON_HEADERS, body: JSON.stringify({ files }) } as const;
  return await request(address, asking, wish, failing, [400, 413]);
}

const JSON_HEADERS = { "Content-Type": "application/json" };

async function request(
  address: ServerAddress,
  asking: ServerRequest,
  wish: SplitRequest,
  failing: string,
): Promise<ServerAnswer>;
async function request(
  address: ServerAddress,
  asking: ServerRequest,
  wish: SplitRequest,
  failing: string,
  refusals: readonly number[],
): Promise<ServerAnswer | undefined>;
/** undefined: the answer is one of the refusals. */
async function request(
  address: ServerAddress,
  asking: ServerRequest,
  { patienceMs }: SplitRequest,
  failing: string,
  refusals: readonly number[] = [],
): Promise<ServerAnswer | undefined> {
  const answer = await askPatiently(address, { ...asking, timeoutMs: TIMEOUT_MS }, toSplitPatience(patienceMs));
  if (answer.status < 300) return answer;
  if (refusals.includes(answer.status)) return undefined;
  const message = `${failing}: ${messageOf(answer)}`;
  throw answer.status === 429 || answer.status >= 500 ? new ServerAwayError(message) : new Error(message);
}

/** The execution that the shards' uploads will find by the same key, commit and branch. */
async function findExecution(address: ServerAddress, wish: SplitRequest): Promise<string> {
  const { build, baseCommit } = wish;
  const { executionKey: key, branch, commit, pullRequest, baseBranch, buildUrl, untrusted } = build;
  if (key === undefined)
    throw new UsageError(
      "Cannot identify the execution: pass --execution-key, with the same value for all shards and uploads of a build",
    );
  const asking: ServerRequest = {
    method: "POST",
    path: "/executions",
    headers: JSON_HEADERS,
    body: JSON.stringify({ key, branch, commit, baseCommit, pullRequest, baseBranch, buildUrl, untrusted }),
  };
  const answer = await request(address, asking, wish, `Cannot find the execution "${key}"`);
  return readAs(executionAnswer, `execution from ${address.url}`, answer.text).id;
}

export async function askPlan(
  wish: SplitRequest,
  invocation: KeySource,
  names: readonly string[] | undefined,
): Promise<AskedPlan> {
  const { shard, task, executionId } = wish;
  const address = await openServerAddress(wish, invocation);
  const id = executionId ?? (await findExecution(address, wish));
  const path = planPath(id, task, shard);
  const failing = `Cannot get the plan of "${task}" in execution "${id}"`;
  const posted = fitsInRequest(names) ? await postPlan(address, path, names, wish, failing) : undefined;
  const answer = posted ?? (await request(address, { path }, wish, failing));
  return readAs(planAnswer, `plan from ${address.url}`, answer.text);
}

/** A longer list has no room in a request: then only known files are planned. */
const fitsInRequest = (names: readonly string[] | undefined): names is readonly string[] =>
  names !== undefined && names.length <= MAX_SPLIT_FILES && names.every(({ length }) => length <= 1_000);

/** In a task of a runner: the runner tells the server which files there are. Undefined: it cannot, and the plan in its file counts. */
export async function askRunnerForPlan(
  { task }: SplitRequest,
  socket: string | undefined,
  names: readonly string[] | undefined,
): Promise<AskedPlan | undefined> {
  if (!socket || !fitsInRequest(names)) return undefined;
  const answer = await askSocket(socket, "/plan", { files: names });
  if (answer.status === 400 || answer.status === 413) return undefined;
  if (answer.status >= 300) throw new Error(`Cannot get the plan of "${task}": ${messageOf(answer)}`);
  return readAs(planAnswer, "plan from the runner", answer.text);
}

const batchAnswer = v.object({ files: v.array(v.string()), left: v.number() });

/** Requests a batch. In a task of a runner the runner sends the request, because it has the key. */
export async function askBatch(wish: SplitRequest, holder: string, files: readonly string[], invocation: KeySource) {
  const { shard, task } = wish;
  const failing = `Cannot get the next files of "${task}"`;
  const socket = invocation.environment["ASSAY_QUEUE"];
  if (socket) {
    const answer = await askSocket(socket, "/batch", { files });
    if (answer.status >= 300) throw new Error(`${failing}: ${messageOf(answer)}`);
    return readAs(batchAnswer, "batch from the runner", answer.text);
  }
  const address = await openServerAddress(wish, invocation);
  const id = wish.executionId ?? (await findExecution(address, wish));
  const asking = {
    method: "POST",
    path: batchesPath(id, task),
    headers: { ...JSON_HEADERS, "Idempotency-Key": crypto.randomUUID() },
    body: JSON.stringify({ shard: `${shard.index}/${shard.of}`, holder, files }),
  } as const;
  const answer = await request(address, asking, wish, failing);
  return readAs(batchAnswer, `batch from ${address.url}`, answer.text);
}
