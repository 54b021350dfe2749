/** Replaces the listener of a server while file descriptors are short, so that the process keeps some for itself. */

import { createReserve } from "./descriptors.ts";

/** How often the descriptors are checked, and how often for some seconds after they were short. */
const CHECK_MS = 250;
const CHECK_SOON_MS = 20;
const SOON_FOR_MS = 10_000;
/** A connection that was accepted a moment ago may still send its request. */
const GRACE_MS = 60;
/** Connections that are full of requests end soon by themselves; new ones wait this long for it. */
const FULL_TIMEOUT_MS = 2_000;
const WARN_EVERY_MS = 60_000;

type Listener = Bun.Server<undefined>;

export type ListenersOptions = {
  first: Listener;
  /** Listens on the port of the first one. Throws where it cannot. */
  listen: () => Listener;
  /** Undefined: the system has no limit, and the first listener stays. */
  maxDescriptors: number | undefined;
  log: { warn(message: string, fields?: object): void } | undefined;
};

/**
 * Bun 1.4.5 tries to accept again and again, with all of a core, when there is no descriptor left; it cannot be told to
 * accept less, nor to close connections that have sent nothing yet. So the listener is replaced by another one: it
 * refuses new connections, its idle connections close, and the silent ones with it as soon as none of its requests runs.
 */
export function createListeners({ first, listen, maxDescriptors, log }: ListenersOptions) {
  const { port } = first;
  let current: Listener | undefined = first;
  /** Listeners that accept nothing any more, and since when; their requests go on. */
  const retired = new Map<Listener, number>();
  const reserve = maxDescriptors === undefined ? undefined : createReserve(maxDescriptors);
  reserve?.refill();
  let shortSince: number | undefined;
  let lastShort = -Infinity;
  let checking: Timer | undefined;
  let warnedAt = -Infinity;

  function check(): void {
    const now = performance.now();
    for (const [listener, at] of retired) {
      if (listener.pendingRequests > 0 || now - at < GRACE_MS) continue;
      void listener.stop(true);
      retired.delete(listener);
    }
    if (!current) listenAgain();
    else if (!reserve!.isShort()) shortSince = undefined;
    else makeRoom(current, now);
    if (!current || shortSince !== undefined) lastShort = now;
    checking = setTimeout(check, now - lastShort < SOON_FOR_MS ? CHECK_SOON_MS : CHECK_MS);
    checking.unref();
  }

  function makeRoom(listener: Listener, now: number): void {
    const isFirst = shortSince === undefined;
    shortSince ??= now;
    if (listener.closeIdleConnections() > 0 || isFirst) return;
    const isBusy = listener.pendingRequests > maxDescriptors! / 4;
    if (isBusy && now - shortSince < FULL_TIMEOUT_MS) return;
    void listener.stop();
    retired.set(listener, now);
    current = shortSince = undefined;
    reserve!.release();
    warn("Refusing new connections for a moment: file descriptors are short, raise the limit of open files", {
      limit: maxDescriptors,
      requests: listener.pendingRequests,
    });
  }

  function listenAgain(): void {
    if (!reserve!.refillWithRoom() && retired.size > 0) return;
    reserve!.refill();
    try {
      current = listen();
    } catch (error) {
      // Another process may have the port for a moment, or the last descriptor: the reserve is for this, too.
      reserve!.release();
      warn("Cannot listen again", { port, error });
    }
  }

  function warn(message: string, fields: object): void {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = performance.now();
    log?.warn(message, fields);
  }

  if (reserve) check();

  return {
    /** Ends the replacing. Returns the listeners that are open: the caller stops them. */
    end(): Listener[] {
      clearTimeout(checking);
      reserve?.release();
      return [...retired.keys(), ...(current ? [current] : [])];
    },
  };
}
