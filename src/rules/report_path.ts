/** Validates file names of reports that become words of a command: anyone who may upload a report chooses these names. */

import { normalizeFile } from "./identity.ts";

/** A second line, a terminal's escape sequence, half a character. */
const CONTROL = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
/** Azure Pipelines, GitHub and TeamCity look for these commands anywhere in a line. */
const WORKFLOW_COMMAND = /##\w*\[/;
/** A drive letter, or an address that a tool would load: `C:x.js`, `https://example.com/x.js`. */
const SCHEME = /^[\w+.-]+:/;
/** These hold no tests of the project; globs leave them out as well. */
const FOREIGN_FOLDERS: readonly string[] = ["..", "node_modules", ".git"];

export const withoutTrailingSlashes = (path: string): string => {
  let end = path.length;
  while (end > 0 && path[end - 1] === "/") end--;
  return path.slice(0, end);
};

/**
 * Returns the path from `directory`, which is absolute, of a file named in a report: with forward slashes, without "." and empty parts.
 * Undefined if the name leads out of the directory or cannot be a file of tests. Only the name is checked; the caller must check that the
 * file exists and is no link that leads elsewhere.
 */
export function toContainedPath(file: string, directory: string): string | undefined {
  if (CONTROL.test(file) || WORKFLOW_COMMAND.test(file)) return undefined;
  const path = file.replaceAll("\\", "/");
  const root = `${withoutTrailingSlashes(directory.replaceAll("\\", "/"))}/`;
  const relative = path.startsWith(root) ? path.slice(root.length) : normalizeFile(path);
  if (relative.startsWith("/") || SCHEME.test(relative)) return undefined;
  const parts = relative.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length === 0 || parts.some((part) => FOREIGN_FOLDERS.includes(part))) return undefined;
  return parts.join("/");
}

/**
 * Returns the path from `directory` of an existing file; undefined if there is none inside. Reports name files relative to the repository,
 * of which the directory may be a folder.
 */
export function locateFile(file: string, directory: string, exists: (path: string) => boolean): string | undefined {
  const path = toContainedPath(file, directory);
  if (path === undefined) return undefined;
  const base = withoutTrailingSlashes(directory);
  if (exists(`${base}/${path}`)) return path;
  const parts = path.split("/");
  const depth = base.split("/").length;
  for (let count = 1; count < parts.length && count < depth; count++) {
    const rest = parts.slice(count).join("/");
    if (base.endsWith(`/${parts.slice(0, count).join("/")}`) && exists(`${base}/${rest}`)) return rest;
  }
  return undefined;
}

/** A relative path as a word that no tool takes for an option, a list of arguments, a pattern or a workflow command. */
export const toPathWord = (path: string): string => (/^[\p{L}\p{N}_.[(]/u.test(path) ? path : `./${path}`);
