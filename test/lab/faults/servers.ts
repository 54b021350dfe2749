/** Real servers, each in a process of its own, together on a fresh built-in PostgreSQL: what the scripts here torment. */

import { join } from "node:path";
import { startEmbedded } from "../../../src/database/postgres/embedded.ts";
import { connect } from "../../../src/database/connect.ts";
import { readFirstStart } from "../../first_start.ts";
import { createPlace, followOutput, guardProcess, removePlace } from "../../places.ts";

const ROOT = join(import.meta.dir, "../../..");

export type ServersOptions = {
  /** Where the data is kept; default: a directory that is removed at the end. */
  directory?: string;
  count?: number;
  /** Besides the configuration that every script has: no rate limit, a port of its own, warnings only. */
  environment?: Record<string, string>;
  /** What the server is started with, such as `["sh", "-c", "ulimit -n 128; exec \"$@\"", "sh"]`. */
  under?: readonly string[];
  /** The checkout whose sources are started; default: this one. */
  source?: string;
};

async function spawn(dataDir: string, { environment = {}, under = [], source = ROOT }: ServersOptions) {
  const started = performance.now();
  const child = Bun.spawn([...under, process.execPath, join(source, "src/main.ts")], {
    env: {
      ...process.env,
      DATABASE_URL: "",
      PUBLIC_URL: "",
      DATA_DIR: dataDir,
      PORT: "0",
      RATE_LIMIT_PER_MINUTE: "0",
      LOG_LEVEL: "info",
      ...environment,
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  // A script that fails or is stopped leaves nobody behind.
  guardProcess(child);
  // With LOG_LEVEL=warn the only output is the welcome of the first start.
  const followed = followOutput(child, (output) => {
    const [, ready, welcome] = /"message":"Assay is ready","url":"([^"]+)"|(http:\S+)\/setup\?/.exec(output) ?? [];
    return ready ?? welcome;
  });
  const { output } = followed;
  const url = await followed.url;
  return {
    url,
    /** From the start of the process to its word that it is ready. */
    readyMs: performance.now() - started,
    child,
    output,
    /** Log lines of a level, parsed. */
    logged: (level: "info" | "warn" | "error") =>
      output()
        .split("\n")
        .filter((line) => line.startsWith("{") && line.includes(`"level":"${level}"`))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    /** MiB of the process, now and at its highest since the start or `forgetPeak`. */
    memory: async () => {
      const status = await Bun.file(`/proc/${child.pid}/status`).text();
      const read = (name: string) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)![1]) / 1024);
      return { now: read("VmRSS"), peak: read("VmHWM") };
    },
    forgetPeak: () => Bun.write(`/proc/${child.pid}/clear_refs`, "5"),
  };
}

/** Ends with `stop`, which no script may leave out: it stops the servers and PostgreSQL, and removes their files. */
export async function startServers(options: ServersOptions = {}) {
  const directory = options.directory ?? createPlace("faults");
  const servers = [await spawn(directory, options)];
  while (servers.length < (options.count ?? 1)) servers.push(await spawn(directory, options));
  const welcome = readFirstStart(directory);
  const embedded = await startEmbedded({ directory: join(directory, "postgres") });
  const database = connect(embedded.connection, 4);
  const first = (pattern: RegExp) => pattern.exec(welcome)![0];
  return {
    servers,
    directory,
    /** The database, beside the servers. */
    database,
    connection: embedded.connection,
    team: first(/(?<=Team +)[0-9a-f-]{36}/),
    teamKey: first(/svc_team_\w+/),
    project: first(/(?<=Project +)[0-9a-f-]{36}/),
    key: first(/svc_proj_\w+/),
    /** Another server in the place of one that has ended. */
    async restart(at: number): Promise<void> {
      servers[at] = await spawn(directory, options);
    },
    /** One more, configured otherwise, or of another checkout. */
    async add(environment: Record<string, string>, source = options.source ?? ROOT) {
      // It has no welcome to say, and that it is ready is said at this level.
      const all = { ...options.environment, LOG_LEVEL: "info", ...environment };
      const server = await spawn(directory, { ...options, environment: all, source });
      servers.push(server);
      return server;
    },
    async stop() {
      await database.close();
      for (const { child } of servers) child.kill("SIGTERM");
      await Promise.all(servers.map(({ child }) => child.exited));
      await embedded.stop();
      if (options.directory === undefined) await removePlace(directory);
    },
  };
}

export type Servers = Awaited<ReturnType<typeof startServers>>;

/** Ends the script: what must hold is printed, and the exit code is 1 unless all of it does. */
export function judge(...claims: [what: string, holds: boolean, measured?: unknown][]): void {
  for (const [what, holds, measured] of claims)
    console.log(`${holds ? "holds" : "FAILS"}  ${what}${measured === undefined ? "" : `: ${measured}`}`);
  process.exitCode = claims.every(([, holds]) => holds) ? 0 : 1;
}
