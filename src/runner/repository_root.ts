/** Finds the root of the checkout that a directory is in. */

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The maximum length that the server accepts. */
const MAX_LENGTH = 1_000;

/** Returns the nearest directory from `directory` on upwards that git manages; undefined if there is none. */
export function findRepositoryRoot(directory: string): string | undefined {
  for (let at = directory; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at.length > MAX_LENGTH ? undefined : at;
    if (dirname(at) === at) return undefined;
  }
}
