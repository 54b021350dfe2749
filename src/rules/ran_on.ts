/** The machines that the uploads of a run ran on, as answers and pages show them. */

/** Null: unknown. */
export type MachineNames = { host: string | null; system: string | null; image: string | null };

/** Maximum number of machines in an answer: a run may have thousands of shards. */
export const MAX_RAN_ON = 100;

/** Returns the machines of the first of these attempts, without unknown ones. Shard 0 is the whole run. */
export const toRanOn = (attempts: readonly (MachineNames & { shard: number })[]) =>
  attempts
    .filter(({ host, system, image }) => host !== null || system !== null || image !== null)
    .slice(0, MAX_RAN_ON)
    .map(({ shard, host, system, image }) => ({ shard: shard === 0 ? null : shard, host, system, image }));

/** Returns "ci-3 (linux x64, ubuntu-24.04)", without unknown parts; "" if nothing is known. */
export function machineText({ host, system, image }: MachineNames): string {
  const [name, ...rest] = [host, system, image].flatMap((known) => known?.trim() || []);
  return name === undefined ? "" : rest.length === 0 ? name : `${name} (${rest.join(", ")})`;
}
