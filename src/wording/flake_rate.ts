/** Words for how often a test fails without a cause in the code: counts first. */

import { counted, toCount } from "./numbers.ts";

export type FlakeCounts = { flakeFailures: number; flakeResults: number };

/** Minimum number of results for a percentage. */
const MIN_RESULTS = 20;

/** Returns "3 of 25". */
export const flakeCountWords = ({ flakeFailures, flakeResults }: FlakeCounts): string =>
  `${toCount(flakeFailures)} of ${toCount(flakeResults)}`;

/** Returns "failed 3 of the last 25 results (12 %)". */
export function flakeWords({ flakeFailures, flakeResults }: FlakeCounts): string {
  const share = flakeResults < MIN_RESULTS ? "" : ` (${Math.round((100 * flakeFailures) / flakeResults)} %)`;
  return `failed ${flakeFailures} of the last ${counted(flakeResults, "result")}${share}`;
}
