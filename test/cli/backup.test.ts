/** `assay backup` and `assay restore`: verified, interrupted halfway, with a wrong key, and quiet. */

import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "../../src/database/connect.ts";
import type { ContentKey } from "../../src/attachments/content.ts";
import { readBackup, type SectionSink } from "../../src/backup/reader.ts";
import { writeBackup } from "../../src/backup/writer.ts";
import { selectRelationCount } from "../../src/database/relations.ts";
import { backUpHalfway } from "../backups.ts";
import { run, start, type Variables } from "../commands.ts";
import { createEverything } from "../everything.ts";
import { createBareDatabase, createHarness, SECRET_KEY, databaseVariables } from "../harness.ts";
import { createPlace, removePlace } from "../places.ts";
import { claimSecretKeyDigest } from "../../src/store/instance.ts";
import { createSeal } from "../../src/secrets/seal.ts";

setDefaultTimeout(60_000);
const ROOT = join(import.meta.dir, "../..");
const place = createPlace("backup-cli");
afterAll(() => removePlace(place));
const directory = join(place, "data/attachments");
const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"], attachments: { directory } });
const { database, connection } = harness;
await createEverything(harness);
await claimSecretKeyDigest(database.pool, createSeal(SECRET_KEY).keyDigest, []);
const fingerprint = createSeal(SECRET_KEY).keyDigest.slice(0, 16);
const key = { SECRET_KEY: Buffer.from(SECRET_KEY).toString("base64") };

const here = { ...databaseVariables(connection), DATA_DIR: join(place, "data") };
const assay = (args: string[], env: Variables = here) => run(args, { env });
/** A backup of everything, which the tests verify and restore. */
const one = join(place, "one.assay");
const written = await assay(["backup", one]);

describe("assay backup", () => {
  test("writes a file that can be verified without a database", async () => {
    expect([written.code, written.errors]).toEqual([0, ""]);
    expect(written.output).toMatch(
      new RegExp(
        `^Backed up \\d+ tables with \\d+ rows and 8 attachments to ".*one.assay": ${statSync(one).size} bytes\n` +
          `To restore it, the secret key with the fingerprint ${fingerprint} is needed\n$`,
      ),
    );
    expect(statSync(one).mode & 0o777).toBe(0o600);
    const verified = await assay(["backup", "--verify", one, "--json"], { DATA_DIR: join(place, "none") });
    expect(JSON.parse(verified.output)).toMatchObject({ contents: 8, lost: 0, secretKeyFingerprint: fingerprint });
    expect(existsSync(join(place, "none"))).toBe(false);
    expect((await Bun.file(one).bytes()).includes(0)).toBe(true);
  });

  test("fails where the content of all attachments is missing", async () => {
    const file = join(place, "elsewhere.assay");
    const elsewhere = await assay(["backup", file], { ...here, DATA_DIR: join(place, "elsewhere") });
    expect(elsewhere).toEqual({
      ...{ code: 1, output: "" },
      errors: expect.stringMatching(
        /^The content of all attachments is missing: set DATA_DIR to the value that the server uses/,
      ),
    });
    expect(existsSync(file)).toBe(false);
  });

  test("leaves attachments out on request", async () => {
    const file = join(place, "small.assay");
    const { output } = await assay(["backup", file, "--without-attachments", "--json"]);
    expect(JSON.parse(output)).toMatchObject({ contents: 0, attachments: { content: "omitted" } });
  });

  test.each<[args: string[], code: number, error: string]>([
    [["backup"], 2, "Expected one file, got 0"],
    [["backup", "a", "b"], 2, "Expected one file, got 2"],
    [["backup", "--verify", "--without-attachments", "a"], 2, "backup takes either --verify or --without-attachments"],
    [["backup", join(place, "missing/file")], 1, `missing/file": its directory does not exist`],
    [["backup", place], 1, `Cannot write "${place}": the file exists already`],
    [["backup", "--verify", join(ROOT, "package.json")], 1, "expected a backup of Assay"],
  ])("%p is refused", async (args, code, error) => {
    const { errors, ...answer } = await assay(args);
    expect(answer).toEqual({ code, output: "" });
    expect(errors).toContain(error);
  });

  test("that is interrupted halfway leaves no file of that name, and is not in the way of the next", async () => {
    const file = join(place, "interrupted.assay");
    const backup = await backUpHalfway({ database, connection }, file, () => start(["backup", file], { env: here }));
    backup.signal("SIGTERM");
    backup.release();
    expect(await backup.ended).toMatchObject({ code: 1, errors: "Interrupted: nothing was kept\n" });
    expect(existsSync(file)).toBe(false);
    await backup.settled();
    expect((await assay(["backup", file])).code).toBe(0);
    expect(readdirSync(place).filter((name) => name.endsWith(".partial"))).toEqual([]);
  });

  test("beside another backup is refused", async () => {
    const file = join(place, "first.assay");
    const first = await backUpHalfway({ database, connection }, file, () => start(["backup", file], { env: here }));
    const second = await assay(["backup", join(place, "second.assay")]);
    expect(second.errors).toBe("Another backup of this database is running: wait until it ends\n");
    first.release();
    expect((await first.ended).code).toBe(0);
  });
});

describe("assay admin quiet", () => {
  test("makes a server quiet that was restored otherwise, and revokes what it is asked to", async () => {
    const bare = await createBareDatabase();
    const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, "other-tool") };
    expect((await assay(["restore", one, "--as-of-backup"], there)).code).toBe(0);
    const admin = async (...args: string[]) => JSON.parse((await assay(["admin", ...args, "--json"], there)).output);
    const isQuiet = async () =>
      (await bare.database.pool<{ quiet: boolean }[]>`select quiet_since is not null as quiet from instance`)[0]!.quiet;
    expect(await admin("resume", "--discard-pending")).toMatchObject({
      resumed: true,
      discardedEvents: expect.any(Number),
    });
    expect(await isQuiet()).toBe(false);
    expect(await admin("quiet")).toEqual({ quiet: true });
    expect(await isQuiet()).toBe(true);
    expect(await admin("quiet", "--revoke-all")).toMatchObject({ quiet: true, shares: 3, invitations: 1 });
    expect(await admin("quiet", "--revoke-all")).toEqual({
      quiet: true,
      keys: 0,
      sessions: 0,
      shares: 0,
      invitations: 0,
    });
  });
});

describe("assay restore", () => {
  test("writes nothing without the key of the backup", async () => {
    const bare = await createBareDatabase();
    const dataDir = join(place, "without-key");
    const there = { ...databaseVariables(bare.connection), DATA_DIR: dataDir };
    const none = await assay(["restore", one], there);
    expect(none).toEqual({
      code: 1,
      output: "",
      errors: expect.stringContaining(`with the fingerprint ${fingerprint}: set`),
    });
    expect(await selectRelationCount(bare.database.pool)).toBe(0);
    expect(existsSync(dataDir)).toBe(false);
  });

  test("gives the rows of the backup, revokes what may have been revoked since, and takes no database that is in use", async () => {
    const bare = await createBareDatabase();
    const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, "restored") };
    const restored = await assay(["restore", one], there);
    expect([restored.code, restored.errors]).toEqual([0, ""]);
    expect(restored.output).toContain('The server will be quiet until "assay admin resume"\n');
    expect(restored.output).toMatch(/^Revoked keys: [1-9]\d*, sessions: [1-9]\d*, invitations: 1, shared links: 3$/m);
    const count = ({ pool }: Database) => pool`select count(*)::int as count from case_result`;
    expect([...(await count(bare.database))]).toEqual([...(await count(database))]);
    const again = await assay(["restore", one], there);
    expect(again).toEqual({ code: 1, output: "", errors: expect.stringContaining("the database is not empty") });
  });
  type Change = {
    table?: (name: string, rows: string) => string;
    contents?: (contents: { key: ContentKey; bytes: Buffer }[]) => { key: ContentKey; bytes: Buffer }[];
  };

  /** Writes the backup again, with other contents, so that everything that it says about itself is right. */
  async function rewrite(file: string, { table = (_, rows) => rows, contents = (all) => all }: Change): Promise<void> {
    const tables: [name: string, rows: Buffer][] = [];
    const files: { key: ContentKey; bytes: Buffer }[] = [];
    const collect = (onEnd: (bytes: Buffer) => void): SectionSink => {
      const chunks: Uint8Array[] = [];
      return {
        write: async (chunk) => void chunks.push(Uint8Array.from(chunk)),
        end: async () => onEnd(Buffer.concat(chunks)),
        abort: () => {},
      };
    };
    const { header } = await readBackup(one, {
      header: () => {},
      table: (name) => collect((rows) => tables.push([name, rows])),
      content: (key) => collect((bytes) => files.push({ key, bytes })),
    });
    async function* chunk(data: string | Buffer) {
      yield Buffer.from(data as string);
    }
    await writeBackup(file, async (writer) => {
      await writer.header(header);
      const changed = contents(files);
      let rows = 0;
      for (const [name, old] of tables) rows += await writer.table(name, chunk(table(name, old.toString())));
      for (const { key, bytes } of changed) await writer.content(key, chunk(bytes));
      await writer.end({ tables: tables.length, rows, contents: changed.length, lost: 0 });
    });
  }

  const foreign = { projectId: "01a00000-0000-7000-8000-000000000000", sha256: Bun.SHA256.hash("x", "hex") as string };
  test.each<[what: string, change: Change, error: RegExp]>([
    ["nothing changed", {}, /^$/],
    [
      "a line that ends a COPY",
      { table: (name, rows) => (name === "test_case" ? rows.replace(/\n/, "\n\\.\n") : rows) },
      /the table "test_case" has \d+ rows in the file, and PostgreSQL accepted 1 of them/,
    ],
    [
      "content of no attachment",
      { contents: (all) => [...all, { key: foreign, bytes: Buffer.from("x") }] },
      /it has content with SHA-256 2d711642\w+ that is no attachment of the project 01a00000/,
    ],
    [
      "content of another digest",
      { contents: ([first, ...rest]) => [{ ...first!, bytes: Buffer.from("x") }, ...rest] },
      /the file is damaged in its attachments/,
    ],
  ])("restores all of a file or nothing of it: %s", async (what, change, error) => {
    const file = join(place, `${what}.assay`);
    await rewrite(file, change);
    const bare = await createBareDatabase();
    const there = { ...databaseVariables(bare.connection), ...key, DATA_DIR: join(place, what) };
    const { code, errors } = await assay(["restore", file], there);
    expect(errors).toMatch(error);
    const isRestored = errors === "";
    expect(code).toBe(isRestored ? 0 : 1);
    expect((await selectRelationCount(bare.database.pool)) > 0).toBe(isRestored);
  });
});
