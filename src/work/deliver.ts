/** Delivers what is due: to many integrations at a time, to each one thing after the other. */

import { attemptDelivery, type Sending } from "../deliveries.ts";
import type { Log } from "../log.ts";
import type { Database } from "../store/connect.ts";
import {
  type Claim,
  claimIntegrations,
  extendClaim,
  failSuperseded,
  releaseIntegration,
  selectDueDelivery,
} from "../store/integrations.ts";

/** A receiver that hangs keeps one of them for 15 s. */
const MAX_AT_ONCE = 64;
/** Several times within the length of a claim. */
const EXTEND_MS = 1_500;

const superseded = (now: Date) => ({
  attemptedAt: now.toISOString(),
  statusCode: null,
  latencyMs: 0,
  answer: null,
  error: "Not sent: a newer delivery for the same has taken its place",
});

export function createDeliverer(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  services: Pick<Sending, "outbound" | "seal">,
  log: Log,
) {
  const running = new Set<Promise<void>>();
  let stopped = false;

  const onBug = (error: unknown) => log.error("Cannot understand the answer to a delivery", { error });

  async function deliverAll(claim: Claim): Promise<void> {
    const extending = setInterval(() => void extendClaim(pool, claim).catch(() => {}), EXTEND_MS);
    try {
      while (!stopped) {
        await failSuperseded(pool, claim, superseded(new Date()));
        const delivery = await selectDueDelivery(pool, claim);
        if (!delivery || !(await attemptDelivery({ ...services, begin, onBug }, claim, delivery))) break;
      }
    } catch (error) {
      log.warn("Cannot deliver to an integration, it goes on", { integrationId: claim.id, error });
      // The same again would fail the same way at once: the claim ends by itself.
      return;
    } finally {
      clearInterval(extending);
    }
    await releaseIntegration(pool, claim).catch(() => {});
  }

  const ended = async () => void (await Promise.all(running));

  return {
    /** Begins to send to every integration that something is due for; does not wait for the answers. */
    async start(): Promise<number> {
      const free = MAX_AT_ONCE - running.size;
      if (free <= 0) return 0;
      const claims = await claimIntegrations(pool, Bun.randomUUIDv7(), free);
      for (const claim of claims) {
        const work: Promise<void> = deliverAll(claim).finally(() => running.delete(work));
        running.add(work);
      }
      return claims.length;
    },

    /** Resolves when nothing is being sent. */
    ended,

    /** Begins nothing more, and resolves when nothing is being sent. */
    async stop(): Promise<void> {
      stopped = true;
      await ended();
    },
  };
}

export type Deliverer = ReturnType<typeof createDeliverer>;
