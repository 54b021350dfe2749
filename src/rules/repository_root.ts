/** Makes the paths in a report relative to the root of the repository: each machine has it in another directory. */

import type { CaseName, Report, ReportedCase } from "../reports/report.ts";
import { isAbsolute, toSlashes, WORKSPACES } from "./identity.ts";
import { withoutTrailingSlashes } from "./report_path.ts";

/** Further directories in which CI systems check out a repository, with forward slashes. */
const MORE_WORKSPACES = [
  /^\/Users\/runner\/work\/[^/]+\/[^/]+\//,
  /^(?:[a-z]:)?(?:\/[^/]+){0,3}\/actions-runner\/_work\/[^/]+\/[^/]+\//i,
  /^(?:[a-z]:)?(?:\/[^/]+){0,4}\/_?work\/\d{1,6}\/s\//i,
  /^(?:[a-z]:)?(?:\/[^/]+){0,4}\/builds\/[\w-]{8,}\/\d{1,6}\/[^/]+\/[^/]+\//i,
  /^(?:[a-z]:)?(?:\/[^/]+){0,4}\/(?:jenkins|jenkins\/agent)\/workspace\/[^/]+\//i,
  /^(?:[a-z]:)?(?:\/[^/]+){0,3}\/buildkite-agent\/builds\/[^/]+\/[^/]+\/[^/]+\//i,
  /^(?:[a-z]:)?(?:\/[^/]+){0,3}\/buildAgent\/work\/[0-9a-f]{8,40}\//i,
  /^\/codebuild\/output\/src\d+\/src\/(?:[^/]+\/){3}/,
  /^\/tmp\/cirrus-ci-build\//,
  /^\/bitrise\/src\//,
  /^\/workspaces\/[^/]+\//,
];

/** Directories that stand at the root of a repository, or of a package in it. */
const CONVENTIONAL =
  /^(?:src|tests?|specs?|__tests__|e2e|lib|packages|apps|unit|integration|features|cypress|internal|cmd|pkg)$/;

/** A root shorter than this is a directory of the system, which holds more than a repository. */
const MIN_ROOT_SEGMENTS = 2;

/** Returns the root that a path begins with, if it is that of a known CI system, with a slash at the end. */
function workspaceOf(path: string): string | undefined {
  for (const workspace of [...MORE_WORKSPACES, ...WORKSPACES]) {
    const root = workspace.exec(path)?.[0];
    if (root !== undefined) return root;
  }
  return undefined;
}

/** Returns the path before the first conventional directory that all paths are in. */
function commonRootOf(paths: readonly string[]): string | undefined {
  const [first, ...others] = paths.map((path) => path.split("/").slice(0, -1));
  if (first === undefined) return undefined;
  let depth = first.length;
  for (const directories of others) for (let at = 0; at < depth; at++) if (directories[at] !== first[at]) depth = at;
  const end = first.slice(0, depth).findIndex((name) => CONVENTIONAL.test(name));
  const root = first.slice(0, end);
  return end === -1 || root.filter(Boolean).length < MIN_ROOT_SEGMENTS ? undefined : `${root.join("/")}/`;
}

/**
 * Returns the root of the repository with forward slashes and one at the end: as given, else that of a known CI system, else the common
 * beginning of the absolute paths before a conventional directory. Undefined if it is unknown.
 */
export function rootOf(given: string | undefined, files: Iterable<string>): string | undefined {
  const stated = given === undefined ? undefined : `${withoutTrailingSlashes(toSlashes(given.trim()))}/`;
  const paths = [...new Set(files)].map(toSlashes).filter(isAbsolute);
  // Tests in a container see another directory than the machine around it.
  const isBelow = paths.length === 0 || paths.some((path) => startsWith(path, stated ?? ""));
  if (stated !== undefined && isAbsolute(stated) && stated.length > 2 && isBelow) return stated;
  for (const path of paths) {
    const workspace = workspaceOf(path);
    if (workspace !== undefined) return workspace;
  }
  return commonRootOf(paths);
}

const HAS_SLASH = /[\\/]/;

/** A drive of Windows is written in either case. */
const startsWith = (path: string, root: string): boolean =>
  path.startsWith(root) || (/^[a-z]:/i.test(root) && path.slice(0, root.length).toLowerCase() === root.toLowerCase());

/** Returns a function that takes the root off each absolute path in a text that is not part of a longer word. */
function createTextCleaner(root: string): (text: string) => string {
  const slashes = root.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("/", "[\\\\/]");
  const isWindows = /^[a-z]:/i.test(root);
  const pattern = new RegExp(
    `(?:file:\\/\\/${isWindows ? "\\/" : ""}|(?<![\\w.:/\\\\-]))${slashes}`,
    isWindows ? "gi" : "g",
  );
  const probe = root.split("/").filter(Boolean).at(-1)!;
  return (text) => (text.includes(probe) ? text.replace(pattern, "") : text);
}

/**
 * Returns the report with paths relative to the root of the repository: in files, suites, messages and stacks. A case that gets
 * another name this way keeps the one in the report as `reportedName`, so that its history moves along.
 */
export function withRelativePaths(report: Report, given: string | undefined): Report {
  const names = function* () {
    for (const { file, suite } of report.cases) {
      if (file !== null) yield file;
      if (HAS_SLASH.test(suite)) yield* suite.split(" > ");
    }
  };
  const root = rootOf(given, names());
  if (root === undefined) return report;
  const cleanText = createTextCleaner(root);
  const known = new Map<string, string>();
  const relative = (file: string): string => {
    const before = known.get(file);
    if (before !== undefined) return before;
    const path = toSlashes(file);
    const found = startsWith(path, root) && path.length > root.length ? path.slice(root.length) : file;
    known.set(file, found);
    return found;
  };
  const place = <Name extends CaseName>(name: Name): Name => {
    const file = name.file === null ? null : relative(name.file);
    const suite = HAS_SLASH.test(name.suite) ? name.suite.split(" > ").map(relative).join(" > ") : name.suite;
    return file === name.file && suite === name.suite ? name : { ...name, file, suite };
  };
  const cases = report.cases.map((one): ReportedCase => {
    const moved = place(one);
    const message = one.message === null ? null : cleanText(one.message);
    const stack = one.stack === null ? null : cleanText(one.stack);
    const isMoved = moved !== one;
    if (!isMoved && message === one.message && stack === one.stack && !one.otherNames) return one;
    const { suite, name, file } = one;
    return {
      ...moved,
      message,
      stack,
      ...(isMoved ? { reportedName: { suite, name, file } } : {}),
      ...(one.otherNames ? { otherNames: one.otherNames.map(place) } : {}),
    };
  });
  return { ...report, cases };
}
