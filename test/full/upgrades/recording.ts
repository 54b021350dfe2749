/** Records a release: starts the server of this checkout, fills it, and reads its database and its answers. */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { version } from "../../../package.json";
import { connect, type ConnectionOptions } from "../../../src/database/connect.ts";
import { schemaVersion } from "../../../src/database/migrate.ts";
import { startEmbedded } from "../../../src/database/postgres/embedded.ts";
import openapi from "../../../src/server/openapi.json" with { type: "json" };
import { databaseVariables } from "../../harness.ts";
import { createPlace, removePlace } from "../../places.ts";
import { collectAnswers } from "./answers.ts";
import type { Dump, RecordedAnswer } from "./dump.ts";
import { fill } from "./fill.ts";
import { ROOT } from "./next_release.ts";
import { runCommand, startProgram } from "./program.ts";

/** Debian's PostgreSQL has pg_dump, the built-in one does not. Newer versions load its dumps. */
const POSTGRES = "/usr/lib/postgresql/15/bin";
export const canRecord = existsSync(`${POSTGRES}/pg_dump`);

const QUIET_MS = 2_000;

/** Waits until the background work of the server changes no answer any more. */
async function settle(read: () => Promise<RecordedAnswer[]>): Promise<RecordedAnswer[]> {
  for (let [before, answers] = [await read(), [] as RecordedAnswer[]]; ; before = answers) {
    await Bun.sleep(QUIET_MS);
    answers = await read();
    if (Bun.deepEquals(before, answers)) return answers;
  }
}

/** The database as SQL without the commands of psql. */
async function dumpDatabase(connection: Record<string, unknown>): Promise<string> {
  const args = ["--no-owner", "--no-privileges", "--rows-per-insert=100"];
  const text = await Bun.$`${POSTGRES}/pg_dump ${args} ${databaseVariables(connection).DATABASE_URL}`.text();
  return text.replaceAll(/^\\(un)?restrict .*\n/gm, "");
}

/** The files in the directory of attachments: content in base64 by relative path. */
function readAttachments(directory: string): Record<string, string> {
  const names = existsSync(directory) ? readdirSync(directory, { recursive: true }) : [];
  const files = names.map((name) => join(directory, String(name))).filter((path) => statSync(path).isFile());
  return Object.fromEntries(files.map((path) => [relative(directory, path), readFileSync(path).toString("base64")]));
}

export async function record(): Promise<Dump> {
  const place = createPlace("record");
  const embedded = await startEmbedded({ directory: join(place, "postgres"), binaries: POSTGRES, fsync: false });
  const { connection } = embedded;
  const database = connect(connection as ConnectionOptions, 2);
  const options = { source: ROOT, connection, dataDir: join(place, "data") };
  const server = await startProgram(options, { OUTBOUND_ALLOW: "127.0.0.0/8" });
  try {
    const admin = async (...args: string[]): Promise<Record<string, string>> => {
      const { code, output, errors } = await runCommand(options, ["admin", ...args, "--json"]);
      if (code !== 0) throw new Error(`admin ${args.join(" ")}: ${errors}`);
      return JSON.parse(output);
    };
    const access = await fill({ url: server.url, admin, database });
    const answers = await settle(() => collectAnswers(server.url, access));
    const attachments = readAttachments(join(options.dataDir, "attachments"));
    const expectation = { version, schema: await schemaVersion(), access, answers, attachments, openapi };
    return { sql: await dumpDatabase(connection), expectation };
  } finally {
    await database.close();
    await server.stop();
    await embedded.stop();
    await removePlace(place);
  }
}
