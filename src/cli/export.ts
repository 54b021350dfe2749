/** `assay export`: writes the data of a project into a file of lines of JSON, or verifies such a file. */

import { writeCompleteFile } from "../backup/complete_file.ts";
import { toFileError } from "../file_failure.ts";
import {
  askStream,
  messageOf,
  type Patience,
  readServerAddress,
  type ServerAddress,
  ServerAwayError,
  tryPatiently,
} from "./client.ts";
import { downloadAttachments, type Downloaded } from "./export_attachments.ts";
import { createExportLines, type ExportTotals, IncompleteExportError } from "./export_lines.ts";
import { untilInterrupted } from "./interruption.ts";
import { type Invocation, locate, type OutputStream } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { parseFileOptions, UsageError } from "./usage.ts";

export const EXPORT_HELP = `Usage: assay export FILE|- [--since DATE] [--until DATE] [--types LIST] [--attachments DIR] [--json]
       assay export --verify FILE [--attachments DIR] [--json]

Writes the data of a project as the API answers it, at one moment, as lines of JSON: test cases, executions, test runs,
results, a list of attachments, and bug reports. The file has its name only when the export is complete. It contains no
keys and no secrets. With - the lines go to the standard output.

  --since DATE        only executions created from this time on, such as 2026-01-31 or 2026-01-31T12:00:00Z
  --until DATE        only executions created before this time
  --types LIST        only these types, separated by commas, such as execution,result
  --attachments DIR   also download the listed attachments, each as DIR/SHA256; files that are there are kept
  --verify            read a file to its end and compare its lines with their counts; needs no server
  --json              print the counts as one line of JSON

Required: ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY; a named key of scope "read" is enough.

Exit code: 0 if the export is complete, 1 if it is not complete or cannot be written, 2 for wrong usage, 3 if the server is
unavailable or refuses the request.`;

const NO_ANSWER_CODE = 3;
/** Longer than the server needs for one statement. */
const IDLE_MS = 90_000;
/** Another export may have to end first. */
const PATIENCE: Patience = { waitsMs: [1_000, 5_000], withinMs: 120_000 };

/** The server has answered, and not with an export. */
class RefusedError extends Error {
  override name = "RefusedError";
}

type Values = Record<string, string>;

/** A date, or a time with its zone, in milliseconds. Throws UsageError. */
function readTime(values: Values, name: string): number | undefined {
  const text = values[name]?.trim();
  if (text === undefined) return undefined;
  const isTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text);
  const ms = isTime ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms))
    throw new UsageError(`--${name}: expected a date such as 2026-01-31 or 2026-01-31T12:00:00Z, got "${text}"`);
  return ms;
}

/** Throws UsageError. */
function toPath(values: Values): string {
  const [since, until, types] = [readTime(values, "since"), readTime(values, "until"), values["types"]];
  const query = new URLSearchParams({
    ...(types === undefined ? {} : { types }),
    // The API excludes the time itself.
    ...(since === undefined ? {} : { created_after: new Date(since - 1).toISOString() }),
    ...(until === undefined ? {} : { created_before: new Date(until).toISOString() }),
  });
  return query.size === 0 ? "/export" : `/export?${query}`;
}

/** Answers the exit code. Throws UsageError. */
export async function exportProject(args: string[], invocation: Invocation): Promise<number> {
  const { file, values, json } = parseFileOptions(args, ["verify"], {
    names: ["since", "until", "types", "attachments"],
  });
  const attachmentsTo = values["attachments"];
  if (attachmentsTo === "") throw new UsageError("--attachments: expected a directory");
  if (file === "-" && (attachmentsTo !== undefined || values["verify"] !== undefined))
    throw new UsageError("--attachments and --verify need a file, not -");
  const isVerifying = values["verify"] !== undefined;
  if (isVerifying && ["since", "until", "types"].some((name) => values[name] !== undefined))
    throw new UsageError("--verify takes only --attachments");
  const query = toPath(values);
  const address = isVerifying && attachmentsTo === undefined ? undefined : readServerAddress(invocation.environment);
  const path = file === "-" ? undefined : locate(invocation, file);
  try {
    await untilInterrupted(invocation, async (signal) => {
      const written = isVerifying
        ? await verify(path!)
        : await write(address!, { to: path ?? invocation.stdout, path: query, signal });
      const attachments =
        attachmentsTo === undefined
          ? undefined
          : await downloadAttachments(address!, {
              ...{ file: path!, directory: locate(invocation, attachmentsTo), signal },
            });
      report({ file, isVerifying, json, ...written, attachments }, invocation);
    });
    return 0;
  } catch (error) {
    if (!(error instanceof ServerAwayError || error instanceof RefusedError)) throw error;
    invocation.say(error.message);
    return NO_ANSWER_CODE;
  }
}

type Written = ExportTotals & { bytes: number };
/** `to` is the path of a file, or an output; `path` is that of the request. */
type Request = { to: string | OutputStream; path: string; signal: AbortSignal };

async function write(address: ServerAddress, { to, path, signal }: Request): Promise<Written> {
  if (typeof to !== "string") return await receive(address, { path, signal }, to.write);
  const { result } = await writeCompleteFile(to, (handle) =>
    receive(address, { path, signal }, (chunk) => handle.writeFile(chunk)),
  );
  return result;
}

async function receive(
  address: ServerAddress,
  { path, signal }: Pick<Request, "path" | "signal">,
  store: (chunk: Uint8Array) => Promise<void>,
): Promise<Written> {
  const answer = await tryPatiently(() => askStream(address, { path, idleMs: IDLE_MS, signal }), PATIENCE);
  const type = answer.headers.get("content-type");
  if (answer.status !== 200 || type !== "application/x-ndjson") throw new RefusedError(messageOf(answer));
  const lines = createExportLines();
  let bytes = 0;
  try {
    for await (const chunk of answer.body) {
      bytes += chunk.byteLength;
      await store(chunk);
      lines.take(chunk);
    }
  } catch (error) {
    if (!(error instanceof ServerAwayError)) throw error;
    throw new IncompleteExportError(`The export is not complete: ${error.message}`);
  }
  return { ...lines.end(), bytes };
}

async function verify(path: string): Promise<Written> {
  const lines = createExportLines();
  let bytes = 0;
  try {
    for await (const chunk of Bun.file(path).stream()) {
      bytes += chunk.byteLength;
      lines.take(chunk);
    }
  } catch (error) {
    throw error instanceof IncompleteExportError ? error : toFileError(error, "read", path);
  }
  return { ...lines.end(), bytes };
}

type Report = Written & { file: string; isVerifying: boolean; json: boolean; attachments: Downloaded | undefined };

/** The lines themselves may be on the standard output. */
function report(
  { file, isVerifying, json, attachments, ...written }: Report,
  { say, ...invocation }: Invocation,
): void {
  const print = file === "-" ? say : invocation.print;
  if (attachments && attachments.missing > 0)
    say(`Warning: the server no longer has the content of ${attachments.missing} attachments`);
  if (json) return print(toJsonLine({ file, ...written, ...(attachments ? { attachments } : {}) }));
  const { counts, lines, bytes, takenAt } = written;
  const all = Object.entries(counts).map(([type, count]) => `${count} ${type}`);
  const what = `${lines} lines, ${bytes} bytes: ${all.length === 0 ? "no data" : all.join(", ")}`;
  const done = isVerifying ? `"${file}" is complete and shows the project at ${takenAt}` : "Exported the project";
  print(toPlainLine(`${done}: ${what}`));
  if (attachments)
    print(
      `Attachments: ${attachments.files} downloaded (${attachments.bytes} bytes), ${attachments.kept} already there, ` +
        `${attachments.missing} missing`,
    );
}
