/**
 * Writes the dumps of releases: starts the server of each one's commit, fills it, and stores its database and its answers, and for the
 * newest release its OpenAPI document.
 * `bun test/upgrades/record.ts [SCHEMA…]` needs git and Debian's PostgreSQL 15.
 */

import { join } from "node:path";
import { collectAnswers } from "./answers.ts";
import { type RecordedAnswer, writeDump, writeReleasedApi } from "./dump.ts";
import { fill } from "./fill.ts";
import { startOldServer } from "./old_server.ts";
import { RELEASES } from "./releases.ts";

const QUIET_MS = 2_000;

/** Waits until the background work of the server changes no answer any more. */
async function settle(read: () => Promise<RecordedAnswer[]>): Promise<RecordedAnswer[]> {
  for (let [before, answers] = [await read(), [] as RecordedAnswer[]]; ; before = answers) {
    await Bun.sleep(QUIET_MS);
    answers = await read();
    if (Bun.deepEquals(before, answers)) return answers;
  }
}

async function record(schema: number, commit: string): Promise<void> {
  const server = await startOldServer(commit);
  try {
    const [stored] = await server.database.pool<{ number: number }[]>`select max(number) as number from migration`;
    if (stored!.number !== schema) throw new Error(`${commit} has schema ${stored!.number}, expected ${schema}`);
    const access = await fill(server, schema);
    const answers = await settle(() => collectAnswers(server.url, access));
    const bytes = await writeDump(await server.dump(), {
      ...{ schema, commit, access, answers, attachments: server.attachments() },
    });
    if (schema === RELEASES.at(-1)!.schema)
      await writeReleasedApi(await Bun.file(join(server.source, "src/server/openapi.json")).json());
    console.log(`Schema ${schema} of ${commit}: ${answers.length} answers, ${bytes} bytes`);
  } finally {
    await server.stop();
  }
}

const chosen = process.argv.slice(2).map(Number);
for (const { schema, commit } of RELEASES)
  if (chosen.length === 0 || chosen.includes(schema)) await record(schema, commit);
