/** All requests of a runner: what a project's clients may ask for in a minute is shared, and a key may be revoked. */

import type { Log } from "../log.ts";
import type { RunnerRequest, Server, ServerAnswer } from "./protocol.ts";

/** The runner cannot go on: its key is not valid any more, or the server does not know what it asks. */
export class RunnerError extends Error {
  override name = "RunnerError";
}

/** A window of the rate limit is over by then, whatever a clock says. */
const MAX_WAIT_MS = 65_000;
/** Runners that were refused at the same moment do not come back at the same moment. */
const SPREAD_MS = 1_000;
/** Fewer are left for those that must be made. */
const RESERVE = { requests: 3, ofLimit: 0.1 };
/** By what part of the requests is left; the first that fits. */
const SPACING = [
  { above: 0.5, ms: 200 },
  { above: 0.25, ms: 1_000 },
  { above: -1, ms: 3_000 },
];
/** Other requests leave so many of a minute to the syncs, which keep leases alive. */
const SYNC_RESERVE = 6;
/** A little longer than the server's window: a request is counted when it arrives. */
const WINDOW_MS = 61_000;
/** The server may be starting again. */
export const SERVER_PATIENCE_MS = 10 * 60_000;
const BACKOFF = { firstMs: 500, lastMs: 10_000 };

export type ServerConnection = {
  /** Undefined: no answer, or none that says anything; worth another try. Throws a RunnerError where the key is refused. */
  ask(asking: RunnerRequest): Promise<ServerAnswer | undefined>;
  /** How long the project's requests are used up for; 0: not. `ask` waits for that, too. */
  waitMs(): number;
  /** How long there may be too few of them for taking a task, which is lost if nothing more can be said of it; 0: not. */
  shortMs(): number;
  /** How far apart requests that could as well be one are to be. */
  spacingMs(): number;
};

export function createLine({ ask, messageOf }: Server, log: Log): ServerConnection {
  let notBefore = 0;
  /** As the last answer told it. */
  let budget = { limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY, until: 0 };
  let isAway = false;

  const tell = (problem: string | undefined): void => {
    if (problem !== undefined && !isAway) log.warn("The server does not respond", { problem });
    if (problem === undefined && isAway) log.info("The server responds again");
    isAway = problem !== undefined;
  };
  const waitMs = () => Math.max(0, notBefore - performance.now());
  /** When the requests of the last minute were made, oldest first. */
  const made: number[] = [];
  const roomMs = (isSync: boolean): number => {
    const now = performance.now();
    while (made.length > 0 && made[0]! < now - WINDOW_MS) made.shift();
    const { limit } = budget;
    const most = isSync ? limit : Math.max(1, limit - Math.min(SYNC_RESERVE, limit / 2));
    return made.length < most ? 0 : made[0]! + WINDOW_MS - now;
  };
  const one = async (asking: RunnerRequest): Promise<ServerAnswer | undefined> => {
    const isSync = asking.path === "/leases";
    for (let wait; (wait = Math.max(waitMs(), roomMs(isSync))) > 0;) await Bun.sleep(Math.min(wait, 1_000));
    made.push(performance.now());
    let answer: ServerAnswer;
    try {
      answer = await ask(asking);
    } catch (error) {
      tell((error as Error).message);
      return;
    }
    budget = budgetOf(answer.headers);
    if (answer.status === 401) throw new RunnerError(`The server refuses the key: ${messageOf(answer)}`);
    tell(answer.status >= 500 ? messageOf(answer) : undefined);
    if (answer.status >= 500) return;
    if (answer.status !== 429) return answer;
    const wait = waitOf(answer.headers);
    notBefore = Math.max(notBefore, performance.now() + wait + Math.random() * SPREAD_MS);
    log.info("The rate limit is exceeded", { waitSeconds: Math.ceil(wait / 1000) });
    return;
  };
  const isOver = () => budget.until <= performance.now();
  return {
    ask: one,
    waitMs,
    shortMs() {
      const { limit, remaining, until } = budget;
      const isShort = remaining < Math.min(RESERVE.requests, limit * RESERVE.ofLimit);
      return isShort && !isOver() ? until - performance.now() : 0;
    },
    spacingMs() {
      const left = isOver() ? 1 : budget.remaining / budget.limit;
      return SPACING.find(({ above }) => left > above)!.ms;
    },
  };
}

/** A server without a limit says 0, or nothing. */
function budgetOf(headers: Headers) {
  const [limit, remaining] = ["x-ratelimit-limit", "x-ratelimit-remaining"].map((name) => Number(headers.get(name)));
  if (!limit) return { limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY, until: 0 };
  return { limit, remaining: remaining!, until: performance.now() + waitOf(headers) };
}

/** `Retry-After` first, for that depends on nobody's clock. */
function waitOf(headers: Headers): number {
  const [after, reset] = ["retry-after", "x-ratelimit-reset"].map((name) => Number(headers.get(name) ?? Number.NaN));
  const wait = after! >= 0 ? after! * 1000 : reset! * 1000 - Date.now();
  return Math.min(Math.max(Number.isNaN(wait) ? 1_000 : wait, 500), MAX_WAIT_MS);
}

/** How long to wait after so many failures in a row. */
export const backoffMs = (failures: number): number =>
  Math.min(BACKOFF.firstMs * 2 ** (failures - 1), BACKOFF.lastMs) * (0.75 + Math.random() / 2);

/** Again and again for some minutes; when `isEnough`, only once more. Undefined: no answer. Throws as the line does. */
export async function keepAsking(
  line: ServerConnection,
  asking: RunnerRequest,
  isEnough: () => boolean,
): Promise<ServerAnswer | undefined> {
  const until = performance.now() + SERVER_PATIENCE_MS;
  for (let failures = 1; ; failures++) {
    const isLast = isEnough() || performance.now() > until;
    const answer = await line.ask(asking);
    if (answer || isLast) return answer;
    await Bun.sleep(backoffMs(failures));
  }
}
