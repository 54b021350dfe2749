/** What the tests of rerun commands share: the command for test cases, or the reason why the whole runs, and its arguments in a shell. */

import { expect } from "bun:test";
import type { PlacedCase } from "../../src/rules/identity.ts";
import { type RerunInput, toRerunCommand } from "../../src/rules/rerun_command.ts";

export const at = (suite: string, name: string, file: string | null = null): PlacedCase => ({ suite, name, file });
export const cases = (...names: string[]): PlacedCase[] => names.map((name) => at("", name, "a.test.ts"));

export const toCommand = (rerun: Partial<RerunInput>) =>
  toRerunCommand({
    rerun: "jest",
    command: "npx jest --json",
    only: [],
    directory: "/srv/shop",
    exists: (path) => !/\/Test[A-Z]\w*\.py$/.test(path),
    ...rerun,
  });

export function commandOf(rerun: Partial<RerunInput>): string {
  const made = toCommand(rerun);
  if (made.whole) throw new Error(`The whole runs: ${made.reason}`);
  return made.command;
}

export function reasonOf(rerun: Partial<RerunInput>): string {
  const made = toCommand(rerun);
  if (!made.whole) throw new Error(`It runs: ${made.command}`);
  return made.reason;
}

/** What a command is called with, by a real shell. */
export function argumentsOf(command: string, shell = "sh", environment: Record<string, string> = {}): string[] {
  const script = command.replace(/^(?:npx jest|tool)/, "args");
  const define = `args() { for one in "$@"; do printf '%s\\0' "$one"; done; }\n`;
  const { stdout, stderr, exitCode } = Bun.spawnSync([shell, "-c", define + script], {
    env: { PATH: process.env.PATH ?? "", HOME: "/nowhere", ...environment },
  });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  return stdout.toString().split("\0").slice(0, -1);
}
