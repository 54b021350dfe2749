/** How commands read their options and report wrong ones. */

import { parseArgs } from "node:util";

/** The command line makes no sense: exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** Options that take a text, by name; every command knows --json. Throws UsageError. */
export function parseOptions(
  args: string[],
  names: readonly string[],
): { values: Record<string, string>; json: boolean } {
  try {
    const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
    const { values } = parseArgs({ args, options: { ...options, json: { type: "boolean" } }, allowPositionals: false });
    const { json, ...texts } = values;
    return { values: texts as Record<string, string>, json: json === true };
  } catch (error) {
    throw new UsageError((error as Error).message.split("\n")[0]!);
  }
}

export function require(values: Record<string, string>, name: string): string {
  const value = values[name]?.trim();
  if (!value) throw new UsageError(`--${name} is missing`);
  return value;
}
