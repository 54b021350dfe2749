/** How commands read their options and report wrong ones. */

import { parseArgs } from "node:util";

/** The command line makes no sense: exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** Options that take a text, by name, and flags, which are "" where given; every command knows --json. Throws UsageError. */
export function parseOptions(
  args: string[],
  names: readonly string[],
  flags: readonly string[] = [],
): { values: Record<string, string>; json: boolean } {
  try {
    const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
    const switches = Object.fromEntries([...flags, "json"].map((name) => [name, { type: "boolean" as const }]));
    const { values } = parseArgs({ args, options: { ...options, ...switches }, allowPositionals: false });
    const { json, ...given } = values;
    const texts = Object.entries(given).map(([name, value]) => [name, value === true ? "" : value]);
    return { values: Object.fromEntries(texts) as Record<string, string>, json: json === true };
  } catch (error) {
    throw new UsageError((error as Error).message.split("\n")[0]!);
  }
}

export function require(values: Record<string, string>, name: string): string {
  const value = values[name]?.trim();
  if (!value) throw new UsageError(`--${name} is missing`);
  return value;
}
