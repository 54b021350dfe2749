/**
 * `bun run bench [uploads] [ingest] [list] [peers] [size] [growth]`: ratios measured side by side in one run; needs wrk and
 * pgbench on the PATH, and Node for some of the peers.
 */

import { benchGrowth } from "./growth.ts";
import { benchIngest, benchSize } from "./ingest.ts";
import { benchList, seedRuns } from "./list.ts";
import { benchPeers, installPeers } from "./peers.ts";
import { startServer } from "./server.ts";
import { benchUploads } from "./uploads.ts";

const wanted = new Set(process.argv.slice(2));
const runs = (name: string) => wanted.size === 0 || wanted.has(name);
for (const tool of ["wrk", "pgbench"])
  if (Bun.which(tool) === null) throw new Error(`${tool} is not installed: the benchmark measures with it`);
if (runs("peers")) await installPeers();

/** Those that measure on one server. */
async function onOneServer(): Promise<string[][]> {
  const server = await startServer();
  const rows: string[][] = [
    ["first start to ready, built-in PostgreSQL", `${(server.readyMs / 1000).toFixed(1)} s`, "< 3 s", ""],
  ];
  try {
    // First: it tells what the server takes when it has done nothing yet.
    if (runs("ingest")) rows.push(...(await benchIngest(server)));
    if (runs("uploads")) rows.push(...(await benchUploads(server)));
    if (runs("list") || runs("peers")) await seedRuns(server);
    if (runs("list")) rows.push(...(await benchList(server)));
    if (runs("peers")) rows.push(...(await benchPeers(server)));
    if (runs("size")) rows.push(...(await benchSize(server, 10_000_000)));
  } finally {
    await server.stop();
  }
  return rows;
}

const toLine = (row: readonly string[]) => `| ${row.join(" | ")} |`;

if (["uploads", "ingest", "list", "peers", "size"].some(runs)) {
  const rows = await onOneServer();
  console.log(`\n| | measured | to reach | |\n|---|---|---|---|`);
  for (const row of rows) console.log(toLine(row));
}
if (runs("growth")) {
  const [head, ...rows] = await benchGrowth();
  console.log(`\n${toLine(head!)}\n|${"---|".repeat(head!.length)}`);
  for (const row of rows) console.log(toLine(row));
}
