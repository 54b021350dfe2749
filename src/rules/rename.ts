/** Finds new test cases of a report that are known ones whose file was renamed or moved. */

import { isAbsolute, type PlacedCase } from "./identity.ts";

const baseName = (file: string) => file.slice(file.lastIndexOf("/") + 1);
/** Groups the indexes by the name of the case's file without its folder; cases without a file are left out. */
const byBaseName = (indexes: Iterable<number>, cases: readonly PlacedCase[]) =>
  Map.groupBy(
    [...indexes].filter((index) => cases[index]!.file !== null),
    (index) => baseName(cases[index]!.file!),
  );
const keyOf = ({ suite, name }: PlacedCase) => `${suite}\0${name}`;

/** A path of more folders is compared by its last ones. */
const MAX_FOLDERS = 40;

/** The ends of an absolute path that a report may name the file by, the longest first. */
function* endsOf(path: string): Generator<string> {
  const parts = path.split("/").slice(1).slice(-MAX_FOLDERS);
  for (let start = 0; start < parts.length; start++) yield parts.slice(start).join("/");
}

/** Pairs indexes of absolute files with those of the relative files that end them. If two match one file, neither is paired. */
function pairByEnd(
  absolute: readonly (readonly [index: number, file: string])[],
  relative: readonly (readonly [index: number, file: string])[],
): [absolute: number, relative: number][] {
  if (absolute.length === 0 || relative.length === 0) return [];
  const byFile = Map.groupBy(relative, ([, file]) => file);
  const claims = new Map<number, number[]>();
  for (const [index, file] of absolute) {
    for (const end of endsOf(file)) {
      const [one, another] = byFile.get(end) ?? [];
      if (one && !another) claims.set(one[0], [...(claims.get(one[0]) ?? []).slice(0, 1), index]);
      if (one) break;
    }
  }
  return [...claims].flatMap(([index, [one, another]]) =>
    one !== undefined && another === undefined ? [[one, index] as [number, number]] : [],
  );
}

const filesOf = (indexes: Iterable<number>, cases: readonly PlacedCase[], areAbsolute: boolean) =>
  [...indexes].flatMap((index) => {
    const { file } = cases[index]!;
    return file !== null && isAbsolute(file) === areAbsolute ? [[index, file] as const] : [];
  });

/**
 * Returns pairs of indexes in `fresh` and `known`. A known case that the report lacks is the same as a new one of the same suite and name
 * if its file moved and kept its name; or, in a report of the whole task, if the report does not contain its file at all, and the new one's
 * file only contains new cases. This also covers reports of which one has the absolute path and the other the path within the repository,
 * or no file. Ambiguous cases are not paired. `files` are the files of known cases that the report has. `known` are cases of the same task
 * that the run lacks.
 */
export function findRenamed(
  fresh: readonly PlacedCase[],
  known: readonly PlacedCase[],
  files: ReadonlySet<string | null>,
  isWhole: boolean,
): [fresh: number, known: number][] {
  const byKey = Map.groupBy(known.keys(), (index) => keyOf(known[index]!));
  const wanted = Map.groupBy(fresh.keys(), (index) => keyOf(fresh[index]!));
  const pairs: [number, number][] = [];
  for (const [key, places] of wanted) {
    const free = new Set(byKey.get(key) ?? []);
    if (free.size === 0) continue;
    const sameFiles = [
      ...pairByEnd(filesOf(places, fresh, true), filesOf(free, known, false)),
      ...pairByEnd(filesOf(free, known, true), filesOf(places, fresh, false)).map(
        ([at, place]) => [place, at] as const,
      ),
    ];
    const paired = new Set(sameFiles.map(([place]) => place));
    for (const [place, at] of sameFiles) {
      pairs.push([place, at]);
      free.delete(at);
    }
    const unpaired = places.filter((place) => !paired.has(place));
    if (unpaired.length === 1 && free.size === 1) {
      const [at] = free;
      if ((fresh[unpaired[0]!]!.file === null) !== (known[at!]!.file === null)) {
        pairs.push([unpaired[0]!, at!]);
        continue;
      }
    }
    const freeByBase = byBaseName(free, known);
    // More than one is as good as many.
    const left: number[] = [];
    for (const [base, rivals] of byBaseName(unpaired, fresh)) {
      const moved = freeByBase.get(base) ?? [];
      if (moved.length === 1 && rivals.length === 1) {
        pairs.push([rivals[0]!, moved[0]!]);
        free.delete(moved[0]!);
      } else left.push(...rivals.slice(0, 2));
    }
    const [place] = left;
    const [only] = free;
    if (!isWhole || left.length !== 1 || free.size !== 1) continue;
    const [from, to] = [known[only!]!.file, fresh[place!]!.file];
    if (from !== null && !files.has(from) && !files.has(to)) pairs.push([place!, only!]);
  }
  return pairs;
}

/** A smaller share of the test cases of a task is a part of it. */
const MIN_SHARE = 0.9;

/**
 * Whether a report is of the whole task. A report with much fewer test cases is of a part of it, such as the tests that a change concerns,
 * so missing files were not renamed. `total` is the number of results in the last run on the default branch; null: unknown.
 */
export const isWholeTask = (cases: number, total: number | null): boolean =>
  total === null || cases >= MIN_SHARE * total;
