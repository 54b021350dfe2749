/** A mail server with the certificate of hooks.example.com, which keeps what it accepts. */

import { afterAll } from "bun:test";
import { join } from "node:path";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { certificate } from "./http/secure_server.ts";

export const MAIL_PASSWORD = "correct horse S3CRET";
const KEY_FILE = join(import.meta.dir, "fixtures/tls_key.pem");

type Received = { from: string; to: string[]; user: unknown; secure: boolean; text: string };

export const refusal = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode });

/** A server for the user "assay", which keeps what it accepts. */
export async function serveMail(options: SMTPServerOptions = {}) {
  const received: Received[] = [];
  const server = new SMTPServer({
    ...{ key: await Bun.file(KEY_FILE).text(), cert: await certificate(), logger: false },
    onAuth({ username, password }, _, callback) {
      if (username === "assay" && password === MAIL_PASSWORD) callback(null, { user: username });
      else
        callback(refusal(535, `5.7.8 Not accepted: ${Buffer.from(`\0${username}\0${password}`).toString("base64")}`));
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          ...{ user: session.user, secure: session.secure, text: Buffer.concat(chunks).toString() },
        });
        callback(null, "Queued as 4711");
      });
    },
    ...options,
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as { port: number }).port, received };
}
