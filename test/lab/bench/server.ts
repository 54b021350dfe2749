/** A real server on a fresh built-in PostgreSQL, and what a benchmark needs to talk to it. */

import { startServers } from "../faults/servers.ts";

export async function startServer() {
  const { servers, ...rest } = await startServers({ environment: { LOG_LEVEL: "warn", MAX_BODY_MB: "128" } });
  const { url, readyMs, memory, forgetPeak } = servers[0]!;
  return { ...rest, url, readyMs, memory, forgetPeak };
}

export type BenchServer = Awaited<ReturnType<typeof startServer>>;

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const UNITS = { us: 0.001, ms: 1, s: 1000 };

export type WrkOptions = {
  key?: string;
  connections?: number;
  seconds?: number;
  /** A file in Lua that makes the requests. */
  script?: string;
};

/** Requests per second, and the latency in ms, as wrk measures them. */
export async function wrk(url: string, options: WrkOptions = {}) {
  const { key, connections = 32, seconds = 3, script } = options;
  const authorization = key === undefined ? [] : ["-H", `Authorization: Bearer ${key}`];
  const lua = script === undefined ? [] : ["-s", script];
  const output = await Bun.$`wrk -t1 -c${connections} -d${seconds}s --latency ${authorization} ${lua} ${url}`.text();
  if (/Non-2xx/.test(output)) throw new Error(`Not all answers were 200:\n${output}`);
  const latency = (percent: number) => {
    const [, value, unit] = new RegExp(`${percent}%\\s+([\\d.]+)(us|ms|s)`).exec(output)!;
    return Number(value) * UNITS[unit as keyof typeof UNITS];
  };
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)![1]),
    p50Ms: latency(50),
    p99Ms: latency(99),
  };
}
