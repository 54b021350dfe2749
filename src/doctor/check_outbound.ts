/** Checks the network: the server itself, the proxy, names, the sign-in provider and the bucket of attachments. */

import { lookup } from "node:dns/promises";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createS3Store } from "../attachments/s3_store.ts";
import type { Config } from "../config.ts";
import { createAddressList } from "../http/address.ts";
import { describeConnectionFailure } from "../http/connection_failure.ts";
import { createOutbound } from "../http/outbound.ts";
import { type Finding, findingsOf } from "./finding.ts";

const TIMEOUT_MS = 5_000;
const LOOPBACK = createAddressList(["127.0.0.0/8", "::1"]);

/** Asks the server at the configured address for its version. */
export async function* checkRunningServer({ host, port }: Config, version: string): AsyncGenerator<Finding> {
  const { ok, warn, fail } = findingsOf("server");
  if (port === 0) return;
  const own = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  const url = `http://${own}:${port}`;
  const outbound = createOutbound({ allow: createAddressList(["0.0.0.0/0", "::/0"]), timeoutMs: TIMEOUT_MS });
  const ask = (path: string) => outbound.request({ method: "GET", url: url + path });
  try {
    const [health, ready] = [await ask("/healthz"), await ask("/readyz")];
    const { status, version: running } = JSON.parse(health.text) as { status?: unknown; version?: unknown };
    if (status !== "ok" || typeof running !== "string") throw new Error("not a server");
    yield running === version
      ? ok(`A server of version ${version} answers at ${url}, of this database or another one`)
      : warn(
          `The server at ${url} has version ${running}, and this program ${version}`,
          "Restart the server with this version",
        );
    if (ready.status !== 200) yield fail(`The server at ${url} is not ready`, "Look at its log");
  } catch {
    yield warn(`No server answers at ${url}`, "Start it, or set PORT and HOST to the values that the server uses");
  }
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

/** Resolves to undefined when the port accepts a connection, and to the reason when it does not. */
function tryConnect(url: URL): Promise<string | undefined> {
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host: hostOf(url), port, timeout: TIMEOUT_MS });
  socket.on("connect", () => resolve(undefined));
  socket.on("timeout", () => resolve(`no answer within ${TIMEOUT_MS / 1000} s`));
  socket.on("error", (error) => resolve(describeConnectionFailure(error)));
  return promise.finally(() => socket.destroy());
}

/** Checks names and addresses of the configuration. No message contains the user or the password of the proxy. */
export async function* checkOutbound(config: Config): AsyncGenerator<Finding> {
  const { ok, warn, fail } = findingsOf("outbound");
  const { publicUrl, outboundProxy, oidc, outboundAllow } = config;
  if (outboundProxy !== undefined) {
    const proxy = new URL(outboundProxy);
    const problem = await tryConnect(proxy);
    yield problem === undefined
      ? ok(`OUTBOUND_PROXY at ${proxy.host} accepts connections`)
      : fail(`OUTBOUND_PROXY at ${proxy.host} cannot be reached: ${problem}`, "Fix OUTBOUND_PROXY, or unset it");
  }
  if (publicUrl !== undefined) {
    const name = hostOf(new URL(publicUrl));
    const problem = await lookup(name).then(() => undefined, describeConnectionFailure);
    yield problem === undefined
      ? ok(`The name "${name}" of PUBLIC_URL can be resolved`)
      : warn(`The name "${name}" of PUBLIC_URL cannot be resolved: ${problem}`, "Fix PUBLIC_URL or the DNS");
  }
  if (oidc) {
    const allow = /^http:/.test(oidc.issuer) ? LOOPBACK : outboundAllow;
    const outbound = createOutbound({ allow, timeoutMs: TIMEOUT_MS, proxy: outboundProxy });
    const url = `${oidc.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const problem = await outbound.request({ method: "GET", url }).then(
      ({ status }) => (status === 200 ? undefined : `it answers ${status}`),
      (error: Error) => error.message,
    );
    yield problem === undefined
      ? ok(`The sign-in provider ${oidc.issuer} answers`)
      : fail(
          `The sign-in provider ${oidc.issuer} cannot be used: ${problem}`,
          "Fix OIDC_ISSUER, or allow its address with OUTBOUND_ALLOW",
        );
  }
}

const PROBE = "assay doctor\n";

/** Writes an object to the bucket, reads it and removes it. */
export async function* checkBucket({ s3 }: Config["attachments"]): AsyncGenerator<Finding> {
  if (!s3) return;
  const { ok, fail } = findingsOf("attachments");
  const store = createS3Store(s3);
  const key = { projectId: `doctor-${crypto.randomUUID()}`, sha256: Bun.SHA256.hash(PROBE, "hex") };
  const directory = mkdtempSync(join(tmpdir(), "assay-doctor-"));
  const file = join(directory, "probe");
  try {
    writeFileSync(file, PROBE);
    await store.put(key, file);
    const content = await store.read(key, undefined);
    const text = content && (await new Response(content).text());
    await store.remove(key);
    yield text === PROBE
      ? ok(`The bucket "${s3.bucket}" can be written, read and cleared`)
      : fail(`The bucket "${s3.bucket}" does not return what was written`, "Check ATTACHMENTS_S3 and S3_ENDPOINT");
  } catch (error) {
    yield fail(
      `The bucket "${s3.bucket}" cannot be used: ${(error as Error).message}`,
      "Check ATTACHMENTS_S3, S3_ENDPOINT, the credentials and their permissions to put, get and delete objects",
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
