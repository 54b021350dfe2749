/** The environment as one checked value: the only reader of environment variables. */

import { readFileSync } from "node:fs";
import type { BlockList } from "node:net";
import { resolve } from "node:path";
import { readAttachmentSettings } from "./attachment_config.ts";
import type { AttachmentSettings } from "./attachments/store.ts";
import { toFileReason } from "./file_failure.ts";
import { createAddressList } from "./http/address.ts";
import type { LogLevel } from "./log.ts";
import { findMisspelt, type Misspelt } from "./misspelt.ts";
import type { RetentionSettings } from "./rules/retention.ts";

export type Config = {
  port: number;
  host: string;
  /** Undefined: the built-in PostgreSQL in `dataDir`. */
  databaseUrl: string | undefined;
  dataDir: string;
  /** The public address without a trailing slash. Undefined: it is derived from the address that the server listens on. */
  publicUrl: string | undefined;
  /** 0: no limit. */
  rateLimitPerMinute: number;
  maxBodyBytes: number;
  maxInflatedBytes: number;
  /** Memory for all uploads together: three times `maxInflatedBytes` for the one that is being read, the rest for those that wait. */
  uploadMemoryBytes: number;
  /** The proxies whose X-Forwarded-For is believed. */
  trustProxy: BlockList;
  /** Private addresses that integrations may reach all the same. */
  outboundAllow: BlockList;
  /** The proxy of requests to integrations; may contain a password. Undefined: requests are direct. */
  outboundProxy: string | undefined;
  /** Origins whose pages may call the API from scripts, such as https://app.example.com. */
  corsOrigins: string[];
  /** The token required for /metrics. Undefined: the figures are public. */
  metricsToken: string | undefined;
  logLevel: LogLevel;
  /** Connections for statements, and as many again for transactions. */
  databasePool: number;
  /** Retention of results in days unless a project has its own; 0: unlimited. */
  retentionDays: number;
  /** How long executions and their runs are kept, at least as long as their results; 0: for ever. */
  executionRetentionDays: number;
  attachments: AttachmentSettings;
  /** 32 bytes that seal variables; undefined: a file in `dataDir` holds them, and is made when needed. */
  secretKey: Uint8Array | undefined;
  /** The previous SECRET_KEY. Values sealed with it are sealed again with the new one. */
  secretKeyOld: Uint8Array | undefined;
  /** Undefined: people sign in with passwords only. */
  oidc: OidcConfig | undefined;
  /** Whether people sign in with passwords. */
  passwordLogin: boolean;
  /** Variables with unknown names, and the names that were probably meant. */
  misspelt: Misspelt[];
};

export const retentionOf = (config: Config): RetentionSettings => ({
  results: config.retentionDays,
  attachments: config.attachments.retentionDays,
  executions: config.executionRetentionDays,
});

/** One OpenID Connect provider. */
export type OidcConfig = {
  /** The issuer as the provider names itself: https, or a server on this machine. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Domains whose verified addresses get an account; lower case. */
  allowedDomains: string[];
};

/** Every mistake at once, a line each. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

const LEVELS: readonly string[] = ["debug", "info", "warn", "error"] satisfies LogLevel[];
const MEBIBYTE = 1_048_576;

/** Whether the text is an address with nothing after the port, whose user and password can be decoded. */
function isProxy(text: string): boolean {
  if (!/^https?:\/\/[^\s/?#]+\/?$/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** Relative paths begin at `directory`. Throws ConfigError. */
export function readConfig(environment: Record<string, string | undefined>, directory = "."): Config {
  const variables = createVariables(environment, directory);
  const { read, integer, addresses } = variables;
  const databaseUrl = variables.confidential(
    "DATABASE_URL",
    (text) => /^postgres(ql)?:\/\//.test(text),
    "postgres://user:password@host:port/database",
  );
  const publicUrl = read("PUBLIC_URL");
  if (publicUrl !== undefined && !/^https?:\/\/[^/?#\s]+(\/[^?#\s]*)?$/.test(publicUrl))
    variables.refuse("PUBLIC_URL", "an http or https address without query");
  const outboundProxy = variables.confidential(
    "OUTBOUND_PROXY",
    isProxy,
    "http://host:port or https://user:password@host:port",
  );
  const metricsToken = variables.confidential(
    "METRICS_TOKEN",
    (text) => /^[\x21-\x7e]+$/.test(text),
    "ASCII characters without blanks",
  );
  const logLevel = read("LOG_LEVEL") ?? "info";
  if (!LEVELS.includes(logLevel)) variables.refuse("LOG_LEVEL", LEVELS.join(", "));
  if (read("SECRET_KEY") !== undefined && read("SECRET_KEY_FILE") !== undefined)
    variables.addMistake("Cannot read SECRET_KEY_FILE: SECRET_KEY is set as well");

  const maxBody = integer("MAX_BODY_MB", 32, 1, 1024);
  const maxInflated = integer("MAX_INFLATED_MB", 128, 1, 2048);
  // For the upload that is being read, and one that waits.
  const leastMemory = 3 * maxInflated + maxBody;

  const dataDir = resolve(directory, read("DATA_DIR") ?? "data");
  const config: Config = {
    port: integer("PORT", 8080, 0, 65_535),
    host: read("HOST") ?? "127.0.0.1",
    databaseUrl,
    dataDir,
    publicUrl: publicUrl?.replace(/\/+$/, ""),
    rateLimitPerMinute: integer("RATE_LIMIT_PER_MINUTE", 60, 0, 1_000_000),
    maxBodyBytes: maxBody * MEBIBYTE,
    maxInflatedBytes: maxInflated * MEBIBYTE,
    uploadMemoryBytes: integer("UPLOAD_MEMORY_MB", Math.max(512, leastMemory), leastMemory, 65_536) * MEBIBYTE,
    trustProxy: addresses("TRUST_PROXY"),
    outboundAllow: addresses("OUTBOUND_ALLOW"),
    outboundProxy,
    corsOrigins: readCorsOrigins(variables),
    metricsToken,
    logLevel: logLevel as LogLevel,
    databasePool: integer("DATABASE_POOL", 8, 1, 25),
    retentionDays: integer("RETENTION_DAYS", 90, 0, 36_500),
    executionRetentionDays: integer("EXECUTION_RETENTION_DAYS", 400, 0, 36_500),
    attachments: readAttachmentSettings(variables, dataDir),
    secretKey: variables.key("SECRET_KEY") ?? variables.keyInFile("SECRET_KEY_FILE"),
    secretKeyOld: variables.key("SECRET_KEY_OLD"),
    oidc: readOidc(variables),
    passwordLogin: readPasswordLogin(variables),
    misspelt: [],
  };
  // The client reads ASSAY_PUBLIC_URL.
  config.misspelt = findMisspelt(Object.keys(environment), [...variables.known, "ASSAY_PUBLIC_URL"]);
  variables.throwMistakes();
  return config;
}

const OIDC_NAMES = ["OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"] as const;

function readOidc({ read, refuse, addMistake }: Variables): OidcConfig | undefined {
  const allowedDomains = (
    read("OIDC_ALLOWED_DOMAINS")
      ?.toLowerCase()
      .split(/[\s,]+/) ?? []
  ).filter(Boolean);
  if (!allowedDomains.every((domain) => /^[^\s@.]+(\.[^\s@.]+)+$/.test(domain)))
    refuse("OIDC_ALLOWED_DOMAINS", "domains such as acme.example, with commas between them");
  const missing = OIDC_NAMES.filter((name) => read(name) === undefined);
  if (missing.length > 0) {
    // The allowed domains alone mean something only with a provider.
    const isMeant = missing.length < OIDC_NAMES.length || allowedDomains.length > 0;
    if (isMeant) addMistake(`Cannot use OpenID Connect: ${missing.join(" and ")} missing`);
    return undefined;
  }
  const [issuer, clientId, clientSecret] = OIDC_NAMES.map((name) => read(name)!) as [string, string, string];
  const isSafe = /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/|$))[^\s?#@]*$/i.test(issuer);
  if (!isSafe || !URL.canParse(issuer)) refuse("OIDC_ISSUER", "an https address without query");
  return { issuer, clientId, clientSecret, allowedDomains };
}

/** Whether the text is an origin as browsers send it. */
const isOrigin = (text: string): boolean =>
  /^https?:\/\/[a-z0-9.:[\]-]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;

function readCorsOrigins({ read, refuse }: Variables): string[] {
  const origins = (read("CORS_ORIGINS")?.split(/[\s,]+/) ?? []).filter(Boolean);
  if (!origins.every(isOrigin))
    refuse("CORS_ORIGINS", "origins such as https://app.example.com, with commas between them");
  return origins;
}

function readPasswordLogin({ read, refuse, addMistake }: Variables): boolean {
  const text = read("PASSWORD_LOGIN") ?? "true";
  if (text !== "true" && text !== "false") refuse("PASSWORD_LOGIN", `"true" or "false"`);
  if (text === "false" && read("OIDC_ISSUER") === undefined)
    addMistake("Cannot read PASSWORD_LOGIN: without OIDC_ISSUER nobody could sign in");
  return text !== "false";
}

type Variables = ReturnType<typeof createVariables>;

/** Reads variables by name and collects all mistakes. The value returned for an invalid variable must not be used. */
function createVariables(environment: Record<string, string | undefined>, directory: string) {
  const mistakes: string[] = [];
  const addMistake = (mistake: string) => void mistakes.push(mistake);
  const known = new Set<string>();
  // A variable that is set to nothing, as in `PORT= bun start`, is not set.
  const read = (name: string) => {
    known.add(name);
    return environment[name]?.trim() || undefined;
  };
  const refuse = (name: string, expected: string) =>
    addMistake(`Cannot read ${name}: expected ${expected}, got ${JSON.stringify(read(name))}`);

  /** 32 bytes in base64. The mistake does not quote the value. */
  function toKey(name: string, text: string | undefined): Uint8Array | undefined {
    if (text === undefined) return undefined;
    const bytes = Buffer.from(text.trim(), "base64");
    if (bytes.length === 32 && /^[\w+/-]{43}=?$/.test(text.trim())) return bytes;
    addMistake(`Cannot read ${name}: expected 32 bytes in base64, as "openssl rand -base64 32" prints them`);
    return undefined;
  }

  function readFile(name: string): string | undefined {
    const path = read(name);
    if (path === undefined) return undefined;
    try {
      return readFileSync(resolve(directory, path), "utf8");
    } catch (error) {
      addMistake(`Cannot read ${name}: "${path}": ${toFileReason(error, "read")}`);
      return undefined;
    }
  }

  return {
    known: known as ReadonlySet<string>,
    read,
    addMistake,
    refuse,
    integer(name: string, fallback: number, min: number, max: number): number {
      const text = read(name);
      if (text === undefined) return fallback;
      const value = Number(text);
      if (!/^\d+$/.test(text) || value < min || value > max) refuse(name, `an integer from ${min} to ${max}`);
      return value;
    },
    /** The value holds a secret, and so the mistake does not quote it. */
    confidential(name: string, isValid: (text: string) => boolean, expected: string): string | undefined {
      const text = read(name);
      if (text !== undefined && !isValid(text)) addMistake(`Cannot read ${name}: expected ${expected}`);
      return text;
    },
    addresses(name: string): BlockList {
      try {
        return createAddressList(read(name)?.split(/[\s,]+/) ?? []);
      } catch (error) {
        addMistake(`Cannot read ${name}: ${(error as Error).message}`);
        return createAddressList([]);
      }
    },
    key: (name: string) => toKey(name, read(name)),
    keyInFile: (name: string) => toKey(name, readFile(name)),
    throwMistakes(): void {
      if (mistakes.length > 0) throw new ConfigError(mistakes.join("\n"));
    },
  };
}
