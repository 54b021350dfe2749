/** The options of `assay bisect`. */

import { parseArgs } from "node:util";
import { MAX_PROBES_AT_ONCE } from "../rules/culprit_probes.ts";
import { type BisectCase, readCase } from "./bisect_case.ts";
import { toUsageError, UsageError } from "./usage.ts";

export const DEFAULT_BUDGET = 60;
const MAX_BUDGET = 10_000;
export const DEFAULT_FLAKE_RATE = 0.05;
const MAX_FLAKE_RATE = 0.9;

/** The number of commits that are searched if no good commit is given. */
export const DEFAULT_REACH = 256;

export const BISECT_HELP = `Usage: assay bisect [CASE] [--good REF] [--bad REF] [options] -- COMMAND…
       assay bisect CASE [--good REF] [--bad REF] [--budget N] [--json]

Finds the commit that broke a test. Runs COMMAND in work trees of commits between a good and a bad one, in a temporary
directory, and never believes a single result: it chooses the commits that are expected to say most, and names a commit
only after it failed twice and its parent passed twice. Needs no server. See docs/bisect.md.

CASE is a test case or a bug report of a server, by its id or the address of its page; ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY
name the server. With COMMAND, the test case lends its flake rate, its file and its last good and first bad commit. Without
COMMAND, the search runs on the runners of the server, and this prints its probes as they end.

  --good REF              a commit in which COMMAND passes (default: unknown, the last ${DEFAULT_REACH} commits are searched, recent ones first)
  --bad REF               a commit in which COMMAND fails (default: HEAD)
  --flake-rate RATE       how often COMMAND fails although the code is right, from 0 to ${MAX_FLAKE_RATE} (default: ${DEFAULT_FLAKE_RATE})
  --prepare CMD           a shell command that builds a commit before COMMAND runs in it; if it fails, the commit has no result
  --match TEXT            only failures whose output contains TEXT are the failure that is searched for
  --budget N              the maximum number of probes (default: ${DEFAULT_BUDGET}; on a server 30)
  --concurrency N         the number of probes at the same time, up to ${MAX_PROBES_AT_ONCE} (default: 1)
  --verbose               print the output of git, CMD and COMMAND
  --json                  print the result as one line of JSON

COMMAND passes with exit code 0. With 125, 126 or 127 the commit has no result. With any other code, or a signal, it fails.

Exit code: 0 if the commit was found and confirmed, 1 for an error, 2 for wrong usage, 3 if the cause is the environment and
not the code, 4 if the commit cannot be told, 128 + n after signal n.`;

const OPTIONS = {
  good: { type: "string" },
  bad: { type: "string" },
  "flake-rate": { type: "string" },
  prepare: { type: "string" },
  match: { type: "string" },
  budget: { type: "string" },
  concurrency: { type: "string" },
  verbose: { type: "boolean" },
  json: { type: "boolean" },
} as const;

/** Options for a search on this machine alone. */
const LOCAL_OPTIONS = ["flake-rate", "prepare", "match", "concurrency", "verbose"] as const;

export type BisectOptions = {
  /** Undefined: no server is used. */
  test: BisectCase | undefined;
  /** Undefined: no good commit is known. */
  good: string | undefined;
  /** Undefined: HEAD, or the first bad build of the test case. */
  bad: string | undefined;
  /** Undefined: as the server says, or an assumption. */
  flakeRate: number | undefined;
  prepare: string | undefined;
  match: string | undefined;
  /** Undefined: the default. */
  budget: number | undefined;
  concurrency: number;
  verbose: boolean;
  json: boolean;
  /** Empty: the search runs on the runners of a server. */
  command: string[];
};

/** Throws UsageError. */
export function readBisectOptions(args: readonly string[]): BisectOptions {
  const end = args.indexOf("--");
  const command = end === -1 ? [] : args.slice(end + 1);
  const { values, positionals } = parse(end === -1 ? args : args.slice(0, end));
  const test = readTest(positionals);
  if (command.length === 0 && (end !== -1 || !test)) throw new UsageError('The command is missing: pass it after "--"');
  const local = LOCAL_OPTIONS.find((name) => values[name] !== undefined);
  if (command.length === 0 && local !== undefined)
    throw new UsageError(`--${local} needs a command: the runners of the server run the test as their assay.yaml says`);
  return {
    test,
    good: values.good?.trim() || undefined,
    bad: values.bad?.trim() || undefined,
    flakeRate: readFlakeRate(values["flake-rate"]),
    prepare: values.prepare?.trim() || undefined,
    match: values.match || undefined,
    budget: values.budget === undefined ? undefined : readInteger("budget", values.budget, MAX_BUDGET),
    concurrency:
      values.concurrency === undefined ? 1 : readInteger("concurrency", values.concurrency, MAX_PROBES_AT_ONCE),
    verbose: values.verbose === true,
    json: values.json === true,
    command,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw toUsageError(error);
  }
}

function readTest([text, more]: readonly string[]): BisectCase | undefined {
  if (more !== undefined) throw new UsageError(`Unexpected argument "${more}": pass the command after "--"`);
  if (text === undefined) return undefined;
  const test = readCase(text);
  if (test) return test;
  throw new UsageError(
    `Cannot read CASE: expected the id or the address of a test case or a bug report, got "${text}". Pass a command after "--"`,
  );
}

function readFlakeRate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const rate = Number(text);
  if (text.trim() === "" || !(rate >= 0 && rate <= MAX_FLAKE_RATE))
    throw new UsageError(`Cannot read --flake-rate: expected a number from 0 to ${MAX_FLAKE_RATE}, got "${text}"`);
  return rate;
}

function readInteger(name: string, text: string, max: number): number {
  const number = Number(text);
  if (text.trim() === "" || !Number.isInteger(number) || number < 1 || number > max)
    throw new UsageError(`Cannot read --${name}: expected an integer from 1 to ${max}, got "${text}"`);
  return number;
}
