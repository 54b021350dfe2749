/** Webhooks to any receiver, signed according to Standard Webhooks: https://www.standardwebhooks.com */

import { createHmac } from "node:crypto";
import type { Outbound } from "../http/outbound.ts";
import type { ConfigOf } from "../schema/integration_configs.ts";
import { shorten, type Job, type Outcome, postJson, retryAfter, type Sender } from "./sender.ts";
import type { Notification } from "../schema/notifications.ts";

/** The documented maximum size of a body is 20 kB. */
const MAX_BYTES = 20_000;

/** While a secret is replaced, the one before signs as well. */
type WebhookConfig = ConfigOf<"webhook"> & { previousSecret?: string };

/** `v1,<base64>`; the secret is `whsec_` and base64. */
export function sign(secret: string, id: string, seconds: number, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`;
}

/** The longest lists are shortened until it fits; `truncated` says so. */
export function toBody({ type, occurredAt, data }: Notification): string {
  const write = (data: Record<string, unknown>) => JSON.stringify({ type, timestamp: occurredAt, data });
  const fits = (body: string) => Buffer.byteLength(body) < MAX_BYTES;
  const whole = write(data);
  if (fits(whole)) return whole;
  for (const [items, characters] of [
    [10, 500],
    [5, 200],
    [2, 100],
    [0, 60],
  ] as const) {
    const body = write({ ...(abridge(data, items, characters) as Record<string, unknown>), truncated: true });
    if (fits(body)) return body;
  }
  return write({ truncated: true });
}

function abridge(value: unknown, items: number, characters: number): unknown {
  if (typeof value === "string") return shorten(value, characters);
  if (Array.isArray(value)) return value.slice(0, items).map((item) => abridge(item, items, characters));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, abridge(inner, items, characters)]));
}

export const webhook: Sender<"webhook"> = {
  actions: ["notify", "digest"],
  sample: "notify",

  async send(
    http: Outbound,
    { url, secret, previousSecret }: WebhookConfig,
    { id, notice, now }: Job,
  ): Promise<Outcome> {
    const body = toBody(notice);
    const seconds = Math.floor(now.getTime() / 1000);
    const secrets = previousSecret === undefined ? [secret] : [secret, previousSecret];
    const answer = await http.request({
      ...postJson(url, {}, undefined),
      headers: {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": String(seconds),
        "webhook-signature": secrets.map((secret) => sign(secret, id, seconds, body)).join(" "),
      },
      body,
    });
    if (answer.status >= 200 && answer.status < 300) return { status: "sent" };
    if (answer.status === 410)
      return { status: "gone", error: "Answered 410: the receiver no longer accepts messages" };
    const afterMs = retryAfter(answer, now);
    const redirects = answer.status >= 300 && answer.status < 400 ? ": redirects are not followed" : "";
    return { status: "retry", error: `Answered ${answer.status}${redirects}`, ...(afterMs ? { afterMs } : {}) };
  },
};
