/** Assigns the files of a task to shards: by recorded durations where they are known, by hash where they are not. */

import type { Shard } from "../schema/fields.ts";
import { normalizeFile } from "./identity.ts";
import { toContainedPath } from "./report_path.ts";

/**
 * The first group is what a report without files names instead, if it is a class, such as "com.acme.CartTest", or a package, such as
 * "example.com/shop/cart": the beginning of the suite. PostgreSQL reads the same expression.
 */
export const UNIT_IN_SUITE = String.raw`^(?=\S*[./])([^\s$]+)(\$\S*)?( > |$)`;
const unitInSuite = new RegExp(UNIT_IN_SUITE);

/** Returns the unit by which a test case is assigned to a shard: its file, or else its class or package; undefined if none is known. */
export const unitOf = ({ file, suite }: { file: string | null; suite: string }): string | undefined =>
  file === null ? unitInSuite.exec(suite)?.[1] : normalizeFile(file);

/**
 * Returns the time of files beyond that of their test cases, such as for imports and hooks; negative for tests that ran concurrently.
 * `first` is the index of the first case of the file.
 */
export function overheadsOf(
  cases: readonly { file: string | null; suite: string; durationMs: number | null; unitMs?: number }[],
): { first: number; ms: number }[] {
  const units = new Map<string, { first: number; sum: number; own: number | null }>();
  if (!cases.some(({ unitMs }) => unitMs !== undefined)) return [];
  for (const [index, one] of cases.entries()) {
    const name = unitOf(one);
    if (name === undefined) continue;
    const unit = units.get(name) ?? { first: index, sum: 0, own: null };
    unit.sum += one.durationMs ?? 0;
    if (one.unitMs !== undefined) unit.own = (unit.own ?? 0) + one.unitMs;
    units.set(name, unit);
  }
  return [...units.values()].flatMap(({ first, sum, own }) =>
    own === null || own === sum ? [] : [{ first, ms: own - sum }],
  );
}

/** The duration of a file; null if no run has recorded it. */
export type FileTiming = { file: string; ms: number | null };

/** `shard` counts from 1. */
export type PlannedFile = { file: string; ms: number; shard: number };

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Returns the assumed duration of files without a known one: the median of the others; 0 if none is known. */
function medianOf(timings: readonly FileTiming[]): number {
  const known = timings.flatMap(({ ms }) => (ms === null ? [] : [ms])).sort((a, b) => a - b);
  const middle = known.length / 2;
  if (known.length === 0) return 0;
  return Number.isInteger(middle) ? Math.round((known[middle - 1]! + known[middle]!) / 2) : known[Math.floor(middle)]!;
}

/**
 * Assigns files by descending duration, each to the shard with the shortest total (LPT: at worst a third above the optimum; with many short
 * files, within the length of one of them). The result does not depend on the order of the timings. Sorted by name.
 */
export function planShards(timings: readonly FileTiming[], shards: number): PlannedFile[] {
  const median = medianOf(timings);
  const planned = timings
    .map(({ file, ms }): PlannedFile => ({ file, ms: ms ?? median, shard: 0 }))
    .sort((a, b) => compare(a.file, b.file));
  const heap = createHeap(shards);
  // Files of equal length keep their order, by name, because sorting is stable.
  for (const file of planned.toSorted((a, b) => b.ms - a.ms)) file.shard = heap.add(file.ms);
  return planned;
}

/** Milliseconds of the shard that takes longest. */
export function longestShard(files: readonly PlannedFile[]): number {
  const loads = new Map<number, number>();
  for (const { shard, ms } of files) loads.set(shard, (loads.get(shard) ?? 0) + ms);
  return Math.max(0, ...loads.values());
}

type Load = { shard: number; ms: number; files: number };

/** Files that take no time are spread by their number. */
const isBefore = (a: Load, b: Load) => (a.ms - b.ms || a.files - b.files || a.shard - b.shard) < 0;

/** The emptiest shard on top: there may be thousands of them. */
function createHeap(shards: number) {
  const heap = Array.from({ length: shards }, (_, index): Load => ({ shard: index + 1, ms: 0, files: 0 }));
  return {
    /** Answers the shard that the file has gone to. */
    add(ms: number): number {
      const load = heap[0]!;
      load.ms += ms;
      load.files++;
      for (let at = 0; ;) {
        const [left, right] = [2 * at + 1, 2 * at + 2];
        const child = right < heap.length && isBefore(heap[right]!, heap[left]!) ? right : left;
        if (child >= heap.length || !isBefore(heap[child]!, load)) break;
        [heap[at], heap[child]] = [heap[child]!, load];
        at = child;
      }
      return load.shard;
    },
  };
}

/** The shard of a file that no plan knows: the same on every machine, whatever other files there are. Counts from 1. */
export const hashShard = (file: string, shards: number): number =>
  1 + (new DataView(Bun.SHA256.hash(file).buffer).getUint32(0) % shards);

/**
 * Returns a file's name for comparisons: relative to `directory` if it is below it, with forward slashes, without "." and "..". A file
 * beside the directory is named relative to it: `../web/a.test.ts`.
 */
export function toFileName(file: string, directory?: string): string {
  const path = file.replaceAll("\\", "/");
  const slashed = directory?.replaceAll("\\", "/");
  const root = slashed === undefined || slashed.endsWith("/") ? slashed : `${slashed}/`;
  const relative = root !== undefined && path.startsWith(root) ? path.slice(root.length) : normalizeFile(path);
  const parts: string[] = [];
  for (const part of relative.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && (part !== "" || parts.length === 0)) parts.push(part);
  }
  return parts.join("/");
}

const isAbsolute = (path: string) => /^(?:\/|[A-Za-z]:\/)/.test(path);

/** Maximum number of files with one base name that are matched by the end of their paths. Beyond it paths must be equal. */
const MAX_ALIKE = 200;

/**
 * Returns the files of a job, with their names in reports if known, else with their own name and null. Files that the job does not have are
 * left out.
 */
export function matchTimings(timings: readonly FileTiming[], names: readonly string[]): FileTiming[] {
  const known = new Map(timings.map(({ file, ms }) => [file, ms]));
  const match = createFileMatch([...known.keys()], MAX_ALIKE);
  const files = new Map(
    names.map((name) => {
      const file = match(name);
      return file === undefined ? [name, null] : [file, known.get(file)!];
    }),
  );
  return [...files].map(([file, ms]) => ({ file, ms }));
}

/**
 * Finds the known name of a file. Paths in reports, globs and shells have different beginnings: of two names one may be the end of the
 * other, or both are absolute and end in the same folder; the longest such end counts, and none if two files share it. The result only
 * depends on the name and `known`, so shards that see different files agree.
 */
export function createFileMatch(
  known: readonly string[],
  maxAlike = Number.POSITIVE_INFINITY,
): (name: string) => string | undefined {
  const exact = new Map(known.map((file) => [toFileName(file), file]));
  const byLast = Map.groupBy(
    known.map((file) => ({ file, parts: partsOf(toFileName(file)) })),
    ({ parts }) => parts.at(-1)!,
  );
  return (name) => {
    const same = exact.get(name);
    if (same !== undefined) return same;
    const own = name.split("/");
    const asClass = partsOf(name.replace(JVM_SOURCE, ""));
    const parts = byLast.has(own.at(-1)!) ? own : asClass;
    let best = { file: undefined as string | undefined, length: 0 };
    const alike = byLast.get(parts.at(-1)!) ?? [];
    if (alike.length > maxAlike) return undefined;
    for (const { file, parts: theirs } of alike) {
      const length = commonEnd(parts, theirs);
      const isAlike =
        length === Math.min(parts.length, theirs.length, MAX_PARTS) ||
        (length > 1 && isAbsolute(name) && isAbsolute(file));
      if (!isAlike || length < best.length) continue;
      best = { file: length === best.length ? undefined : file, length };
    }
    return best.file;
  };
}

const JVM_SOURCE = /\.(?:java|kt|groovy|scala)$/;
const DOTTED = /^(?:[\w$]+\.)*[\w$]+$/;
const OWN_NAME = /^[A-Z]\w*/;

/** Whether a name is that of a class, and no path: its last part begins with a capital and has small letters. */
function isClass(name: string): boolean {
  const [own] = OWN_NAME.exec(name.slice(name.lastIndexOf(".") + 1)) ?? [];
  return own !== undefined && /[a-z]/.test(own) && DOTTED.test(name);
}

/** Maximum number of parts of a name that are compared, from the last one on. */
const MAX_PARTS = 64;

/** A class has its package before it, as the path of its source has. */
const partsOf = (name: string): string[] => name.split(isClass(name) ? "." : "/");

function commonEnd(a: readonly string[], b: readonly string[]): number {
  let length = 0;
  const most = Math.min(a.length, b.length, MAX_PARTS);
  while (length < most && a[a.length - 1 - length] === b[b.length - 1 - length]) length++;
  return length;
}

/** A plan as one of its shards gets it. */
export type ShardPlan = {
  /** The files of this shard. */
  files: readonly string[];
  /** Milliseconds, of the files of all shards. */
  timings: Readonly<Record<string, number>>;
};

/** Returns the path of a shard's plan, below the project. */
export const planPath = (executionId: string, taskSlug: string, { index, of }: Shard): string =>
  `/executions/${encodeURIComponent(executionId)}/test-runs/${encodeURIComponent(taskSlug)}/plan?shard=${index}/${of}`;

/** Returns the path where a shard requests its next files, below the project. */
export const batchesPath = (executionId: string, taskSlug: string): string =>
  `/executions/${encodeURIComponent(executionId)}/test-runs/${encodeURIComponent(taskSlug)}/batches`;

/** A file to split: `name` is compared, `known` is its name in the plan. */
export type SplitFile = { file: string; name: string; known: string | undefined };

/**
 * Returns the files of this shard. Each file is in exactly one shard, also if the shards do not see the same files. Without a plan all
 * files are assigned by hash. A file that is given twice counts once.
 */
export function splitFiles(
  files: readonly string[],
  { plan, shard, directory }: { plan: ShardPlan | undefined; shard: Shard; directory: string },
): SplitFile[] {
  const match = createFileMatch(Object.keys(plan?.timings ?? {}));
  const own = new Set(plan?.files);
  const seen = new Set<string>();
  return files.flatMap((file) => {
    const name = toFileName(file, directory);
    if (seen.has(name)) return [];
    seen.add(name);
    const known = match(name);
    const isOwn = known === undefined ? hashShard(name, shard.of) === shard.index : own.has(known);
    return isOwn ? [{ file, name, known }] : [];
  });
}

/**
 * Returns the files of a shard for a job that names none, as paths from `directory`, which is absolute. The names come from reports, so
 * names outside of the directory are in `leftOut`. If several names are one path, the first of the plan decides: otherwise a name such as
 * `x/../a.test.ts` would take `a.test.ts` out of its shard.
 */
export function plannedFiles(
  plan: ShardPlan,
  directory: string,
): { own: SplitFile[]; ofOthers: string[]; leftOut: string[] } {
  const known = new Map<string, string>();
  for (const file of [...Object.keys(plan.timings), ...plan.files]) {
    const path = toContainedPath(file, directory);
    if (path !== undefined && !known.has(path)) known.set(path, file);
  }
  const ofShard = new Set(plan.files);
  const paths = Map.groupBy(known, ([, file]) => ofShard.has(file));
  return {
    own: (paths.get(true) ?? []).map(([path, file]) => ({ file: path, name: path, known: file })),
    ofOthers: (paths.get(false) ?? []).map(([path]) => path),
    leftOut: plan.files.filter((file) => toContainedPath(file, directory) === undefined),
  };
}
