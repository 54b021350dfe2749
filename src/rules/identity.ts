/** Which test case a result belongs to: the same task, suite, name and file, and the same place among equals. */

import { createDigests, createDigestTable, DIGEST_BYTES, type Digests } from "./digest_table.ts";

/** Workspaces of CI systems: what comes after them is the file's path in the repository. */
const WORKSPACES = [
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

/** The path within the repository as far as it can be told: forward slashes, known workspaces cut. */
export function normalizeFile(file: string): string {
  const path = file
    .replaceAll("\\", "/")
    .replace(/^file:\/\/(?=\/)/, "")
    .replace(/^(?:\.\/)+/, "");
  for (const workspace of WORKSPACES) if (workspace.test(path)) return path.replace(workspace, "");
  return path;
}

export type PlacedCase = { suite: string; name: string; file: string | null };

/** The identity of the n-th such case of a report. A separator cannot occur in the texts. */
const textOf = (scope: string, { suite, name, file }: PlacedCase, occurrence: number) =>
  `${scope}\0${suite}\0${name}\0${file ?? ""}\0${occurrence}`;

/** Of the first such case of a report: 32 hexadecimal digits. */
export const identityOf = (projectId: string, taskSlug: string, place: PlacedCase): string =>
  Bun.SHA256.hash(textOf(`${projectId}\0${taskSlug}`, place, 0), "hex").slice(0, 2 * DIGEST_BYTES);

export type IdentifiedCases = {
  /** The first 128 bits of SHA-256, in the order of the results. */
  digests: Digests;
  /** With normalised files. */
  places: PlacedCase[];
};

/** The second result of what looks like one case is a case of its own. */
export function identify(projectId: string, taskSlug: string, results: readonly PlacedCase[]): IdentifiedCases {
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
  const digest = (index: number, occurrence: number) => {
    Bun.SHA256.hash(textOf(scope, places[index]!, occurrence), bytes);
    // Word by word: a view of the hash for each of 100,000 cases costs as much as the hash.
    const at = index * 4;
    digests[at] = hash[0]!;
    digests[at + 1] = hash[1]!;
    digests[at + 2] = hash[2]!;
    digests[at + 3] = hash[3]!;
  };
  const table = createDigestTable(digests);
  const occurrences = new Map<number, number>();
  for (let index = 0; index < places.length; index++) {
    digest(index, 0);
    const first = table.add(index);
    if (first === index) continue;
    const occurrence = (occurrences.get(first) ?? 0) + 1;
    occurrences.set(first, occurrence);
    digest(index, occurrence);
  }
  return { digests, places };
}
