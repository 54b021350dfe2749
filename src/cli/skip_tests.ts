/** Leaves out quarantined tests of the command that `assay upload` runs. */

import { nameVariant } from "../rules/variants.ts";
import { caseTitle } from "../wording/case_title.ts";
import { listSkippedTests } from "./quarantined.ts";
import type { ServerAddress } from "./client.ts";
import { withoutTests } from "./test_command.ts";
import type { NoAddress } from "./upload_address.ts";
import type { Voice } from "./upload_output.ts";

/** The tests wait meanwhile. */
const SKIP_PATIENCE = { waitsMs: [500, 2_000], withinMs: 10_000 };

/** Returns the command without the tests that are to be left out, as far as they are known and can be. */
export async function skipTests(
  command: string[],
  { task_slug: task, tag }: Readonly<Record<string, string>>,
  address: ServerAddress | NoAddress,
  { voice, directory }: { voice: Pick<Voice, "note">; directory: string },
): Promise<string[]> {
  const slug = task === undefined ? undefined : nameVariant(task, tag?.split(",") ?? []);
  const tests = "problem" in address ? address.problem : await listSkippedTests(address, slug, SKIP_PATIENCE);
  const skipped = typeof tests === "string" || tests.length === 0 ? tests : withoutTests(command, tests, directory);
  if (typeof skipped === "string") {
    await voice.note(`No test is left out: ${skipped}`);
    return command;
  }
  if (!("command" in skipped)) return command;
  const count = tests.length - skipped.problems.length;
  if (count > 0) await voice.note(`${count === 1 ? "1 test is" : `${count} tests are`} left out because of quarantine`);
  for (const { testCase, reason } of skipped.problems) await voice.note(`"${caseTitle(testCase)}" runs: ${reason}`);
  return skipped.command;
}
