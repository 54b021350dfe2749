/** What the first start says to those who may read DATA_DIR: ids, keys, and lines to paste. */

import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { FIRST_START_FILE } from "../src/operations/projects/first_project.ts";

/** Empty where the server was started on a directory that another one has set up before, or its first start is not over. */
export function readFirstStart(dataDir: string): string {
  const path = join(dataDir, FIRST_START_FILE);
  if (!existsSync(path)) return "";
  const mode = statSync(path).mode & 0o777;
  if (mode !== 0o600) throw new Error(`"${path}" has mode ${mode.toString(8)}`);
  return readFileSync(path, "utf8");
}
