/** The examples of docs/runner.md are files that the runner takes, and commands that the shell takes. */

import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readRunnerConfig } from "../../src/runner/config.ts";
import { createPlace, removePlace } from "../places.ts";

const place = createPlace("examples");
afterAll(() => removePlace(place));
const DOCS = join(import.meta.dir, "../../docs");
const text = await Bun.file(join(DOCS, "runner.md")).text();
const blocks = [...text.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, block]) => block!);
const examples = blocks
  .filter((block) => block.startsWith("tasks:"))
  .map((block) => readRunnerConfig(block, "assay.yaml"));

test("there is one for each way to run elsewhere", () => {
  const commands = examples.flatMap(({ tasks }) => [...tasks.values()].map(({ command }) => command)).join("\n");
  for (const tool of ["docker run", "podman run", "ssh ", "kubectl apply"]) expect(commands).toContain(tool);
});

test.each(examples.flatMap(({ tasks }) => [...tasks]))("the commands of %s are whole", async (_, task) => {
  for (const command of [...task.before, task.command, ...task.after])
    expect([
      command,
      await Bun.$`sh -n -c ${command}`
        .nothrow()
        .quiet()
        .then(({ stderr }) => stderr.toString()),
    ]).toEqual([command, ""]);
});

const commands = examples.flatMap(({ tasks }) =>
  [...tasks.values()].flatMap(({ before, command }) => [...before, command]),
);
const withCommit = commands.filter((command) => command.includes("$ASSAY_COMMIT"));

test("every one that uses the commit is tried with commits that are code", () => {
  expect(withCommit.map((command) => /git fetch --depth|\bssh\b|kubectl/.exec(command)?.[0])).toEqual([
    "git fetch --depth",
    "ssh",
    "kubectl",
  ]);
});

const git = (directory: string, ...args: string[]) =>
  Bun.$`git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main ${args}`.cwd(directory).quiet();

test.each(withCommit)("no commit is run by %p", async (command) => {
  const root = join(place, `commit-${withCommit.indexOf(command)}`);
  const [origin, checkout, tools] = ["origin", "checkout", "tools"].map((name) => join(root, name)) as [
    ...[string, string, string],
  ];
  for (const path of [origin, checkout, tools]) mkdirSync(path, { recursive: true });
  await git(origin, "init");
  await git(origin, "commit", "--allow-empty", "-m", "first");
  const good = (await git(origin, "rev-parse", "HEAD").text()).trim();
  await git(checkout, "clone", origin, ".");
  // The other machine runs what it is told, as a shell.
  for (const name of ["ssh", "scp", "kubectl"])
    writeFileSync(join(tools, name), '#!/bin/sh\n[ "${0##*/}" != ssh ] || { shift 4; sh -c "$*"; }\n', { mode: 0o755 });
  await Bun.write(join(checkout, "job.yaml"), "image: app:COMMIT\n");
  const run = async (commit: string) => {
    const environment = { PATH: `${tools}:${process.env["PATH"]}`, HOME: root, ASSAY_COMMIT: commit };
    return await Bun.$`sh -c ${command}`.cwd(checkout).env(environment).nothrow().quiet();
  };
  const pwned = join(root, "pwned");
  for (const commit of [
    `--upload-pack=touch ${pwned};git-upload-pack`,
    `'; touch ${pwned}; '`,
    `$(touch ${pwned})`,
    `|e; s|^|touch ${pwned}; #|e; s|a|`,
    `x|; w ${pwned}\n#`,
  ]) {
    await run(commit);
    expect([commit, existsSync(pwned)]).toEqual([commit, false]);
  }
  const { stderr, exitCode } = await run(good);
  if (command.startsWith("git fetch")) expect([exitCode, stderr.toString()]).toEqual([0, expect.any(String)]);
});
