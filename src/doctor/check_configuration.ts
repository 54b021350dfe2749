/** Checks the configuration, the secret key and the directory of the server, without its database. */

import { accessSync, constants, readdirSync, type Stats, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.ts";
import { descriptorLimit } from "../http/descriptors.ts";
import { readSecretKey } from "../secrets/secret_key.ts";
import { toPlainError } from "../file_failure.ts";
import { type Finding, findingsOf } from "./finding.ts";
import { toSize } from "../wording/numbers.ts";

const MIN_DESCRIPTORS = 1_024;
const LOOPBACK = /^(?:127\.|::1$|localhost$)/;

export function checkConfiguration(config: Config): Finding[] {
  const { ok, warn } = findingsOf("configuration");
  const { databaseUrl, dataDir, host, port, publicUrl, metricsToken, trustProxy } = config;
  const findings = [
    ok(
      `The configuration is valid: ${databaseUrl === undefined ? "built-in PostgreSQL" : "DATABASE_URL"}, DATA_DIR "${dataDir}", ` +
        `${host}:${port}`,
    ),
  ];
  const isPublic = !LOOPBACK.test(host);
  if (publicUrl === undefined)
    findings.push(
      warn(
        "PUBLIC_URL is not set, so links in messages lead to the listening address",
        "Set PUBLIC_URL to the address under which people and CI reach the server",
      ),
    );
  else if (publicUrl.startsWith("http:") && !LOOPBACK.test(new URL(publicUrl).hostname))
    findings.push(
      warn(
        "PUBLIC_URL is an http address, so keys and passwords are sent unencrypted",
        "Put a proxy with TLS in front of the server (docs/install.md) and set PUBLIC_URL to its https address",
      ),
    );
  if (isPublic && metricsToken === undefined)
    findings.push(
      warn("METRICS_TOKEN is not set, so anybody who reaches the server can read /metrics", "Set METRICS_TOKEN"),
    );
  if (publicUrl?.startsWith("https:") && trustProxy.rules.length === 0)
    findings.push(
      warn(
        "TRUST_PROXY is not set, although PUBLIC_URL is the address of a proxy: all clients seem to have its address",
        "Set TRUST_PROXY to the addresses of the proxy",
      ),
    );
  const limit = descriptorLimit();
  if (limit !== undefined && limit < MIN_DESCRIPTORS)
    findings.push(
      warn(`Only ${limit} file descriptors are available here`, "Raise the limit (ulimit -n, LimitNOFILE= of systemd)"),
    );
  return findings;
}

const OTHERS_MAY_READ = 0o077;

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false });
const toMode = ({ mode }: Stats): string => (mode & 0o777).toString(8).padStart(4, "0");

/** Returns the key as well, where there is one. `keyFile` is SECRET_KEY_FILE. */
export function checkSecretKey(
  { secretKey, dataDir }: Config,
  keyFile: string | undefined,
): { findings: Finding[]; key: Uint8Array | undefined } {
  const { ok, warn, fail } = findingsOf("secret key");
  const path = keyFile ?? join(dataDir, "secret-key");
  if (secretKey && keyFile === undefined) return { findings: [ok("SECRET_KEY is set")], key: secretKey };
  try {
    const key = secretKey ?? readSecretKey(path);
    const stats = statOf(path);
    // The database knows whether there has to be one.
    if (!key || !stats) return { findings: [], key: undefined };
    const isOpen = (stats.mode & OTHERS_MAY_READ) !== 0;
    const finding = isOpen
      ? warn(`"${path}" has mode ${toMode(stats)}, so other accounts can read the key`, `Run: chmod 600 "${path}"`)
      : ok(`"${path}" has mode ${toMode(stats)}`);
    return { findings: [finding], key };
  } catch (error) {
    const isForbidden = (error as NodeJS.ErrnoException).code === "EACCES";
    const remedy = isForbidden ? AS_SERVER : "Restore the file from a copy: values that were encrypted with it need it";
    return { findings: [fail((toPlainError(error) as Error).message, remedy)], key: undefined };
  }
}

const AS_SERVER = "Run assay doctor as the account of the server, or as root";

const MIN_FREE_BYTES = 2 ** 30;
const MIN_FREE_PART = 0.1;
const MIN_FREE_INODES_PART = 0.05;

/** Checks the directory, and the space on its disk. */
export function checkDataDirectory({ dataDir, databaseUrl }: Config): Finding[] {
  const { ok, warn, fail } = findingsOf("disk");
  const stats = statOf(dataDir);
  if (!stats)
    return databaseUrl === undefined
      ? [
          fail(
            `DATA_DIR "${dataDir}" does not exist`,
            "Set DATA_DIR to the value that the server uses, or start it once",
          ),
        ]
      : [ok(`DATA_DIR "${dataDir}" does not exist yet: the server creates it for the first attachment`)];
  if (!stats.isDirectory()) return [fail(`DATA_DIR "${dataDir}" is not a directory`, "Set DATA_DIR to a directory")];
  const findings: Finding[] = [];
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    findings.push(
      fail(
        `DATA_DIR "${dataDir}" belongs to uid ${stats.uid} and cannot be written by uid ${process.getuid?.()}`,
        AS_SERVER,
      ),
    );
  }
  const needed = isPassedByPostgres(dataDir, stats) ? 0o711 : 0o700;
  if ((stats.mode & OTHERS_MAY_READ & ~needed) !== 0)
    findings.push(
      warn(
        `DATA_DIR "${dataDir}" has mode ${toMode(stats)}, so other accounts can ${needed === 0o700 ? "enter" : "list"} it`,
        `Run: chmod ${needed.toString(8)} "${dataDir}"`,
      ),
    );
  return [...findings, ...disksOf(dataDir).map((path) => checkSpace(path, ok, warn, fail))];
}

/** The built-in PostgreSQL of a server that runs as root has another account, which reaches its files through the directory. */
function isPassedByPostgres(dataDir: string, { uid }: Stats): boolean {
  try {
    const cluster = statOf(join(dataDir, "postgres/cluster"));
    return uid === 0 && cluster !== undefined && cluster.uid !== 0;
  } catch {
    return false;
  }
}

/** The database may be on another disk than the directory, through a link. */
function disksOf(dataDir: string): string[] {
  const paths = [dataDir, ...readable(dataDir).map((name) => join(dataDir, name))];
  const devices = new Map<number, string>();
  for (const path of paths) {
    const stats = statOf(path);
    if (stats?.isDirectory() && !devices.has(stats.dev)) devices.set(stats.dev, path);
  }
  return [...devices.values()];
}

function readable(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

type Levels = ReturnType<typeof findingsOf>;

function checkSpace(path: string, ok: Levels["ok"], warn: Levels["warn"], fail: Levels["fail"]): Finding {
  const { bavail, blocks, bsize, files, ffree } = statfsSync(path);
  const [free, all] = [bavail * bsize, blocks * bsize];
  const message = `"${path}" has ${toSize(free)} of ${toSize(all)} free`;
  if (free < MIN_FREE_BYTES) return fail(message, "Free or add space: PostgreSQL stops when the disk is full");
  if (free < MIN_FREE_PART * all)
    return warn(message, "Add space, or lower RETENTION_DAYS and ATTACHMENT_RETENTION_DAYS");
  if (files > 0 && ffree < MIN_FREE_INODES_PART * files)
    return warn(
      `"${path}" has ${ffree} of ${files} inodes free`,
      "Remove files, or use a file system with more inodes",
    );
  return ok(message);
}
