/** All servers of a database seal with one key: the first decides, and another one does not start. */

import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { createHarness } from "../harness.ts";
import { forgetSecretKey, loadSecretKey } from "../../src/operations/projects/secret_key.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { selectSecretKeyDigest } from "../../src/store/instance.ts";
import { createPlace, removePlace } from "../places.ts";

const { database, acme, ask } = await createHarness({ ownDatabase: true });
const { pool, begin } = database;
const place = createPlace("secret-key");
afterAll(() => removePlace(place));

const [KEY, OTHER, THIRD] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(8), new Uint8Array(32).fill(9)];
const digestOf = (key: Uint8Array) => createSeal(key).keyDigest;
const NOT_THE_KEY =
  /^SECRET_KEY is not the key that this database is used with: give all its servers one SECRET_KEY .* as SECRET_KEY_OLD/;
/** A server that starts a moment later does not even make a key. */
const REFUSED = /^(SECRET_KEY is missing: the database |The file "[^"]+\/secret-key" is not the key that )/;

let count = 0;
const freshDirectory = () => join(place, String(count++));
const load = (more: { secretKey?: Uint8Array; secretKeyOld?: Uint8Array; dataDir?: string } = {}) =>
  loadSecretKey(pool, { secretKey: undefined, secretKeyOld: undefined, dataDir: freshDirectory(), ...more });

/** Seals a variable with the key of the harness, which is KEY. */
async function sealOne(): Promise<void> {
  const path = `/teams/${acme.team}/environments`;
  const { body } = await ask(`POST ${path}`, { key: acme.teamKey, body: { slug: `e${count++}` } });
  const put = { key: acme.teamKey, body: { value: "x" } };
  expect((await ask(`PUT ${path}/${body.id}/variables/TOKEN`, put)).status).toBe(201);
}

beforeEach(async () => {
  await pool`delete from variable`;
  await pool`update instance set secret_key_digest = null`;
});

test("of servers that start at once on a new database, each with a directory of its own, one decides", async () => {
  const directories = Array.from({ length: 6 }, freshDirectory);
  const starts = await Promise.allSettled(directories.map((dataDir) => load({ dataDir })));
  const started = directories.filter((_, index) => starts[index]!.status === "fulfilled");
  expect(started).toHaveLength(1);
  for (const start of starts) if (start.status === "rejected") expect(start.reason.message).toMatch(REFUSED);
  // It stays so, although nothing is sealed yet.
  for (const dataDir of directories) {
    if (dataDir === started[0]) expect(await load({ dataDir })).toBeDefined();
    else expect(load({ dataDir })).rejects.toThrow(REFUSED);
  }
});

test("a server without a key makes none for a database that is used with one", async () => {
  await load({ secretKey: KEY });
  const dataDir = freshDirectory();
  expect(load({ dataDir })).rejects.toThrow(/^SECRET_KEY is missing: the database is used with one/);
  expect(await Array.fromAsync(new Bun.Glob("**").scan({ cwd: place, dot: true }))).not.toContain(
    join(dataDir, "secret-key"),
  );
});

describe("the stored digest", () => {
  test("follows a rotation, both ways, and refuses the key before as soon as the new one is there", async () => {
    await load({ secretKey: KEY });
    expect(load({ secretKey: OTHER })).rejects.toThrow(NOT_THE_KEY);
    expect(load({ secretKey: OTHER, secretKeyOld: THIRD })).rejects.toThrow(NOT_THE_KEY);
    expect(await load({ secretKey: OTHER, secretKeyOld: KEY })).toEqual(OTHER);
    expect(await selectSecretKeyDigest(pool)).toBe(digestOf(OTHER));
    expect(load({ secretKey: KEY })).rejects.toThrow(NOT_THE_KEY);
    expect(await load({ secretKey: OTHER })).toEqual(OTHER);
    expect(await load({ secretKey: KEY, secretKeyOld: OTHER })).toEqual(KEY);
    expect(await selectSecretKeyDigest(pool)).toBe(digestOf(KEY));
  });

  test("is stored for a database that had none, unless its values are of another key", async () => {
    await sealOne();
    expect(load({ secretKey: OTHER })).rejects.toThrow("SECRET_KEY is not the key of 1 value");
    expect(await selectSecretKeyDigest(pool)).toBeNull();
    await load({ secretKey: KEY });
    expect(await selectSecretKeyDigest(pool)).toBe(digestOf(KEY));
  });

  test("is forgotten only while nothing is sealed", async () => {
    await load({ secretKey: KEY });
    await sealOne();
    expect(begin(forgetSecretKey)).rejects.toThrow("Cannot forget SECRET_KEY: the database holds 1 value");
    await pool`delete from variable`;
    await begin(forgetSecretKey);
    const dataDir = freshDirectory();
    const made = await load({ dataDir });
    expect(await selectSecretKeyDigest(pool)).toBe(digestOf(made));
    rmSync(dataDir, { recursive: true });
    expect(load({ dataDir })).rejects.toThrow("SECRET_KEY is missing");
  });

  test("is neither the key, nor a plain hash of it, nor what sealed values are marked with", () => {
    const { keyDigest, keyName } = createSeal(KEY);
    expect(keyDigest).toMatch(/^[0-9a-f]{32}$/);
    expect(keyDigest).not.toStartWith(keyName);
    for (const algorithm of ["sha256", "sha512", "sha1", "md5"] as const)
      expect(new Bun.CryptoHasher(algorithm).update(KEY).digest("hex")).not.toStartWith(keyDigest);
  });
});
