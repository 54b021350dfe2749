/** Reports that name files of the machine: nothing of them reaches a real server, byte for byte. */

import { afterAll, expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { readServerAddress } from "../../src/cli/client.ts";
import { uploadAttachments } from "../../src/cli/upload_attachments.ts";
import { createFolder, run, variablesOf } from "../commands.ts";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";
import { createPlace } from "../places.ts";

const directory = createPlace("attachments");
const home = createFolder();
const { acme, ask, url } = await createHarness({ attachments: { directory } });
const { project, key } = acme;
const SECRET = "the secret of the machine";

/** A proxy that passes everything on to the server and records each byte that it sends there. */
const sent: Buffer[] = [];
const proxy = createServer((client) => {
  const server = connect(Number(new URL(url).port), "127.0.0.1");
  client.on("data", (chunk: Buffer) => void sent.push(chunk));
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.on("error", () => to.destroy());
    from.pipe(to);
  }
});
await new Promise<void>((resolve) => void proxy.listen(0, "127.0.0.1", resolve));
afterAll(() => void proxy.close());
const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
const bytes = () => Buffer.concat(sent).toString("latin1");

/** The contents of all files that the server has stored. */
const asking = createAsking(ask, acme);
const stored = () =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"));

/** A workspace with a secret outside of it, and a report that names these files. */
function createWork(paths: readonly string[]): string {
  const work = join(home, crypto.randomUUID(), "project", "work");
  mkdirSync(work, { recursive: true });
  writeFileSync(join(work, "../../secret"), SECRET);
  const cases = [{ name: "fails", status: "failed", attachments: paths.map((path) => ({ path })) }];
  writeFileSync(join(work, "report.json"), JSON.stringify({ passed: 0, failed: 1, skipped: 0, cases }));
  return work;
}

const list = (executionId: string) => asking.list(`/executions/${executionId}/test-runs/e2e/attachments`);

test("none of the files that a hostile report names leaves the machine", async () => {
  mkdirSync(join(home, ".ssh"));
  writeFileSync(join(home, ".ssh/id_rsa"), SECRET);
  const outside = join(home, "outside.txt");
  writeFileSync(outside, SECRET);
  const hostile = [
    ...["../../secret", "/proc/self/environ", "/proc/self/cwd/../../secret", "~/.ssh/id_rsa"],
    ...[join(home, ".ssh/id_rsa"), outside, `file://${outside}`, "link", "folder/secret", "fifo"],
  ];
  const work = createWork([...hostile, "shot.png"]);
  writeFileSync(join(work, "shot.png"), "a picture");
  symlinkSync(outside, join(work, "link"));
  symlinkSync("../..", join(work, "folder"));
  expect(Bun.spawnSync(["mkfifo", join(work, "fifo")]).exitCode).toBe(0);
  const env = { ...variablesOf(address, acme), HOME: home, MACHINE_SECRET: SECRET };
  const { code, errors } = await run(["upload", "report.json", "--task", "e2e"], { cwd: work, env });
  expect([code, errors]).toEqual([0, expect.stringContaining("Sent 1 attachment, 9 bytes")]);
  expect(errors).toContain("Left out 10 attachments");
  // The proxy has seen the file that may be sent, so it would have seen the others.
  expect(bytes()).toContain("a picture");
  expect(bytes()).not.toContain(SECRET);
  expect(stored()).toEqual(["a picture"]);
  const [{ id }] = await asking.list("/executions?limit=1");
  expect((await list(id)).map(({ path }) => path)).toEqual(["shot.png"]);
});

test.each([
  ["the file", (work: string) => join(work, "results/shot.png"), (work: string) => join(work, "../../secret")],
  ["its folder", (work: string) => join(work, "results"), (work: string) => join(work, "../private")],
] as const)("%s is replaced by a link between look and open", async (_, replaced, target) => {
  const work = createWork(["results/shot.png"]);
  mkdirSync(join(work, "results"));
  writeFileSync(join(work, "results/shot.png"), "a picture");
  mkdirSync(join(work, "../private"));
  writeFileSync(join(work, "../private/shot.png"), SECRET);
  const { body: run } = await asking.send(readFileSync(join(work, "report.json"), "utf8"), { task_slug: "e2e" });
  const lstat = fs.lstatSync;
  let replacements = 0;
  const spy = spyOn(fs, "lstatSync").mockImplementation(((...args: Parameters<typeof lstat>) => {
    const stats = lstat(...args);
    if (String(args[0]).endsWith("results/shot.png") && replacements++ === 0) {
      const path = replaced(work);
      renameSync(path, join(dirname(path), "moved"));
      symlinkSync(target(work), path);
    }
    return stats;
  }) as typeof lstat);
  try {
    const lines = await uploadAttachments(
      readServerAddress({ ASSAY_URL: address, ASSAY_PROJECT: project, ASSAY_KEY: key }),
      {
        ...{
          run,
          reports: [join(work, "report.json")],
          format: undefined,
          attach: [],
          held: [],
          scope: "failed",
          root: work,
        },
        ...{ patienceMs: 0, signal: undefined },
      },
    );
    expect([replacements, lines]).toEqual([1, [expect.stringContaining('Left out 1 attachment: "results/shot.png"')]]);
  } finally {
    spy.mockRestore();
  }
  expect(bytes()).not.toContain(SECRET);
  expect(stored().join("")).not.toContain(SECRET);
  expect(await list(run.executionId)).toEqual([]);
});
