/** `--gate`: asks the server whether the failures of an upload are forgiven, and turns its decision into an exit code. */

import * as v from "valibot";
import { mayBeForgiven } from "../rules/gate.ts";
import { gateMode, type GateMode } from "../schema/gate.ts";
import { gateLines } from "../wording/gate.ts";
import { UsageError } from "./usage.ts";

export type GateOptions = { mode: GateMode; isDryRun: boolean; missingPercent: string | undefined };

export const GATE_HELP = `  --gate quarantine|new   exit with 0 if all failed tests are forgiven: those in quarantine, or also known flaky ones and those
                          that fail on the default branch, except on the default branch itself (see below)
  --gate-missing PERCENT  with --gate: the share of the baseline's tests that may be missing or newly skipped (default: 5)
  --gate-dry-run          with --gate: only print what it would do`;

export const GATE_HELP_TEXT = `With --gate, the exit code is 0 if the tests failed and the server forgives all failures of this upload. In all other cases
it is the exit code of the command, or 1 without a command and --exit-code: after a new failure; if a report is missing, old,
truncated or unreadable; if more than 5 % of the baseline's tests did not run; if the exit code means more than failed tests (such as a signal); or if the server is unavailable
or refuses the upload.`;

/** Throws UsageError. Undefined without a gate; an empty option is ignored. */
export function readGateOptions(
  { gate, missing }: { gate?: string | undefined; missing?: string | undefined },
  isDryRun: boolean,
): GateOptions | undefined {
  const given = gate?.trim() ?? "";
  const missingPercent = missing?.trim() || undefined;
  if (given === "" && missingPercent !== undefined) throw new UsageError("--gate-missing: pass --gate as well");
  if (missingPercent !== undefined && !(/^\d{1,3}$/.test(missingPercent) && Number(missingPercent) <= 100))
    throw new UsageError(`--gate-missing: expected a percentage from 0 to 100, got "${missingPercent}"`);
  if (given === "" && isDryRun) throw new UsageError("--gate-dry-run: pass --gate as well");
  if (given === "") return undefined;
  if (!v.is(gateMode, given)) throw new UsageError(`--gate: expected "quarantine" or "new", got "${given}"`);
  return { mode: given, isDryRun, missingPercent };
}

/** Parameters of the upload. With an unusable report the server is not asked: nothing can be forgiven. */
export const toGateParameters = (gate: GateOptions | undefined, problems: readonly string[]): Record<string, string> =>
  gate === undefined || problems.length > 0
    ? {}
    : {
        gate: gate.mode,
        ...(gate.missingPercent === undefined ? {} : { gate_missing: gate.missingPercent }),
        ...(gate.isDryRun ? { gate_dry_run: "true" } : {}),
      };

const namedFailure = v.object({ suite: v.string(), name: v.string(), reason: v.string() });

/** The part of an answer that is used here. A newer server may decide in other modes and name other lists. */
export const answeredGate = v.object({
  gate: gateMode,
  pass: v.boolean(),
  reasons: v.array(v.string()),
  forgivenCount: v.number(),
  forgiven: v.array(namedFailure),
  unclear: v.array(namedFailure),
});
export type AnsweredGate = v.InferOutput<typeof answeredGate>;

export type GateEnd = {
  /** The exit code of the tests; undefined: unknown. */
  exitCode: number | undefined;
  /** Why the server was not asked, or has not answered. */
  problem: string | undefined;
  /** Undefined: the server has not decided. */
  decision: AnsweredGate | undefined;
};

const MAX_NAMED = 20;

/** The exit code, and what to print about it. */
export function endGate(
  options: GateOptions,
  { exitCode, problem, decision }: GateEnd,
): { code: number; lines: string[] } {
  const isExitCode = exitCode !== undefined && exitCode >= 0 && exitCode <= 255;
  const own = exitCode === undefined ? 1 : isExitCode ? exitCode : 1;
  if (exitCode === 0) return { code: 0, lines: [] };
  const isDecided = problem === undefined && decision !== undefined && decision.gate === options.mode;
  const passes = isDecided && decision.pass && (exitCode === undefined || mayBeForgiven(exitCode));
  const lines = isDecided
    ? gateLines({ ...decision, pass: passes }, MAX_NAMED)
    : [`Gate ${options.mode}: failed`, `Stays red: ${problem ?? "the server has not decided"}`];
  if (!options.isDryRun) return { code: passes ? 0 : own, lines };
  const withoutGate = exitCode === undefined ? 0 : own;
  return { code: withoutGate, lines: [...lines, `Dry run: the exit code would be ${passes ? 0 : own}`] };
}
