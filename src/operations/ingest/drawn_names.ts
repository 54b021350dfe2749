/** Finds the tests whose names hold something that is drawn for each run: they are known under another name. */

import { plainName } from "../../rules/drawn_name.ts";
import { identityOf, type PlacedCase } from "../../rules/identity.ts";
import type { OwnerAssignment } from "../projects/owners.ts";
import type { Tx } from "../../database/connect.ts";
import {
  deleteAliases,
  selectNumbersOfExecution,
  selectTestCasesByIdentity,
  updateTestCasePlaces,
} from "../../store/test_case_names.ts";
import type { ExecutionReference } from "../../store/test_case_names.ts";

/** Whose results are resolved. */
export type ResolveScope = {
  projectId: string;
  taskSlug: string;
  execution: ExecutionReference;
  /** The report is no part of a larger one. */
  isWhole: boolean;
};

/** So many tests of one plain name are told apart by their order; the others are new in each run. */
const MAX_TWINS = 200;

/** A new test and the identity by which it will be found under another name. */
export type KeptName = { index: number; identity: string };

/**
 * Gives results of a report that are of no known test the numbers of tests which are known under another drawn name and are not
 * in the report; several of one plain name are told apart by their order. Answers what the others are to be known by.
 *
 * Until a test has been seen under two names, only a whole report tells that its first name has gone.
 */
export async function adoptDrawn(
  sql: Tx,
  { projectId, taskSlug, execution, isWhole }: ResolveScope,
  places: readonly PlacedCase[],
  numbers: (number | null)[],
  owners: OwnerAssignment,
): Promise<KeptName[]> {
  const fresh = new Map<string, { plain: PlacedCase; indexes: number[] }>();
  for (const [index, place] of places.entries()) {
    if (numbers[index] !== null) continue;
    const name = plainName(place.name);
    if (name === null) continue;
    const plain = { ...place, name };
    const key = keyOf(plain);
    const one = fresh.get(key) ?? { plain, indexes: [] };
    fresh.set(key, one);
    if (one.indexes.length < MAX_TWINS) one.indexes.push(index);
  }
  if (fresh.size === 0) return [];

  const known = countKnown(places, numbers, fresh);
  const twins = [...fresh].map(([key, one]) => ({
    ...one,
    identities: Array.from(
      { length: Math.min(MAX_TWINS, one.indexes.length + (known.get(key) ?? 0)) },
      (_, occurrence) => identityOf(projectId, taskSlug, one.plain, occurrence),
    ),
  }));
  const stored = await selectTestCasesByIdentity(sql, projectId, twins.flatMap(({ identities }) => identities).sort());
  const taken = new Set(numbers);
  // Shards of one run draw for themselves.
  if (!isWhole && stored.size > 0)
    for (const number of await selectNumbersOfExecution(sql, projectId, taskSlug, execution)) taken.add(number);
  const renamed: { number: number; identity: string; plain: PlacedCase }[] = [];
  const kept: KeptName[] = [];
  for (const { plain, indexes, identities } of twins) {
    const left = [...indexes];
    for (const identity of identities) {
      const one = stored.get(identity);
      if (left.length === 0) break;
      if (!one) kept.push({ index: left.shift()!, identity });
      else if (!taken.has(one.number) && (one.isPlace || isWhole)) {
        numbers[left.shift()!] = one.number;
        taken.add(one.number);
        if (!one.isPlace) renamed.push({ number: one.number, identity, plain });
      }
    }
  }
  if (renamed.length > 0) {
    // The alias becomes the identity.
    await deleteAliases(
      sql,
      projectId,
      renamed.map(({ identity }) => identity),
    );
    const moved = renamed.map(({ number, identity, plain }) => {
      return { ...plain, number, identity, ownerList: owners.listOf(plain) };
    });
    await owners.store();
    await updateTestCasePlaces(sql, projectId, moved);
  }
  return kept;
}

const keyOf = ({ suite, name, file }: PlacedCase) => `${suite}\0${name}\0${file ?? ""}`;

/** How many results of known tests have these plain names. */
function countKnown(
  places: readonly PlacedCase[],
  numbers: readonly (number | null)[],
  fresh: ReadonlyMap<string, unknown>,
): Map<string, number> {
  const counts = new Map<string, number>();
  const around = new Set([...fresh.keys()].map((key) => key.split("\0").toSpliced(1, 1).join("\0")));
  for (const [index, place] of places.entries()) {
    if (numbers[index] === null || !around.has(`${place.suite}\0${place.file ?? ""}`)) continue;
    const name = plainName(place.name);
    const key = name === null ? undefined : keyOf({ ...place, name });
    if (key !== undefined && fresh.has(key)) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
