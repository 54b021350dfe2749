/** Reads the lines of an export while they arrive, and detects an export that was truncated. */

import { EXPORT_VERSION, type ExportHeader } from "../schema/exports.ts";
import { toPlainLine } from "./output.ts";

/** The text is not a complete export. */
export class IncompleteExportError extends Error {
  override name = "IncompleteExportError";
}

/** Longer than any line of the server: a result has a bounded message, stack and output. */
const MAX_LINE_LENGTH = 64 * 2 ** 20;
const MAX_MESSAGE_LENGTH = 500;

export type ExportTotals = { takenAt: string; lines: number; counts: Record<string, number> };
type Line = Record<string, unknown> & { type: string };

/** `onLine` gets each line between the first and the last one. All functions throw IncompleteExportError. */
export function createExportLines(onLine: (line: Line) => void = () => {}) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const counts: Record<string, number> = {};
  let rest = "";
  let header: ExportHeader | undefined;
  let end: { counts: Record<string, number> } | undefined;
  let lines = 0;

  const fail = (reason: string): never => {
    throw new IncompleteExportError(`The export is not complete: ${reason}`);
  };

  function parse(text: string): Line {
    try {
      const line: unknown = JSON.parse(text);
      if (typeof (line as Line | null)?.type === "string") return line as Line;
    } catch {
      // Reported below, as any other line that is no object with a type.
    }
    return fail(`line ${lines} is not a JSON object with a type`);
  }

  function takeLine(text: string): void {
    lines++;
    if (end) fail(`line ${lines} follows the last line`);
    const line = parse(text);
    if (line.type === "error") fail(toPlainLine(String(line["message"]).slice(0, MAX_MESSAGE_LENGTH)));
    else if (!header) header = toHeader(line);
    else if (line.type === "end") end = line as unknown as typeof end;
    else {
      counts[line.type] = (counts[line.type] ?? 0) + 1;
      onLine(line);
    }
  }

  function toHeader(line: Line): ExportHeader {
    if (line.type !== "header" || line["format"] !== "assay-export")
      fail("it does not begin with the header of an export");
    const version = Number(line["version"]);
    if (version > EXPORT_VERSION)
      throw new IncompleteExportError(
        `Cannot read the export: it has version ${version} of the format, and this version of assay knows ${EXPORT_VERSION}`,
      );
    return line as unknown as ExportHeader;
  }

  function decode(chunk?: Uint8Array): string {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      return fail(`line ${lines + 1} is not UTF-8`);
    }
  }

  return {
    take(chunk: Uint8Array): void {
      const parts = decode(chunk).split("\n");
      parts[0] = rest + parts[0]!;
      rest = parts.pop()!;
      for (const part of parts) takeLine(part);
      if (rest.length > MAX_LINE_LENGTH) fail(`line ${lines + 1} is too long`);
    },

    /** Call this after the last chunk. */
    end(): ExportTotals {
      if (decode() + rest !== "") fail("its last line was cut");
      if (!header || !end) return fail(`it ends after ${lines} lines without its last line`);
      for (const type of new Set([...Object.keys(counts), ...Object.keys(end.counts ?? {})]))
        if (counts[type] !== end.counts?.[type])
          fail(
            `it has ${counts[type] ?? 0} lines of type "${toPlainLine(type)}", and its last line counts ${end.counts?.[type] ?? 0}`,
          );
      return { takenAt: String(header.takenAt), lines, counts };
    },
  };
}
