/** tools/npm/launch.sh finds Bun wherever a package manager has installed it. */

import { afterAll, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readOutput } from "../../places.ts";

const home = mkdtempSync(join(tmpdir(), "assay-launch-"));
afterAll(() => rmSync(home, { recursive: true }));

/** What the package "bun" has in the place of Bun until its install script has run. */
const PLACEHOLDER = `echo "Error: Bun's postinstall script was not run." >&2\nexit 1\n`;
/** A Bun that prints its name and its arguments. */
const bunNamed = (name: string) => `#!/bin/sh\necho "${name} $*"\n`;

/** Installs the package in a folder of its own beside other programs, and runs its command through a link with an argument. */
async function launch(programs: Record<string, string>) {
  const folder = mkdtempSync(join(home, "user-"));
  const link = join(folder, "node_modules/.bin/assay-cli");
  const launcher = join(folder, "node_modules/assay-cli/bin/assay-cli");
  for (const path of [link, launcher]) mkdirSync(dirname(path), { recursive: true });
  cpSync(join(import.meta.dir, "../../../tools/npm/launch.sh"), launcher);
  symlinkSync("../assay-cli/bin/assay-cli", link);
  mkdirSync(join(folder, "bin"));
  for (const name of ["sh", "dirname", "readlink"]) symlinkSync(Bun.which(name)!, join(folder, "bin", name));
  for (const [path, text] of Object.entries(programs)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    chmodSync(join(folder, path), 0o755);
  }
  const child = Bun.spawn(["sh", link, "two words"], {
    env: { PATH: join(folder, "bin") },
    stdout: "pipe",
    stderr: "pipe",
  });
  const { code, output, errors } = await readOutput(child);
  return { code, output: output.replaceAll(`${folder}/`, ""), errors };
}

const HOISTED = "node_modules/bun/bin/bun.exe";
const NESTED = "node_modules/assay-cli/node_modules/bun/bin/bun.exe";
const WITHOUT_SCRIPTS = "node_modules/@oven/bun-linux-x64/bin/bun";

test.each([
  ["beside the package", { [HOISTED]: bunNamed("hoisted"), "bin/bun": bunNamed("path") }, "hoisted"],
  ["within it, before one beside it", { [NESTED]: bunNamed("nested"), [HOISTED]: bunNamed("hoisted") }, "nested"],
  ["if no install script has run", { [HOISTED]: PLACEHOLDER, [WITHOUT_SCRIPTS]: bunNamed("oven") }, "oven"],
  ["in the PATH", { [HOISTED]: PLACEHOLDER, "bin/bun": bunNamed("path") }, "path"],
])("Bun is found %s", async (_, programs, name) => {
  expect(await launch(programs)).toEqual({
    code: 0,
    output: `${name} --no-env-file --config=/dev/null node_modules/assay-cli/dist/program/main.js two words\n`,
    errors: "",
  });
});

test("without Bun the reason is printed", async () => {
  expect(await launch({ [HOISTED]: PLACEHOLDER })).toEqual({
    code: 1,
    output: "",
    errors: 'assay: Bun is not installed: the package "bun" is missing, and there is no bun in the PATH\n',
  });
});
