/** Reads parts of DATABASE_URL that the driver does not support: Unix sockets, and certificate files, with the names of libpq. */

import { readFileSync } from "node:fs";
import type { Options } from "postgres";

type DriverOptions = Pick<Options<{}>, "host" | "port" | "username" | "password" | "database" | "ssl">;

/** Names of libpq, and those of the driver. */
const NAMES = {
  host: "host",
  port: "port",
  user: "username",
  password: "password",
  dbname: "database",
} as const;
/** Parameters that name files, in PEM or DER. */
const FILES = { sslrootcert: "ca", sslcert: "cert", sslkey: "key" } as const;

/** Parameters override the parts of the URL. Throws an Error that holds nothing of the URL but paths of files. */
export function readDatabaseUrl(text: string): { url: string; options: DriverOptions } {
  const { base, query, socket } = parse(text);
  const take = (name: string): string | undefined => {
    const value = query.get(name) ?? undefined;
    query.delete(name);
    return value;
  };
  const options: Record<string, unknown> = { ...socket };
  for (const [name, option] of Object.entries(NAMES)) {
    const value = take(name);
    if (value) options[option] = option === "port" ? Number(value) : value;
  }
  const files: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(FILES)) {
    const path = take(name);
    if (path && path !== "system") files[option] = read(name, path);
    else if (path) files["rejectUnauthorized"] = true;
  }
  const passphrase = take("sslpassword");
  if (Object.keys(files).length > 0)
    options["ssl"] = toSsl(take("sslmode"), { ...files, ...(passphrase ? { passphrase } : {}) });
  return { url: query.size > 0 ? `${base}?${query}` : base, options: options as DriverOptions };
}

const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?$/;

/** `socket` where the host is the directory of one. */
function parse(text: string): { base: string; query: URLSearchParams; socket: DriverOptions } {
  const [, scheme = "", credentials = "", hosts = "", path = "", query = ""] = PARTS.exec(text) ?? [];
  const [, directory, port] = /^(%2F[^:]*)(?::(\d+))?$/i.exec(hosts) ?? [];
  // After credentials libpq takes an empty host, which is none of a URL's.
  const shown = directory !== undefined || (credentials !== "" && hosts === "") ? "localhost" : hosts;
  // An error of the URL parser would quote the password.
  if (!shown.split(",").every((host) => URL.canParse(`${scheme}${credentials}${host}${path}`)))
    throw new Error("Cannot read DATABASE_URL: expected postgres://user:password@host:port/database, percent-encoded");
  const socket: Record<string, unknown> = directory === undefined ? {} : { host: decodeURIComponent(directory) };
  if (port !== undefined) socket["port"] = Number(port);
  return { base: `${scheme}${credentials}${shown}${path}`, query: new URLSearchParams(query), socket };
}

function read(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`Cannot read DATABASE_URL: ${name}: ${(error as Error).message}`);
  }
}

/** Follows libpq: with a root certificate "require" verifies the chain, and "verify-full" also verifies the host name. */
function toSsl(mode: string | undefined, files: Record<string, unknown>): Record<string, unknown> | false {
  if (mode === "disable") return false;
  const isVerified = mode === "verify-ca" || mode === "verify-full" || "ca" in files || "rejectUnauthorized" in files;
  const isNamed = mode === "verify-full" || "rejectUnauthorized" in files;
  return {
    ...files,
    rejectUnauthorized: isVerified,
    ...(isVerified && !isNamed ? { checkServerIdentity: () => undefined } : {}),
  };
}
