/** Reports of other tools, which are the fixtures of the readers. */

import { join } from "node:path";

const FIXTURES = join(import.meta.dir, "../../fixtures");
const FILES: Record<string, string> = {
  vitest: "vitest_json.json",
  mocha: "mocha_json.json",
  playwright: "playwright_global_teardown.json",
  pytest: "pytest_junit.xml",
  go: "go_test2json.ndjson",
  tap: "bats_tap13.tap",
};
export const REPORTS = Object.keys(FILES);

export const readFixture = (name: string): Promise<string> => Bun.file(join(FIXTURES, FILES[name]!)).text();
