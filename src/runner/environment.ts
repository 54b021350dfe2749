/** The environment of a task: only named variables are taken from the runner's environment. */

import type { RunnerLease } from "./protocol.ts";

const INHERITED = ["PATH", "HOME", "LANG", "TMPDIR"];

/** By this variable the processes of a lease are known, wherever they have gone. */
export const LEASE_VARIABLE = "ASSAY_LEASE_ID";

/**
 * `host` is the runner's environment, of which `pass` names what goes on beside PATH, HOME, LANG and TMPDIR. The variables
 * of the lease win over those, and ours over all. Never the project's key, even if it is named.
 */
export function environmentOf(
  lease: RunnerLease,
  host: Record<string, string | undefined>,
  pass: readonly string[],
): Record<string, string> {
  const { id, execution, taskSlug, attempt, shard, variables } = lease;
  const named = [...INHERITED, ...pass].filter((name) => name !== "ASSAY_KEY" && name !== "ASSAY_KEY_FILE");
  const all: Record<string, string | null | undefined> = {
    ...Object.fromEntries(named.map((name) => [name, host[name]])),
    ...variables,
    ASSAY_EXECUTION_ID: execution.id,
    ASSAY_TASK: taskSlug,
    ASSAY_ATTEMPT: String(attempt),
    ASSAY_SHARD: shard && `${shard.index}/${shard.total}`,
    ASSAY_BASE_URL: execution.baseUrl,
    ASSAY_BRANCH: execution.branch,
    ASSAY_COMMIT: execution.commit,
    [LEASE_VARIABLE]: id,
    CI: "true",
  };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] != null));
}
