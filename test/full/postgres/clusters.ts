/** Clusters of the built-in PostgreSQL for a test file: made quickly, started here or in other processes, and removed afterwards. */
import { afterAll, afterEach, beforeAll, expect } from "bun:test";
import { chmodSync, realpathSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { type Embedded, startEmbedded } from "../../../src/database/postgres/embedded.ts";
import { findPostmaster } from "../../../src/database/postgres/server.ts";
import { quickDirectory } from "../../cluster.ts";
import { createPlace, guardProcess, removePlace } from "../../places.ts";

const binaries = process.env.ASSAY_TEST_POSTGRES;
const SOURCE = JSON.stringify(join(import.meta.dir, "../../../src/database/postgres/embedded.ts"));

const start = (directory: string, fsync = false) => startEmbedded({ directory, fsync, ...(binaries && { binaries }) });

const remove = (directory: string) => removePlace(join(directory, ".."));

export const postmaster = (directory: string) => findPostmaster(join(realpathSync(directory), "cluster"));

export async function query<Row>({ connection }: Embedded, text: string): Promise<Row[]> {
  const sql = postgres({ ...connection, max: 1 });
  return [...(await sql.unsafe(text).finally(() => sql.end()))] as Row[];
}

/** Starts in a process of its own, in its own process group, which stops the cluster when told to. `through` is a command that runs it. */
function startElsewhere(directory: string, through: string[] = []) {
  const script = `
    const { startEmbedded } = await import(${SOURCE});
    const cluster = await startEmbedded(${JSON.stringify({ directory, fsync: false, ...(binaries && { binaries }) })});
    console.log("started");
    for await (const line of console) {
      if (line === "die") process.kill(process.pid, "SIGKILL");
      break;
    }
    await cluster.stop();`;
  const child = Bun.spawn([...through, process.execPath, "-e", script], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  guardProcess(child);
  const output = child.stdout.getReader();
  const say = async (line: string) => {
    child.stdin.write(`${line}\n`);
    await child.stdin.flush();
  };
  const nextLine = async () => new TextDecoder().decode((await output.read()).value);
  return {
    pid: child.pid,
    say,
    nextLine,
    async started() {
      const line = await nextLine();
      expect(line || (await new Response(child.stderr).text())).toBe("started\n");
    },
    async refused() {
      expect(await child.exited).not.toBe(0);
      return await new Response(child.stderr).text();
    },
    async stop() {
      await say("");
      await child.stdin.end();
      expect(await child.exited).toBe(0);
    },
    async kill() {
      process.kill(-child.pid, "SIGKILL");
      await child.exited;
      // A container ends after the command that started it.
      while (!(await output.read()).done);
    },
  };
}

/** Call it at the top of a test file. What the functions make is removed after each test. */
export function useClusters() {
  const used: string[] = [];
  let seed: string;

  /** A directory that the account PostgreSQL runs under as root can enter. */
  function emptyPlace(): string {
    const place = createPlace("embedded", quickDirectory());
    chmodSync(place, 0o711);
    used.push(join(place, "postgres"));
    return join(place, "postgres");
  }

  /** A stopped cluster: a copy costs a tenth of initdb. */
  function madePlace(): string {
    const directory = emptyPlace();
    expect(Bun.spawnSync(["cp", "-a", seed, directory]).exitCode).toBe(0);
    return directory;
  }

  beforeAll(async () => {
    seed = emptyPlace();
    used.pop();
    await (await start(seed)).stop();
  });
  afterEach(() => Promise.all(used.splice(0).map(remove)));
  afterAll(() => remove(seed));

  return { start, emptyPlace, madePlace, startElsewhere, seed: () => seed };
}
