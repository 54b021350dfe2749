/** Fits the rates at which tests of a project fail by themselves, from how often each has. */

import { fitRates } from "../../rules/flaky_rates.ts";
import type { Sql } from "../../database/connect.ts";
import { selectTestCounts, updateFlakyRates } from "../../store/flaky_rates.ts";

/** After runs were counted; at most once an hour. */
export async function fitFlakyRates(sql: Sql, projectId: string): Promise<void> {
  const counts = await selectTestCounts(sql, projectId);
  if (counts.length > 0) await updateFlakyRates(sql, projectId, fitRates(counts));
}
