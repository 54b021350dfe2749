import { expect, test } from "bun:test";
import { normalizeFile } from "../../src/rules/identity.ts";

test("a file is its path in the repository, whichever CI system it comes from", () => {
  for (const file of [
    "src/a.test.ts",
    "./src/a.test.ts",
    ".\\src\\a.test.ts",
    "/home/runner/work/web/web/src/a.test.ts",
    "/builds/acme/web/src/a.test.ts",
    "/var/jenkins_home/workspace/web/src/a.test.ts",
    "file:///home/circleci/project/src/a.test.ts",
    "D:\\a\\web\\web\\src\\a.test.ts",
  ])
    expect([file, normalizeFile(file)]).toEqual([file, "src/a.test.ts"]);
  expect(normalizeFile("/opt/other/src/a.test.ts")).toBe("/opt/other/src/a.test.ts");
});
