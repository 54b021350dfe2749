/** Compares an answer of of this version with the answer of an earlier release. */

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

/** Fields whose value depends on the server or on the time, or is text for people, which is not part of the contract. */
const VARIABLE: readonly { path: RegExp; field: RegExp }[] = [
  // The address contains the port of the server.
  { path: /./, field: /\.url$/ },
  { path: /./, field: /\.(reason|headline)$/ },
  { path: /\/onboarding$/, field: /\.steps\[\]\.(title|hint)$|\.snippets\./ },
  // The impact counts executions of the last 14 days.
  { path: /\/bug-reports/, field: /\.impact$/ },
];

export const mayDiffer = (answer: { path: string; field: string }): boolean =>
  VARIABLE.some(({ path, field }) => path.test(answer.path) && field.test(answer.field));
