/** Files of a plan that a shard was to run and that no report has: its run is incomplete. */

import { createFileMatch, hashShard, unitOf } from "../../rules/plan.ts";
import type { Report } from "../../reports/report.ts";
import type { Shard } from "../../schema/fields.ts";
import type { Sql } from "../../database/connect.ts";
import { type PlanKey, selectFilesOfRun, selectFileTimings, selectPlan } from "../../store/plans.ts";
import { counted } from "../../wording/numbers.ts";

/** The maximum number of files that are named. */
const MAX_NAMED = 5;

/**
 * In words for people; undefined: there are none, or nobody can tell. Only a plan whose job has named its files says which exist. Files without
 * tests, of which no earlier run has results, are not missed once there are earlier runs.
 */
export async function findSkippedFiles(
  sql: Sql,
  key: PlanKey,
  shard: Shard,
  { runId, report }: { runId: string | undefined; report: Report },
): Promise<string | undefined> {
  const plan = await selectPlan(sql, key, shard.of);
  if (!plan?.given) return undefined;
  const shardOf = new Map(plan.files.map(({ file, shard }) => [file, shard]));
  const match = createFileMatch([...shardOf.keys()]);
  const own = plan.given.filter((name) => {
    const known = match(name);
    return (known === undefined ? hashShard(name, shard.of) : shardOf.get(known)) === shard.index;
  });
  if (own.length === 0) return undefined;
  const stored = runId === undefined ? [] : await selectFilesOfRun(sql, key.projectId, runId);
  const fresh = report.cases.flatMap((one) => unitOf(one) ?? []);
  const matchReported = createFileMatch([...new Set([...stored, ...fresh])]);
  // Reports that name no files, or name them otherwise, say nothing of them.
  if (!plan.given.some((name) => matchReported(name) !== undefined)) return undefined;
  const absent = own.filter((name) => matchReported(name) === undefined);
  if (absent.length === 0) return undefined;
  const { runs, timings } = (await selectFileTimings(sql, key)) ?? { runs: 0, timings: [] };
  const matchKnown = createFileMatch(timings.map(({ file }) => file));
  const skipped = runs === 0 ? absent : absent.filter((name) => matchKnown(name) !== undefined);
  if (skipped.length === 0) return undefined;
  const more = skipped.length - MAX_NAMED;
  const names = `${skipped.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return `${counted(skipped.length, "file")} of the split went to this shard and ${skipped.length === 1 ? "is" : "are"} in no report: ${names}`;
}
