import { afterAll, expect, test } from "bun:test";
import { chownSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createSecretKey } from "../../../src/secrets/secret_key.ts";
import { createPlace, removePlace } from "../../places.ts";

const place = createPlace("secret-key");
afterAll(() => removePlace(place));

const SOURCE = JSON.stringify(join(import.meta.dir, "../../../src/secrets/secret_key.ts"));

test("servers that start at once on an empty directory have one key, and none reads half of it", async () => {
  const script = `
    const { createSecretKey, readSecretKey } = await import(${SOURCE});
    const keys = [];
    for (let index = 0; index < 200; index++) {
      const file = process.argv[1] + "/" + index + "/secret-key";
      keys.push(Buffer.from(readSecretKey(file) ?? createSecretKey(file)).toString("base64"));
    }
    console.log(keys.join());`;
  const servers = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, "-e", script, place], { stdout: "pipe", stderr: "pipe" }),
  );
  const told = await Promise.all(servers.map(({ stdout }) => new Response(stdout).text()));
  expect(told[0]!.split(",")).toHaveLength(200);
  expect(new Set(told).size).toBe(1);
  expect(readdirSync(join(place, "7"))).toEqual(["secret-key"]);
  expect(statSync(join(place, "7/secret-key")).mode & 0o777).toBe(0o600);
});

test.skipIf(process.getuid?.() !== 0)("a key that root creates belongs to the owner of its directory", () => {
  const directory = join(place, "of another account");
  mkdirSync(directory);
  chownSync(directory, 12_345, 12_346);
  createSecretKey(join(directory, "secret-key"));
  const { uid, gid, mode } = statSync(join(directory, "secret-key"));
  expect([uid, gid, mode & 0o777]).toEqual([12_345, 12_346, 0o600]);
});
