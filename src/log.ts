/** The log: one JSON line per event on standard output, readable text on a terminal. */

import { maskKeys } from "./secrets/keys.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type Fields = Record<string, unknown>;
export type Log = Record<LogLevel, (message: string, fields?: Fields) => void>;

const RANK: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Returns an error with its stack and, if it has one, PostgreSQL's code; never its query parameters. */
function describe(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const code = (value as { code?: unknown }).code;
  return { name: value.name, message: value.message, ...(code === undefined ? {} : { code }), stack: value.stack };
}

function readable(time: string, level: LogLevel, message: string, fields: Fields): string {
  const rest = Object.entries(fields).map(([name, value]) =>
    value instanceof Error ? `\n${value.stack ?? value.message}` : `${name}=${JSON.stringify(value)}`,
  );
  return `${time.slice(11, 19)} ${level === "info" ? "" : `${level.toUpperCase()} `}${message} ${rest.join(" ")}`.trimEnd();
}

export function createLog(
  level: LogLevel,
  write: (line: string) => void = (line) => void process.stdout.write(`${line}\n`),
  terminal: boolean = process.stdout.isTTY === true,
): Log {
  // Whatever has brought it there: a path, a header, the text of an error. Nothing in a key is escaped in JSON.
  const writeMasked = (line: string) => write(maskKeys(line));
  const log =
    (at: LogLevel) =>
    (message: string, fields: Fields = {}) => {
      if (RANK[at] < RANK[level]) return;
      const time = new Date().toISOString();
      if (terminal) return writeMasked(readable(time, at, message, fields));
      const plain = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, describe(value)]));
      writeMasked(JSON.stringify({ time, level: at, message, ...plain }));
    };
  return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
}
