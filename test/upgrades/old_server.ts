/** A server of an earlier commit in a process of its own, on a PostgreSQL 15, which pg_dump is available for. */

import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { connect } from "../../src/database/connect.ts";
import { startEmbedded } from "../../src/database/postgres/embedded.ts";
import { SECRET_KEY } from "../harness.ts";
import { createPlace, followOutput, guardProcess, removePlace } from "../places.ts";

const ROOT = join(import.meta.dir, "../..");
const POSTGRES = "/usr/lib/postgresql/15/bin";

/** Writes the sources of a commit into a folder; they use the packages of this checkout. */
export async function checkOut(commit: string, place: string): Promise<string> {
  const source = join(place, "source");
  mkdirSync(source);
  await Bun.$`git -C ${ROOT} archive ${commit} src sql package.json tsconfig.json | tar -x -C ${source}`;
  symlinkSync(join(ROOT, "node_modules"), join(source, "node_modules"));
  return source;
}

export async function startOldServer(commit: string) {
  const place = createPlace("old");
  const source = await checkOut(commit, place);
  const embedded = await startEmbedded({ directory: join(place, "postgres"), binaries: POSTGRES, fsync: false });
  const { connection } = embedded;
  const database = connect(connection, 2);
  const dataDir = join(place, "data");
  const environment: Record<string, string | undefined> = {
    ...process.env,
    ...{ DATABASE_URL: `postgres:///${connection.database}`, PGHOST: connection.host, PGPORT: String(connection.port) },
    ...{ PGUSER: connection.username, PGPASSWORD: connection.password, DATA_DIR: dataDir, PUBLIC_URL: "" },
    ...{ PORT: "0", RATE_LIMIT_PER_MINUTE: "0", LOG_LEVEL: "info", OUTBOUND_ALLOW: "127.0.0.0/8" },
    SECRET_KEY: Buffer.from(SECRET_KEY).toString("base64"),
  };
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    ...{ cwd: source, env: environment, stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  guardProcess(child);
  const followed = followOutput(child, (output) => /"message":"Assay is ready","url":"([^"]+)"/.exec(output)?.[1]);
  const url = await followed.url;

  async function admin(...args: string[]): Promise<Record<string, string>> {
    const command = [process.execPath, "src/cli/assay.ts", "admin", ...args, "--json"];
    const run = Bun.spawn(command, { cwd: source, env: environment, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [output, errors] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()]);
    if ((await run.exited) !== 0) throw new Error(`admin ${args.join(" ")}: ${errors}`);
    return JSON.parse(output);
  }

  return {
    source,
    url,
    admin,
    database,
    /** The database as SQL without the commands of psql. */
    async dump(): Promise<string> {
      const args = ["--no-owner", "--no-privileges", "--rows-per-insert=100"];
      const text = await Bun.$`${POSTGRES}/pg_dump ${args} ${connection.database}`.env(environment).text();
      return text.replaceAll(/^\\(un)?restrict .*\n/gm, "");
    },
    /** The files of attachments: content in base64 by relative path. */
    attachments(): Record<string, string> {
      const directory = join(dataDir, "attachments");
      const names = existsSync(directory) ? readdirSync(directory, { recursive: true }) : [];
      const files = names.map((name) => join(directory, String(name))).filter((path) => statSync(path).isFile());
      return Object.fromEntries(
        files.map((path) => [relative(directory, path), readFileSync(path).toString("base64")]),
      );
    },
    async stop(): Promise<void> {
      await database.close();
      child.kill("SIGTERM");
      await child.exited;
      await embedded.stop();
      await removePlace(place);
    },
  };
}

export type OldServer = Awaited<ReturnType<typeof startOldServer>>;
