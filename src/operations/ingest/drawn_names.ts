/** Matches tests whose names contain a random value, such as a port, to the test cases that earlier runs stored under other values. */

import { caseKey } from "../../reports/report.ts";
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

/** The task and execution whose results are resolved. */
export type ResolveScope = {
  projectId: string;
  taskSlug: string;
  execution: ExecutionReference;
  /** Whether the report is complete, not one shard or part of a larger one. */
  isWhole: boolean;
};

/** Maximum number of tests with one plain name that are distinguished by their order; further ones are new test cases in each run. */
const MAX_TWINS = 200;

/** A new test, by its index, and the identity by which later runs will find it under another name. */
export type KeptName = { index: number; identity: string };

/**
 * Matches results without a test case to stored test cases that have the same plain name (the name without its random values) and are not
 * in the report. Sets their `numbers`. Several tests with one plain name are distinguished by their order. Returns the identities by which
 * later runs will find the tests that are still unmatched.
 *
 * Until a test has been seen under two names, only a complete report proves that its first name is gone.
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
    const key = caseKey(plain);
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
  // Each shard of a run has random values of its own, so a test case of another shard must not be matched.
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
    // An identity that becomes the present one must not remain an alias.
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

/** Counts the results of known tests by plain name, for the plain names in `fresh`. */
function countKnown(
  places: readonly PlacedCase[],
  numbers: readonly (number | null)[],
  fresh: ReadonlyMap<string, { plain: PlacedCase }>,
): Map<string, number> {
  const counts = new Map<string, number>();
  const placeOf = ({ suite, file }: PlacedCase) => `${suite}\0${file ?? ""}`;
  const around = new Set([...fresh.values()].map(({ plain }) => placeOf(plain)));
  for (const [index, place] of places.entries()) {
    if (numbers[index] === null || !around.has(placeOf(place))) continue;
    const name = plainName(place.name);
    const key = name === null ? undefined : caseKey({ ...place, name });
    if (key !== undefined && fresh.has(key)) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
