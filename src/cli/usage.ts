/** Reads the options of commands and reports wrong ones. */

import { parseArgs } from "node:util";

/** The command line or a variable is wrong: exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** Makes a UsageError of an error of `parseArgs`, without its advice to programmers. */
export function toUsageError(error: unknown): UsageError {
  const { message } = error as Error;
  const [, name] = /^Option '(--[^' ]+).*' argument is ambiguous/.exec(message) ?? [];
  if (name !== undefined)
    return new UsageError(
      `${name} is followed by another option: a value that begins with "-" is written ${name}=-VALUE`,
    );
  // `parseArgs` sometimes leaves out the dash.
  const [, letter] = /^Unknown option '-?([^-'])'/.exec(message) ?? [];
  if (letter !== undefined)
    return new UsageError(`Unknown option '-${letter}': a file whose name begins with "-" is written ./-NAME`);
  return new UsageError(message.split(/\n|\. To specify/)[0]!);
}

type ParsedOptions = { values: Record<string, string>; json: boolean };

/** Options that take a text, by name, and flags, which are "" where given; every command knows --json. Throws UsageError. */
export const parseOptions = (args: string[], names: readonly string[], flags: readonly string[] = []): ParsedOptions =>
  parse(args, names, flags, false);

/** The same for a command that takes one file, or one folder. Throws UsageError. */
export function parseFileOptions(
  args: string[],
  flags: readonly string[],
  { names = [], noun = "file" }: { names?: readonly string[]; noun?: "file" | "folder" } = {},
): ParsedOptions & { file: string } {
  const { files, ...parsed } = parse(args, names, flags, true);
  const [file] = files;
  if (!file || files.length > 1) throw new UsageError(`Expected one ${noun}, got ${files.length}`);
  return { ...parsed, file };
}

function parse(args: string[], names: readonly string[], flags: readonly string[], allowPositionals: boolean) {
  try {
    const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
    const switches = Object.fromEntries([...flags, "json"].map((name) => [name, { type: "boolean" as const }]));
    const { values, positionals } = parseArgs({ args, options: { ...options, ...switches }, allowPositionals });
    const { json, ...given } = values;
    const texts = Object.entries(given).map(([name, value]) => [name, value === true ? "" : value]);
    return {
      values: Object.fromEntries(texts) as Record<string, string>,
      json: json === true,
      files: positionals,
    };
  } catch (error) {
    throw toUsageError(error);
  }
}

const MAX_SECONDS = 3600;

/** A text such as "30" or "0.5", in seconds, as milliseconds; undefined where it says nothing. Throws UsageError. */
export function readSeconds(name: string, given: string | undefined): number | undefined {
  const text = given?.trim();
  if (!text) return undefined;
  if (!/^\d+(\.\d+)?$/.test(text) || Number(text) > MAX_SECONDS)
    throw new UsageError(`--${name}: expected seconds from 0 to ${MAX_SECONDS}, got "${text}"`);
  return Number(text) * 1000;
}

/** A number within bounds; undefined where the text says nothing. Throws UsageError. */
export function readCount(name: string, given: string | undefined, [min, max]: [number, number]): number | undefined {
  const text = given?.trim();
  if (!text) return undefined;
  if (!/^\d{1,9}$/.test(text) || Number(text) < min || Number(text) > max)
    throw new UsageError(`--${name}: expected a number from ${min} to ${max}, got "${text}"`);
  return Number(text);
}

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000 };

/** A text such as "90s", "5m" or "1h" as milliseconds; undefined where it says nothing. Throws UsageError. */
export function readSpan(name: string, given: string | undefined): number | undefined {
  const text = given?.trim();
  if (!text) return undefined;
  const [, number, unit] = /^(\d{1,4})([smh])$/.exec(text) ?? [];
  if (unit === undefined) throw new UsageError(`--${name}: expected a time such as "90s" or "5m", got "${text}"`);
  return Number(number) * UNITS[unit as keyof typeof UNITS];
}

export function require(values: Record<string, string>, name: string): string {
  const value = values[name]?.trim();
  if (!value) throw new UsageError(`--${name} is missing`);
  return value;
}
