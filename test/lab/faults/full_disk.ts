/**
 * Fills the disk of the built-in PostgreSQL under a server that reads and writes, first so that tables cannot grow, then so
 * that the log of writes cannot either, and makes room again. Needs root, for a disk of its own. `bun test/lab/faults/full_disk.ts`
 */

import { closeSync, fsyncSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createPlace, removePlace } from "../../places.ts";
import { judge, startServers } from "./servers.ts";

const [disk] = process.argv.slice(2);
const DISK_MB = 400;
/** How often the disk is looked at, and a request. */
const NOTICED_MS = 3_000;

if (disk === undefined) await runOnDisk();
else await torment(disk);

/** In a mount namespace of its own: the disk is gone with the last process in it, however the script ends. */
async function runOnDisk(): Promise<void> {
  if (process.getuid?.() !== 0 || !Bun.which("unshare")) {
    console.log("Skipped: a disk of its own takes root, and unshare");
    return;
  }
  const place = createPlace("disk");
  await Bun.$`chmod 755 ${place}`;
  const line = `mount -t tmpfs -o size=${DISK_MB}m,mode=755 none "$1" && exec "$2" "$3" "$1"`;
  const child = Bun.spawn(["unshare", "-m", "sh", "-c", line, "sh", place, process.execPath, import.meta.path], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  process.exitCode = await child.exited;
  await removePlace(place);
}

async function torment(disk: string): Promise<void> {
  const directory = join(disk, "data");
  mkdirSync(directory, { mode: 0o755 });
  const world = await startServers({ directory });
  const server = world.servers[0]!;
  const headers = { authorization: `Bearer ${world.key}` };
  const runs = `${server.url}/api/v1/projects/${world.project}/test-runs`;
  const filler = join(disk, "filler");
  const claims: Parameters<typeof judge> = [];
  const free = () => {
    const { bavail, bsize } = statfsSync(disk);
    return Math.floor((bavail * bsize) / 1024);
  };

  function fill(leaveKb: number): void {
    const file = openSync(filler, "a");
    const chunk = Buffer.alloc(65_536, 1);
    try {
      while (free() > leaveKb) writeSync(file, chunk, 0, Math.min(chunk.length, (free() - leaveKb) * 1024));
      fsyncSync(file);
    } catch (error) {
      if ((error as { code?: string }).code !== "ENOSPC") throw error;
    } finally {
      closeSync(file);
    }
  }

  let number = 0;
  /** Some 2 MB that do not compress. */
  const write = async (): Promise<{ status: number; retry: boolean; text: string }> => {
    const output = () => crypto.getRandomValues(Buffer.alloc(30_000)).toString("base64");
    const cases = Array.from(
      { length: 50 },
      () => `<testcase name="c${number++}"><system-out>${output()}</system-out></testcase>`,
    );
    const answer = await fetch(runs, {
      method: "POST",
      headers,
      body: `<testsuite name="s">${cases.join("")}</testsuite>`,
    });
    return { status: answer.status, retry: answer.headers.has("retry-after"), text: await answer.text() };
  };
  const read = async () => (await fetch(runs, { headers })).status;
  const ready = async () => (await fetch(`${server.url}/readyz`)).status;
  const statuses = (answers: { status: number }[]) =>
    Object.entries(Object.groupBy(answers, ({ status }) => status))
      .map(([status, those]) => `${those!.length} × ${status}`)
      .join(", ");

  async function strike(name: string, leaveKb: number): Promise<void> {
    fill(leaveKb);
    const logged = server.output().length;
    const answers: Awaited<ReturnType<typeof write>>[] = [];
    const reads: number[] = [];
    const looks: { status: number; at: number }[] = [];
    let refusedAt = Infinity;
    const until = performance.now() + 15_000;
    while (performance.now() < until) {
      const answer = await write();
      answers.push(answer);
      if (answer.status !== 201) refusedAt = Math.min(refusedAt, performance.now());
      reads.push(await read());
      looks.push({ at: performance.now(), status: await ready() });
      await Bun.sleep(300);
    }
    const first = answers.findIndex(({ status }) => status >= 500);
    const after = answers.slice(first);
    const told = server.output().slice(logged);
    claims.push(
      [
        `${name}: uploads are refused, with Retry-After`,
        first >= 0 && after.every(({ status, retry }) => status === 201 || (status === 500 && retry)),
        statuses(answers),
      ],
      [
        `${name}: reads go on, or are refused with 500`,
        reads.every((status) => status === 200 || status === 500),
        reads.filter((status) => status === 200).length + ` of ${reads.length}`,
      ],
      [
        `${name}: /readyz is 503 within 3 s of the first refusal`,
        looks.every(({ status, at }) => status === 503 || at < refusedAt + NOTICED_MS),
        looks.map(({ status }) => status).join(" "),
      ],
      [
        `${name}: the log says that the disk is full`,
        /disk of the database is full|because its disk is full/.test(told),
      ],
    );
    rmSync(filler);
    const emptied = performance.now();
    let recovered = Infinity;
    while (performance.now() - emptied < 60_000) {
      const [wrote, sees, isReady] = [await write(), await read(), await ready()];
      if (wrote.status === 201 && sees === 200 && isReady === 200) {
        recovered = performance.now() - emptied;
        break;
      }
      await Bun.sleep(100);
    }
    claims.push([
      `${name}: all goes on by itself when there is room`,
      recovered < 30_000,
      `${Math.round(recovered)} ms`,
    ]);
  }

  await strike("tables cannot grow", 20 * 1024);
  await strike("nothing can grow", 0);
  if (process.env["SHOW_LOG"]) console.log(server.output());
  await world.stop();
  judge(...claims);
}
