/** Which test case a result belongs to: the same task, suite, name and file, and the same place among equals. */

import type { CaseResult } from "../reports/report.ts";

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

export type IdentifiedCase = { identity: string; suite: string; name: string; file: string | null };

/** Identities are the first 128 bits of SHA-256, in 32 hexadecimal digits. A separator cannot occur in the texts. */
const digest = (scope: string, suite: string, name: string, file: string | null, occurrence: number) =>
  Bun.SHA256.hash(`${scope}\0${suite}\0${name}\0${file ?? ""}\0${occurrence}`, "hex").slice(0, 32);

/** Of the first such case of a report. */
export const identityOf = (
  projectId: string,
  taskSlug: string,
  { suite, name, file }: Omit<IdentifiedCase, "identity">,
): string => digest(`${projectId}\0${taskSlug}`, suite, name, file, 0);

/** In the order of the results. The second result of what looks like one case is a case of its own. */
export function identify(
  projectId: string,
  taskSlug: string,
  results: readonly Pick<CaseResult, "suite" | "name" | "file">[],
): IdentifiedCase[] {
  const scope = `${projectId}\0${taskSlug}`;
  const files = new Map<string, string>();
  const occurrences = new Map<string, number>();
  return results.map(({ suite, name, file: given }) => {
    let file = given === null ? null : files.get(given);
    if (file === undefined) files.set(given!, (file = normalizeFile(given!)));
    const first = digest(scope, suite, name, file, 0);
    const occurrence = occurrences.get(first) ?? 0;
    occurrences.set(first, occurrence + 1);
    return { identity: occurrence === 0 ? first : digest(scope, suite, name, file, occurrence), suite, name, file };
  });
}
