/** Copies whole tables out of the database and into it, as streams in the text format of COPY, which all versions read. */

import { finished } from "node:stream/promises";
import type { Tx } from "./connect.ts";
import { type Table, toNameList } from "./relations.ts";

/** The driver hands out a chunk for each row: that many bytes are joined. */
const CHUNK_BYTES = 256 * 1024;

/** Yields the rows of a table; every row ends with a line feed, and no line feed occurs within a row. */
export async function* copyOut(sql: Tx, { name, columns }: Table): AsyncGenerator<Buffer> {
  const rows = await sql`copy ${sql(name)} (${toNameList(sql, columns)}) to stdout`.readable();
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const row of rows as AsyncIterable<Buffer>) {
    parts.push(row);
    bytes += row.byteLength;
    if (bytes < CHUNK_BYTES) continue;
    yield Buffer.concat(parts);
    [parts, bytes] = [[], 0];
  }
  if (bytes > 0) yield Buffer.concat(parts);
}

type CopyIn = {
  write(chunk: Uint8Array): Promise<void>;
  /** Resolves when the rows are in the table. */
  end(): Promise<void>;
  /** Ends the COPY with an error; the transaction can only be rolled back. */
  abort(): void;
};

export async function copyIn(sql: Tx, { name, columns }: Table): Promise<CopyIn> {
  const stream = await sql`copy ${sql(name)} (${toNameList(sql, columns)}) from stdin`.writable();
  const done = finished(stream);
  // The next write awaits it; until then no one handles its rejection.
  done.catch(() => {});
  return {
    async write(chunk) {
      if (stream.destroyed) return await done;
      if (stream.write(chunk)) return;
      const { promise: drained, resolve } = Promise.withResolvers<void>();
      stream.once("drain", resolve);
      await Promise.race([drained, done]);
      stream.off("drain", resolve);
    },
    async end() {
      stream.end();
      await done;
    },
    abort: () => void stream.destroy(new Error("The copy was aborted")),
  };
}
