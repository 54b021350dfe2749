/** The upload queue of each project: uploads that have arrived by the time of a transaction are committed in one batch. */

import { type AnswerOptions, toAnswer } from "./answer.ts";
import { type IncomingReport, locksFor, matchReports, takeMatched } from "./ingest.ts";
import { lookUpReports, resolveReport, type Transact } from "./resolve.ts";
import type { TakenReport } from "./taken_report.ts";
import { attachToRun, type StoredFiles } from "../attachments/upload.ts";
import { catchUpWithin } from "../health/catch_up.ts";
import type { AttachmentLimits } from "../../attachments/store.ts";
import { WHOLE } from "../../rules/run_outcome.ts";
import { Refusal } from "../../schema/refusal.ts";
import { type Database, isUndone, retryConflicts, type Sql, type Tx } from "../../database/connect.ts";
import { type RequestClaim, storeAnswer, type StoredAnswer } from "../../store/idempotency.ts";
import { type KeyLocks, lockLiveKey, lockLiveKeys } from "../../store/keys.ts";

/** A report with the data of its request. */
export type QueuedUpload = Omit<IncomingReport, "numbers"> & {
  key: KeyLocks["key"];
  files: StoredFiles;
  /** The claim on the Idempotency-Key, if the request has one; the response is stored in the transaction of the report. */
  claim: RequestClaim | null;
  /** Once `expired` is true, the client has received a timeout and nothing is stored any more. */
  progress: { readonly expired: boolean };
  answer: AnswerOptions;
};

type FinishedUpload = {
  taken: TakenReport;
  answer: StoredAnswer;
  /** Attachment contents that are no longer referenced and may be deleted. */
  released: readonly string[];
};

export type UploadServices = Pick<Database, "begin" | "beginAhead"> & { sql: Sql; limits: AttachmentLimits };

type Item = {
  upload: QueuedUpload;
  /** The execution_key. A batch has at most one report per build, because the next report must see the execution that it stores. */
  build: string | undefined;
  /** Cost in test cases, see MAX_BATCH_WEIGHT; Infinity for an upload that must be alone in its batch. */
  weight: number;
  /** Numbers of its test cases, if they were looked up before the transaction. */
  numbers?: readonly number[];
  resolve: (outcome: FinishedUpload) => void;
  reject: (error: unknown) => void;
};

type Queue = { services: UploadServices; projectId: string; waiting: Item[]; worker: symbol | undefined };

/** Maximum number of uploads in one transaction. */
const MAX_BATCH_SIZE = 32;
/** Maximum number of test cases in one transaction, unless a single report has more. */
const MAX_BATCH_WEIGHT = 10_000;
/** Maximum number of test cases of a report that is looked up within the transaction. Larger reports are looked up before it. */
const MAX_LOOKED_UP = 1_000;
/** Characters of messages and output that cost as much as a test case. */
const CHARACTERS_PER_CASE = 100;
/** Interval in which a worker waits for further uploads; it stops waiting when an interval brings none. */
const WINDOW_MS = 2;
/** Time after which the next batch starts although a transaction is still running, for instance because it waits for a lock. */
const PATIENCE_MS = 2_000;
/** Maximum time to wait until earlier runs are counted. After it, failures are judged by the runs counted so far. */
const JUDGING_PATIENCE_MS = 500;

/** Queues by database, which its `begin` identifies, and by project. */
const queues = new WeakMap<Database["begin"], Map<string, Queue>>();

/**
 * Enqueues an upload and resolves once it is committed. Rejects with a Refusal or with the error of the transaction. Then nothing is
 * stored, unless the connection failed during the commit.
 */
export function takeUpload(services: UploadServices, projectId: string, upload: QueuedUpload): Promise<FinishedUpload> {
  const { promise, resolve, reject } = Promise.withResolvers<FinishedUpload>();
  const ofDatabase = queues.get(services.begin) ?? new Map<string, Queue>();
  queues.set(services.begin, ofDatabase);
  const queue = ofDatabase.get(projectId) ?? { services, projectId, waiting: [], worker: undefined };
  ofDatabase.set(projectId, queue);
  queue.waiting.push({ ...toItem(upload), resolve, reject });
  if (!queue.worker) {
    const worker = (queue.worker = Symbol());
    // Uploads that arrive in the same iteration of the event loop share a transaction.
    setImmediate(() => void work(queue, worker));
  }
  return promise;
}

function toItem(upload: QueuedUpload): Pick<Item, "upload" | "build" | "weight"> {
  const { parameters, prepared, files } = upload;
  const { execution_id, execution_key } = parameters;
  // Uploads with an execution_id lock in another order than those with an execution_key, so sharing a transaction could deadlock.
  const isAlone = execution_id !== undefined || files.files.length > 0;
  const characters = prepared.cases.reduce(
    (sum, { message, stack, output }) => sum + (message?.length ?? 0) + (stack?.length ?? 0) + (output?.length ?? 0),
    0,
  );
  const weight = isAlone ? Infinity : prepared.cases.length + characters / CHARACTERS_PER_CASE;
  return { upload, build: execution_key, weight };
}

async function work(queue: Queue, worker: symbol): Promise<void> {
  while (queue.worker === worker && queue.waiting.length > 0) {
    const items = nextBatch(queue);
    const timer = setTimeout(() => {
      const next = (queue.worker = Symbol());
      void work(queue, next);
    }, PATIENCE_MS);
    await takeBatch(queue, items);
    clearTimeout(timer);
    await gather(queue, items.length + queue.waiting.length);
  }
  if (queue.worker !== worker) return;
  queue.worker = undefined;
  queues.get(queue.services.begin)?.delete(queue.projectId);
}

const hasFailed = ({ upload }: Item) => upload.prepared.cases.some(({ status }) => status === "failed");

/** Whether test cases are looked up before the transaction: for large reports, and for untrusted ones, whose new cases are stored apart. */
const isLarge = ({ upload: { prepared, parameters } }: Item) =>
  prepared.cases.length > MAX_LOOKED_UP || parameters.untrusted === true;

/**
 * Waits a few milliseconds until about as many uploads are waiting as in the batch before. Clients that were just answered often send the
 * next upload at once, and a large transaction costs little more than a small one.
 */
async function gather({ waiting }: Queue, expected: number): Promise<void> {
  const wanted = Math.min(expected, MAX_BATCH_SIZE);
  if (wanted === 1) return;
  for (let before = -1; waiting.length < wanted && waiting.length > before;) {
    before = waiting.length;
    await Bun.sleep(WINDOW_MS);
  }
}

/** Removes the next batch from the queue: the first uploads that fit into one transaction. */
function nextBatch(queue: Queue): Item[] {
  const batch: Item[] = [];
  const builds = new Set<string>();
  let weight = 0;
  for (const item of queue.waiting) {
    if (batch.length === MAX_BATCH_SIZE || (batch.length > 0 && weight + item.weight > MAX_BATCH_WEIGHT)) break;
    if (item.build !== undefined && builds.has(item.build)) continue;
    batch.push(item);
    weight += item.weight;
    if (item.build !== undefined) builds.add(item.build);
  }
  queue.waiting.splice(0, Infinity, ...queue.waiting.filter((item) => !batch.includes(item)));
  return batch;
}

/**
 * Commits a batch. Never rejects. If the batch fails, each upload is retried alone, so that it gets its own error and waits only for
 * its own locks.
 */
async function takeBatch(queue: Queue, all: readonly Item[]): Promise<void> {
  const { services, projectId } = queue;
  const items = all.filter(({ upload, reject }) => !upload.progress.expired || void reject(new Refusal("expired")));
  if (items.length === 0) return;
  let isAtCommit = false;
  try {
    await Promise.all(items.filter(isLarge).map((item) => resolveItem(services, projectId, item)));
    // Failures are judged by the health records of their cases, so the pending runs are counted first. When uploads are queued, this is
    // skipped: the background loop counts runs, and the failures are judged by what it has counted so far.
    const isAlone = items.length === 1 && queue.waiting.length === 0;
    if (isAlone && items.some(hasFailed))
      await catchUpWithin(services.sql, services.begin, projectId, JUDGING_PATIENCE_MS);
    const isOver = () => items.length > 1 || items[0]!.upload.progress.expired;
    const outcomes = await retryConflicts(isOver, () =>
      services.beginAhead(async (sql, begun) => {
        const outcomes = await takeItems(sql, begun, queue, items);
        isAtCommit = true;
        return outcomes;
      }, items[0]!.upload.key.teamId),
    );
    for (const item of items) {
      const outcome = outcomes.get(item);
      outcome ? item.resolve(outcome) : item.reject(new Refusal("revoked"));
    }
  } catch (error) {
    if (error instanceof Unresolved) return await takeUnresolved(queue, items, error.items);
    // The commit may have succeeded although its response was lost: a retry could store the upload twice.
    const isUnknown = isAtCommit && !isUndone(error);
    if (items.length === 1 || isUnknown) for (const item of items) item.reject(error);
    else await Promise.all(items.map((item) => takeBatch(queue, [item])));
  }
}

/** Thrown for reports with unknown test cases: these must be resolved before the transaction. */
class Unresolved extends Error {
  readonly items: readonly Item[];

  constructor(items: readonly Item[]) {
    super("Test cases are not known yet");
    this.items = items;
  }
}

async function takeUnresolved(queue: Queue, items: readonly Item[], unresolved: readonly Item[]): Promise<void> {
  const failed = new Set<Item>();
  for (const item of unresolved)
    await resolveItem(queue.services, queue.projectId, item).catch((error: unknown) => {
      failed.add(item);
      item.reject(error);
    });
  await takeBatch(
    queue,
    items.filter((item) => !failed.has(item)),
  );
}

/** Resolves the test cases of a report, and inserts new ones. */
async function resolveItem({ sql, begin }: UploadServices, projectId: string, item: Item): Promise<void> {
  const { key, progress, prepared, parameters } = item.upload;
  const transact: Transact = (work) =>
    retryConflicts(
      () => progress.expired,
      () =>
        begin(async (sql) => {
          if (!(await lockLiveKey(sql, key))) throw new Refusal("revoked");
          return await work(sql);
        }, key.teamId),
    );
  item.numbers ??= await resolveReport(sql, transact, projectId, prepared, parameters);
}

/** Ingests the batch in a transaction. The result lacks uploads whose API key was revoked. */
async function takeItems(
  sql: Tx,
  begun: Promise<unknown>,
  { projectId, services: { limits } }: Queue,
  all: readonly Item[],
): Promise<Map<Item, FinishedUpload>> {
  const keys = all.map(({ upload: { key, parameters } }) => ({ key, locks: locksFor(projectId, parameters) }));
  const unknown = all.filter(({ numbers }) => numbers === undefined);
  // The statements are pipelined. A project that is being deleted loses its keys too: its uploads are refused as revoked, whatever error
  // the other statements give.
  const locked = lockLiveKeys(sql, keys);
  const reading = Promise.all([
    unknown.length === 0
      ? []
      : lookUpReports(
          sql,
          projectId,
          unknown.map(({ upload }) => upload.prepared),
        ),
    matchReports(
      sql,
      projectId,
      all.map(({ upload }) => upload),
    ),
    begun,
  ]);
  reading.catch(() => {});
  const live = await locked;
  if (live.size === 0) return new Map();
  const [found, matches] = await reading;
  const places = [...all.keys()].filter((place) => live.has(all[place]!.upload.key.id));
  const items = places.map((place) => all[place]!);
  const numbersOf = (item: Item) => item.numbers ?? found[unknown.indexOf(item)];
  const unresolved = items.filter((item) => numbersOf(item) === undefined);
  if (unresolved.length > 0) throw new Unresolved(unresolved);
  const reports = items.map((item): IncomingReport => ({ ...item.upload, numbers: numbersOf(item)! }));
  const builds = places.map((place) => matches[place]!);
  const taken = await takeMatched(sql, projectId, reports, builds);
  const outcomes = new Map<Item, FinishedUpload>();
  for (const [index, item] of items.entries()) {
    const { files, prepared, parameters, claim, answer: options } = item.upload;
    const output = taken[index]!;
    const upload = { digest: prepared.digest, shard: parameters.shard?.index ?? WHOLE };
    const { warnings, released } = await attachToRun(sql, projectId, output.run, files, { limits, upload });
    const answer = toAnswer(output, projectId, [...files.warnings, ...warnings], options);
    if (claim && !(await storeAnswer(sql, claim, answer))) throw new Refusal("taken over");
    outcomes.set(item, { taken: { ...output, warnings: [...output.warnings, ...warnings] }, answer, released });
  }
  if (all.some(({ upload }) => upload.progress.expired)) throw new Refusal("expired");
  return outcomes;
}
