/** Every page and form takes linear time, whatever names, messages, logs, queries and fields hold. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { PAGES } from "../../../src/web/site/pages.ts";
import { createShare } from "../../../src/operations/people/shares.ts";
import { createEverything, LOOKED_AT } from "../../everything.ts";
import { createHarness } from "../../harness.ts";
import { FEW_TEXTS, type HostileText, isSteep } from "./growth.ts";

setDefaultTimeout(120_000);

/** A message holds 64 KiB. */
const HALF = 32_000;
const everything = await createEverything(await createHarness({ outboundAllow: ["127.0.0.0/8"] }));
const { url, ask, acme, database, people, fill } = everything;
const { project, key, team } = acme;
const owner = { cookie: `assay_session=${people.owner.token}`, accept: "text/html" };

const get = async (path: string, headers: Record<string, string> = owner) =>
  await (await fetch(`${url}${path}`, { headers, redirect: "manual" })).text();
const csrf = /name="csrf" value="([^"]+)"/.exec(await get("/account"))![1]!;

/** An execution with four failures that say this, and the pages that show them. */
async function createFailures(text: string): Promise<string[]> {
  const cases = Array.from({ length: 4 }, (_, index) => ({
    ...{ suite: "a", name: `case ${index}`, status: "failed" },
    ...{
      message: `Error ${index}: ${text} end`,
      stack: `Expected: 1\nReceived: 2\n${text} end`,
      output: `${text} end`,
    },
  }));
  const { body } = await ask(`POST /projects/${project}/test-runs?complete=true`, {
    key,
    body: { taskSlug: "hostile", passed: 0, failed: 4, skipped: 0, cases },
  });
  const { executionId } = body;
  const place = { teamId: team, id: project, name: "shop" };
  const { token } = await createShare(database, people.owner, place, { kind: "execution", executionId });
  const base = `/projects/${project}/executions/${executionId}`;
  const [first] = body.newFailures;
  const test = first === undefined ? [] : [`/projects/${project}/tests/${first.testCaseId}`];
  return [base, `${base}/tasks/hostile`, `/shared/${token}`, ...test];
}

/** A running task with this log, and the pages that show it. */
async function createLog(text: string): Promise<string[]> {
  const call = async (path: string, body: unknown) =>
    (await ask(`POST /projects/${project}/${path}`, { key, body })).body;
  const { id } = await call("executions", { mode: "run", tasks: ["hostile"] });
  const sync = { runner: "hostile", taskSlugs: ["hostile"] };
  const { leases } = await call("leases", { ...sync, free: 1 });
  const held = { id: leases[0].id, log: { offset: 0, text } };
  await call("leases", { ...sync, free: 0, held: [held] });
  await call(`leases/${held.id}/fail`, { message: text.slice(0, 1_000) });
  const base = `/projects/${project}/executions/${id}/tasks/hostile`;
  return [base, `${base}/log`, `${base}/text`];
}

const POSTED = FEW_TEXTS.filter((_, index) => index % 3 === 0);

/** Names of the requests whose time grows faster than the text. */
async function findSteep(halves: readonly string[], wholes: readonly string[], { name }: HostileText) {
  const steep: string[] = [];
  for (const [index, whole] of wholes.entries())
    if (
      await isSteep(
        () => get(halves[index]!),
        () => get(whole),
      )
    )
      steep.push(`${name}: ${whole}`);
  return steep;
}

test.each(FEW_TEXTS.map((text) => [text.name, text] as const))("messages, stacks and output of %s", async (_, text) => {
  const [halves, wholes] = [await createFailures(text.of(HALF)), await createFailures(text.of(2 * HALF))];
  expect(wholes.length).toBeGreaterThanOrEqual(3);
  expect(await findSteep(halves, wholes, text)).toEqual([]);
});

test.each(FEW_TEXTS.map((text) => [text.name, text] as const))("logs of %s", async (_, text) => {
  expect(await findSteep(await createLog(text.of(HALF)), await createLog(text.of(2 * HALF)), text)).toEqual([]);
});

const withQuery = LOOKED_AT.filter(({ query }) => Object.keys(query.entries).length > 0);
test.each(withQuery.map((page) => [page.path, page] as const))("the query of %s", async (path, { query }) => {
  for (const text of POSTED) {
    const names = Object.keys(query.entries);
    const address = (length: number) =>
      `${fill(path)}?${new URLSearchParams(names.map((name): [string, string] => [name, text.of(length / names.length)]))}`;
    expect(await findSteep([address(2_048)], [address(4_096)], text)).toEqual([]);
  }
});

// What has no fields acts at once, and reads nothing.
const forms = PAGES.flatMap((page) => {
  const names = page.method === "POST" ? Object.keys(page.fields?.entries ?? {}) : [];
  return names.length > 0 ? [[page.path, names, page.access] as const] : [];
});
test.each(forms)("the fields of %s", async (path, names, access) => {
  const headers = { ...owner, origin: url, "content-type": "application/x-www-form-urlencoded" };
  // Public forms take 32 KiB.
  const most = access === "public" ? 30_000 : 120_000;
  for (const text of POSTED)
    for (const name of names) {
      const encodedLength = new URLSearchParams([["", text.of(100)]]).toString().length / 100;
      const send = (length: number) => async () => {
        const others = names.filter((other) => other !== name).map((other): [string, string] => [other, "a"]);
        const fields: [string, string][] = [
          ["csrf", csrf],
          [name, text.of(Math.floor(length / encodedLength))],
          ...others,
        ];
        const body = new URLSearchParams(fields).toString();
        await (await fetch(`${url}${fill(path)}`, { method: "POST", headers, body, redirect: "manual" })).text();
      };
      expect([name, text.name, await isSteep(send(most / 2), send(most))]).toEqual([name, text.name, false]);
    }
});

test("there is something to look at", () => {
  expect(forms.length).toBeGreaterThan(20);
  expect(withQuery.length).toBeGreaterThan(8);
});
