/** What the shells and the programs of Debian make of the scripts of `assay completion` and of the page of `assay man`. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { createFolder, run } from "../../commands.ts";

const hasTool = (name: string): boolean => {
  const isThere = Bun.which(name) !== null;
  if (!isThere) console.warn(`${name} is not installed: nothing is tried with it (apt-get install ${name})`);
  return isThere;
};

async function write(name: string, command: readonly string[]): Promise<string> {
  const { code, output } = await run(command);
  expect(code).toBe(0);
  return join(createFolder({ [name]: output, "report.xml": "", "other.txt": "" }), name);
}

async function runTool(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, {
    ...{ cwd, stdout: "pipe", stderr: "pipe", timeout: 60_000 },
    env: { PATH: process.env["PATH"]!, HOME: cwd, TERM: "dumb", LC_ALL: "C.UTF-8" },
  });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect([await child.exited, errors]).toEqual([0, ""]);
  return output;
}

/** They print what each line is completed to. */
const [BASH_TYPIST, ZSH_TYPIST] = [join(import.meta.dir, "typist.bash"), join(import.meta.dir, "typist.zsh")];

/** What a line is completed to, by the line: only names, in the order of the alphabet. */
const COMPLETED: Record<string, string> = {
  "assay upl": "upload",
  "assay upload --ga": "--gate --gate-dry-run --gate-missing",
  "assay upload --gate q": "quarantine",
  "assay upload rep": "report.xml",
  "assay upload --attach oth": "other.txt",
  "assay admin list-k": "list-keys",
  "assay admin generate-key --scope r": "read run",
  "assay admin revoke-key --i": "--id",
  "assay completion z": "zsh",
  "assay no-such --": "",
};

test.skipIf(!hasTool("bash"))("bash completes commands, options, their values and files", async () => {
  const script = await write("assay.bash", ["completion", "bash"]);
  const command = ["bash", "--norc", BASH_TYPIST, script, ...Object.keys(COMPLETED)];
  const output = await runTool(command, join(script, ".."));
  expect(output.split("\n")).toEqual([...Object.values(COMPLETED), ""]);
});

test.skipIf(!hasTool("fish"))("fish completes commands, options, their values and files", async () => {
  const script = await write("assay.fish", ["completion", "fish"]);
  for (const [line, expected] of Object.entries(COMPLETED)) {
    const output = await runTool(
      ["fish", "--no-config", "-c", `source "${script}"; complete -C '${line}'`],
      join(script, ".."),
    );
    const names = output.split("\n").flatMap((entry) => entry.split("\t", 1)[0] || []);
    expect([line, names.sort().join(" ")]).toEqual([line, expected]);
  }
});

test.skipIf(!hasTool("zsh"))("zsh completes commands, options, their values and files", async () => {
  const script = await write("_assay", ["completion", "zsh"]);
  const lines: Record<string, string> = {
    "assay upl": "assay upload",
    "assay upload --attach-r": "assay upload --attach-root=",
    "assay upload --gate q": "assay upload --gate quarantine",
    "assay upload rep": "assay upload report.xml",
    "assay upload --attach=oth": "assay upload --attach=other.txt",
    "assay admin list-k": "assay admin list-keys",
    "assay admin generate-key --scope=tr": "assay admin generate-key --scope=triage",
    "assay completion z": "assay completion zsh",
  };
  const output = await runTool(["zsh", "-f", ZSH_TYPIST, script, ...Object.keys(lines)], join(script, ".."));
  expect(output.trimEnd().split("\n")).toEqual(Object.values(lines));
});

test.skipIf(!hasTool("mandoc"))("the manual page is correct mdoc, and shows the options of commands", async () => {
  const page = await write("assay.1", ["man"]);
  expect(await runTool(["mandoc", "-T", "lint", page], join(page, ".."))).toBe("");
  const shown = (await runTool(["mandoc", "-T", "utf8", page], join(page, ".."))).replaceAll(/.\x08/g, "");
  for (const text of ["assay admin revoke-key --id ID", "--gate-missing PERCENT", "ASSAY_PROJECT"])
    expect(shown).toContain(text);
});
