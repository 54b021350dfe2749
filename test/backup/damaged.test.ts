/** A backup file that was cut off or changed anywhere is refused with a sentence, and never taken for a whole one. */

import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, lstatSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { writeCompleteFile } from "../../src/backup/complete_file.ts";
import { type BackupHeader, BackupError, FIRST_LINE } from "../../src/backup/format.ts";
import { readBackup, readBackupHeader } from "../../src/backup/reader.ts";
import { type BackupWriter, compressTo, writeBackup } from "../../src/backup/writer.ts";
import { createPlace, removePlace } from "../places.ts";

const place = createPlace("damaged");
afterAll(() => removePlace(place));
const whole = join(place, "whole");
const file = join(place, "changed");

const HEADER: BackupHeader = {
  assay: "1.2.3",
  schema: 57,
  postgres: 18,
  takenAt: "2026-01-31T12:00:00.000Z",
  secretKeyDigest: "00ff",
  attachments: { content: "included" },
  tables: ["execution", "empty", "test_run"].map((name) => ({ name, columns: ["id", "name"] })),
  partitions: [],
  sequences: [],
};
const content = "a log\n".repeat(100);
const key = { projectId: Bun.randomUUIDv7(), sha256: new Bun.CryptoHasher("sha256").update(content).digest("hex") };
async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}
/** Random, so that it is not compressed to nothing. */
const rows = (count: number) =>
  Array.from({ length: count }, (_, index) => `${index}\t${crypto.randomUUID()}\n`).join("");

await writeBackup(whole, async (writer) => {
  await writer.header(HEADER);
  let count = await writer.table("execution", chunks(rows(150), rows(1)));
  count += await writer.table("empty", chunks());
  count += await writer.table("test_run", chunks(rows(3)));
  await writer.content(key, chunks(content));
  await writer.end({ tables: 3, rows: count, contents: 1, lost: 0 });
});
const bytes = readFileSync(whole);

async function refusalOf(changed: Uint8Array): Promise<string> {
  writeFileSync(file, changed);
  try {
    await readBackup(file);
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    return error.message.replace(`"${file}"`, "FILE");
  }
  return "none";
}

test("a whole file is read", async () => {
  const { header, totals } = await readBackup(whole);
  expect([header, totals]).toEqual([HEADER, { tables: 3, rows: 154, contents: 1, lost: 0 }]);
  expect(await readBackupHeader(whole)).toEqual(HEADER);
});

test("a file that is cut off anywhere is incomplete", async () => {
  const refusals = new Map<string, number>();
  for (let length = 1; length < bytes.byteLength; length += length < 100 ? 1 : 37) {
    const refusal = await refusalOf(bytes.subarray(0, length));
    refusals.set(refusal, length);
  }
  expect([...refusals.keys()]).toEqual([
    "Cannot read FILE: the file is incomplete, its end is missing, use another backup",
  ]);
  expect(await refusalOf(bytes.subarray(0, -1))).toContain("is incomplete");
});

test("a file that was changed anywhere is refused", async () => {
  for (let at = 0; at < bytes.byteLength; at += at < 100 ? 1 : 41) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1 << (at % 8);
    expect([at, await refusalOf(changed)]).toEqual([at, expect.stringMatching(/^Cannot read FILE: /)]);
  }
});

describe("a file is refused that", () => {
  test.each<[what: string, text: string, refusal: string]>([
    ["is empty", "", 'expected a backup of Assay, which begins with "ASSAY BACKUP"'],
    ["is something else", "PGDMP", 'expected a backup of Assay, which begins with "ASSAY BACKUP"'],
    ["is of a later format", "ASSAY BACKUP 2\nxyz", "a newer version of Assay wrote it, use that version"],
    ["has nothing after its first line", FIRST_LINE, "the file is incomplete, its end is missing, use another backup"],
  ])("%s", async (_, text, refusal) => {
    expect(await refusalOf(Buffer.from(text))).toBe(`Cannot read FILE: ${refusal}`);
  });

  test("has something behind its end", async () => {
    expect(await refusalOf(Buffer.concat([bytes, Buffer.from("more")]))).toContain("its end is missing");
    expect(await refusalOf(Buffer.concat([bytes, bytes.subarray(FIRST_LINE.length)]))).toContain("is damaged");
  });

  test("is not there", async () => {
    await expect(readBackup(join(place, "missing"))).rejects.toThrow(/^Cannot read ".*missing": it does not exist$/);
  });

  test("says less or other than it holds", async () => {
    const write = async (name: string, table: string, totals: { tables: number; rows: number }) => {
      await writeBackup(join(place, name), async (writer) => {
        await writer.header({ ...HEADER, tables: HEADER.tables.slice(0, 1) });
        await writer.table(table, chunks(rows(3)));
        await writer.end({ ...totals, contents: 0, lost: 0 });
      });
      return await refusalOf(readFileSync(join(place, name)));
    };
    expect(await write("right", "execution", { tables: 1, rows: 3 })).toBe("none");
    expect(await write("rows", "execution", { tables: 1, rows: 4 })).toContain("is damaged");
    expect(await write("tables", "execution", { tables: 2, rows: 3 })).toContain("is damaged");
    expect(await write("other", "attempt", { tables: 1, rows: 3 })).toContain("is damaged");
  });
});

test("a backup that fails leaves no file", async () => {
  const path = join(place, "failed");
  const failing = writeBackup(path, async (writer) => {
    await writer.header(HEADER);
    throw new Error("The database is away");
  });
  await expect(failing).rejects.toThrow("The database is away");
  expect([await Bun.file(path).exists(), await Bun.file(`${path}.partial`).exists()]).toEqual([false, false]);
});

test("a full disk ends a backup", async () => {
  const path = join(place, "full");
  // The device takes nothing: every write says that there is no space left.
  const full = await open("/dev/full", "w");
  const fill = async (writer: BackupWriter) => {
    await writer.header({ ...HEADER, tables: HEADER.tables.slice(0, 1) });
    for (let index = 0; index < 200; index++) await writer.table("execution", chunks(rows(1000)));
  };
  const writing = writeCompleteFile(path, () => compressTo(full, fill, undefined));
  await expect(writing).rejects.toThrow(`Cannot write "${path}": the disk is full`);
  await full.close();
  expect([existsSync(path), existsSync(`${path}.partial`)]).toEqual([false, false]);
});

test("a link with the name of the unfinished file is replaced, and not followed", async () => {
  const [path, other] = [join(place, "linked"), join(place, "other")];
  writeFileSync(other, "somebody's");
  symlinkSync(other, `${path}.partial`);
  await writeBackup(path, (writer) => writer.header(HEADER));
  expect(readFileSync(other, "utf8")).toBe("somebody's");
  const stats = lstatSync(path);
  expect([stats.isSymbolicLink(), stats.mode & 0o777]).toEqual([false, 0o600]);
});

test("of two that write to one name at once, the first is refused and leaves the file of the second alone", async () => {
  const path = join(place, "twice");
  const first = writeCompleteFile(path, async (handle) => {
    await handle.writeFile("first");
    await writeCompleteFile(path, (other) => other.writeFile("second"));
  });
  await expect(first).rejects.toThrow(`Cannot write "${path}": another process has begun to write it`);
  expect(readFileSync(path, "utf8")).toBe("second");
});
