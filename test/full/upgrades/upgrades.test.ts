/** The databases of all releases and of this version are migrated to the next schema, and answer what they answered before. */

import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { migrate } from "../../../src/database/migrate.ts";
import { createBareDatabase, createServer } from "../../harness.ts";
import { LOOKED_AT } from "../../everything.ts";
import { createPlace, removePlace } from "../../places.ts";
import { describeSchema } from "./catalog.ts";
import { createClient } from "./client.ts";
import { findDifferences, mayDiffer } from "./differences.ts";
import { type Dump, type Expectation, readReleases, type RecordedAnswer, VARIABLES } from "./dump.ts";
import { loadDump } from "./load_dump.ts";
import { createNextRelease, ROOT } from "./next_release.ts";
import { runCommand, startProgram, toKeyText } from "./program.ts";
import { canRecord, record } from "./recording.ts";
import { junit, SECRET_KEY, until } from "../../harness.ts";

setDefaultTimeout(120_000);
const place = createPlace("upgrades");
afterAll(() => removePlace(place));
const next = await createNextRelease(place);
const dumps = [...(await readReleases()), ...(canRecord ? [await record()] : [])];
if (!canRecord)
  console.warn("Upgrades of this version are not tested: Debian's PostgreSQL 15, with pg_dump, is missing");
const fresh = await createBareDatabase();
await migrate(fresh.database, undefined, next.sql);
const freshSchema = await describeSchema(fresh.database.pool);

type Upgraded = Awaited<ReturnType<typeof upgrade>>;

async function writeAttachments(directory: string, { attachments }: Expectation): Promise<void> {
  for (const [path, content] of Object.entries(attachments)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    await Bun.write(join(directory, path), Buffer.from(content, "base64"));
  }
}

/** Starts a server without background work on the upgraded database of a release. */
async function upgrade(dump: Dump) {
  const { expectation } = dump;
  const { database } = await loadDump(dump);
  const migrated: string[] = [];
  await migrate(database, (message) => migrated.push(message), next.sql);
  const directory = join(place, expectation.version);
  await writeAttachments(directory, expectation);
  const { url } = await createServer(database, { attachments: { directory } });
  return { database, expectation, migrated, url, client: createClient(url, expectation.access) };
}

/** Repeats the recorded requests; returns a line for each value that has changed. */
async function compareAnswers(url: string, { access, answers }: Expectation): Promise<string[]> {
  const differences: string[] = [];
  async function compare({ key, path, status, body }: RecordedAnswer): Promise<void> {
    const response = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${access[key]}` } });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const now = { status: response.status, body: isJson ? JSON.parse(text) : text };
    for (const { field, difference } of findDifferences({ status, body }, now))
      if (!mayDiffer({ path, field })) differences.push(`${path}: ${difference}`);
  }
  for (const answer of answers) await compare(answer);
  return differences;
}

/** An id of everything that a path of a page names. */
function findIds({ access, answers }: Expectation): Record<string, string | undefined> {
  const list = (noun: string): any[] => {
    const found = answers.find(({ path }) => new RegExp(`/${noun}(\\?limit=100)?$`).test(path));
    return (found?.body as { data?: any[] } | undefined)?.data ?? [];
  };
  const red = list("executions").find(({ key }) => key === "pull-87");
  return {
    ...{ projectId: access.project, teamId: access.team, executionId: red.id, taskSlug: "unit" },
    ...{ environmentId: access.environmentId, variableName: "API_TOKEN", integrationId: list("integrations")[0].id },
    ...{ automationId: list("automations")[0].id, testId: list("test-cases")[0].id, bugId: list("bug-reports")[0].id },
    infrastructureRuleId: list("infrastructure-rules")[0]?.id,
  };
}

/** The schema is that of a new installation. */
async function expectSchema({ database, expectation, migrated }: Upgraded): Promise<void> {
  expect(migrated).toHaveLength(next.schema - expectation.schema);
  expect(await describeSchema(database.pool)).toEqual(freshSchema);
  const [row] = await database.pool<{ isEqual: boolean }[]>`
    select (select count(*) from next_table) = (select count(*) from execution where next_note = 'upgraded') as "isEqual"`;
  expect(row).toEqual({ isEqual: true });
}

/** The server answers as the server that wrote the database. */
async function expectAnswers({ expectation, url }: Upgraded): Promise<void> {
  expect(expectation.answers.filter(({ status }) => status === 200).length).toBeGreaterThan(300);
  expect(await compareAnswers(url, expectation)).toEqual([]);
}

/** Keys, revocations, sessions, passwords and links are as they were. */
async function expectAccess({ expectation, url, client }: Upgraded): Promise<void> {
  const { access } = expectation;
  const open = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(`${url}${path}`, { headers, redirect: "manual" })).status;
  for (const key of access.revokedKeys)
    for (const path of [`/projects/${access.project}`, `/teams/${access.team}/environments`])
      expect(await open(`/api/v1${path}`, { authorization: `Bearer ${key}` })).toBe(401);
  for (const { email, session } of access.members) {
    expect([email, await open(`/projects/${access.project}`, { cookie: session })]).toEqual([email, 200]);
    expect(await client.signIn(email)).toMatch(/^assay_session=/);
  }
  for (const path of [...access.publicPaths, access.invitation]) expect([path, await open(path)]).toEqual([path, 200]);
  expect([access.members.length, access.publicPaths.length]).toEqual([3, 2]);
}

/** Every page shows the data. */
async function expectPages({ expectation, url, client }: Upgraded): Promise<void> {
  const { access } = expectation;
  const cookie = await client.signIn(access.members[0]!.email);
  const ids = findIds(expectation);
  const ofTeam = LOOKED_AT.map(({ path }) => path).filter((path) => path === "/" || path.includes(":"));
  const paths = ofTeam.map((path) => path.replace(/:(\w+)/g, (parameter, name) => ids[name] ?? parameter));
  const shown = paths.filter((path) => !path.includes(":"));
  const failed: string[] = [];
  for (const path of shown) {
    const { status } = await fetch(`${url}${path}`, { headers: { cookie }, redirect: "manual" });
    if (status !== 200) failed.push(`${status} ${path}`);
  }
  expect(failed).toEqual([]);
  expect(shown.length).toBeGreaterThan(30);
  for (const [path, text] of [
    ["/", "shop"],
    [`/projects/${access.project}/executions`, "feature/two-currencies"],
    [`/projects/${access.project}/tests/${ids["testId"]}`, "adds an item"],
    [`/projects/${access.project}/bugs`, "The cart forgets its items"],
    [`/teams/${access.team}/environments/${access.environmentId}`, VARIABLES.BASE_URL],
  ]) {
    const page = await fetch(`${url}${path}`, { headers: { cookie } });
    expect([path, await page.text()]).toEqual([path, expect.stringContaining(text!)]);
  }
}

const REPORT = junit("pp", "Cart").replace("case 0", "adds an item");
const BUILD = { task_slug: "unit", branch: "main", commit: "0123456789abcdef0123456789abcdef01234567" };

describe.each(dumps.map((dump) => ({ ...dump, version: dump.expectation.version })))(
  "a database of $version",
  (dump) => {
    test("is upgraded and answers as before", async () => {
      const upgraded = await upgrade(dump);
      await expectSchema(upgraded);
      await expectAnswers(upgraded);
      await expectAccess(upgraded);
      await expectPages(upgraded);
    });

    test("is upgraded by the program, which continues the waiting work with a new secret key", async () => {
      const { connection } = await loadDump(dump);
      const dataDir = join(place, `data-${dump.version}`);
      await writeAttachments(join(dataDir, "attachments"), dump.expectation);
      const server = await startProgram(
        { source: next.source, connection, dataDir },
        {
          ...{ RETENTION_DAYS: "0", ATTACHMENT_RETENTION_DAYS: "0" },
          ...{ SECRET_KEY: toKeyText(new Uint8Array(32).fill(9)), SECRET_KEY_OLD: toKeyText(SECRET_KEY) },
        },
      );
      const { project, upload } = createClient(server.url, dump.expectation.access);
      expect(await upload(BUILD, REPORT)).toMatchObject({ passed: 2, verdict: "passed" });
      await project("POST", "/executions", { mode: "run", tasks: ["upgraded"], environment: "staging" });
      const { leases } = await project("POST", "/leases", { runner: "new/1", taskSlugs: ["upgraded"], free: 1 });
      expect(leases).toEqual([expect.objectContaining({ variables: VARIABLES })]);
      await until(() => server.output().includes("All values are encrypted with SECRET_KEY"));
      expect(await server.stop()).toBe(0);
      expect(server.output()).toContain(`Migrated the database: ${next.migration}`);
      const warned = server.output().match(/^.*"level":"(warn|error)".*$/gm) ?? [];
      // The server that the dump is of noted its settings a moment ago.
      expect(warned.filter((line) => !line.includes("The servers differ in"))).toEqual([]);
    });
  },
);

describe.if(canRecord)("beside the next release", () => {
  const dump = dumps.at(-1)!;

  test("a server of this version continues to work, and cannot be started again", async () => {
    const { connection, database } = await loadDump(dump);
    const current = await createServer(database);
    const options = { connection, dataDir: join(place, "beside") };
    const newer = await startProgram({ ...options, source: next.source });
    const clients = [current.url, newer.url].map((url) => createClient(url, dump.expectation.access));
    for (const [index, { upload }] of clients.entries())
      expect(await upload({ ...BUILD, execution_key: `beside-${index}` }, REPORT)).toMatchObject({ verdict: "passed" });
    for (const { project } of clients) {
      const { data } = await project("GET", "/executions?limit=2");
      expect(data.map(({ key }: { key: string }) => key)).toEqual(["beside-1", "beside-0"]);
    }
    await newer.stop();
    const { code, errors } = await runCommand({ ...options, source: ROOT }, ["start"]);
    expect([code, errors]).toEqual([
      1,
      `The database has schema ${next.schema}, this version of Assay knows up to ${next.schema - 1}: start a newer version\n`,
    ]);
  });
});
