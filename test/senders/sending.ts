/** Sends fixed notices to the recording fake, as each kind of integration would. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { CONFIGS, type IntegrationAction, type Kind, SECRETS } from "../../src/schema/integration_configs.ts";
import { send } from "../../src/senders/send.ts";
import type { ActionOptions, CommentJob, Job } from "../../src/senders/sender.ts";
import {
  createReceiver,
  createResettingReceiver,
  outboundToReceivers,
  type Recorded,
  type Script,
} from "../receiver.ts";
import type { Notification } from "../../src/schema/notifications.ts";

export const DELIVERY_ID = "0197f000-0000-7000-8000-000000000001";
export const NOW = new Date("2026-01-31T12:00:00.000Z");
const PROJECT = "0197f000-0000-7000-8000-0000000000aa";

/** What test names may hold to page everybody, to run commands, to be links. */
export const HOSTILE =
  "<!channel> @everyone [x](javascript:alert(1)) <script> \u001b[31mred\u001b[0m ]]> ``` */close* & {noformat}";

export const BAD: Notification = {
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
  data: {
    project: { id: PROJECT, name: "Web", url: `https://assay.test/projects/${PROJECT}` },
    execution: {
      ...{ id: PROJECT, key: "4711", status: "failed", branch: "main", commit: "a".repeat(40), pullRequest: "12" },
      ...{ baseBranch: null, queueRef: null, buildUrl: null, environment: null },
      ...{
        commitAuthor: null,
        commitSubject: null,
        url: `https://assay.test/projects/${PROJECT}/executions/${PROJECT}`,
      },
    },
  },
};

/** The line of a known bug. */
export const BUG_LINE =
  'Known bug #12 "expected # items". c4d5e6f012 by Ada broke it: it failed there 2 of 2 times, on its parent ' +
  "0a1b2c3d4e it passed 2 of 2 times";
export const BUG_URL = `https://assay.test/projects/${PROJECT}/bugs/12`;

/** An execution that failed for a known bug. */
export const KNOWN: Notification = {
  ...BAD,
  lines: ["unit > adds (known bug #12): expected 1, got 2"],
  knownBugs: [{ number: 12, text: BUG_LINE, url: BUG_URL }],
};

export const GOOD: Notification = {
  ...BAD,
  type: "execution.recovered",
  tone: "good",
  title: "Web: main is green again",
  subject: "Web: main is green again",
  text: "10 passed",
  lines: [],
  state: "success",
};

export const hostile = (notice: Notification = BAD): Notification => ({
  ...notice,
  title: HOSTILE,
  subject: HOSTILE,
  text: HOSTILE,
  facts: [{ name: "Branch", value: HOSTILE }],
  lines: [HOSTILE, "/close", HOSTILE],
  knownBugs: [{ number: 12, text: `${HOSTILE} ](https://evil.test) | > <https://evil.test|x>\n# b`, url: BUG_URL }],
});

/** Outside of code there is no mention, link, command or markup of a hostile notice in the Markdown. */
export function expectQuoted(markdown: string): void {
  const fence = /^(`{4,})$/m.exec(markdown)?.[1] ?? "no fence";
  const outside = markdown.split(fence).filter((_, index) => index % 2 === 0);
  const plain = outside
    .join("")
    .replace(/`[^`\n]*`/g, "")
    .replace(/<code>[^<]*<\/code>/g, "");
  expect(plain).not.toMatch(/\/close|@everyone|javascript:|<script|!channel|^# b/m);
  expect(markdown).not.toContain("\u001b");
}

const BY_THE_CLIENT = new Set(["host", "content-length", "accept-encoding", "connection"]);

/** Whole requests, less what the HTTP client adds to each by itself. */
export const shown = (requests: readonly Recorded[]) =>
  requests.map(({ method, path, headers, body }) => ({
    method,
    path,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !BY_THE_CLIENT.has(name))),
    body: body as unknown,
  }));

/** What every request with a body has. */
export const HEADERS = { "content-type": "application/json", "user-agent": "Assay", accept: "*/*" };

/** What the services make of a notice in Markdown. */
export const MARKDOWN = [
  "`1 failed, 9 passed`",
  "- Branch: `main`\n- Commit: `0123456789ab`",
  "```\nunit > adds: expected 1, got 2\n```",
  `[Assay](<${BAD.url}>) · [Build](<${BAD.buildUrl}>)`,
].join("\n\n");

export const COMMENT: CommentJob = {
  id: null,
  since: null,
  marker: "<!-- assay p -->",
  body: "<!-- assay p -->\n\nred",
};

export type Sent = {
  action?: IntegrationAction;
  notice?: Notification;
  options?: ActionOptions;
  scripts?: Script[];
} & Pick<Job, "comment" | "annotations" | "isRetry">;

/** `config` gets the receiver's address. */
export function sendTo(kind: Kind, toConfig: (url: string) => Record<string, unknown>, action: IntegrationAction) {
  /** Sends once; the requests that arrived, and what came of it. */
  async function deliver({ action: other, scripts = [], ...rest }: Sent = {}) {
    const receiver = createReceiver(...scripts);
    const what = { ...rest, action: other ?? action };
    // Who hangs is not waited for long; who answers may take his time on a busy machine.
    const patienceMs = scripts.includes("hang") ? 150 : 5_000;
    return { ...(await deliverTo(receiver.url, what, patienceMs)), requests: receiver.requests };
  }

  async function deliverTo(
    url: string,
    { action: other, notice = BAD, options = {}, comment = COMMENT, ...rest }: Omit<Sent, "scripts"> = {},
    patienceMs = 5_000,
  ) {
    const config = v.parse(CONFIGS[kind] as v.GenericSchema, toConfig(url)) as Record<string, unknown>;
    const secrets = SECRETS[kind].flatMap((name) => (typeof config[name] === "string" ? [config[name]] : []));
    const job = { id: DELIVERY_ID, action: other ?? action, options, notice, now: NOW, comment, ...rest };
    return await send(outboundToReceivers(patienceMs), { kind, config, secrets }, job);
  }

  return { deliver, deliverTo };
}

type Deliver = ReturnType<typeof sendTo>;

type Expected = {
  redirect?: "refused" | "retry";
  gone?: "refused" | "gone";
  /** Whether the receiver's words are kept as the error. */
  quotes?: boolean;
  /** Final answers, each with the error that it is kept as. */
  reasons?: [status: number, body: unknown, error: string][];
};

/** What every action of a kind does with an answer that is none, or that says to come back. */
export function testFailures(
  { deliver, deliverTo }: Deliver,
  actions: IntegrationAction[],
  { redirect = "refused", gone = "refused", quotes = true, reasons = [] }: Expected = {},
): void {
  describe.each(actions)("when %s fails", (action) => {
    test("too many requests are retried when the receiver says", async () => {
      const { outcome } = await deliver({ action, scripts: [{ status: 429, headers: { "retry-after": "90" } }] });
      expect(outcome).toEqual({ status: "retry", error: "Answered 429", afterMs: 90_000 });
      const later = new Date(NOW.getTime() + 120_000).toUTCString();
      const dated = await deliver({ action, scripts: [{ status: 429, headers: { "retry-after": later } }] });
      expect(dated.outcome).toEqual({ status: "retry", error: "Answered 429", afterMs: 120_000 });
    });

    test.each(["0", "-5", "soon", "Sat, 31 Jan 2026 11:00:00 GMT"])("%p is no time to come back", async (value) => {
      const { outcome } = await deliver({ action, scripts: [{ status: 429, headers: { "retry-after": value } }] });
      expect(outcome).toEqual({ status: "retry", error: "Answered 429" });
    });

    test.each([500, 502, 503])("a %d is retried", async (status) => {
      const { outcome, attempt } = await deliver({ action, scripts: [{ status, body: "" }] });
      const error = `Answered ${status}`;
      expect(outcome).toEqual({ status: "retry", error });
      const attemptedAt = NOW.toISOString();
      expect(attempt).toEqual({ attemptedAt, statusCode: status, latencyMs: expect.any(Number), answer: "", error });
    });

    test("a receiver that hangs is tried again", async () => {
      const { outcome, attempt, requests } = await deliver({ action, scripts: ["hang"] });
      expect(outcome).toEqual({ status: "retry", error: "No answer within 0.15 s" });
      expect([attempt.statusCode, attempt.answer, attempt.error]).toEqual([null, null, "No answer within 0.15 s"]);
      expect(requests).toHaveLength(1);
    });

    test("a receiver that resets the connection or is not there is tried again", async () => {
      const resetting = await createResettingReceiver();
      const closed = "The connection was closed before the answer: 127.0.0.1";
      expect((await deliverTo(resetting.url, { action })).outcome).toEqual({ status: "retry", error: closed });
      expect(resetting.count()).toBeGreaterThan(0);
      const refused = "The connection was refused: 127.0.0.1";
      expect((await deliverTo("http://127.0.0.1:1", { action })).outcome).toEqual({ status: "retry", error: refused });
    });

    test.each([301, 302, 307, 308])("a %d is not followed", async (status) => {
      const elsewhere = createReceiver();
      const headers = { location: elsewhere.url };
      const { outcome, requests } = await deliver({ action, scripts: [{ status, headers }] });
      expect(outcome).toEqual({ status: redirect, error: `Answered ${status}: redirects are not followed` });
      expect([requests.length, elsewhere.requests]).toEqual([1, []]);
    });

    test("a 410 is final", async () => {
      const { outcome } = await deliver({ action, scripts: [{ status: 410 }] });
      expect(outcome).toEqual({ status: gone, error: expect.stringMatching(/^Answered 410/) });
    });

    test.each(reasons)("a %d with %j is final, and the error tells its reason", async (status, body, error) => {
      expect((await deliver({ action, scripts: [{ status, body }] })).outcome).toEqual({ status: "refused", error });
    });

    test("what the receiver sends back is kept without our secrets, in the answer and in the error", async () => {
      const said = ({ headers, text, path }: Recorded) => JSON.stringify({ path, headers, text });
      for (const toBody of [
        said,
        (request: Recorded) => ({ message: said(request) }),
        (request: Recorded) => ({ message: JSON.parse(said(request)) }),
      ]) {
        const echo: Script = (request) => ({ status: 400, body: toBody(request) });
        const { outcome, attempt, requests } = await deliver({ action, scripts: [echo] });
        const kept = JSON.stringify({ outcome, answer: attempt.answer, error: attempt.error });
        for (const secret of ["S3CRET", ...sealedHeaders(requests)]) expect(kept).not.toContain(secret);
        expect(attempt.answer).toContain("[secret]");
        expect(attempt.answer!.length).toBeLessThanOrEqual(1_024);
        if (!quotes) expect(attempt.error).toBe("Answered 400");
      }
    });
  });
}

/** What the secrets were made into: the parts of each header that proves who is asking. */
const sealedHeaders = (requests: readonly Recorded[]): string[] =>
  requests.flatMap(({ headers }) =>
    ["authorization", "private-token", "webhook-signature"].flatMap((name) =>
      (headers[name] ?? "").split(" ").filter((part) => part.length >= 8),
    ),
  );
