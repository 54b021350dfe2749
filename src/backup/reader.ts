/** Reads a backup file from its beginning to its end, and checks everything that it says about itself. */

import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createZstdDecompress } from "node:zlib";
import * as v from "valibot";
import {
  BackupError,
  type BackupHeader,
  backupHeader,
  type BackupTotals,
  contentStart,
  countRows,
  fileEnd,
  FIRST_LINE,
  LAST_LINE,
  LAST_LINE_BYTES,
  sectionEnd,
  tableStart,
} from "./format.ts";
import { toFileError } from "../file_failure.ts";
import { decodeFrames, type BackupFrame } from "./frames.ts";

/** Takes the data of a table or of a content. */
export type SectionSink = {
  write(chunk: Uint8Array): Promise<void>;
  /** `isIntact`: whether a content has the digest that its key names; always true for a table. `rows` are those of a table. */
  end(section: { isIntact: boolean; rows: number }): Promise<void>;
  /** The rest of the data does not come. */
  abort(): Promise<void> | void;
};

type BackupVisitor = {
  header(header: BackupHeader): Promise<void> | void;
  table(name: string): Promise<SectionSink> | SectionSink;
  content(key: { projectId: string; sha256: string }): Promise<SectionSink> | SectionSink;
};

const IGNORED: SectionSink = { write: async () => {}, end: async () => {}, abort: () => {} };
const IGNORING: BackupVisitor = { header: () => {}, table: () => IGNORED, content: () => IGNORED };

/**
 * Calls `visitor` with the contents of a file, in order. They are only known to be complete when this resolves. Throws BackupError for a
 * file that is damaged, incomplete or no backup; errors of `visitor` are thrown as they are.
 */
export async function readBackup(
  path: string,
  visitor: BackupVisitor = IGNORING,
  signal?: AbortSignal,
): Promise<{ header: BackupHeader; totals: BackupTotals }> {
  const frames = openFrames(path, signal);
  try {
    const header = await readHeader(path, frames);
    await visitor.header(header);
    const totals = await readSections(path, { header, frames, visitor });
    if ((await frames.next()).done !== true) throw damaged(path);
    return { header, totals };
  } finally {
    await frames.return(undefined);
  }
}

/** Throws BackupError. */
export async function readBackupHeader(path: string): Promise<BackupHeader> {
  const frames = openFrames(path);
  try {
    return await readHeader(path, frames);
  } finally {
    await frames.return(undefined);
  }
}

const damaged = (path: string, where = "") =>
  new BackupError(`Cannot read "${path}": the file is damaged${where}, use another backup`);
const toBackupError = (error: unknown, path: string) =>
  new BackupError(toFileError(error, "read", path).message, { cause: error });
const incomplete = (path: string) =>
  new BackupError(`Cannot read "${path}": the file is incomplete, its end is missing, use another backup`);

async function* openFrames(path: string, signal?: AbortSignal): AsyncGenerator<BackupFrame> {
  const { end, digest } = await readLastLine(path);
  const file = createReadStream(path, { start: FIRST_LINE.length, end: end - 1 });
  const hash = new Bun.CryptoHasher("sha256").update(FIRST_LINE);
  file.on("data", (chunk) => hash.update(chunk));
  const zstd = createZstdDecompress();
  file.on("error", (error) => zstd.destroy(error));
  file.pipe(zstd);
  try {
    for await (const frame of decodeFrames(zstd as AsyncIterable<Uint8Array>)) {
      signal?.throwIfAborted();
      yield frame;
    }
    if (hash.digest("hex") !== digest) throw damaged(path);
  } catch (error) {
    if (signal?.aborted) throw error;
    if (/^E[A-Z]+$/.test((error as { code?: string }).code ?? "")) throw toBackupError(error, path);
    throw damaged(path);
  } finally {
    file.destroy();
    zstd.destroy();
  }
}

/** Returns where the compressed part ends, and the digest of all before. A file that was cut off has no last line. */
async function readLastLine(path: string): Promise<{ end: number; digest: string }> {
  const handle = await open(path, "r").catch((error: Error) => {
    throw toBackupError(error, path);
  });
  const read = async (at: number, length: number) => {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, at);
    return buffer.toString("latin1", 0, bytesRead);
  };
  try {
    const { size } = await handle.stat();
    const firstLine = await read(0, FIRST_LINE.length);
    if (firstLine !== FIRST_LINE) throw refuseFirstLine(path, firstLine);
    const end = size - LAST_LINE_BYTES;
    const [, digest] = end > FIRST_LINE.length ? (LAST_LINE.exec(await read(end, LAST_LINE_BYTES)) ?? []) : [];
    if (digest === undefined) throw incomplete(path);
    return { end, digest };
  } catch (error) {
    if (error instanceof BackupError) throw error;
    throw toBackupError(error, path);
  } finally {
    await handle.close();
  }
}

function refuseFirstLine(path: string, line: string): BackupError {
  if (line !== "" && FIRST_LINE.startsWith(line)) return incomplete(path);
  if (/^ASSAY BACKUP \d+/.test(line))
    return new BackupError(`Cannot read "${path}": a newer version of Assay wrote it, use that version`);
  return new BackupError(`Cannot read "${path}": expected a backup of Assay, which begins with "ASSAY BACKUP"`);
}

async function next(path: string, frames: AsyncGenerator<BackupFrame>): Promise<BackupFrame> {
  const { value, done } = await frames.next();
  if (done) throw damaged(path);
  return value;
}

async function nextJson(path: string, frames: AsyncGenerator<BackupFrame>): Promise<unknown> {
  const { kind, payload } = await next(path, frames);
  if (kind !== "json") throw damaged(path);
  return JSON.parse(Buffer.from(payload).toString("utf8"));
}

async function readHeader(path: string, frames: AsyncGenerator<BackupFrame>): Promise<BackupHeader> {
  const parsed = v.safeParse(backupHeader, await nextJson(path, frames));
  if (!parsed.success) throw damaged(path, " in its header");
  return parsed.output;
}

type Reading = { header: BackupHeader; frames: AsyncGenerator<BackupFrame>; visitor: BackupVisitor };

async function readSections(path: string, { header, frames, visitor }: Reading): Promise<BackupTotals> {
  const tables = header.tables.map(({ name }) => name);
  const read = { tables: 0, rows: 0, contents: 0 };
  let damagedContents = 0;
  for (;;) {
    const start = await nextJson(path, frames);
    if (v.is(tableStart, start)) {
      if (tables[read.tables] !== start.table) throw damaged(path);
      const where = ` in the table "${start.table}"`;
      read.rows += (await readSection(path, frames, await visitor.table(start.table), { where })).rows;
      read.tables++;
    } else if (v.is(contentStart, start)) {
      const { sha256 } = start.content;
      const where = ` in the attachment with SHA-256 ${sha256}`;
      const { isIntact } = await readSection(path, frames, await visitor.content(start.content), { where, sha256 });
      read.contents++;
      if (!isIntact) damagedContents++;
    } else if (v.is(fileEnd, start)) {
      const { end } = start;
      if (read.tables !== tables.length || !Bun.deepEquals(end, { ...read, lost: end.lost })) throw damaged(path);
      // The backup counts what was damaged in its store already.
      if (damagedContents > end.lost) throw damaged(path, " in its attachments");
      return end;
    } else throw damaged(path);
  }
}

/** `sha256`: the digest that a content must have to be intact. */
async function readSection(
  path: string,
  frames: AsyncGenerator<BackupFrame>,
  sink: SectionSink,
  { where, sha256 }: { where: string; sha256?: string },
): Promise<{ isIntact: boolean; rows: number }> {
  try {
    const hash = new Bun.CryptoHasher("sha256");
    let [rows, bytes] = [0, 0];
    for (;;) {
      const { kind, payload } = await next(path, frames);
      if (kind === "data") {
        hash.update(payload);
        bytes += payload.byteLength;
        if (sha256 === undefined) rows += countRows(payload);
        await sink.write(payload);
        continue;
      }
      const end = v.safeParse(sectionEnd, JSON.parse(Buffer.from(payload).toString("utf8")));
      const digest = hash.digest("hex");
      const expected = { bytes, ...(sha256 === undefined ? { rows } : {}), sha256: digest };
      if (!end.success || !Bun.deepEquals(end.output, expected)) throw damaged(path, where);
      const section = { isIntact: sha256 === undefined || sha256 === digest, rows };
      await sink.end(section);
      return section;
    }
  } catch (error) {
    await sink.abort();
    throw error;
  }
}
