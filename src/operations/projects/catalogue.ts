/** The catalogue of test cases as people change it: whose a case is, and which are quarantined. */

import { refuse } from "../../schema/refusal.ts";
import type { TestCasePatch } from "../../schema/test_cases.ts";
import type { Tx } from "../../database/connect.ts";
import { updateTestCases } from "../../store/test_cases.ts";

/** Refuses a quarantine that would be over at once. */
export function requireFuture({ quarantine }: TestCasePatch): void {
  const until = quarantine?.until;
  if (until && Date.parse(until) <= Date.now())
    refuse(`Cannot read "quarantine.until": expected a time in the future, got "${until}"`);
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
