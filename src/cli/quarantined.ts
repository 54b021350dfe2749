/** `assay quarantined`: the tests that jobs leave out, and the words that make a test tool do so. */

import { existsSync } from "node:fs";
import * as v from "valibot";
import type { PlacedCase } from "../rules/identity.ts";
import { CannotSelect, type Preset, PRESETS } from "../rules/rerun_cases.ts";
import { toCommandWithout } from "../rules/rerun_command.ts";
import { caseTitle } from "../wording/case_title.ts";
import {
  askPatiently,
  messageOf,
  type Patience,
  readServerAddress,
  type ServerAddress,
  ServerAwayError,
} from "./client.ts";
import type { Invocation } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { parseOptions, UsageError } from "./usage.ts";

export const QUARANTINED_HELP = `Usage: assay quarantined [--task NAME] [--format TOOL]

Prints the tests that jobs leave out because of their quarantine, with its end and reason. "assay upload --skip-quarantined" leaves
them out by itself.

  --task NAME             only tests of this task, with the tags of a variant as in a test run
  --format TOOL           print the arguments that make the tool leave them out, quoted for a shell:
                          ${PRESETS.filter((preset) => preset !== "cypress" && preset !== "maven" && preset !== "node").join(", ")}
  --json                  one line of JSON: a list of test cases

Example: eval "npx jest $(assay quarantined --task unit --format jest)"

Required: ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY; a named key of any scope is enough.

Exit code: 0, 2 for wrong usage, 3 if the server is unavailable or refuses the key.`;

const PATIENCE = { waitsMs: [500, 2_000], withinMs: 15_000 };
const NO_ANSWER_CODE = 3;
/** Maximum number of tests that are left out, beyond which no command has room. */
const MAX_SKIPPED = 1_000;

const page = v.object({
  data: v.array(
    v.object({
      ...{ taskSlug: v.string(), suite: v.string(), name: v.string(), file: v.nullable(v.string()) },
      quarantine: v.object({ reason: v.string(), until: v.string() }),
    }),
  ),
  pagination: v.object({ cursor: v.optional(v.string()) }),
});
export type SkippedTest = PlacedCase & { taskSlug: string; quarantine: { reason: string; until: string } };

/** Returns the tests of a task (undefined: of all) that jobs leave out, or why they are not known. */
export async function listSkippedTests(
  address: ServerAddress,
  task: string | undefined,
  patience: Patience,
): Promise<SkippedTest[] | string> {
  const found: SkippedTest[] = [];
  let cursor: string | undefined;
  try {
    do {
      const query = new URLSearchParams({ skip: "true", limit: "100" });
      if (task !== undefined) query.set("task_slug", task);
      if (cursor !== undefined) query.set("cursor", cursor);
      const answer = await askPatiently(address, { path: `/test-cases?${query}` }, patience);
      if (answer.status !== 200) return messageOf(answer);
      const { success, output } = v.safeParse(page, JSON.parse(answer.text));
      if (!success) return `${address.url} is not an Assay server`;
      found.push(...output.data);
      cursor = output.pagination.cursor;
    } while (cursor !== undefined && found.length < MAX_SKIPPED);
    return found;
  } catch (error) {
    if (error instanceof ServerAwayError || error instanceof SyntaxError) return error.message;
    throw error;
  }
}

function readFormat(given: string | undefined): Preset | undefined {
  const format = given?.trim() || undefined;
  if (format === undefined) return undefined;
  if (!(PRESETS as readonly string[]).includes(format))
    throw new UsageError(`--format: expected one of ${PRESETS.join(", ")}, got "${format}"`);
  return format as Preset;
}

/** Returns the exit code. Throws UsageError. */
export async function quarantined(args: string[], invocation: Invocation): Promise<number> {
  const { environment, directory, print, say } = invocation;
  const { values, json } = parseOptions(args, ["task", "format"]);
  const format = readFormat(values["format"]);
  const tests = await listSkippedTests(readServerAddress(environment), values["task"]?.trim() || undefined, PATIENCE);
  if (typeof tests === "string") {
    say(tests);
    return NO_ANSWER_CODE;
  }
  if (format !== undefined) {
    try {
      const { command, problems } = toCommandWithout(format, {
        only: tests,
        command: undefined,
        directory,
        exists: existsSync,
      });
      for (const { testCase, reason } of problems) say(`"${caseTitle(testCase)}" runs: ${reason}`);
      print(command);
    } catch (error) {
      if (!(error instanceof CannotSelect)) throw error;
      throw new UsageError(`--format: ${error.message}`);
    }
  } else if (json) print(toJsonLine(tests));
  else for (const test of tests) print(toPlainLine(toLine(test)));
  return 0;
}

const toLine = ({ quarantine: { until, reason }, ...test }: SkippedTest): string =>
  `${test.taskSlug}: ${caseTitle({ suite: test.suite, name: test.name })}, until ${until.slice(0, 10)}: ${reason}`;
