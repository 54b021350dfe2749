/** `assay upload` as a process: its streams, the signals that it gets, and its exit codes. */

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createFolder, SOURCE, startProgram, variablesOf } from "../../commands.ts";
import { createHarness, junit, until } from "../../harness.ts";

const { acme, ask, url } = await createHarness();
const env = variablesOf(url, acme);
const script = (text: string) => ["--", "sh", "-c", text];

test("ten megabytes of output come through as they are, to a slow reader", async () => {
  const folder = createFolder({ random: crypto.getRandomValues(new Uint8Array(65_536)), source: junit("p") });
  const text = "cp source report.xml; for i in $(seq 160); do cat random || exit 9; done; cat random >&2";
  const child = Bun.spawn([process.execPath, SOURCE, "upload", "report.xml", ...script(text)], {
    ...{ cwd: folder, env: { PATH: process.env["PATH"]!, ...env }, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  const bytes = await Bun.file(join(folder, "random")).bytes();
  const expected = new Bun.CryptoHasher("sha256");
  for (let count = 0; count < 160; count++) expected.update(bytes);
  const hash = new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const chunk of child.stdout) {
    size += chunk.length;
    hash.update(chunk);
  }
  const errors = await new Response(child.stderr).bytes();
  expect([size, hash.digest("hex"), await child.exited]).toEqual([160 * 65_536, expected.digest("hex"), 0]);
  expect(Buffer.compare(errors.subarray(0, 65_536), bytes)).toBe(0);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "%s reaches the command, which ends as it likes",
  async (signal) => {
    const folder = createFolder({ source: junit("p") });
    const name = signal.slice(3);
    const text = `trap "cp source report.xml; echo caught ${name}; exit 42" ${name}; : > ready; for i in $(seq 500); do sleep 0.02; done`;
    const program = startProgram(["upload", "report.xml", ...script(text)], { cwd: folder, env });
    await until(() => existsSync(join(folder, "ready")));
    program.signal(signal);
    // A cancelled build has no result.
    expect(await program.ended).toEqual({
      ...{ code: 42, output: `caught ${name}\n`, errors: "assay: Results were not uploaded: Interrupted\n" },
    });
  },
);

test("a command that dies of a signal has the exit code of a shell, and no result", async () => {
  const folder = createFolder();
  const program = startProgram(["upload", "report.xml", ...script(": > ready; exec sleep 60")], { cwd: folder, env });
  await until(() => existsSync(join(folder, "ready")));
  program.signal("SIGTERM");
  expect(await program.ended).toMatchObject({ code: 143, errors: "assay: Results were not uploaded: Interrupted\n" });
  const { body } = await ask(`GET /projects/${acme.project}/executions`, { key: acme.key });
  // The one execution is that of the ten megabytes.
  expect(body.data).toHaveLength(1);
});
