/** The examples of docs/runner.md are files that the runner takes, and commands that the shell takes. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { readRunnerConfig } from "../../src/runner/config.ts";

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
