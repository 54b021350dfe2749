/** E-mail: messages through a real mail server, which asks for STARTTLS and a password, refuses, or falls silent. */

import { afterAll, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import * as v from "valibot";
import { createAddressList } from "../../src/http/address.ts";
import { createOutbound } from "../../src/http/outbound.ts";
import { CONFIGS } from "../../src/schema/integration_configs.ts";
import { toMail } from "../../src/senders/email.tsx";
import { send } from "../../src/senders/send.ts";
import { certificate } from "../http/secure_server.ts";
import { MAIL_PASSWORD as PASSWORD, refusal, serveMail } from "../mail_server.ts";
import { BAD, BUG_URL, DELIVERY_ID, hostile, KNOWN, NOW } from "./sending.ts";

const HOST = "hooks.example.com";
const CERTIFICATE = await certificate();

/** A server that says one line to each line that it gets, or nothing. */
async function serveLines(...answers: string[]) {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const left = [...answers];
    const say = () => void (left.length > 0 && socket.write(left.shift()!));
    socket.on("error", () => {});
    socket.on("data", say);
    say();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as { port: number }).port };
}

type Sent = Record<string, unknown> & { port: number };

async function deliver(given: Sent, { notice = BAD, timeoutMs = 5_000, ca = CERTIFICATE, id = DELIVERY_ID } = {}) {
  const login = given["security"] === "none" ? {} : { user: "assay", password: PASSWORD };
  const config = v.parse(CONFIGS.email, {
    ...{ host: HOST, from: "assay@acme.example", to: ["ada@acme.example", "grace@acme.example"] },
    ...login,
    ...given,
  });
  const allow = createAddressList(["127.0.0.0/8"]);
  const outbound = createOutbound({ allow, timeoutMs, ca, resolve: async () => ["127.0.0.1"] });
  const secrets = config.password === null ? [] : [config.password];
  return await send(
    outbound,
    { kind: "email", config, secrets },
    { id, action: "notify", options: {}, notice, now: NOW },
  );
}

const headerOf = (text: string, name: string) =>
  new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, "im").exec(text)?.[1]?.replace(/\r\n[ \t]+/g, " ");

describe("a message", () => {
  test("is sent by an encrypted connection after a login, as text and as HTML", async () => {
    const { port, received } = await serveMail();
    const { outcome, attempt } = await deliver({ port }, { notice: KNOWN });
    expect([outcome, attempt.statusCode, attempt.answer]).toEqual([{ status: "sent" }, 250, "250 Queued as 4711"]);
    const [mail] = received;
    expect(received).toHaveLength(1);
    expect(mail).toMatchObject({
      ...{ from: "assay@acme.example", to: ["ada@acme.example", "grace@acme.example"], user: "assay", secure: true },
    });
    const { text } = mail!;
    expect(headerOf(text, "From")).toBe("Assay <assay@acme.example>");
    expect(headerOf(text, "To")).toBe("ada@acme.example, grace@acme.example");
    expect(headerOf(text, "Subject")).toBe("Web: main failed");
    expect(headerOf(text, "Message-ID")).toBe(`<${DELIVERY_ID}@acme.example>`);
    expect(headerOf(text, "References")).toBe(headerOf(text, "In-Reply-To")!);
    expect(headerOf(text, "Auto-Submitted")).toBe("auto-generated");
    expect(headerOf(text, "Content-Type")).toStartWith("multipart/alternative");
    const mailOf = toMail({ from: "a@b", to: ["c@d"] }, { id: DELIVERY_ID, notice: KNOWN, now: NOW });
    expect(mailOf.text).toContain("- unit > adds (known bug #12): expected 1, got 2\n");
    expect(mailOf.text).toContain(`Open in Assay: ${BAD.url}\nOpen the build: ${BAD.buildUrl}\n`);
    expect(mailOf.html).toContain(`<a href="${BUG_URL}">Known bug #12`);
    expect(mailOf.html).toContain(`<a href="${BAD.url}">Open in Assay</a>`);
  });

  test("can be encrypted from the beginning, or not at all where no password is sent", async () => {
    const secure = await serveMail({ secure: true });
    expect((await deliver({ port: secure.port, security: "tls" })).outcome).toEqual({ status: "sent" });
    const open = await serveMail({ authOptional: true });
    expect((await deliver({ port: open.port, security: "none" })).outcome).toEqual({ status: "sent" });
    expect([secure.received[0]!.secure, open.received[0]!.secure]).toEqual([true, false]);
  });

  test("has the same Message-ID when it is sent again, and belongs to the thread of its topic", async () => {
    const { port, received } = await serveMail();
    const other = "0197f000-0000-7000-8000-000000000002";
    await deliver({ port });
    await deliver({ port });
    await deliver({ port }, { id: other });
    await deliver({ port }, { id: other, notice: { ...BAD, topic: "another" } });
    const ids = received.map(({ text }) => headerOf(text, "Message-ID"));
    const threads = received.map(({ text }) => headerOf(text, "References"));
    expect(ids).toEqual([ids[0], ids[0], `<${other}@acme.example>`, `<${other}@acme.example>`]);
    expect(new Set(threads.slice(0, 3)).size).toBe(1);
    expect(threads[3]).not.toBe(threads[0]);
  });

  test("with hostile texts has no header, markup, colour or link of theirs", async () => {
    const { port, received } = await serveMail();
    const injected =
      "red\r\nBcc: eve@evil.test\r\n\r\nbody https://evil.test <img src=x onerror=alert(1)> \u001b[31mred";
    const notice = { ...hostile(), title: injected, text: injected, lines: [injected, "<script>alert(1)</script>"] };
    expect((await deliver({ port }, { notice })).outcome).toEqual({ status: "sent" });
    const { text, to } = received[0]!;
    expect(to).toEqual(["ada@acme.example", "grace@acme.example"]);
    const head = text.slice(0, text.indexOf("\r\n\r\n"));
    expect(head).not.toMatch(/^bcc:/im);
    const mail = toMail({ from: "a@b", to: ["c@d"] }, { id: DELIVERY_ID, notice, now: NOW });
    expect(mail.subject).toBe(mail.subject.replace(/[\p{Cc}]/gu, ""));
    for (const part of [mail.text, mail.html]) expect(part).not.toMatch(/\u001b|https:\/\/evil/);
    expect(mail.html).not.toMatch(/<script|<img/);
    expect([...mail.html.matchAll(/href="([^"]*)"/g)].map(([, url]) => url)).toEqual([
      BUG_URL,
      BAD.url!,
      BAD.buildUrl!,
    ]);
  });
});

describe("a refusal", () => {
  const refuse = (code: number) =>
    serveMail({ onMailFrom: (_, __, callback) => callback(refusal(code, `not now, ${code}`)) });

  test("for now is tried again, and any other is final", async () => {
    const busy = await refuse(450);
    const never = await refuse(550);
    const first = await deliver({ port: busy.port });
    expect(first.outcome).toEqual({ status: "retry", error: "Answered 450 not now, 450" });
    expect([first.attempt.statusCode, first.attempt.answer]).toEqual([450, "450 not now, 450"]);
    const second = await deliver({ port: never.port });
    expect(second.outcome).toEqual({ status: "refused", error: "Answered 550 not now, 550" });
    expect(second.attempt.statusCode).toBe(550);
    expect([...busy.received, ...never.received]).toEqual([]);
  });

  test("of all recipients is one of the message, and of some is noted", async () => {
    const rejecting = (codes: Record<string, number>) =>
      serveMail({
        onRcptTo({ address }, _, callback) {
          const code = codes[address.split("@")[0]!];
          code === undefined ? callback() : callback(refusal(code, "no such mailbox"));
        },
      });
    const some = await rejecting({ ada: 550 });
    const { outcome, attempt } = await deliver({ port: some.port });
    expect(outcome).toEqual({ status: "sent" });
    expect(attempt.answer).toBe("250 Queued as 4711\nNot to ada@acme.example: 550 no such mailbox");
    expect(some.received.map(({ to }) => to)).toEqual([["grace@acme.example"]]);
    const all = await rejecting({ ada: 550, grace: 553 });
    expect((await deliver({ port: all.port })).outcome.status).toBe("refused");
    const oneLater = await rejecting({ ada: 550, grace: 450 });
    expect((await deliver({ port: oneLater.port })).outcome.status).toBe("retry");
  });

  test("of the password is final, and is kept without it", async () => {
    const { port } = await serveMail();
    const password = "a wrong S3CRET password";
    const { outcome, attempt } = await deliver({ port, password });
    expect([outcome.status, attempt.statusCode]).toEqual(["refused", 535]);
    expect(attempt.answer).toBe("535 5.7.8 Not accepted: [secret]");
    const kept = JSON.stringify({ outcome, attempt });
    for (const secret of [password, Buffer.from(`\0assay\0${password}`).toString("base64").replace(/=+$/, "")])
      expect(kept).not.toContain(secret);
  });
});

describe("nothing is sent", () => {
  test("without encryption to a server that does not offer it", async () => {
    const { port, received } = await serveMail({ disabledCommands: ["STARTTLS"], authOptional: true });
    const { outcome } = await deliver({ port });
    expect(outcome).toEqual({ status: "refused", error: expect.stringContaining("The server offers no STARTTLS") });
    expect(received).toEqual([]);
  });

  test.each(["starttls", "tls"])(
    "with %s to a server whose certificate is not that of the host, or unknown",
    async (security) => {
      const { port, received } = await serveMail({ secure: security === "tls" });
      const other = await deliver({ port, security, host: "other.example.com" });
      expect(other.outcome).toEqual({
        status: "retry",
        error: "The certificate is for another host: other.example.com",
      });
      const unknown = await deliver({ port, security }, { ca: "" });
      expect(unknown.outcome).toEqual({
        status: "retry",
        error: expect.stringMatching(/^The certificate is .*: hooks/),
      });
      expect(received).toEqual([]);
    },
  );

  test("to a private address", async () => {
    const { port, received } = await serveMail();
    const config = v.parse(CONFIGS.email, { host: HOST, port, from: "a@b", to: ["c@d"] });
    const outbound = createOutbound({ allow: createAddressList([]), resolve: async () => ["127.0.0.1"] });
    const job = { id: DELIVERY_ID, action: "notify", options: {}, notice: BAD, now: NOW } as const;
    const { outcome } = await send(outbound, { kind: "email", config, secrets: [] }, job);
    const error = `${HOST}: requests do not go to private addresses unless OUTBOUND_ALLOW names them`;
    expect([outcome, received]).toEqual([{ status: "retry", error }, []]);
  });

  test.each([
    ["before its greeting", [], "No answer within 0.3 s"],
    ["after its greeting", ["220 mail\r\n"], "No answer within 0.3 s"],
    ["while it encrypts", ["220 mail\r\n", "250-mail\r\n250 STARTTLS\r\n", "220 go on\r\n"], "No answer within 0.3 s"],
  ])("for ever to a server that stops answering %s", async (_, lines, error) => {
    const { port } = await serveLines(...lines);
    expect((await deliver({ port }, { timeoutMs: 150 })).outcome).toEqual({ status: "retry", error });
  });

  test("to a server that speaks another protocol, or is not there", async () => {
    const http = await serveLines("HTTP/1.1 400 Bad Request\r\n\r\n");
    const { outcome, bug } = await deliver({ port: http.port });
    const error = `The server does not speak SMTP on this port: ${HOST}`;
    expect([outcome, bug]).toEqual([{ status: "retry", error }, undefined]);
    expect((await deliver({ port: 1 })).outcome).toEqual({
      status: "retry",
      error: `The connection was refused: ${HOST}`,
    });
    const open = await serveMail();
    const mixedUp = await deliver({ port: open.port, security: "tls" });
    expect(mixedUp.outcome).toEqual({ status: "retry", error: expect.stringContaining("TLS handshake failed") });
    const closing = await serveMail({ onConnect: (_, callback) => callback(refusal(421, "too many connections")) });
    expect((await deliver({ port: closing.port })).outcome.status).toBe("retry");
  });
});
