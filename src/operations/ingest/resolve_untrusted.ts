/** Finds the test cases that the results of an untrusted report belong to. */

import { toHex, toDigests } from "../../rules/digest_table.ts";
import type { IdentifiedCases } from "../../rules/identity.ts";
import { toUntrustedIdentity } from "../../rules/untrusted.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import {
  insertTestCases,
  lockTestCases,
  type NewTestCase,
  selectTestCaseNumbers,
} from "../../store/test_case_names.ts";

type Transact = <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;

/**
 * Returns the number of each case, in the order of the cases. An untrusted report changes no test case of the catalogue: an unknown one is
 * added outside of the catalogue.
 */
export async function resolveUntrusted(
  sql: Sql,
  transact: Transact,
  { projectId, taskSlug }: { projectId: string; taskSlug: string },
  { digests, places }: IdentifiedCases,
): Promise<number[]> {
  const known = await selectTestCaseNumbers(sql, projectId, digests);
  const seen = new Set<number>();
  // Two names of the report may be the present and a former name of one test case.
  const numbers = known.numbers.map((number) => {
    if (number === null || seen.has(number)) return null;
    seen.add(number);
    return number;
  });
  const fresh = [...numbers.keys()].filter((index) => numbers[index] === null);
  if (fresh.length === 0) return numbers as number[];
  const cases = fresh.map((index): NewTestCase => {
    const { suite, name, file } = places[index]!;
    return { suite, name, file, identity: toUntrustedIdentity(toHex(digests, index)), ownerList: null };
  });
  const identities = toDigests(Buffer.from(cases.map(({ identity }) => identity).join(""), "hex"));
  const stored = (await selectTestCaseNumbers(sql, projectId, identities)).numbers;
  const added = stored.includes(null)
    ? await transact(async (tx) => {
        await lockTestCases(tx, projectId);
        return await insertTestCases(tx, sql, projectId, taskSlug, cases, { last: -1, untrusted: true });
      })
    : (stored as number[]);
  for (const [at, index] of fresh.entries()) numbers[index] = added[at]!;
  return numbers as number[];
}
