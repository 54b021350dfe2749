/** Measures a backup and a restore of a database with many results: `bun test/lab/bench/backup.ts RESULTS`, 1,000,000 by default. */

import { statSync } from "node:fs";
import { join } from "node:path";
import { createPlace, removePlace } from "../../places.ts";
import { open } from "./growth.ts";

const ROOT = join(import.meta.dir, "../../..");
const place = createPlace("bench-backup");
const file = join(place, "file.assay");

/** Seconds, and the peak of the memory of the command in MB. */
async function run(args: string[], environment: Record<string, string>): Promise<string> {
  const began = performance.now();
  const child = Bun.spawn([process.execPath, "src/cli/assay.ts", ...args], {
    ...{ cwd: ROOT, env: { ...process.env, DATABASE_URL: "", ...environment }, stdout: "ignore", stderr: "inherit" },
  });
  if ((await child.exited) !== 0) throw new Error(`assay ${args[0]} failed`);
  const seconds = (performance.now() - began) / 1000;
  return `${seconds.toFixed(1)} s, ${Math.round(child.resourceUsage()!.maxRSS / 1_000_000)} MB`;
}

const server = await open(Number(process.argv[2] ?? 1_000_000), new Date());
try {
  const [{ bytes }] = await server.database.pool<[{ bytes: number }]>`
    select pg_database_size(current_database()) as bytes`;
  const here = { DATA_DIR: server.directory };
  console.log(`database: ${Math.round(bytes / 1_000_000)} MB`);
  console.log(`backup: ${await run(["backup", file], here)}; file: ${Math.round(statSync(file).size / 1_000_000)} MB`);
  console.log(`verify: ${await run(["backup", "--verify", file], here)}`);
  const target = join(place, "data");
  await Bun.write(join(target, "secret-key"), Bun.file(join(server.directory, "secret-key")));
  console.log(`restore: ${await run(["restore", file], { DATA_DIR: target })}`);
} finally {
  await server.stop();
  await removePlace(place);
}
