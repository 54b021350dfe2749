/** Compares the report of a shard with the split of its task: finds files that did not run, and shards that have no files. */

import { countUnrun } from "../../rules/batches.ts";
import { createFileMatch, hashShard, unitOf } from "../../rules/plan.ts";
import { totalResults } from "./run_detail.ts";
import type { Report } from "../../reports/report.ts";
import type { Shard } from "../../schema/fields.ts";
import { refuse } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { lockFileQueue } from "../../store/file_queues.ts";
import { type PlanKey, selectFilesOfRun, selectFileTimings, selectPlan } from "../../store/plans.ts";
import { counted } from "../../wording/numbers.ts";

/** The maximum number of files that are named. */
const MAX_NAMED = 5;

/** A sentence for people; `isPartial`: the run lacks results. */
export type SplitNote = { text: string; isPartial: boolean };

/** `own` are the files of a shard, and `all` those of the task; of a queue only its own are known. */
type SplitFiles = { own: readonly string[]; all: readonly string[]; unrun?: string | undefined };

type ShardReport = {
  report: Report;
  /** The run so far. */
  run: { id: string; passed: number; failed: number; skipped: number } | undefined;
  hasAllOthers: boolean;
  /** It has neither results nor a failure. */
  isEmpty: boolean;
  /** It may be empty only if the shard has no files. */
  needsEmptyShard: boolean;
};

/**
 * In the transaction that ingests the report of a shard; undefined: there is nothing to say, or nobody can tell. Refuses an empty report of a
 * shard that has files, or whose files are unknown, if that is to be refused.
 */
export async function readSplit(
  sql: Tx,
  key: PlanKey,
  shard: Shard,
  { report, run, hasAllOthers, isEmpty, needsEmptyShard }: ShardReport,
): Promise<SplitNote | undefined> {
  const split = await findSplit(sql, key, shard, hasAllOthers);
  if (isEmpty && needsEmptyShard && split?.own.length !== 0)
    refuse(
      `The report holds no test case, and ${split ? `the split gave this shard ${counted(split.own.length, "file")}` : "nothing says that the split gave this shard no files"}`,
    );
  if (!split) return undefined;
  const { own, all, unrun } = split;
  if (unrun !== undefined) return { text: unrun, isPartial: true };
  if (isEmpty && hasAllOthers && shard.of > 1 && (!run || totalResults(run) === 0))
    return { text: "No shard has run a test", isPartial: true };
  if (isEmpty && own.length === 0)
    return { text: `The split gave shard ${shard.index || 1} of ${shard.of} no files`, isPartial: false };
  if (shard.of === 1) return undefined;
  return await tellSkipped(sql, key, { own, all }, { report, run });
}

/** undefined: no job has named its files. */
async function findSplit(sql: Tx, key: PlanKey, shard: Shard, hasAllOthers: boolean): Promise<SplitFiles | undefined> {
  const index = shard.index || 1;
  const queue = await lockFileQueue(sql, key, shard.of);
  if (queue) {
    const own = queue.files.filter((_, at) => queue.places[at] === index);
    const { own: unread, waiting } = countUnrun(queue, index);
    const files = (count: number) => `${counted(count, "file")} of the split`;
    const unrun =
      unread > 0
        ? `${files(unread)} went to this shard, which has not said that it has run them`
        : hasAllOthers && waiting > 0
          ? `${files(waiting)} went to no shard`
          : undefined;
    return { own, all: own, unrun };
  }
  const plan = await selectPlan(sql, key, shard.of);
  // Without names nobody knows which files exist, and the tool may split tests by itself.
  if (!plan?.given?.length) return undefined;
  const shardOf = new Map(plan.files.map(({ file, shard }) => [file, shard]));
  const match = createFileMatch([...shardOf.keys()]);
  const own = plan.given.filter((name) => {
    const known = match(name);
    return (known === undefined ? hashShard(name, shard.of) : shardOf.get(known)) === index;
  });
  return { own, all: plan.given };
}

/**
 * Names the files of a shard that are in no report. Only a split whose job has named its files says which exist. Once there are earlier
 * runs, a file of which none of them has results is a warning only: it may be without tests.
 */
async function tellSkipped(
  sql: Tx,
  key: PlanKey,
  { own, all }: SplitFiles,
  { report, run }: Pick<ShardReport, "report" | "run">,
): Promise<SplitNote | undefined> {
  if (own.length === 0) return undefined;
  const stored = run ? await selectFilesOfRun(sql, key.projectId, run.id) : [];
  const fresh = report.cases.flatMap((one) => unitOf(one) ?? []);
  const matchReported = createFileMatch([...new Set([...stored, ...fresh])]);
  // Reports that name no files, or name them otherwise, say nothing of them.
  if (!all.some((name) => matchReported(name) !== undefined)) return undefined;
  const absent = own.filter((name) => matchReported(name) === undefined);
  if (absent.length === 0) return undefined;
  const { runs, timings } = (await selectFileTimings(sql, key)) ?? { runs: 0, timings: [] };
  const matchKnown = createFileMatch(timings.map(({ file }) => file));
  const known = runs === 0 ? absent : absent.filter((name) => matchKnown(name) !== undefined);
  const isPartial = known.length > 0;
  const skipped = isPartial ? known : absent;
  const more = skipped.length - MAX_NAMED;
  const names = `${skipped.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  const isOne = skipped.length === 1;
  const what = isPartial ? `${isOne ? "is" : "are"} in no report` : `no report has ever named ${isOne ? "it" : "them"}`;
  const text = `${counted(skipped.length, "file")} of the split went to this shard and ${what}: ${names}`;
  return { text, isPartial };
}
