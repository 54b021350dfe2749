/** The test cases that a rerun selects, as words of a command, and why that may not be possible. */

import type { PlacedCase } from "./identity.ts";
import { locateFile, toPathWord } from "./report_path.ts";
import { quoted } from "./shell.ts";

/** Tools whose way of selecting tests is known. */
export const PRESETS = [
  "jest",
  "vitest",
  "bun",
  "mocha",
  "node",
  "playwright",
  "cypress",
  "pytest",
  "rspec",
  "phpunit",
  "go",
  "maven",
  "dotnet",
] as const;
export type Preset = (typeof PRESETS)[number];

/** The variable that holds the path of the list. */
export const LIST_VARIABLE = "ASSAY_RERUN_LIST";

export type RerunCases = {
  /** The cases as stored. */
  only: readonly PlacedCase[];
  /** Absolute: where the command runs. */
  directory: string;
  /** Whether there is a file at this absolute path. */
  exists: (path: string) => boolean;
};

/** The reason why a case, a text or a command cannot be used. */
export class CannotSelect extends Error {}

export function cannot(reason: string): never {
  throw new CannotSelect(reason);
}

/** Quotes a text for the log of the task, which may be a terminal. */
export const quote = (text: string) =>
  JSON.stringify((text.length > 100 ? `${text.slice(0, 100)}…` : text).replace(/[\x7f-\x9f\u2028\u2029]/g, " "));

/** Words to add to a command, quoted if necessary, and further requirements. */
export type Selection = { args: string[]; list?: string; note?: string };

export type Cases = {
  only: readonly PlacedCase[];
  /** Returns the files relative to the directory, without duplicates. Fails with the first that does not exist. */
  files: () => string[];
  /** Such a file as the tool finds it from the directory; undefined where there is none. */
  locate: (file: string) => string | undefined;
};

export function toCases({ only, directory, exists }: RerunCases): Cases {
  // The report chooses the name: a file elsewhere on this machine is no test of the task.
  const locate = (file: string) => locateFile(file, directory, exists);
  const files = () => {
    const found = new Map<string, string>();
    for (const { file, name } of only) {
      if (file === null) cannot(`the report names no file for ${quote(name)}`);
      if (!found.has(file)) found.set(file, locate(file) ?? cannot(`there is no file ${quote(file)} in ${directory}`));
    }
    return [...new Set(found.values())];
  };
  return { only, files, locate };
}

/** A file is never taken for an option. */
export const toFileWord = (file: string): string => quoted(toPathWord(file));

/** Refuses a name that would be taken for an option or for a file of arguments, because no prefix can prevent that. */
export function toNameWord(name: string): string {
  if (/^[-@]/.test(name)) cannot(`the name ${quote(name)} would be taken for an option`);
  return quoted(name);
}
