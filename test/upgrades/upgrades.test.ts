/** Databases of all released schemas are migrated, and today's server answers what their own servers answered. */

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { migrate } from "../../src/database/migrate.ts";
import { createDatabase, createServer } from "../harness.ts";
import { LOOKED_AT } from "../everything.ts";
import { createPerson } from "../people.ts";
import { createPlace, removePlace } from "../places.ts";
import { describeSchema } from "./catalog.ts";
import { createClient } from "./client.ts";
import { findDifferences, isIntended } from "./differences.ts";
import { type Expectation, fileNames, readExpectation, type RecordedAnswer, VARIABLES } from "./dump.ts";
import { loadDump } from "./load_dump.ts";
import { RELEASES } from "./releases.ts";

setDefaultTimeout(60_000);
const place = createPlace("upgrades");
afterAll(() => removePlace(place));
const fresh = await createDatabase();
const freshSchema = await describeSchema(fresh.database.pool);

test("every release has a dump, and every dump a release", () => {
  const dumps = readdirSync(import.meta.dir).filter((name) => /^\d+\..*\.zst$/.test(name));
  const expected = RELEASES.flatMap(({ schema }) => Object.values(fileNames(schema)));
  expect(dumps.sort()).toEqual(expected.sort());
});

type Upgraded = Awaited<ReturnType<typeof upgrade>>;

/** Starts today's server on the upgraded database of a release. */
async function upgrade(schema: number) {
  const { database } = await loadDump(schema);
  const migrated: string[] = [];
  await migrate(database, (message) => migrated.push(message));
  const expectation = await readExpectation(schema);
  const directory = join(place, String(schema));
  for (const [path, content] of Object.entries(expectation.attachments)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    await Bun.write(join(directory, path), Buffer.from(content, "base64"));
  }
  const { url } = await createServer(database, { attachments: { directory } });
  return { database, expectation, migrated, url, client: createClient(url, expectation.access) };
}

/** Repeats the recorded requests; returns a line for each value that is not what the old server answered. */
async function compareAnswers(url: string, { schema, access, answers }: Expectation): Promise<string[]> {
  const differences: string[] = [];
  async function compare({ key, path, status, body }: RecordedAnswer): Promise<void> {
    const response = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${access[key]}` } });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const now = { status: response.status, body: isJson ? JSON.parse(text) : text };
    for (const { field, difference } of findDifferences({ status, body }, now))
      if (!isIntended({ schema, path, field })) differences.push(`${path}: ${difference}`);
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
  expect(migrated).toHaveLength(
    freshSchema.filter((line) => line.startsWith("migration ")).length - expectation.schema,
  );
  expect(await describeSchema(database.pool)).toEqual(freshSchema);
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
    expect([email, await open(`/projects/${access.project}`, { cookie: session! })]).toEqual([email, 200]);
    expect(await client.signIn(email)).toMatch(/^assay_session=/);
  }
  const links = [...access.publicPaths, ...(access.invitation === null ? [] : [access.invitation])];
  for (const path of links) expect([path, await open(path)]).toEqual([path, 200]);
  expect([access.members.length, links.length]).toEqual(expectation.schema < 18 ? [0, 0] : [3, 3]);
}

/** Every page shows the data. */
async function expectPages({ database, expectation, url, client }: Upgraded): Promise<void> {
  const { access } = expectation;
  const [owner] = access.members;
  const cookie = owner
    ? await client.signIn(owner.email)
    : `assay_session=${(await createPerson(database, { team: access.team, role: "owner" })).token}`;
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

test.each([...RELEASES])("a database of schema $schema is upgraded", async ({ schema }) => {
  const upgraded = await upgrade(schema);
  await expectSchema(upgraded);
  await expectAnswers(upgraded);
  await expectAccess(upgraded);
  await expectPages(upgraded);
});
