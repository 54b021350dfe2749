/** Integrations and automations of a team in tests, and the loops of a server that handle events and send deliveries. */

import { expect } from "bun:test";
import { createLog } from "../src/log.ts";
import { createSeal } from "../src/secrets/seal.ts";
import { handleEvents } from "../src/work/automate.ts";
import { createDeliverer } from "../src/work/deliver.ts";
import { createRequests } from "./asking.ts";
import { type createHarness, SECRET_KEY } from "./harness.ts";
import { outboundToReceivers } from "./receiver.ts";

export const PUBLIC_URL = "https://assay.test";

type Harness = Pick<Awaited<ReturnType<typeof createHarness>>, "ask" | "database">;
type Team = { team: string; teamKey: string };

const log = createLog("error", () => {}, false);

export function createAutomating({ ask, database }: Harness, { team, teamKey: key }: Team) {
  const { call, list } = createRequests(ask, `/teams/${team}`, key);
  async function create(path: string, body: unknown): Promise<string> {
    const answer = await call("POST", path, body);
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    return answer.body.id;
  }

  const createSender = () =>
    createDeliverer(database, { outbound: outboundToReceivers(), seal: createSeal(SECRET_KEY) }, log);
  const handle = () => handleEvents(database, PUBLIC_URL, log);
  /** Sends until nothing is due. */
  async function deliver(sender = createSender()): Promise<void> {
    while ((await sender.start()) > 0) await sender.ended();
  }

  return {
    ...{ call, list, handle, createSender, deliver },
    integrate: (kind: string, config: object) => create("/integrations", { kind, name: kind, config }),
    automate: (body: object) => create("/automations", { name: "a", ...body }),
    async deleteAutomations(): Promise<void> {
      for (const { id } of await list("/automations?limit=100")) await call("DELETE", `/automations/${id}`);
    },
    /** Runs of an automation, the newest first. */
    runsOf: (id: string, query = "") => list(`/automations/${id}/runs${query}`),
    /** Deliveries of an integration, the newest first. */
    deliveriesOf: (id: string) => list(`/integrations/${id}/deliveries?limit=100`),
    /** Handles all events, and sends the deliveries that they cause. */
    async settle(): Promise<void> {
      await handle();
      await deliver();
    },
  };
}
