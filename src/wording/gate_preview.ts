/** Says what gates would have done with another share. */

import type { GatePreview } from "../schema/gate.ts";
import { counted, toCount } from "./numbers.ts";

const DAY_MS = 86_400_000;

/** Returns "In the last 30 days this would have let through 1 of 40 guilty builds and stopped 9 of 300 others". */
export function gatePreviewSummary(
  { guiltyBuilds, guiltyPassed, otherBuilds, otherStopped }: Omit<GatePreview, "share" | "since" | "summary">,
  sinceMs: number,
  nowMs: number,
): string {
  const days = Math.max(1, Math.round((nowMs - sinceMs) / DAY_MS));
  const time = `In the last ${days === 1 ? "day" : counted(days, "day")}`;
  if (guiltyBuilds + otherBuilds === 0) return `${time} no build was red because of failed tests`;
  const guilty = `${toCount(guiltyPassed)} of ${counted(guiltyBuilds, "guilty build")}`;
  return `${time} this would have let through ${guilty} and stopped ${toCount(otherStopped)} of ${counted(otherBuilds, "other")}`;
}
