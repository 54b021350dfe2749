/** Which new test cases of a report are known ones whose file was renamed or moved. */

import type { PlacedCase } from "./identity.ts";

const baseName = (file: string) => file.slice(file.lastIndexOf("/") + 1);
/** Groups the indexes by the name of the case's file without its folder; cases without a file are left out. */
const byBaseName = (indexes: Iterable<number>, cases: readonly PlacedCase[]) =>
  Map.groupBy(
    [...indexes].filter((index) => cases[index]!.file !== null),
    (index) => baseName(cases[index]!.file!),
  );
const keyOf = ({ suite, name }: PlacedCase) => `${suite}\0${name}`;

/**
 * Pairs of places in `fresh` and `known`. A known case that the report lacks is taken for a new one of the same suite
 * and name when its file kept its own name and moved; or, in a whole report, when its file is not in the report at all
 * and the new one's file holds nothing but new cases. Whenever there is a choice, nothing is taken for anything.
 *
 * `files` are those of known cases that the report has. `known` holds cases of the same task that the run lacks.
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
    const freeByBase = byBaseName(free, known);
    // More than one is as good as many.
    const left: number[] = [];
    for (const [base, rivals] of byBaseName(places, fresh)) {
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
