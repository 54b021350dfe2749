/** Says why no runner takes a queued task. */

import type { MissingRunner } from "../schema/leases.ts";

/** Returns 'No runner that is online has the task "unit"'. */
export function missingRunnerSentence({ cause, taskSlug, labels }: MissingRunner): string {
  if (cause === "all_paused") return "All runners that are online are paused";
  if (cause === "none_online") return "No runner has been online in the last 2 minutes";
  if (cause === "no_task") return `No runner that is online has the task "${taskSlug}"`;
  if (cause === "no_labels")
    return `No runner that is online and has the task "${taskSlug}" has the label${labels.length === 1 ? "" : "s"} ${labels.join(", ")}`;
  return `No runner that is online can run single test cases of the task "${taskSlug}": it needs git and rerun in assay.yaml`;
}

/** Returns why a task waits, or why it has ended without a report; null if nothing is known. */
export const reasonOfTask = ({
  reason,
  missingRunner,
}: {
  reason: string | null;
  missingRunner?: MissingRunner | null;
}): string | null => (missingRunner ? missingRunnerSentence(missingRunner) : reason);
