/** A run of tests that is interrupted or dies leaves no directory, no cluster and no process behind. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { until } from "../harness.ts";
import { createPlace, removePlace } from "../places.ts";

setDefaultTimeout(30_000);
const source = (name: string) => JSON.stringify(join(import.meta.dir, name));

/** A cluster and a process that would go on for a minute, in a process of its own, as a test has them. */
const RUN = `
  const { createPlace, guardProcess } = await import(${source("../places.ts")});
  const { startEmbedded } = await import(${source("../../src/database/postgres/embedded.ts")});
  const place = createPlace("dying");
  const child = Bun.spawn(["sleep", "60"]);
  guardProcess(child);
  const binaries = process.env.ASSAY_TEST_POSTGRES;
  await startEmbedded({ directory: place + "/data/postgres", fsync: false, ...(binaries && { binaries }) });
  console.log(JSON.stringify({ place, pid: child.pid }));
  setInterval(() => {}, 1000);`;

/** A zombie is none: who should have waited for it is gone. */
const isAlive = (pid: number) => /^[^Z\s]/.test(`${Bun.spawnSync(["ps", "-o", "stat=", "-p", `${pid}`]).stdout}`);

const isLinux = process.platform === "linux";

test.each(["SIGINT", "SIGKILL"] as const)("a run that ends with %s", async (signal) => {
  const temporary = createPlace("temporary");
  const env = { ...process.env, TMPDIR: temporary };
  const run = Bun.spawn([process.execPath, "-e", RUN], { env, stdout: "pipe", stderr: "inherit" });
  const { value } = await run.stdout.getReader().read();
  const { place, pid } = JSON.parse(new TextDecoder().decode(value));
  const home = realpathSync(join(place, "data/postgres"));
  expect(existsSync(join(home, "cluster/postmaster.pid"))).toBe(true);
  expect(isAlive(pid)).toBe(true);
  run.kill(signal);
  await until(() => readdirSync(temporary).length === 0, 20);
  expect([existsSync(home), isAlive(pid)]).toEqual([false, !isLinux]);
  await removePlace(temporary);
});

test("what a run left whose guard was killed as well is removed by the next one", async () => {
  const temporary = createPlace("temporary");
  const env = { ...process.env, TMPDIR: temporary };
  const forgotten = join(temporary, "assay-forgotten");
  // As both leave them: the lock of a process that is gone, and notes of a place that is not.
  await Bun.write(join(forgotten, "data/file"), "");
  await Bun.write(join(temporary, "assay-run-dead/notes"), `place ${forgotten}\n`);
  const next = `const { createPlace, removePlace } = await import(${source("../places.ts")});
    await removePlace(createPlace("next"));`;
  expect(await Bun.spawn([process.execPath, "-e", next], { env }).exited).toBe(0);
  await until(() => readdirSync(temporary).length === 0, 20);
  await removePlace(temporary);
});
