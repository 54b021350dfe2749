/** Dynamic splitting: which files a shard runs next, while the others run theirs. */

import type { FileTiming } from "./plan.ts";

/** Files in step, longest first; shards in step, from the first one on. */
export type FileQueue = {
  /** Milliseconds. */
  durations: readonly number[];
  /** The shard that has the file, from 1; 0: it waits. */
  places: readonly number[];
  /** The batch of its shard that the file is in, from 1; 0: it waits. */
  batches: readonly number[];
  /** The client that takes batches for the shard; "": none yet. */
  holders: readonly string[];
  /** Batches of the shard up to this one have been run. */
  acknowledged: readonly number[];
};

/** Share of its fair part that a shard gets first. It is large enough that a shard need not ask often, and leaves room to balance. */
const FIRST_SHARE = 0.5;
/** Number of batches per shard that the remaining work is divided into. */
const BATCHES_PER_SHARD = 1.5;

/**
 * Orders files by descending duration, then by name. A file without a known duration counts as the median of the others, and every file
 * takes some time.
 */
export function orderFiles(timings: readonly FileTiming[]): { file: string; ms: number }[] {
  const known = timings.flatMap(({ ms }) => (ms === null ? [] : [ms])).sort((a, b) => a - b);
  const median = known[Math.floor(known.length / 2)] ?? 1;
  return timings
    .map(({ file, ms }) => ({ file, ms: Math.max(1, ms ?? median) }))
    .sort((a, b) => b.ms - a.ms || (a.file < b.file ? -1 : 1));
}

export const newQueue = (durations: readonly number[], shards: number): FileQueue => ({
  durations,
  places: durations.map(() => 0),
  batches: durations.map(() => 0),
  holders: Array.from({ length: shards }, () => ""),
  acknowledged: Array.from({ length: shards }, () => 0),
});

/**
 * Returns the queue after a shard has run its last batch and requests the next, and the indexes of its files; none if all files are taken.
 * A new holder has no results of the previous one, so the files of that one wait again. `minMs` is the minimum duration of a batch, because
 * starting the tool takes time as well.
 */
export function nextBatch(
  before: FileQueue,
  { shard, holder, minMs }: { shard: number; holder: string; minMs: number },
): { queue: FileQueue; files: number[] } {
  const queue = before.holders[shard - 1] === holder ? before : releaseShard(before, shard);
  const shards = queue.holders.length;
  const last = queue.places.reduce(
    (last, place, at) => (place === shard ? Math.max(last, queue.batches[at]!) : last),
    0,
  );
  const waiting = queue.places.flatMap((place, at) => (place === 0 ? [at] : []));
  const sum = (files: readonly number[]) => files.reduce((sum, at) => sum + queue.durations[at]!, 0);
  const wanted =
    last === 0
      ? (FIRST_SHARE * sum([...queue.durations.keys()])) / shards
      : sum(waiting) / (BATCHES_PER_SHARD * shards);
  const size = Math.max(wanted, minMs);
  const files: number[] = [];
  let ms = 0;
  for (const at of waiting) {
    // A file of which more than half would exceed the size is left to a later batch.
    if (files.length > 0 && ms + queue.durations[at]! / 2 > size) break;
    files.push(at);
    ms += queue.durations[at]!;
  }
  const taken = new Set(files);
  const replace = <Value>(values: readonly Value[], value: Value) =>
    values.map((one, at) => (taken.has(at) ? value : one));
  return {
    files,
    queue: {
      ...queue,
      places: replace(queue.places, shard),
      batches: replace(queue.batches, last + 1),
      holders: queue.holders.with(shard - 1, holder),
      acknowledged: queue.acknowledged.with(shard - 1, last),
    },
  };
}

/** The queue after the results of a shard are lost: all of its files wait again. */
export const releaseShard = (queue: FileQueue, shard: number): FileQueue => ({
  ...queue,
  places: queue.places.map((place) => (place === shard ? 0 : place)),
  batches: queue.batches.map((batch, at) => (queue.places[at] === shard ? 0 : batch)),
  holders: queue.holders.with(shard - 1, ""),
  acknowledged: queue.acknowledged.with(shard - 1, 0),
});

/** Counts the files that a shard has taken and not acknowledged, and the files that no shard has taken. */
export const countUnrun = ({ places, batches, acknowledged }: FileQueue, shard: number) => ({
  own: places.filter((place, at) => place === shard && batches[at]! > acknowledged[shard - 1]!).length,
  waiting: places.filter((place) => place === 0).length,
});
