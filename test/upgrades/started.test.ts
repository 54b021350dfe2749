/** The program itself starts on the database of every released schema, migrates it, and continues the work that waits there. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { junit, SECRET_KEY, until, databaseVariables } from "../harness.ts";
import { createPlace, followOutput, guardProcess, removePlace } from "../places.ts";
import { createClient } from "./client.ts";
import { readExpectation, VARIABLES } from "./dump.ts";
import { loadDump } from "./load_dump.ts";
import { RELEASES } from "./releases.ts";

setDefaultTimeout(60_000);
const ROOT = join(import.meta.dir, "../..");
const toText = (key: Uint8Array) => Buffer.from(key).toString("base64");

/** With another secret key: the server decrypts all stored values and encrypts them again. */
async function start(connection: Record<string, unknown>, dataDir: string) {
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    cwd: ROOT,
    env: {
      ...process.env,
      ...databaseVariables(connection),
      ...{ PUBLIC_URL: "", DATA_DIR: dataDir, PORT: "0", LOG_LEVEL: "info" },
      ...{ RATE_LIMIT_PER_MINUTE: "0", RETENTION_DAYS: "0", ATTACHMENT_RETENTION_DAYS: "0" },
      ...{ SECRET_KEY: toText(new Uint8Array(32).fill(9)), SECRET_KEY_OLD: toText(SECRET_KEY) },
    },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  guardProcess(child);
  const { url, output } = followOutput(child, (text) => /"message":"Assay is ready","url":"([^"]+)"/.exec(text)?.[1]);
  return { child, url: await url, output };
}

test.each([...RELEASES])("the server starts on a database of schema $schema", async ({ schema }) => {
  const place = createPlace("started");
  const { connection } = await loadDump(schema);
  const { access } = await readExpectation(schema);
  const { child, url, output } = await start(connection, join(place, "data"));
  const { project, upload } = createClient(url, access);

  const report = junit("pp", "Cart").replace("case 0", "adds an item");
  const query = { task_slug: "unit", branch: "main", commit: "0123456789abcdef0123456789abcdef01234567" };
  expect(await upload(query, report)).toMatchObject({ passed: 2, verdict: "passed" });
  await project("POST", "/executions", { mode: "run", tasks: ["upgraded"], environment: "staging" });
  const { leases } = await project("POST", "/leases", { runner: "new/1", taskSlugs: ["upgraded"], free: 1 });
  expect(leases).toEqual([expect.objectContaining({ variables: VARIABLES })]);
  await until(() => output().includes("All values are encrypted with SECRET_KEY"), 30);

  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(output().match(/^.*"level":"(warn|error)".*$/gm) ?? []).toEqual([]);
  await removePlace(place);
});
