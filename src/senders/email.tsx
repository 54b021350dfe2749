/** Messages by e-mail, through a mail server (SMTP). */

import { createHash } from "node:crypto";
import { createTransport, type SendMailOptions } from "nodemailer";
import { type Html, safeUrl } from "../http/html.ts";
import { type OutboundConnection, OutboundError } from "../http/outbound.ts";
import type { ConfigOf } from "../schema/integration_configs.ts";
import type { Notification } from "../schema/notifications.ts";
import {
  type Answered,
  type Job,
  linkedLinesOf,
  linksOf,
  MAX_BUG_LINE_CHARACTERS,
  oneLine,
  type Sender,
  shorten,
  unlink,
} from "./sender.ts";

type Config = ConfigOf<"email">;

const MAX_SUBJECT_CHARACTERS = 200;
const MAX_LINE_CHARACTERS = 500;
const MAX_LINES = 100;

/** Untrusted text on one line, in which mail programs find no address to link. */
const plain = (text: string, max = MAX_LINE_CHARACTERS): string => unlink(shorten(oneLine(text), max));

/** The parts of a message, of which both of its forms are made. */
const partsOf = (notice: Notification) => ({
  title: plain(notice.title),
  text: plain(notice.text, 2_000),
  lines: notice.lines.slice(0, MAX_LINES).map((line) => plain(line)),
  bugs: linkedLinesOf(notice).map(({ text, url }) => ({ text: plain(text, MAX_BUG_LINE_CHARACTERS), url })),
  facts: notice.facts.slice(0, 10).map(({ name, value }) => ({ name, value: plain(value) })),
  links: linksOf(notice),
});
type Parts = ReturnType<typeof partsOf>;

function toText({ title, text, lines, bugs, facts, links }: Parts): string {
  const paragraphs = [
    [title],
    [text],
    lines.map((line) => `- ${line}`),
    bugs.map(({ text, url }) => `- ${text}\n  ${url}`),
    facts.map(({ name, value }) => `${name}: ${value}`),
    links.map(({ open, url }) => `${open}: ${url}`),
  ];
  return paragraphs
    .filter((paragraph) => paragraph.some((line) => line !== ""))
    .map((paragraph) => `${paragraph.join("\n")}\n`)
    .join("\n");
}

const toHtml = ({ title, text, lines, bugs, facts, links }: Parts): Html => (
  <html lang="en">
    <body>
      <h2>{title}</h2>
      <p>{text}</p>
      {lines.length > 0 ? (
        <ul>
          {lines.map((line) => (
            <li>{line}</li>
          ))}
        </ul>
      ) : null}
      {bugs.length > 0 ? (
        <ul>
          {bugs.map(({ text, url }) => (
            <li>
              <a href={safeUrl(url)}>{text}</a>
            </li>
          ))}
        </ul>
      ) : null}
      {facts.length > 0 ? (
        <dl>
          {facts.map(({ name, value }) => (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
        </dl>
      ) : null}
      {links.map(({ open, url }) => (
        <p>
          <a href={safeUrl(url)}>{open}</a>
        </p>
      ))}
    </body>
  </html>
);

/** Returns the mail of a notification. A repeated delivery has the same Message-ID, and mails about one topic are one thread. */
export function toMail(
  { from, to }: Pick<Config, "from" | "to">,
  { id, notice, now }: Pick<Job, "id" | "notice" | "now">,
) {
  const parts = partsOf(notice);
  const domain = from.slice(from.lastIndexOf("@") + 1);
  const thread = `<${createHash("sha256").update(notice.topic).digest("hex").slice(0, 32)}@${domain}>`;
  return {
    from: { name: "Assay", address: from },
    to: to.map((address) => ({ name: "", address })),
    subject: shorten(oneLine(notice.title), MAX_SUBJECT_CHARACTERS),
    date: now,
    messageId: `<${id}@${domain}>`,
    inReplyTo: thread,
    references: thread,
    headers: { "Auto-Submitted": "auto-generated" },
    text: toText(parts),
    html: `<!doctype html>\n${toHtml(parts).text}\n`,
    disableFileAccess: true,
    disableUrlAccess: true,
  } satisfies SendMailOptions;
}

const createMailer = ({ host, port, security, user, password }: Config, { socket, tls }: OutboundConnection) =>
  createTransport({
    ...{ host, port, connection: socket, tls, socketCloseTimeout: 0 },
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    // A server that offers no authentication gets no message either: it would be sent without the user's name.
    ...(user !== null && password !== null ? { auth: { user, pass: password }, forceAuth: true } : {}),
  });

/** Fields of errors and of answers. */
type Refusal = {
  responseCode?: number;
  response?: string | false;
  recipient?: string;
  command?: string;
  code?: string;
};

const toOutcome = (refusals: readonly Refusal[]): Answered | undefined => {
  const [first] = refusals;
  const { responseCode: status, response } = first ?? {};
  if (status === undefined || !response) return undefined;
  const answer = { status, text: response };
  const error = `Answered ${plain(response)}`;
  // As long as one recipient may be accepted later, trying again makes sense.
  const isTemporary = refusals.some(({ responseCode = 0 }) => responseCode >= 400 && responseCode < 500);
  return { status: isTemporary ? "retry" : "refused", error, answer };
};

/** Undefined: the server did not answer. */
function judgeFailure(error: unknown): Answered | undefined {
  const failure = error as Refusal & { rejectedErrors?: Refusal[] };
  if (failure.code === "ETLS" && failure.responseCode !== undefined)
    return {
      ...toOutcome([failure])!,
      status: "refused",
      error: `The server offers no STARTTLS: ${plain(String(failure.response))}`,
    };
  return toOutcome(failure.rejectedErrors?.length ? failure.rejectedErrors : [failure]);
}

/** The mailer's codes of a connection that ended. */
const CLOSED = new Set(["ECONNECTION", "ESOCKET"]);

const base64 = (text: string) => Buffer.from(text).toString("base64");

export const smtp: Sender<"email"> = {
  actions: ["notify", "digest"],
  sample: "notify",

  secretsOf: ({ user, password }) =>
    user === null || password === null ? [] : [base64(password), base64(`\0${user}\0${password}`)],

  async send(http, config, job) {
    return await http.connect({ host: config.host, port: config.port }, async (connection): Promise<Answered> => {
      const { signal } = connection;
      try {
        const sent = await createMailer(config, connection).sendMail({ ...toMail(config, job), signal });
        const refused = (sent.rejectedErrors ?? []) as Refusal[];
        const notes = refused.map(({ recipient, response }) => `\nNot to ${recipient}: ${response || "refused"}`);
        return {
          status: "sent",
          answer: { status: Number.parseInt(sent.response) || 250, text: sent.response + notes.join("") },
        };
      } catch (error) {
        const judged = signal.aborted ? undefined : judgeFailure(error);
        if (judged) return judged;
        // The mailer replaces the codes of the system by its own.
        const { originalCode, code = "" } = error as { originalCode?: string; code?: string };
        if (code === "EPROTOCOL")
          throw new OutboundError(`The server does not speak SMTP on this port: ${config.host}`, false);
        throw Object.assign(new Error(), { code: originalCode ?? (CLOSED.has(code) ? "ECONNRESET" : code) });
      }
    });
  },
};
