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

/** The first 128 bits of SHA-256, 32 hexadecimal digits. A separator cannot occur in the texts. */
export function identify(
  taskSlug: string,
  { suite, name }: CaseResult,
  file: string | null,
  occurrence: number,
): string {
  return Bun.SHA256.hash(`${taskSlug}\0${suite}\0${name}\0${file ?? ""}\0${occurrence}`, "hex").slice(0, 32);
}
