/** Compares an answer of today with the answer of an earlier release. */

export type Difference = { field: string; difference: string };

/** Returns each value of `before` that `after` lacks or has otherwise. Fields that are new are no difference. */
export function findDifferences(before: unknown, after: unknown, field = ""): Difference[] {
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((value, index) => findDifferences(value, after[index], `${field}[]`));
  if (isObject(before) && isObject(after))
    return Object.entries(before).flatMap(([name, value]) => findDifferences(value, after[name], `${field}.${name}`));
  if (Bun.deepEquals(before, after)) return [];
  return [{ field, difference: `${field}: ${JSON.stringify(before)} became ${JSON.stringify(after)}` }];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

type Change = {
  /** The change concerns data of schemas before this one. */
  before: number;
  path: RegExp;
  field: RegExp;
};

/** What later versions answer otherwise on purpose. The data is the same. */
const INTENDED: readonly Change[] = [
  // The address contains the port of the server.
  { before: Infinity, path: /./, field: /\.url$/ },
  // Texts for people are no part of the contract.
  { before: Infinity, path: /./, field: /\.(reason|headline)$/ },
  { before: Infinity, path: /\/onboarding$/, field: /\.steps\[\]\.(title|hint)$|\.snippets\./ },
  // The impact counts executions of the last 14 days.
  { before: Infinity, path: /\/bug-reports/, field: /\.impact$/ },
  // 0009 gave every execution a baseline that does not change.
  { before: 9, path: /\/comparison$/, field: /\.baselineId$/ },
  // Since 0029 an incomplete report is not what a build is compared with.
  { before: 29, path: /\/comparison$/, field: /\.(added|fixed|missing)$/ },
  // Since 0031 failures of one cause are found by the normalised message as well.
  { before: 31, path: /\/failures$/, field: /\.causes$/ },
  // Version 1.0 forgives fewer failures.
  { before: 58, path: /\/verdict\?gate=new$/, field: /\.(pass|reasons|forgiven|forgivenCount)$/ },
];

export const isIntended = ({ schema, path, field }: { schema: number; path: string; field: string }): boolean =>
  INTENDED.some((change) => schema < change.before && change.path.test(path) && change.field.test(field));
