/** DATABASE_URL names a Unix socket and files of certificates as libpq's does. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../../src/database/connect.ts";
import { readDatabaseUrl } from "../../src/database/database_url.ts";
import { createDatabase } from "../harness.ts";

const { connection } = await createDatabase();
const { host, port, username, password, database } = connection as Record<string, string>;

async function nameThrough(url: string): Promise<unknown> {
  const database = connect({ url }, 1);
  try {
    return (await database.pool`select current_database() as name`)[0]!["name"];
  } finally {
    await database.close();
  }
}

test.each(
  [
    `postgres://${username}:${password}@/${database}?host=${host}&port=${port}`,
    `postgres://${username}:${password}@localhost/${database}?host=${host}&port=${port}`,
    `postgresql:///${database}?host=${host}&port=${port}&user=${username}&password=${password}`,
    `postgres://${username}:${password}@${encodeURIComponent(host!)}:${port}/${database}`,
    `postgres://?host=${host}&port=${port}&user=${username}&password=${password}&dbname=${database}`,
  ].map((url, index) => [index, url] as const),
)("a socket may be named as libpq has it (%i)", async (_, url) => {
  expect(await nameThrough(url)).toBe(database);
});

test("what the driver knows is left to it", () => {
  const url = "postgres://u:p%40@a.example:1,b.example:2/db?sslmode=require&target_session_attrs=read-write";
  expect(readDatabaseUrl(url)).toEqual({ url, options: {} });
});

test("certificates are named as libpq has them, and verified as much", () => {
  const file = (name: string) => join(import.meta.dir, "../fixtures", name);
  const [cert, key] = [file("tls_certificate.pem"), file("tls_key.pem")];
  const optionsOf = (query: string) => readDatabaseUrl(`postgres://u@h/db?${query}`);
  const mine = { cert: readFileSync(cert), key: readFileSync(key) };
  const client = `sslcert=${cert}&sslkey=${key}`;
  expect(optionsOf(`${client}&sslpassword=p`)).toEqual({
    url: "postgres://u@h/db",
    options: { ssl: { ...mine, passphrase: "p", rejectUnauthorized: false } as never },
  });
  const verified = { rejectUnauthorized: true, checkServerIdentity: expect.any(Function) };
  const ca = { ca: readFileSync(cert) };
  for (const [query, ssl] of [
    [`sslmode=require&${client}`, { ...mine, rejectUnauthorized: false }],
    [`sslmode=require&sslrootcert=${cert}`, { ...ca, ...verified }],
    [`sslmode=verify-ca&sslrootcert=${cert}`, { ...ca, ...verified }],
    [`sslmode=verify-full&sslrootcert=${cert}`, { ...ca, rejectUnauthorized: true }],
    [`sslmode=verify-full&${client}`, { ...mine, rejectUnauthorized: true }],
    ["sslrootcert=system", { rejectUnauthorized: true }],
    [`sslmode=disable&${client}`, false],
  ] as const)
    expect([query, optionsOf(query).options.ssl]).toEqual([query, ssl as never]);
});

test("what is wrong is said without the password", () => {
  for (const url of [
    "postgres://u:hunter2@[/db",
    "postgres://u:hunter2@h:99999/db",
    "postgres://u:hunter2@h/db?sslkey=/none",
  ]) {
    let message = "";
    try {
      connect({ url }, 1);
    } catch (error) {
      message = String(error);
    }
    expect(message).toStartWith("Error: Cannot read DATABASE_URL: ");
    expect(message).not.toContain("hunter2");
  }
});
