/** Small uploads, as CI posts them all day: how many a second, against pgbench writing the same rows. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { report } from "./ingest.ts";
import { type BenchServer, median } from "./server.ts";

const CASES = 50;
const CONNECTIONS = 8;
const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 5);

/** A build of its own with each upload, as the README's line of curl names it. */
const script = (path: string, body: string, key: string, round: string) => `
local number = 0
local body = [==[${body}]==]
local headers = { ["Authorization"] = "Bearer ${key}", ["Content-Type"] = "application/xml" }
local refused = 0
request = function()
  number = number + 1
  local build = "${round}-" .. number
  return wrk.format("POST", "${path}?task_slug=unit&branch=main&execution_key=" .. build .. "&commit=" .. string.format("%08x%08x", number, ${Math.floor(Math.random() * 2 ** 31)}), headers, body)
end
response = function(status)
  if status ~= 201 then refused = refused + 1 end
end
`;

type Measured = { perSecond: number; p50Ms: number; p99Ms: number };

const UNITS: Record<string, number> = { us: 0.001, ms: 1, s: 1000 };

/** Uploads per second of reports with so many known cases. */
export async function uploadFor(
  server: BenchServer,
  {
    cases = CASES,
    connections = CONNECTIONS,
    seconds = SECONDS,
  }: { cases?: number; connections?: number; seconds?: number },
): Promise<Measured> {
  const file = join(server.directory, "upload.lua");
  const path = `/api/v1/projects/${server.project}/test-runs`;
  const body = report(Math.max(cases, 100), "small").replaceAll(/<failure[\s\S]*?<\/failure>\s*/g, "");
  await writeFile(file, script(path, body, server.key, Bun.randomUUIDv7()));
  const output = await Bun.$`wrk -t1 -c${connections} -d${seconds}s --latency -s ${file} ${server.url}`.text();
  if (/Non-2xx/.test(output)) throw new Error(`Not all answers were 201:\n${output}`);
  const [, p50, unit50] = /50%\s+([\d.]+)(us|ms|s)/.exec(output)!;
  const [, p99, unit99] = /99%\s+([\d.]+)(us|ms|s)/.exec(output)!;
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)![1]),
    p50Ms: Number(p50) * UNITS[unit50!]!,
    p99Ms: Number(p99) * UNITS[unit99!]!,
  };
}
