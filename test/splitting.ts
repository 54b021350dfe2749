/** How long jobs take for the files of a task, split in one way or another, against the time that no way can be below. */

import { createRandom } from "./random.ts";
import { newQueue, nextBatch, orderFiles, releaseShard } from "../src/rules/batches.ts";
import { hashShard, matchTimings, planShards } from "../src/rules/plan.ts";

export type SplitOptions = {
  seed: number;
  files: number;
  machines: number;
  way?: "queue" | "plan" | "plan without new files";
  /** So many of the files have never run. */
  fresh?: number;
  /** All machines are as fast; else the slowest takes 1.6 times as long as the fastest. */
  isEven?: boolean;
  /** One machine dies half way, and that is noticed after a tenth of the time. */
  dies?: boolean;
};

/** Starting the tool for a batch, in milliseconds. */
const STARTUP_MS = 2_000;

/** The time of the last job, as a multiple of the bound: all machines at work all the time, started once. */
export function simulateSplit({
  seed,
  files,
  machines,
  way = "queue",
  fresh = 0,
  isEven = false,
  dies = false,
}: SplitOptions): number {
  const random = createRandom(seed, "split");
  // Some files take a hundred times as long as others.
  const all = Array.from({ length: files }, (_, at) => ({
    file: `test/f${at}.test.ts`,
    ms: Math.round(Math.exp(random.between(6, 10.6))),
  }));
  const isFresh = (at: number) => at < fresh;
  // Runs differ by a tenth from what they took before.
  const taken = new Map(all.map(({ file, ms }) => [file, ms * random.between(0.9, 1.1)]));
  const speeds = Array.from({ length: machines }, () => (isEven ? 1 : random.between(0.77, 1.23)));
  const timings = all.filter((_, at) => !isFresh(at));
  const known = matchTimings(
    timings,
    all.map(({ file }) => file),
  );
  const total = [...taken.values()].reduce((sum, ms) => sum + ms, 0);
  const bound = total / speeds.reduce((sum, speed) => sum + speed, 0) + STARTUP_MS;
  if (way !== "queue") {
    const planned = planShards(way === "plan" ? known : timings, machines);
    const ends = speeds.map(() => STARTUP_MS);
    for (const { file } of all) {
      const shard = planned.find((one) => one.file === file)?.shard ?? hashShard(file, machines);
      ends[shard - 1]! += taken.get(file)! / speeds[shard - 1]!;
    }
    return Math.max(...ends) / bound;
  }
  const ordered = orderFiles(known);
  let queue = newQueue(
    ordered.map(({ ms }) => ms),
    machines,
  );
  const dead = dies ? 0 : -1;
  const deathAt = bound / 2;
  const noticedAt = deathAt + bound / 10;
  let isNoticed = false;
  /** When each machine asks next; undefined: it is done. */
  const free: (number | undefined)[] = speeds.map(() => 0);
  let end = 0;
  for (;;) {
    const times = free.map((at) => at ?? Number.POSITIVE_INFINITY);
    const now = Math.min(...times);
    if (dies && !isNoticed && now >= noticedAt) {
      queue = releaseShard(queue, dead + 1);
      isNoticed = true;
      // Whoever was done by then starts the shard of the dead one again.
      const next = free.findIndex((at, machine) => at === undefined && machine !== dead);
      if (next !== -1) free[next] = noticedAt;
      free[dead] = undefined;
      if (Math.min(...free.map((at) => at ?? Number.POSITIVE_INFINITY)) === Number.POSITIVE_INFINITY && next === -1)
        break;
      continue;
    }
    if (now === Number.POSITIVE_INFINITY) break;
    const machine = times.indexOf(now);
    const { queue: after, files: batch } = nextBatch(queue, { shard: machine + 1, holder: `${machine}`, minMs: 4_000 });
    queue = after;
    if (batch.length === 0) {
      free[machine] = undefined;
      continue;
    }
    const work = batch.reduce((sum, at) => sum + taken.get(ordered[at]!.file)!, 0);
    const ended = now + STARTUP_MS + work / speeds[machine]!;
    if (machine === dead && ended > deathAt && !isNoticed) {
      free[machine] = noticedAt;
      continue;
    }
    free[machine] = ended;
    end = Math.max(end, ended);
  }
  return end / bound;
}
