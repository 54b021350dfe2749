/** Checks the configuration, the secret key and the directory of the server, without its database. */

import { accessSync, constants, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.ts";
import { toFileReason, toPlainError } from "../file_failure.ts";
import { descriptorLimit } from "../http/descriptors.ts";
import { toMisspeltText } from "../misspelt.ts";
import { readSecretKey } from "../secrets/secret_key.ts";
import { toSize } from "../wording/numbers.ts";
import { type Finding, findingsOf } from "./finding.ts";

const MIN_DESCRIPTORS = 1_024;
const LOOPBACK = /^(?:127\.|::1$|localhost$)/;

export function* checkConfiguration(config: Config): Generator<Finding> {
  const { ok, warn } = findingsOf("configuration");
  const { databaseUrl, dataDir, host, port, publicUrl, metricsToken, trustProxy } = config;
  const database = databaseUrl === undefined ? "built-in PostgreSQL" : "DATABASE_URL";
  yield ok(`The configuration is valid: ${database}, DATA_DIR "${dataDir}", ${host}:${port}`);
  for (const misspelt of config.misspelt) yield warn(toMisspeltText(misspelt), "Correct or remove the variable");
  if (publicUrl === undefined)
    yield warn(
      "PUBLIC_URL is not set, so links in messages lead to the listening address",
      "Set PUBLIC_URL to the address under which people and CI reach the server",
    );
  else if (publicUrl.startsWith("http:") && !LOOPBACK.test(new URL(publicUrl).hostname))
    yield warn(
      "PUBLIC_URL is an http address, so keys and passwords are sent unencrypted",
      "Put a proxy with TLS in front of the server (docs/install.md) and set PUBLIC_URL to its https address",
    );
  if (!LOOPBACK.test(host) && metricsToken === undefined)
    yield warn("METRICS_TOKEN is not set, so anybody who reaches the server can read /metrics", "Set METRICS_TOKEN");
  if (publicUrl?.startsWith("https:") && trustProxy.rules.length === 0)
    yield warn(
      "TRUST_PROXY is not set, although PUBLIC_URL is the address of a proxy: all clients seem to have its address",
      "Set TRUST_PROXY to the addresses of the proxy",
    );
  const limit = descriptorLimit();
  if (limit !== undefined && limit < MIN_DESCRIPTORS)
    yield warn(
      `Only ${limit} file descriptors are available here`,
      "Raise the limit (ulimit -n, LimitNOFILE= of systemd)",
    );
}

const AS_SERVER = "Run assay doctor as the account of the server, or as root";
const OTHERS_MAY_ACCESS = 0o077;
/** PostgreSQL, if root starts it under another account, reaches its files through a directory that it cannot list. */
const OTHERS_MAY_LIST_OR_WRITE = 0o066;

const toMode = (mode: number): string => (mode & 0o777).toString(8).padStart(4, "0");

/** Returns the key, if there is one. `keyFile` is SECRET_KEY_FILE. */
export function* checkSecretKey(
  { secretKey, dataDir }: Config,
  keyFile: string | undefined,
): Generator<Finding, Uint8Array | undefined> {
  const { ok, warn, fail } = findingsOf("secret key");
  if (secretKey && keyFile === undefined) {
    yield ok("SECRET_KEY is set");
    return secretKey;
  }
  const path = keyFile ?? join(dataDir, "secret-key");
  try {
    const key = secretKey ?? readSecretKey(path);
    // Only the database shows whether a key is needed.
    if (!key) return undefined;
    const { mode } = statSync(path);
    yield (mode & OTHERS_MAY_ACCESS) === 0
      ? ok(`"${path}" has mode ${toMode(mode)}`)
      : warn(`"${path}" has mode ${toMode(mode)}, so other accounts can read the key`, `Run: chmod 600 "${path}"`);
    return key;
  } catch (error) {
    const isForbidden = (error as NodeJS.ErrnoException).code === "EACCES";
    const remedy = isForbidden ? AS_SERVER : "Restore the file from a copy: values that were encrypted with it need it";
    yield fail((toPlainError(error) as Error).message, remedy);
    return undefined;
  }
}

/** Checks the directory, and the space on its disk and on others that it leads to. */
export function* checkDataDirectory({ dataDir, attachments }: Config): Generator<Finding> {
  const { ok, warn, fail } = findingsOf("disk");
  const stats = statSync(dataDir, { throwIfNoEntry: false });
  if (!stats) return yield ok(`DATA_DIR "${dataDir}" does not exist yet: the server creates it`);
  if (!stats.isDirectory())
    return yield fail(`DATA_DIR "${dataDir}" is not a directory`, "Set DATA_DIR to a directory");
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES")
      return yield fail(
        `DATA_DIR "${dataDir}" cannot be written: ${toFileReason(error, "write")}`,
        "Mount the file system so that it can be written, or set DATA_DIR to another directory",
      );
    const account = `uid ${process.getuid?.()}`;
    return yield fail(
      `DATA_DIR "${dataDir}" belongs to uid ${stats.uid} and cannot be written by ${account}`,
      AS_SERVER,
    );
  }
  if ((stats.mode & OTHERS_MAY_LIST_OR_WRITE) !== 0)
    yield warn(
      `DATA_DIR "${dataDir}" has mode ${toMode(stats.mode)}, so other accounts can list or change it`,
      `Run: chmod go-rw "${dataDir}"`,
    );
  const devices = new Set<number>();
  for (const path of [dataDir, join(dataDir, "postgres"), attachments.directory]) {
    const device = statSync(path, { throwIfNoEntry: false })?.dev;
    if (device === undefined || devices.has(device)) continue;
    devices.add(device);
    yield checkSpace(path);
  }
}

const MIN_FREE_BYTES = 2 ** 30;
const MIN_FREE_PART = 0.1;

function checkSpace(path: string): Finding {
  const { ok, warn, fail } = findingsOf("disk");
  const { bavail, blocks, bsize } = statfsSync(path);
  const [free, all] = [bavail * bsize, blocks * bsize];
  const message = `"${path}" has ${toSize(free)} of ${toSize(all)} free`;
  if (free < MIN_FREE_BYTES) return fail(message, "Free or add space: PostgreSQL stops when the disk is full");
  return free < MIN_FREE_PART * all
    ? warn(message, "Add space, or lower RETENTION_DAYS and ATTACHMENT_RETENTION_DAYS")
    : ok(message);
}
