/** What the command line says of itself. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { createPlace } from "../places.ts";

const SOURCE = join(import.meta.dir, "../../src/cli/assay.ts");

test("--version prints the version of package.json, also from a compiled file elsewhere", async () => {
  const folder = createPlace("version");
  const file = join(folder, "assay");
  expect(Bun.spawnSync([process.execPath, "build", "--compile", "--outfile", file, SOURCE]).exitCode).toBe(0);
  for (const command of [[process.execPath, SOURCE], [file]]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync([...command, "--version"], { cwd: folder });
    expect([exitCode, stdout.toString(), stderr.toString()]).toEqual([0, `${packageJson.version}\n`, ""]);
  }
});

test("start refuses options and arguments, which it would ignore", () => {
  const cwd = join(import.meta.dir, "../..");
  for (const command of [
    [SOURCE, "start"],
    ["run", "start"],
  ])
    for (const words of [["--port", "9"], ["extra"]]) {
      const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...command, ...words], { cwd, env: {} });
      expect([exitCode, stderr.toString()]).toEqual([2, expect.stringContaining(`Unknown option: ${words[0]}.`)]);
    }
});
