/** The command of the tests that `assay upload` runs, as a script of a shell, and the test tool in it. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PlacedCase } from "../rules/identity.ts";
import { CannotSelect, type Preset } from "../rules/rerun_cases.ts";
import { toCommandWithout, type WithoutCases } from "../rules/rerun_command.ts";
import { findPreset } from "../rules/rerun_insertion.ts";
import { quoted } from "../rules/shell.ts";

/** The words of a shell that runs a script, and the script: that of the command if it is one. */
export function toScript(command: readonly string[]): { shell: string[]; script: string } {
  const shell = command.slice(0, -1);
  if (/^(?:.*\/)?(?:ba|da|k|z)?sh$/.test(shell[0] ?? "") && /^-[a-z]*c$/.test(shell.at(-1)!))
    return { shell, script: command.at(-1)! };
  const words = command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word)));
  return { shell: ["/bin/sh", "-c"], script: words.join(" ") };
}

/** Undefined: no tool is known, or there are several. */
export const findTool = (command: readonly string[], directory: string): Preset | undefined =>
  findPreset(toScript(command).script, readScripts(directory));

function readScripts(directory: string): Record<string, unknown> {
  try {
    const { scripts } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as { scripts?: object };
    return { ...scripts };
  } catch {
    return {};
  }
}

/** Returns the command that runs all tests but these, or why there is none. */
export function withoutTests(
  command: readonly string[],
  only: readonly PlacedCase[],
  directory: string,
): { command: string[]; problems: WithoutCases["problems"] } | string {
  const tool = findTool(command, directory);
  if (tool === undefined) return "the command runs no tool whose way to leave out tests is known";
  const { shell, script } = toScript(command);
  try {
    const found = toCommandWithout(tool, { only, command: script, directory, exists: existsSync });
    return { ...found, command: [...shell, found.command] };
  } catch (error) {
    if (error instanceof CannotSelect) return error.message;
    throw error;
  }
}
