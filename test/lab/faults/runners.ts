/** Runners as processes, beside real servers; a front before each server keeps its address when it is started again. */

import { join } from "node:path";
import { guardProcess } from "../../places.ts";
import type { Servers } from "./servers.ts";

const ROOT = join(import.meta.dir, "../../..");

/** `status` is 0 as long as it is not answered. */
export type Seen = { at: number; path: string; status: number };

/** Passes everything on to a server that may be another one tomorrow. */
export function startFront(target: () => string) {
  const seen: Seen[] = [];
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", development: false, idleTimeout: 0 },
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = await request.arrayBuffer();
      const one: Seen = { at: performance.now(), path: pathname, status: 0 };
      seen.push(one);
      try {
        const answer = await fetch(target() + pathname + search, {
          ...{ method: request.method, headers: request.headers, signal: request.signal },
          ...(request.method === "GET" ? {} : { body }),
        });
        const bytes = await answer.arrayBuffer();
        one.status = answer.status;
        const headers = new Headers(answer.headers);
        for (const name of ["content-encoding", "content-length", "transfer-encoding"]) headers.delete(name);
        return new Response(bytes, { status: answer.status, headers });
      } catch {
        one.status = 502;
        return new Response("The server is away", { status: 502 });
      }
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, seen, stop: () => server.stop(true) };
}

export type RunnerOptions = { url: string; config: string; args?: readonly string[] };

/** A runner of the first project. */
export function startRunner(
  { project, key }: Pick<Servers, "project" | "key">,
  { url, config, args = [] }: RunnerOptions,
) {
  const child = Bun.spawn([process.execPath, "src/cli/assay.ts", "runner", "--config", config, ...args], {
    cwd: ROOT,
    env: { ...process.env, ASSAY_URL: url, ASSAY_PROJECT: project, ASSAY_KEY: key },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  guardProcess(child);
  let output = "";
  const reading = (async () => {
    for await (const chunk of child.stdout) output += Buffer.from(chunk).toString();
  })();
  return {
    child,
    output: () => output,
    ended: child.exited.then(async (code) => {
      await reading;
      return code;
    }),
  };
}

export type RunnerProcess = ReturnType<typeof startRunner>;
