/** The catalogue of test cases as people change it: whose a case is, and which are quarantined. */

import { refuse } from "../../schema/refusal.ts";
import { MAX_SKIPPED_DAYS, type TestCasePatch } from "../../schema/test_cases.ts";
import type { Tx } from "../../database/connect.ts";
import { updateTestCases } from "../../store/test_cases.ts";

const DAY_MS = 86_400_000;

/** Refuses a quarantine that would be over at once, and one that skips a test for too long. */
export function requireFuture({ quarantine }: TestCasePatch): void {
  const until = quarantine?.until;
  if (until && Date.parse(until) <= Date.now())
    refuse(`Cannot read "quarantine.until": expected a time in the future, got "${until}"`);
  if (quarantine?.skip && !(until && Date.parse(until) <= Date.now() + MAX_SKIPPED_DAYS * DAY_MS))
    refuse(`Cannot read "quarantine.until": a test that is skipped needs an end within ${MAX_SKIPPED_DAYS} days`);
}

/** Changes all of the test cases; refuses if some of them do not exist. */
export async function changeTestCases(
  sql: Tx,
  projectId: string,
  ids: readonly string[],
  patch: TestCasePatch,
): Promise<{ changed: number }> {
  if (patch.owner === undefined && patch.quarantine === undefined)
    refuse(`Cannot change the test cases: expected "owner" or "quarantine"`);
  requireFuture(patch);
  const updated = await updateTestCases(sql, projectId, ids, patch);
  if (!("absent" in updated)) return updated;
  const named = updated.absent.map((id) => `"${id}"`).join(", ");
  return refuse(`Cannot read "testCaseIds": this project has no test case ${named}`);
}
