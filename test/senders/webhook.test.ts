/** Webhooks: what a receiver sees that verifies as Standard Webhooks says. */

import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { sign, toBody, webhook } from "../../src/senders/webhook.ts";
import { createReceiver, outboundToReceivers, type Recorded } from "../receiver.ts";
import { BAD, DELIVERY_ID, hostile, NOW, sendTo, testFailures } from "./sending.ts";

const secretOf = (text: string) => `whsec_${Buffer.from(text.padEnd(32, "x")).toString("base64")}`;
const secret = secretOf("S3CRET one");
const sender = sendTo("webhook", (url) => ({ url: `${url}/in?x=1`, secret }), "notify");

describe("notify", () => {
  test("is one signed request", async () => {
    const { outcome, requests } = await sender.deliver();
    expect(outcome).toEqual({ status: "sent" });
    const body = JSON.stringify({ type: BAD.type, timestamp: BAD.occurredAt, data: BAD.data });
    expect(requests).toEqual([
      {
        method: "POST",
        path: "/in?x=1",
        headers: {
          "content-type": "application/json",
          "webhook-id": DELIVERY_ID,
          "webhook-timestamp": String(NOW.getTime() / 1000),
          "webhook-signature": sign(secret, DELIVERY_ID, NOW.getTime() / 1000, body),
          "user-agent": "Assay",
          accept: "*/*",
          "accept-encoding": "identity",
          "content-length": String(body.length),
          host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        },
        body: JSON.parse(body),
        text: body,
      },
    ]);
  });

  test("verifies with every secret while one is replaced, and with no other; a retry has the same id and body", async () => {
    const receiver = createReceiver();
    const [before, after] = [secretOf("before"), secretOf("after")];
    const config = { url: receiver.url, secret: after, previousSecret: before };
    const job = { id: DELIVERY_ID, action: "notify" as const, options: {}, notice: hostile() };
    for (const now of [new Date(), new Date(Date.now() - 60_000)])
      await webhook.send(outboundToReceivers(), config, { ...job, now });
    const [first, again] = receiver.requests;
    for (const known of [before, after])
      expect(new Webhook(known).verify(first!.text, first!.headers)).toEqual(JSON.parse(first!.text));
    expect(() => new Webhook(secret).verify(first!.text, first!.headers)).toThrow();
    expect(() => new Webhook(after).verify(`${first!.text} `, first!.headers)).toThrow();
    expect([again!.text, again!.headers["webhook-id"]]).toEqual([first!.text, first!.headers["webhook-id"]]);
    expect(again!.headers["webhook-signature"]).not.toBe(first!.headers["webhook-signature"]);
  });

  test("any 2xx is success, everything else is retried", async () => {
    for (const status of [200, 201, 202, 204])
      expect((await sender.deliver({ scripts: [{ status }] })).outcome.status).toBe("sent");
    for (const status of [400, 401, 404, 422, 520])
      expect((await sender.deliver({ scripts: [{ status }] })).outcome).toEqual({
        status: "retry",
        error: `Answered ${status}`,
      });
  });
});

test("a body stays below 20 kB, whatever there is to tell, and says what was left out", () => {
  const failures = Array.from({ length: 500 }, (_, index) => ({ name: `case ${index}`, message: "ü".repeat(2_000) }));
  const body = toBody({ ...BAD, data: { ...BAD.data, failures } });
  expect(Buffer.byteLength(body)).toBeLessThan(20_000);
  expect(JSON.parse(body).data).toMatchObject({ project: { name: "Web" }, truncated: true });
  expect(JSON.parse(body).data.failures.length).toBeGreaterThan(0);
  const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field ${index}`, index]));
  expect(Buffer.byteLength(toBody({ ...BAD, data: wide }))).toBeLessThan(20_000);
  expect(JSON.parse(toBody(BAD)).data.truncated).toBeUndefined();
});

test("a body of 19,999 bytes is sent whole, one of 20,000 is shortened, and both verify", async () => {
  const dataOf = (reason: string) => ({ ...BAD.data, execution: { ...(BAD.data["execution"] as object), reason } });
  const empty = JSON.stringify({ type: BAD.type, timestamp: BAD.occurredAt, data: dataOf("") });
  const seen: unknown[] = [];
  for (const bytes of [19_999, 20_000, 30_000]) {
    const data = dataOf("x".repeat(bytes - empty.length));
    const receiver = createReceiver();
    const job = { id: DELIVERY_ID, action: "notify" as const, options: {}, notice: { ...BAD, data }, now: new Date() };
    await webhook.send(outboundToReceivers(), { url: receiver.url, secret }, job);
    const [{ text, headers }] = receiver.requests as [Recorded];
    const verified = new Webhook(secret).verify(text, headers) as {
      data: { execution: { reason: string }; truncated?: boolean };
    };
    const isWhole = verified.data.execution.reason === data.execution.reason;
    seen.push([Buffer.byteLength(text) < 20_000, isWhole, verified.data.truncated ?? false]);
  }
  expect(seen).toEqual([
    [true, true, false],
    [true, false, true],
    [true, false, true],
  ]);
});

testFailures(sender, ["notify"], { redirect: "retry", gone: "gone", quotes: false });
