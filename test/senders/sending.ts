/** Sends fixed notices to the recording fake, as each kind of integration would. */

import { expect, test } from "bun:test";
import * as v from "valibot";
import { CONFIGS, type IntegrationAction, type Kind, type Notice, SECRETS } from "../../src/schema/integrations.ts";
import { send } from "../../src/senders/send.ts";
import type { ActionOptions } from "../../src/senders/sender.ts";
import { createReceiver, createResettingReceiver, outboundToReceivers, type Script } from "../receiver.ts";

export const DELIVERY_ID = "0197f000-0000-7000-8000-000000000001";
export const NOW = new Date("2026-01-31T12:00:00.000Z");
const PROJECT = "0197f000-0000-7000-8000-0000000000aa";

/** What test names may hold to page everybody, to run commands, to be links. */
export const HOSTILE =
  "<!channel> @everyone [x](javascript:alert(1)) <script> \u001b[31mred\u001b[0m ]]> ``` */close* & {noformat}";

export const BAD: Notice = {
  type: "execution.failed",
  occurredAt: "2026-01-31T11:59:00.000Z",
  tone: "bad",
  title: "Web: main failed",
  subject: "Web: main failed",
  text: "1 failed, 9 passed",
  facts: [
    { name: "Branch", value: "main" },
    { name: "Commit", value: "0123456789ab" },
  ],
  lines: ["unit > adds: expected 1, got 2"],
  url: `https://assay.test/projects/${PROJECT}/executions/1`,
  buildUrl: "https://ci.test/builds/7",
  branch: "main",
  commit: "0123456789abcdef",
  pullRequest: "12",
  topic: `${PROJECT} main`,
  state: "failure",
  data: { project: { id: PROJECT, name: "Web" }, execution: { status: "failed" } },
};

export const GOOD: Notice = {
  ...BAD,
  type: "execution.recovered",
  tone: "good",
  title: "Web: main is green again",
  subject: "Web: main is green again",
  text: "10 passed",
  lines: [],
  state: "success",
};

export const hostile = (notice: Notice = BAD): Notice => ({
  ...notice,
  title: HOSTILE,
  subject: HOSTILE,
  text: HOSTILE,
  facts: [{ name: "Branch", value: HOSTILE }],
  lines: [HOSTILE, HOSTILE],
});

export type Sent = { action?: IntegrationAction; notice?: Notice; options?: ActionOptions; scripts?: Script[] };

/** `config` gets the receiver's address. */
export function sendTo(kind: Kind, toConfig: (url: string) => Record<string, unknown>, action: IntegrationAction) {
  /** Sends once; the requests that arrived, and what came of it. */
  async function deliver({ action: other, notice = BAD, options = {}, scripts = [] }: Sent = {}) {
    const receiver = createReceiver(...scripts);
    const what = { action: other ?? action, notice, options };
    return { ...(await deliverTo(receiver.url, what)), requests: receiver.requests };
  }

  async function deliverTo(url: string, { action: other, notice = BAD, options = {} }: Omit<Sent, "scripts"> = {}) {
    const config = v.parse(CONFIGS[kind] as v.GenericSchema, toConfig(url)) as Record<string, unknown>;
    const secrets = SECRETS[kind].flatMap((name) => (typeof config[name] === "string" ? [config[name]] : []));
    const job = { id: DELIVERY_ID, action: other ?? action, options, notice, now: NOW };
    return await send(outboundToReceivers(150), { kind, config, secrets }, job);
  }

  return { deliver, deliverTo };
}

type Deliver = ReturnType<typeof sendTo>;

/** What every kind does with an answer that is none, or that says to come back. */
export function testFailures(
  { deliver, deliverTo }: Deliver,
  { redirect = "refused", gone = "refused" }: { redirect?: "refused" | "retry"; gone?: "refused" | "gone" } = {},
): void {
  test("too many requests are retried when the receiver says", async () => {
    const { outcome } = await deliver({ scripts: [{ status: 429, headers: { "retry-after": "90" } }] });
    expect(outcome).toMatchObject({ status: "retry", afterMs: 90_000 });
    const later = new Date(NOW.getTime() + 120_000).toUTCString();
    const { outcome: dated } = await deliver({ scripts: [{ status: 429, headers: { "retry-after": later } }] });
    expect(dated).toMatchObject({ status: "retry", afterMs: 120_000 });
  });

  test.each([500, 502, 503])("a %d is retried", async (status) => {
    const { outcome, attempt } = await deliver({ scripts: [{ status, body: "broken" }] });
    expect([outcome.status, attempt.statusCode, attempt.answer]).toEqual(["retry", status, "broken"]);
  });

  test("a receiver that hangs, resets or is not there is tried again", async () => {
    const { outcome, attempt } = await deliver({ scripts: ["hang"] });
    expect(outcome).toEqual({ status: "retry", error: "No answer within 0.15 s" });
    expect([attempt.statusCode, attempt.answer, attempt.error]).toEqual([null, null, "No answer within 0.15 s"]);
    const resetting = await createResettingReceiver();
    expect((await deliverTo(resetting.url)).outcome.status).toBe("retry");
    expect(resetting.count()).toBeGreaterThan(0);
    expect((await deliverTo("http://127.0.0.1:1")).outcome).toMatchObject({
      status: "retry",
      error: expect.stringContaining("refused"),
    });
  });

  test("a redirect is not followed", async () => {
    const elsewhere = createReceiver();
    const { outcome, requests } = await deliver({ scripts: [{ status: 307, headers: { location: elsewhere.url } }] });
    expect(outcome).toMatchObject({ status: redirect, error: expect.stringContaining("redirects are not followed") });
    expect([requests.length, elsewhere.requests.length]).toEqual([1, 0]);
  });

  test("a 410 is final", async () => {
    const { outcome } = await deliver({ scripts: [{ status: 410 }] });
    expect(outcome.status).toBe(gone);
  });

  test("what the receiver sends back is kept without our secrets", async () => {
    const echo: Script = ({ headers, text, path }) => ({ status: 400, body: JSON.stringify({ headers, text, path }) });
    const { attempt } = await deliver({ scripts: [echo] });
    expect(attempt.answer).not.toBeNull();
    const kept = `${attempt.answer} ${attempt.error}`;
    expect(kept).not.toContain("S3CRET");
    expect(kept).not.toContain(Buffer.from("S3CRET").toString("base64").slice(0, 6));
    expect(attempt.answer!.length).toBeLessThanOrEqual(1_024);
  });
}
