/** Finds the test cases that the results of a report belong to: known ones, renamed ones, and new ones. */

import { adoptDrawn, type ResolveScope } from "./drawn_names.ts";
import { originOf, type PreparedReport } from "./prepare.ts";
import { openAssignment, type OwnerAssignment } from "../projects/owners.ts";
import { resolveUntrusted } from "./resolve_untrusted.ts";
import { countOf, type Digests, isSame, joinDigests, toHex, toHexes } from "../../rules/digest_table.ts";
import {
  type IdentifiedCases,
  identifyOtherNames,
  identityOf,
  losesFile,
  mayBeSameFile,
  type PlacedCase,
} from "../../rules/identity.ts";
import { findRenamed, isWholeTask } from "../../rules/rename.ts";
import { selectDefaultTotal } from "../../store/baselines.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import { isTaken, type Sql, type Tx } from "../../database/connect.ts";
import {
  deleteAliases,
  insertAliases,
  insertTestCases,
  type KnownTestCase,
  lockTestCases,
  MANY,
  type NewTestCase,
  selectIdentities,
  selectNamesakes,
  selectTestCaseNumbers,
  selectTestCasesByIdentity,
  updateTestCasePlaces,
} from "../../store/test_case_names.ts";

/** Runs a transaction for those who have brought a report. */
export type Transact = <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;

/** Looks up the numbers of the cases of several reports; undefined for a report of which a case is not known, or two are one. */
export async function lookUpReports(
  sql: Sql,
  projectId: string,
  reports: readonly Pick<PreparedReport, "identified">[],
): Promise<(readonly number[] | undefined)[]> {
  // The same task again and again is what most of them are.
  const lists: Digests[] = [];
  const places = reports.map(({ identified: { digests } }) => {
    const place = lists.findIndex((list) => isSame(list, digests));
    return place === -1 ? lists.push(digests) - 1 : place;
  });
  const { numbers } = await selectTestCaseNumbers(sql, projectId, joinDigests(lists));
  let start = 0;
  const found = lists.map((list) => {
    const own = numbers.slice(start, (start += countOf(list)));
    return !own.includes(null) && new Set(own).size === own.length ? (own as number[]) : undefined;
  });
  return places.map((place) => found[place]);
}

/** Before the transaction of the upload: the number of each case of a report. */
export async function resolveReport(
  sql: Sql,
  transact: Transact,
  projectId: string,
  { report, taskSlug, identified }: PreparedReport,
  parameters: UploadParameters,
): Promise<number[]> {
  const { branch = null, queueRef, commit = null } = originOf(parameters, report);
  const execution = {
    id: parameters.execution_id ?? null,
    key: parameters.execution_key ?? null,
    branch: queueRef ?? branch,
    commit,
  };
  if (parameters.untrusted) return await resolveUntrusted(sql, transact, { projectId, taskSlug }, identified);
  const isWhole = parameters.shard === undefined && !report.partial;
  return await resolveTestCases(sql, transact, { projectId, taskSlug, execution, isWhole }, identified);
}

/**
 * The number of each case, in their order. What is new is written in a transaction of its own, before that of the
 * results: a dictionary entry without results does no harm.
 */
export async function resolveTestCases(
  sql: Sql,
  transact: Transact,
  scope: ResolveScope,
  named: IdentifiedCases,
): Promise<number[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await resolveOnce(sql, transact, scope, named);
    } catch (error) {
      // Others have moved the same cases since they were looked up: where they are now is known.
      if (!(isTaken(error) || error instanceof Moved) || tries === MAX_TRIES) throw error;
    }
  }
}

/** Each time others have moved cases of the report between its look-up and its turn. */
const MAX_TRIES = 5;

/** Two places of a report have become one case while it waited for its turn. */
class Moved extends Error {}

async function resolveOnce(
  sql: Sql,
  transact: Transact,
  scope: ResolveScope,
  named: IdentifiedCases,
): Promise<number[]> {
  const { projectId, taskSlug } = scope;
  const known = await selectTestCaseNumbers(sql, projectId, named.digests);
  const split = known.hasAliases ? await splitAliases(sql, projectId, named, known.numbers) : [];
  if (!known.numbers.includes(null)) return known.numbers as number[];
  const fresh = [...known.numbers.keys()].filter((index) => known.numbers[index] === null);
  const identities = toHexes(named.digests);
  const others = identifyOtherNames(projectId, taskSlug, named.results, fresh);
  return await transact(async (tx) => {
    // The transaction may be repeated, and what an attempt before it has found is undone.
    const numbers = [...known.numbers];
    await lockTestCases(tx, projectId);
    const owners = await openAssignment(
      tx,
      sql,
      projectId,
      fresh.map((index) => named.places[index]!),
    );
    if (split.length > 0) await deleteAliases(tx, projectId, split);
    if (known.last > 0) {
      await adoptOtherNames(tx, scope, named, numbers, others, owners);
      await adoptRenamed(tx, scope, named, numbers, owners);
    }
    const drawn = await adoptDrawn(tx, scope, named.places, numbers, owners);
    const left = fresh.filter((index) => numbers[index] === null);
    const newCases = left.map((index): NewTestCase => {
      const { suite, name, file } = named.places[index]!;
      return { suite, name, file, identity: identities[index]!, ownerList: owners.listOf({ suite, file }) };
    });
    await owners.store();
    const added = await insertTestCases(
      tx,
      sql,
      projectId,
      taskSlug,
      newCases,
      // No number tells what others have moved since the cases were looked up.
      { last: left.length < MANY ? -1 : known.last },
    );
    for (const [place, index] of left.entries()) numbers[index] = added[place]!;
    const aliases = [
      ...fresh.flatMap((index) => (others.get(index)?.kept ?? []).map((identity) => ({ index, identity }))),
      ...drawn,
    ].map(({ index, identity }) => ({ identity, number: numbers[index]! }));
    if (aliases.length > 0) await insertAliases(tx, projectId, aliases);
    if (new Set(numbers).size < numbers.length) throw new Moved("Test cases of the report moved in the meantime");
    return numbers as number[];
  });
}

/**
 * Where a report has a case at its place and at a former one, the file was copied and not moved: the former place is a
 * case of its own. Takes its number back, and answers its identity.
 */
async function splitAliases(
  sql: Sql,
  projectId: string,
  { digests }: IdentifiedCases,
  numbers: (number | null)[],
): Promise<string[]> {
  const seen = new Set<number>();
  const twice = new Set<number>();
  for (const number of numbers) if (number !== null) (seen.has(number) ? twice : seen).add(number);
  if (twice.size === 0) return [];
  const identities = await selectIdentities(sql, projectId, [...twice]);
  const split: string[] = [];
  for (const [index, number] of numbers.entries()) {
    if (number === null || !twice.has(number)) continue;
    const identity = toHex(digests, index);
    if (identities.get(number) === identity) continue;
    numbers[index] = null;
    split.push(identity);
  }
  return split;
}

/** Takes the results of tests that are stored under a name of another format, or of an earlier version, for these tests. */
async function adoptOtherNames(
  sql: Tx,
  { projectId }: ResolveScope,
  named: IdentifiedCases,
  numbers: (number | null)[],
  others: ReturnType<typeof identifyOtherNames>,
  owners: OwnerAssignment,
): Promise<void> {
  const identities = [...others.values()].flatMap((names) => names.identities);
  if (identities.length === 0) return;
  const stored = await selectTestCasesByIdentity(sql, projectId, [...new Set(identities)].sort());
  const taken = new Set(numbers);
  const adopted: AdoptedCase[] = [];
  for (const [index, names] of others) {
    const { file } = named.places[index]!;
    const found = names.identities
      .map((identity) => stored.get(identity))
      .find((one) => one && !taken.has(one.number) && mayBeSameFile(one.file, file));
    if (!found) continue;
    taken.add(found.number);
    adopted.push({ index, number: found.number, mayMove: found.isPlace && !losesFile(file, found.file) });
  }
  await adopt(sql, projectId, named, numbers, adopted, owners);
}

type AdoptedCase = {
  index: number;
  number: number;
  /** False where what is stored tells more than this report. */
  mayMove: boolean;
};

/** Makes results those of known cases: these get the place that the report tells, or its identity as an alias. */
async function adopt(
  sql: Tx,
  projectId: string,
  { digests, places }: IdentifiedCases,
  numbers: (number | null)[],
  adopted: readonly AdoptedCase[],
  owners: OwnerAssignment,
): Promise<void> {
  const [moved, others] = [adopted.filter(({ mayMove }) => mayMove), adopted.filter(({ mayMove }) => !mayMove)];
  const toAlias = ({ index, number }: AdoptedCase) => ({ number, identity: toHex(digests, index) });
  if (moved.length > 0) {
    const newPlaces = moved.map((one) => {
      const place = places[one.index]!;
      return { ...place, ...toAlias(one), ownerList: owners.listOf(place) };
    });
    await owners.store();
    await updateTestCasePlaces(sql, projectId, newPlaces);
  }
  if (others.length > 0) await insertAliases(sql, projectId, others.map(toAlias));
  for (const { index, number } of adopted) numbers[index] = number;
}

/** A look at so many tells whether there are any: a new suite of 100,000 cases has no namesakes. */
const SAMPLE = 200;

async function adoptRenamed(
  sql: Tx,
  { projectId, taskSlug, execution, isWhole }: ResolveScope,
  named: IdentifiedCases,
  numbers: (number | null)[],
  owners: OwnerAssignment,
): Promise<void> {
  const { digests, places } = named;
  const isFirst = (place: PlacedCase, identity: string) => identity === identityOf(projectId, taskSlug, place);
  const select = (indexes: readonly number[]) =>
    selectNamesakes(
      sql,
      projectId,
      taskSlug,
      indexes.map((index) => places[index]!),
      execution,
    );
  const unknown = [...numbers.keys()].filter((index) => numbers[index] === null);
  const step = Math.ceil(unknown.length / SAMPLE);
  let namesakes: KnownTestCase[] = await select(unknown.filter((_, place) => place % step === 0));
  if (namesakes.length === 0) return;
  if (step > 1) namesakes = await select(unknown);
  const fresh = unknown.filter((index) => isFirst(places[index]!, toHex(digests, index)));
  const there = new Set(numbers);
  const known = namesakes.filter((one) => !there.has(one.number) && isFirst(one, one.identity));
  const files = new Set(places.filter((_, index) => numbers[index] !== null).map(({ file }) => file));
  const total = isWhole && known.length > 0 ? await selectDefaultTotal(sql, projectId, taskSlug) : null;
  const pairs = findRenamed(
    fresh.map((index) => places[index]!),
    known,
    files,
    isWhole && isWholeTask(places.length, total),
  );
  const adopted = pairs.map(([place, at]): AdoptedCase => {
    const { number, file } = known[at]!;
    const index = fresh[place]!;
    return { index, number, mayMove: !losesFile(places[index]!.file, file) };
  });
  await adopt(sql, projectId, named, numbers, adopted, owners);
}
