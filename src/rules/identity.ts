/** Determines the test case that a result belongs to: the same task, suite, name and file. */

import { caseKey, type KnownNames } from "../reports/report.ts";
import { createDigests, createDigestTable, DIGEST_BYTES, type Digests, toHex } from "./digest_table.ts";

/** Workspaces of CI systems: the path in the repository follows them. */
export const WORKSPACES = [
  /^\/home\/runner\/work\/[^/]+\/[^/]+\//,
  /^\/__w\/[^/]+\/[^/]+\//,
  /^[a-z]:\/a\/[^/]+\/[^/]+\//i,
  /^\/builds\/[^/]+\/[^/]+\//,
  /^\/var\/(?:lib\/)?jenkins(?:_home)?\/workspace\/[^/]+\//,
  /^\/home\/circleci\/(?:project|repo)\//,
  /^\/root\/project\//,
  /^\/home\/vsts\/work\/\d+\/s\//,
  /^\/opt\/atlassian\/pipelines\/agent\/build\//,
  /^\/(?:drone|woodpecker)\/src\//,
  /^\/var\/lib\/buildkite-agent\/builds\/[^/]+\/[^/]+\/[^/]+\//,
  /^\/github\/workspace\//,
  /^\/(?:app|src|workspace|project)\//,
];

/** Returns a path with forward slashes, without the scheme of a URL and "./". */
export const toSlashes = (path: string): string =>
  path
    .replaceAll("\\", "/")
    .replace(/^file:\/\/(?=\/)/, "")
    .replace(/^(?:\.\/)+/, "");

/** Returns the path within the repository as far as it is known: forward slashes, without known workspaces. */
export function normalizeFile(file: string): string {
  const path = toSlashes(file);
  for (const workspace of WORKSPACES) if (workspace.test(path)) return path.replace(workspace, "");
  return path;
}

export type PlacedCase = { suite: string; name: string; file: string | null };

/** A result with the other names under which its test may be stored already. */
type NamedResult = PlacedCase & KnownNames;

export const isAbsolute = (file: string): boolean => /^(?:\/|[a-z]:\/)/i.test(file);

/** Whether two names of a file (null: unknown) may be one file: the longer ends with the shorter. */
export const mayBeSameFile = (one: string | null, other: string | null): boolean =>
  one === null || other === null || one === other || one.endsWith(`/${other}`) || other.endsWith(`/${one}`);

/** Whether replacing the file `known` of a test case with `file` would lose information. */
export const losesFile = (file: string | null, known: string | null): boolean =>
  known !== null && (file === null || (isAbsolute(file) && !isAbsolute(known)));

/** `occurrence`: the index among equal names that only differ in drawn values. A separator cannot occur in the texts. */
const textOf = (scope: string, { suite, name, file }: PlacedCase, occurrence: number) =>
  `${scope}\0${suite}\0${name}\0${file ?? ""}\0${occurrence}`;

/** 32 hexadecimal digits. */
export const identityOf = (projectId: string, taskSlug: string, place: PlacedCase, occurrence = 0): string =>
  Bun.SHA256.hash(textOf(`${projectId}\0${taskSlug}`, place, occurrence), "hex").slice(0, 2 * DIGEST_BYTES);

export type IdentifiedCases = {
  /** The first 128 bits of SHA-256, in the order of the results. */
  digests: Digests;
  /** Cases with normalised files. */
  places: PlacedCase[];
  results: readonly NamedResult[];
  /** The indexes of all results by that of the first, for each name that several results have. */
  equal: ReadonlyMap<number, readonly number[]>;
};

/** Results of one name are of one case. */
export function identify(projectId: string, taskSlug: string, results: readonly NamedResult[]): IdentifiedCases {
  const scope = `${projectId}\0${taskSlug}`;
  const files = new Map<string, string>();
  const places = results.map(({ suite, name, file: given }): PlacedCase => {
    let file = given === null ? null : files.get(given);
    if (file === undefined) files.set(given!, (file = normalizeFile(given!)));
    return { suite, name, file };
  });
  const digests = createDigests(places.length);
  const hash = new Uint32Array(8);
  const bytes = new Uint8Array(hash.buffer);
  const digest = (index: number) => {
    Bun.SHA256.hash(textOf(scope, places[index]!, 0), bytes);
    // Word by word: a view of the hash for each of 100,000 cases costs as much as the hash.
    const at = index * 4;
    digests[at] = hash[0]!;
    digests[at + 1] = hash[1]!;
    digests[at + 2] = hash[2]!;
    digests[at + 3] = hash[3]!;
  };
  const table = createDigestTable(digests);
  const equal = new Map<number, number[]>();
  for (let index = 0; index < places.length; index++) {
    digest(index);
    const first = table.add(index);
    if (first === index) continue;
    const rows = equal.get(first);
    if (rows) rows.push(index);
    else equal.set(first, [first, index]);
  }
  return { digests, places, results, equal };
}

/**
 * Returns the identities under which the tests of some results may be stored already, the most exact first. A name that several tests of
 * the report share is left out. `kept` are those that a new test is stored with as well.
 */
export function identifyOtherNames(
  projectId: string,
  taskSlug: string,
  results: readonly NamedResult[],
  indexes: readonly number[],
): Map<number, { identities: string[]; kept: string[] }> {
  const found = new Map<number, { identities: string[]; kept: string[] }>();
  const wanted = indexes.filter((index) => results[index]!.reportedName || results[index]!.otherNames);
  if (wanted.length === 0) return found;
  const reported = wanted.some((index) => results[index]!.reportedName)
    ? identify(
        projectId,
        taskSlug,
        results.map((result) => result.reportedName ?? result),
      ).digests
    : undefined;
  const others = results.map(({ otherNames = [] }) =>
    otherNames.map(toRelativePlace).filter((one) => one !== undefined),
  );
  const counts = new Map<string, number>();
  for (const name of others.flat()) counts.set(caseKey(name), (counts.get(caseKey(name)) ?? 0) + 1);
  const isUnique = (name: PlacedCase) => counts.get(caseKey(name)) === 1;
  for (const index of wanted) {
    const { reportedName, keepOtherNames } = results[index]!;
    const names = others[index]!.filter(isUnique).map((name) => {
      // The name with its file is only needed if the name alone does not identify the test.
      const isEnough = name.file === null || !isUnique({ ...name, file: null });
      return { identity: identityOf(projectId, taskSlug, name), isKept: keepOtherNames === true && isEnough };
    });
    found.set(index, {
      identities: [
        ...(reportedName && reported ? [toHex(reported, index)] : []),
        ...names.map(({ identity }) => identity),
      ],
      kept: names.filter(({ isKept }) => isKept).map(({ identity }) => identity),
    });
  }
  return found;
}

/** No other reporter writes the absolute name of a file outside of known workspaces. */
function toRelativePlace({ suite, name, file }: PlacedCase): PlacedCase | undefined {
  const path = file === null ? null : normalizeFile(file);
  return path !== null && isAbsolute(path) ? undefined : { suite, name, file: path };
}
