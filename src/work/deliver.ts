/** Sends due deliveries: to many integrations at once, to each one after the other. */

import { attemptDelivery, type DeliveryOptions } from "../operations/automation/deliveries.ts";
import type { Log } from "../log.ts";
import { notSent } from "../schema/deliveries.ts";
import type { Database } from "../database/connect.ts";
import { type IntegrationClaim, claimIntegrations, extendClaim, releaseIntegration } from "../store/integrations.ts";
import { type DueDelivery, endUnsent, failSuperseded, selectDueDelivery } from "../store/deliveries.ts";
import { type Item, takeAll } from "./loop.ts";
import { EXTEND_MS } from "../database/claims.ts";

/** A receiver that hangs keeps one of them for 15 s. */
const MAX_AT_ONCE = 64;

const UNNOTED = "Internal error: it may have arrived, but that could not be noted; the log of Assay tells why";
const SUPERSEDED = "Not sent: a newer delivery for the same has taken its place";

export function createDeliverer(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  services: Pick<DeliveryOptions, "outbound" | "seal" | "onAttempt">,
  log: Log,
) {
  const running = new Set<Promise<void>>();
  let stopped = false;

  async function deliverAll(claim: IntegrationClaim): Promise<void> {
    const extending = setInterval(() => void extendClaim(pool, claim).catch(() => {}), EXTEND_MS);
    try {
      await takeAll<Item & { delivery?: DueDelivery }>(
        pool,
        {
          failing: "Cannot deliver",
          next: (take) => deliverNext(claim, take),
          async giveUp({ delivery }) {
            if (!delivery) return;
            const place = { teamId: claim.teamId, integrationId: claim.id, id: delivery.id };
            await endUnsent(pool, place, "failed", notSent(new Date(), UNNOTED));
          },
        },
        log,
        () => !stopped,
      );
    } catch (error) {
      log.warn("Cannot deliver to an integration; the others continue", { integrationId: claim.id, error });
      // An immediate retry would fail in the same way: the claim expires by itself.
      return;
    } finally {
      clearInterval(extending);
    }
    await releaseIntegration(pool, claim).catch(() => {});
  }

  /** An internal error postpones only the delivery, or the integration if it occurs before the delivery is known. */
  async function deliverNext(
    claim: IntegrationClaim,
    take: (item: Item & { delivery?: DueDelivery }) => void,
  ): Promise<boolean> {
    const about = { integrationId: claim.id, teamId: claim.teamId };
    take({ loop: "integration", id: claim.id, about });
    await failSuperseded(pool, claim, notSent(new Date(), SUPERSEDED));
    const delivery = await selectDueDelivery(pool, claim);
    if (!delivery) return false;
    const ids = { ...about, deliveryId: delivery.id };
    take({ loop: "delivery", id: delivery.id, about: ids, delivery });
    const onBug = (error: unknown) => log.error("Cannot deliver", { ...ids, error });
    return await attemptDelivery({ ...services, begin, onBug }, claim, delivery);
  }

  const ended = async () => void (await Promise.all(running));

  return {
    /** Begins to send to every integration with a due delivery; does not wait for the answers. */
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
