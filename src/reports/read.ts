/** Reads any test report: unpacks it, recognises its format and hands it to the one file that knows that format. */

import { mergeReports, tooManyTogether } from "./merge_reports.ts";
import { findBeginning, readParts, recogniseSource } from "./parts.ts";
import { type Reader, READERS } from "./readers.ts";
import { emptyReport, type Report, ReportError } from "./report.ts";
import { NO_TEXT, type Source, toRefusal, toSource, toText } from "./source.ts";
import { completeFailure } from "./failure_message.ts";
import { cut, MAX_CASES } from "./text.ts";
import { openResources, unpack } from "./unpack.ts";

/** The default of `MAX_INFLATED_MB`, in bytes: what the command reads without a server. */
export const DEFAULT_MAX_INFLATED_BYTES = 128 * 2 ** 20;

/**
 * Reads several files as one report. `format` names one of READERS and overrides recognition; `maxInflatedBytes` limits all files together,
 * and is set with `variable`; `mayBeEmpty`: an empty file is a report without test cases, which is "absent" if there was no file. `attempts`:
 * the run of the tests that each file is from. The bytes of `files` are released while they are read. Throws a ReportError with the file,
 * the location in it, and the reason.
 */
export function readReport(files: { name: string; bytes: Uint8Array }[], options: ReadOptions): Report {
  if (files.length === 0) throw new ReportError("Cannot read the report: there is no file");
  const { attempts } = options;
  if (attempts && attempts.length !== files.length)
    throw new ReportError(
      `Cannot read "attempts": expected a number for each of ${files.length} files, got ${attempts.length}`,
    );
  const forced = options.format === undefined ? null : findReader(options.format);
  let room = options.maxInflatedBytes;
  let count = 0;
  const reports: [string, Report][] = [];
  const rounds: number[] = [];
  const together = new Map<string, Group>();
  // Surefire writes the text of a test set beside its XML, which has all tests.
  const names = new Set(files.map(({ name }) => name));
  const add = (name: string, report: Report, round: number) => {
    reports.push([name, report]);
    rounds.push(round);
  };
  for (const [index, file] of files.entries()) {
    const { name } = file;
    const round = attempts?.[index] ?? 0;
    if (name.endsWith(".txt") && names.has(name.replace(/([^/\\]+)\.txt$/, "TEST-$1.xml"))) continue;
    const naming = <T>(read: () => T): T => withName(name, files.length > 1, read);
    const resources = naming(() => openResources(file.bytes));
    const { text, binary, size } = naming(() => readText(file.bytes, room, options));
    room -= size;
    if (options.mayBeEmpty && size < 1_000 && (text ?? "").trim() === "" && binary === null) {
      add(name, options.mayBeEmpty === "absent" ? ABSENT : EMPTY, round);
      continue;
    }
    // The text is a second copy, and the tree of a large one takes several times as much memory.
    file.bytes = NOTHING;
    if (size > LARGE_BYTES) Bun.gc(true);
    const written = { ...naming(() => toWritten(text, binary)), resources };
    const { reader, source } = forced
      ? { reader: forced, source: written }
      : naming(() => recognise(written, text ?? ""));
    const { read } = reader;
    if (typeof read !== "function" && source !== written)
      naming(() => {
        throw written.fault!;
      });
    if (typeof read !== "function") {
      const group = together.get(`${reader.name} ${round}`) ?? { read, round, sources: [] };
      together.set(`${reader.name} ${round}`, group);
      group.sources.push([name, source]);
    } else if (source.binary)
      add(
        name,
        naming(() => readOne(reader, source)),
        round,
      );
    else
      for (const { line, report } of naming(() => readParts(written.text, reader, source, readOne))) {
        add(line === 1 ? name : `${cut(name, 200)}, line ${line}`, report, round);
        count += report.cases.length;
      }
    // A retry has cases of another file, which are attempts when all are merged.
    if (count > 2 * MAX_CASES) throw tooManyTogether();
  }
  for (const { read, round, sources } of together.values()) {
    const [name] = sources[0]!;
    const report = withName(name, files.length > 1, () => read.together(sources.map(([, source]) => source)));
    add(name, report, round);
  }
  for (const [, { cases }] of reports)
    for (const one of cases) if (one.status === "failed" || one.flaky) completeFailure(one);
  return reports.length === 1 ? reports[0]![1] : mergeReports(reports, attempts && rounds);
}

/**
 * Returns the name of the format of a file; undefined: the file is not a test report. Throws a ReportError if the file is empty or broken.
 */
export function findFormat(bytes: Uint8Array, maxInflatedBytes: number): string | undefined {
  const { text, binary } = readText(bytes, maxInflatedBytes, {});
  const source = toWritten(text, binary);
  const found = recogniseSource(source);
  if (found) return found.reader.name;
  const { fault, json, root } = source;
  // Lines of JSON, such as a log, are not broken.
  if (fault && toRefusal(source) === fault.message) throw fault;
  if (text !== null && json === undefined && root === null && text.trimStart().startsWith("<"))
    throw new ReportError(toRefusal(source));
  return undefined;
}

/** A report without the lines of other programs before it, and the line that it begins at; null where nothing must be cut. */
export function cutPrelude(bytes: Uint8Array): { bytes: Uint8Array<ArrayBuffer>; line: number } | null {
  try {
    const text = toText(bytes);
    if (text === null || /^\s*(?:<|$)/.test(text.slice(0, 1_000)) || recogniseSource(toSource(text))) return null;
    const beginning = findBeginning(text);
    // The server says that a report before it is broken.
    if (beginning?.lost) return null;
    return beginning && { bytes: new TextEncoder().encode(text.slice(beginning.at)), line: beginning.line };
  } catch (error) {
    if (error instanceof ReportError) return null;
    throw error;
  }
}

const NOTHING = new Uint8Array();

/** The empty report that a killed runner leaves. */
const EMPTY = emptyReport("empty", ["The report is empty"]);
/** No file was sent, because there is none: the upload says why. */
const ABSENT = emptyReport("empty");

/** Above this size, memory that has been read is released immediately instead of at the next garbage collection. */
const LARGE_BYTES = 32 * 2 ** 20;

type ReadOptions = {
  format?: string;
  maxInflatedBytes: number;
  variable?: string;
  mayBeEmpty?: boolean | "absent";
  attempts?: readonly number[];
};

/** Files that a reader reads as one report. */
type Group = { read: Exclude<Reader["read"], (source: Source) => Report>; round: number; sources: [string, Source][] };

/** Says which file it is that cannot be read. */
function withName<T>(name: string, isOneOfMany: boolean, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    // A message that begins with a field needs no file name if there is only one file.
    if (error.message.startsWith('"') && !isOneOfMany) throw new ReportError(`Cannot read ${error.message}`);
    throw new ReportError(`Cannot read "${cut(name, 200)}": ${error.message}`);
  }
}

function findReader(format: string): Reader {
  const reader = READERS.find(({ name }) => name === format);
  if (reader) return reader;
  const known = READERS.map(({ name }) => `"${name}"`).toSorted();
  const list = `${known.slice(0, -1).join(", ")} or ${known.at(-1)}`;
  throw new ReportError(`Cannot read "format": expected ${list}, got ${JSON.stringify(cut(format, 50))}`);
}

/** A document of another format that `format` names holds no test cases either, but is no empty report. */
function readOne({ recognise, isEmpty, title, read }: Reader, source: Source): Report {
  const report = typeof read === "function" ? read(source) : read.together([source]);
  const hasNone = report.cases.length === 0 && report.countsOnly === null;
  if (hasNone && !recognise(source) && !isEmpty?.(source))
    throw new ReportError(`it holds no test cases and is not ${title}`);
  return report;
}

/** `text`: see `toText`. */
/** The bytes of a text are not kept. `size`: of the file, unpacked. */
function readText(
  bytes: Uint8Array,
  room: number,
  { variable }: Pick<ReadOptions, "variable">,
): { text: string | null; binary: Uint8Array | null; size: number } {
  const plain = unpack(bytes, room, variable);
  const text = toText(plain);
  return { text, binary: text === null ? plain : null, size: plain.length };
}

const toWritten = (text: string | null, binary: Uint8Array | null): Source =>
  text === null ? { ...NO_TEXT, binary } : toSource(text);

function recognise(source: Source, written: string): { reader: Reader; source: Source } {
  const found = recogniseSource(source);
  if (found) return found;
  const beginning = source.root === null ? findBeginning(written) : null;
  const hint = beginning ? `; a report begins at line ${beginning.line}: ${beginning.title}` : "";
  throw new ReportError(`${toRefusal(source)}${hint}`);
}
