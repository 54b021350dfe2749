/** A runner: asks one server for tasks, never has more of them at work than it may, and keeps the server informed. */

import { isAbsolute } from "node:path";
import type { Log } from "../log.ts";
import { askBatch, askPlan } from "./ask_files.ts";
import { type Checkout, checkoutFolder, openCheckout, passwordsOf } from "./checkout.ts";
import { inSlot, type TaskConfig } from "./config.ts";
import type { Cgroups } from "./cgroups.ts";
import { deliver, type Delivered } from "./deliver.ts";
import { backoffMs, createLine, PATIENCE_MS, RunnerError } from "./line.ts";
import { createMask, createMaskCache, type Mask, MaskError } from "./mask.ts";
import { GRACE_MS } from "./processes.ts";
import { type Lease, type LogPart, readSyncAnswer, type Server, type SyncAnswer, type SyncBody } from "./protocol.ts";
import { mayShareReport } from "./report_files.ts";
import { createTaskLog, type TaskLog } from "./task_log.ts";
import { runTask, type TaskEnd } from "./task.ts";

/** Proxies cut what takes a minute. */
const IDLE_WAIT_SECONDS = 55;
/** How often the server wants to hear of a task unless there are many runners, or somebody looks. */
const USUAL_SECONDS = 20;
/** What an answer may take beyond what it was asked to wait. */
const ANSWER_SECONDS = 20;
/** Of a log in one sync; of all logs together as JSON, in a body that may have 1 MiB. */
const MAX_LOG_PART = 262_144;
const MAX_LOG_JSON = 720_000;
/** What a server lets a runner have, with some room; a lease whose report is on its way counts as well. */
const MAX_HELD = 200;
/** An answer that came at once and brought nothing is not asked for again at once. */
const EMPTY_MS = 1_000;
/** For so long a delivery may take until the server is asked again: its end is told in the same sync. */
const DELIVERY_MS = 1_000;

const RARE_FORMS_SHOWN =
  "The secret variables are so large that only their common forms are hidden: docs/runner.md lists them";

export type RunnerOptions = {
  /** No two processes have the same. */
  name: string;
  labels: readonly string[];
  /** From 1 to 64. */
  concurrency: number;
  /** Ends after one task. */
  once: boolean;
  /** By slug: others are not asked for. */
  tasks: ReadonlyMap<string, TaskConfig>;
  /** Where clones of repositories are kept. */
  folder: string;
  /** The environment of the runner. */
  host: Record<string, string | undefined>;
  /** The names of its machine, as parameters of an upload. */
  machine: Readonly<Record<string, string>>;
  server: Server;
  log: Log;
  graceMs?: number;
  cgroups?: Cgroups | undefined;
};

export type Runner = {
  /** Whether every task passed. Rejects with a RunnerError where it cannot go on. */
  ended: Promise<boolean>;
  /** Takes nothing new and ends with what it has; called again, that is cancelled, and called a third time, killed. */
  stop(): void;
};

type Held = {
  lease: Lease;
  config: TaskConfig;
  slot: number;
  log: TaskLog;
  mask: Mask;
  /** Why it cannot run at all. */
  refusal: string | undefined;
  stop: AbortController;
  /** Its commands are at work, or its report is on its way: it takes a slot. */
  isRunning: boolean;
  /** The server says that it is not ours any more. */
  isGone: boolean;
  /** The server is to have the whole log before it gets the report. */
  flush: PromiseWithResolvers<void> | undefined;
  done: Promise<void>;
};

export function startRunner(options: RunnerOptions): Runner {
  const {
    name,
    labels,
    concurrency,
    once,
    tasks,
    folder,
    host,
    machine,
    server,
    log,
    graceMs = GRACE_MS,
    cgroups,
  } = options;
  const line = createLine(server, log);
  const held = new Map<string, Held>();
  const returned = new Set<string>();
  const maskFor = createMaskCache();
  const checkouts = new Map<string, Checkout>();
  const checkoutOf = ({ git }: TaskConfig): Checkout | undefined => {
    if (!git) return undefined;
    const path = checkoutFolder(folder, git);
    const known = checkouts.get(path) ?? openCheckout(path, host);
    checkouts.set(path, known);
    return known;
  };
  /** Requests whose answer may bring a task. */
  const open = new Set<Promise<unknown>>();
  const hurry = new AbortController();
  let stops = 0;
  let hasTaken = false;
  let allPassed = true;
  let hasBeenAnswered = false;
  let nextSeconds = USUAL_SECONDS;
  let fatal: unknown;
  let awake = Promise.withResolvers<void>();
  const wake = () => awake.resolve();

  const isEnding = () => stops > 0 || fatal !== undefined || (once && hasTaken);
  const running = () => [...held.values()].filter(({ isRunning }) => isRunning).length;
  const free = () =>
    isEnding() ? 0 : Math.max(0, Math.min((once ? 1 : concurrency) - running(), MAX_HELD - held.size));
  /** The place that the next task takes: "{slot}" in assay.yaml. */
  const freeSlot = () => {
    const taken = new Set([...held.values()].flatMap(({ isRunning, slot }) => (isRunning ? [slot] : [])));
    for (let slot = 1; ; slot++) if (!taken.has(slot)) return slot;
  };
  /** Of two that write the same report one would be told as the other. Each work tree is one task's alone. */
  const isInTheWay = (config: TaskConfig) => {
    const own = inSlot(config, freeSlot());
    return [...held.values()].some(({ isRunning, config: other }) => {
      if (!isRunning) return false;
      return other.git && own.git ? mayShareReport(outsideOf(other), outsideOf(own)) : mayShareReport(other, own);
    });
  };
  const startable = () => [...tasks].filter(([, config]) => !isInTheWay(config)).map(([slug]) => slug);
  const isFlushing = () => [...held.values()].some(({ flush, log }) => flush && log.unsentBytes() > 0);

  function makeBody(): SyncBody {
    const leases = [...held.values()];
    const short = Math.ceil(line.shortMs() / 1000);
    const isUrgent = isFlushing() || (stops > 0 && leases.length === 0);
    let room = MAX_LOG_JSON;
    let count = leases.length;
    const now = startable();
    // Each can be begun once: it would be in its own way.
    const begins = short > 0 ? 0 : Math.min(free(), now.length);
    return {
      runner: name,
      labels,
      // By these the server tells what waits for no runner at all: with nothing to begin they are what it can run later.
      taskSlugs: begins > 0 ? now : [...tasks.keys()],
      free: begins,
      held: leases.map(({ lease: { id }, log }) => {
        const part = fitting(log.unsent, Math.floor(room / count--));
        if (!part) return { id };
        room -= jsonBytes(part.text);
        return { id, log: part };
      }),
      returned: [...returned],
      waitSeconds: isUrgent ? 0 : Math.min(leases.length === 0 ? IDLE_WAIT_SECONDS : nextSeconds, short || Infinity),
    };
  }

  type Outcome = "news" | "nothing" | "no answer";

  async function sync(body: SyncBody): Promise<Outcome> {
    const answer = await line.ask({
      method: "POST",
      path: "/leases",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      timeoutMs: (body.waitSeconds + ANSWER_SECONDS) * 1000,
    });
    if (!answer) return "no answer";
    const read = answer.status === 200 ? readSyncAnswer(answer.text) : undefined;
    if (!read) {
      const message = `Cannot ask for tasks: ${answer.status === 200 ? "this is no answer of Assay" : server.messageOf(answer)}`;
      if (!hasBeenAnswered) throw new RunnerError(message);
      // A proxy's page, perhaps, while servers are exchanged: what is at work is not given up for that.
      log.error(message);
      return "no answer";
    }
    hasBeenAnswered = true;
    for (const id of body.returned) returned.delete(id);
    return receive(read) || body.waitSeconds === 0 ? "news" : "nothing";
  }

  /** Whether there was anything new. */
  function receive(answer: SyncAnswer): boolean {
    let isNews = answer.leases.length > 0 || (answer.held.length > 0 && answer.nextSeconds !== nextSeconds);
    nextSeconds = Math.min(Math.max(answer.nextSeconds, 1), IDLE_WAIT_SECONDS);
    for (const state of answer.held) {
      const one = held.get(state.id);
      if (!one) continue;
      one.log.acknowledge(state.logOffset);
      if (state.cancelled && !one.stop.signal.aborted) {
        isNews = true;
        one.isGone = state.expiresAt === null;
        one.stop.abort(state.reason ?? "Cancelled");
        if (one.isRunning) log.info("Ending a task", { ...namesOf(one.lease), reason: one.stop.signal.reason });
      } else if (state.cancelled) one.isGone ||= state.expiresAt === null;
      if (one.isGone || one.log.unsentBytes() === 0) one.flush?.resolve();
    }
    for (const lease of answer.leases) take(lease);
    return isNews;
  }

  function take(lease: Lease): void {
    if (held.has(lease.id)) return;
    // The server learns of it at once: the open sync may not be the one that brought it.
    wake();
    const config = tasks.get(lease.taskSlug);
    if (!config || free() <= 0 || isInTheWay(config)) return void returned.add(lease.id);
    hasTaken = true;
    const slot = freeSlot();
    const own = inSlot(config, slot);
    const { mask, refusal } = maskOf(lease, own);
    const one: Held = {
      ...{ lease, config: own, slot, mask, refusal, log: createTaskLog(mask), stop: new AbortController() },
      ...{ isRunning: true, isGone: false, flush: undefined, done: Promise.resolve() },
    };
    held.set(lease.id, one);
    one.done = carry(one, own)
      .catch(giveUp)
      .finally(() => {
        held.delete(lease.id);
        if (isEnding()) wake();
      });
  }

  /** A task whose secrets cannot be hidden does not begin: then there is nothing to hide. */
  function maskOf({ secretNames, variables }: Lease, { git }: TaskConfig): Pick<Held, "mask" | "refusal"> {
    try {
      return {
        mask: maskFor([...secretNames.map((name) => variables[name] ?? ""), ...(git ? passwordsOf(git) : [])]),
        refusal: undefined,
      };
    } catch (error) {
      if (!(error instanceof MaskError)) throw error;
      return { mask: createMask([]), refusal: error.message };
    }
  }

  async function carry(one: Held, config: TaskConfig): Promise<void> {
    const { lease, log: taskLog, stop } = one;
    log.info("A task begins", namesOf(lease));
    const began = performance.now();
    const onOutput = (bytes: Uint8Array) => taskLog.write(bytes);
    const onNote = (note: string) => log.info("A rerun", { ...namesOf(lease), note: one.mask.text(note) });
    const plan = one.refusal === undefined ? await askShardPlan(one) : undefined;
    if (!one.mask.hidesRareForms) onOutput(new TextEncoder().encode(`[assay] ${RARE_FORMS_SHOWN}\n`));
    let release = () => {};
    const onTree = (give: () => void) => void (release = give);
    const tree = { checkout: checkoutOf(config), onTree };
    const shared = { lease, config, host, mask: one.mask, onOutput, onNote, graceMs, cgroups, ...tree };
    const end: TaskEnd =
      one.refusal !== undefined
        ? { kind: "failure", message: one.refusal }
        : plan === "no answer"
          ? { kind: "infrastructure", message: "Cannot get the plan of the shard: the server does not answer" }
          : await runTask({
              ...shared,
              plan,
              askBatch: (files) => askBatch(line, lease, stop.signal, files),
              stop: stop.signal,
              hurry: hurry.signal,
            });
    taskLog.end();
    const seconds = Math.round((performance.now() - began) / 1000);
    const delivered =
      fatal === undefined && !one.isGone ? await tell(one, config, end) : { refused: "not this runner's" };
    release();
    // Until then it keeps its slot: the next task may write the same report, and what is not delivered can be lost.
    one.isRunning = false;
    if (!("result" in delivered) || delivered.result !== "passed") allPassed = false;
    const failure = "message" in end ? { failure: one.mask.text(end.message) } : {};
    log.info("A task has ended", { ...namesOf(lease), seconds, ...failure, ...delivered });
    wake();
  }

  async function askShardPlan({ lease, stop }: Held): Promise<string | "no answer" | undefined> {
    const answer = await askPlan(line, lease, stop.signal);
    if (answer === "no answer" || answer === undefined) return answer;
    if (answer.status === 200) return answer.text;
    log.warn("There is no plan of the shard", { ...namesOf(lease), reason: server.messageOf(answer) });
  }

  /** First the log, for afterwards the lease is over. */
  async function tell(one: Held, config: TaskConfig, end: TaskEnd): Promise<Delivered> {
    if (one.log.unsentBytes() > (end.kind === "report" ? 0 : MAX_LOG_PART)) {
      one.flush = Promise.withResolvers();
      wake();
      await Promise.race([one.flush.promise, Bun.sleep(PATIENCE_MS)]);
      one.flush = undefined;
    }
    const late = setTimeout(wake, DELIVERY_MS);
    try {
      return await deliver(line, server, {
        ...{ leaseId: one.lease.id, config, mask: one.mask, end, machine },
        tail: () => fitting(one.log.tail, MAX_LOG_JSON),
        isGone: () => one.isGone,
      });
    } finally {
      clearTimeout(late);
    }
  }

  function giveUp(error: unknown): void {
    fatal ??= error;
    for (const { stop, flush } of held.values()) {
      stop.abort("The runner cannot go on");
      flush?.resolve();
    }
    wake();
  }

  async function ask(): Promise<void> {
    for (let failures = 0; fatal === undefined;) {
      // Before anything is read that a wake may tell of.
      awake = Promise.withResolvers();
      const wait = (ms: number) => (ms > 0 ? Promise.race([Bun.sleep(ms), awake.promise]) : undefined);
      const hasAll = isEnding() && held.size === 0 && returned.size === 0;
      if (hasAll && open.size === 0) break;
      // With a stop there is a sync more, which makes the server answer those before it.
      const isIdle = !isEnding() && held.size === 0 && returned.size === 0;
      const pause =
        line.waitMs() || (isIdle ? line.shortMs() : 0) || (hasAll && stops === 0 ? IDLE_WAIT_SECONDS * 1000 : 0);
      if (pause > 0) {
        await wait(pause);
        continue;
      }
      const began = performance.now();
      const body = makeBody();
      const asking = sync(body).catch((error): Outcome => {
        giveUp(error);
        return "no answer";
      });
      if (body.free > 0) {
        open.add(asking);
        void asking.then(() => {
          open.delete(asking);
          if (isEnding()) wake();
        });
      }
      const outcome = await Promise.race([asking, awake.promise.then(() => "awake" as const)]);
      failures = outcome === "no answer" ? failures + 1 : 0;
      // Who is to go does not wait for a server that is away.
      if (failures > 2 && stops > 0 && held.size === 0) break;
      if (outcome === "no answer") await wait(backoffMs(failures));
      else if (outcome === "nothing") {
        await wait(EMPTY_MS - (performance.now() - began));
        // Where there are many, others are asking meanwhile; those that began together must not all come back together.
        if (held.size === 0) await wait(Math.random() * (nextSeconds - USUAL_SECONDS) * 1000);
      } else if (outcome === "news" && body.waitSeconds === 0 && !isFlushing()) await wait(DELIVERY_MS);
      // What happens close together is told together.
      await Bun.sleep(Math.max(0, line.spacingMs() - (performance.now() - began)));
    }
  }

  async function run(): Promise<boolean> {
    await ask();
    await Promise.all([...held.values()].map(({ done }) => done));
    if (fatal !== undefined) throw fatal;
    return allPassed;
  }

  const ended = run();
  return {
    ended,
    stop() {
      stops++;
      if (stops === 1) log.info("Stopping: takes nothing new", { tasks: running() });
      if (stops === 2) for (const { stop } of held.values()) stop.abort("The runner was stopped");
      if (stops === 3) hurry.abort();
      wake();
    },
  };
}

/** Of a task in a work tree of its own: the reports that lie outside of it. */
const outsideOf = (config: TaskConfig) => ({
  ...config,
  report: config.report.filter((path) => isAbsolute(path) || path.split("/").includes("..")),
});

const namesOf = ({ id, execution, taskSlug, shard }: Lease) => ({
  task: taskSlug,
  ...(shard ? { shard: `${shard.index}/${shard.total}` } : {}),
  execution: execution.id,
  lease: id,
});

const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text));

/** What fits, however much longer it is as JSON. */
function fitting(take: (maxBytes: number) => LogPart | undefined, maxJsonBytes: number): LogPart | undefined {
  for (let bytes = Math.min(maxJsonBytes, MAX_LOG_PART); ; bytes = Math.floor(bytes / 2)) {
    const part = take(bytes);
    if (!part || jsonBytes(part.text) <= maxJsonBytes) return part;
  }
}
