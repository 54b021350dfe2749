/** Sends one sync after the other until the runner ends, and decides when the next one is sent. */

import type { HeldLeases } from "./held_leases.ts";
import { IDLE_WAIT_SECONDS, type LeaseSyncer, type SyncOutcome, USUAL_SYNC_SECONDS } from "./lease_sync.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { backoffMs, type ServerConnection } from "./line.ts";
import { DELIVERY_MS } from "./run_lease.ts";

/** The pause after a sync that was answered immediately without anything new. */
const EMPTY_ANSWER_MS = 1_000;

export type LeaseLoop = {
  line: ServerConnection;
  held: HeldLeases;
  lifecycle: Lifecycle;
  sync: LeaseSyncer;
  /** Called with the error of a sync after which the runner cannot go on. */
  giveUp: (error: unknown) => void;
};

/** Returns when the runner has ended and the server has been informed, or cannot be. Does not throw. */
export async function askForLeases({ line, held, lifecycle, sync, giveUp }: LeaseLoop): Promise<void> {
  /** Requests whose answer may bring a task. */
  const open = new Set<Promise<unknown>>();

  function send(body: ReturnType<LeaseSyncer["makeBody"]>): Promise<SyncOutcome> {
    const asking = sync.send(body).catch((error): SyncOutcome => {
      giveUp(error);
      return "no answer";
    });
    if (body.free > 0) {
      open.add(asking);
      void asking.then(() => {
        open.delete(asking);
        if (lifecycle.isEnding()) lifecycle.wake();
      });
    }
    return asking;
  }

  /** How long to wait before the next sync, unless there is a wake. */
  function pauseMs(): number {
    const isEmpty = held.count() === 0 && !sync.hasReturns();
    const isEnding = lifecycle.isEnding();
    const shortMs = isEmpty && !isEnding ? line.shortMs() : 0;
    // After a stop one more sync is sent: it makes the server answer the open ones.
    const isOnlyOpen = isEmpty && isEnding && !lifecycle.isStopping();
    return line.waitMs() || shortMs || (isOnlyOpen ? IDLE_WAIT_SECONDS * 1000 : 0);
  }

  const hasEnded = () => lifecycle.isEnding() && held.count() === 0 && !sync.hasReturns() && open.size === 0;

  for (let failures = 0; !lifecycle.hasFailed();) {
    // Before anything is read that a wake may announce.
    const awake = lifecycle.nextWake();
    const wait = (ms: number) => (ms > 0 ? Promise.race([Bun.sleep(ms), awake]) : undefined);
    if (hasEnded()) break;
    const pause = pauseMs();
    if (pause > 0) {
      await wait(pause);
      continue;
    }
    const began = performance.now();
    const body = sync.makeBody();
    const outcome = await Promise.race([send(body), awake.then(() => "awake" as const)]);
    failures = outcome === "no answer" ? failures + 1 : 0;
    // A runner that is to stop does not wait for a server that is down.
    if (failures > 2 && lifecycle.isStopping() && held.count() === 0) break;
    if (outcome === "no answer") await wait(backoffMs(failures));
    else if (outcome === "nothing") {
      await wait(EMPTY_ANSWER_MS - (performance.now() - began));
      // With many runners others ask meanwhile; runners that began together must not all come back together.
      if (held.count() === 0) await wait(Math.random() * (sync.nextSeconds() - USUAL_SYNC_SECONDS) * 1000);
    } else if (outcome === "news" && body.waitSeconds === 0 && !held.isFlushing()) await wait(DELIVERY_MS);
    // Changes that happen close together are reported in one sync.
    await Bun.sleep(Math.max(0, line.spacingMs() - (performance.now() - began)));
  }
}
