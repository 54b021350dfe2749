/** A key of scope read changes nothing: every route of the API, every page and form of the dashboard, and every tool for assistants. */

import { expect, test } from "bun:test";
import { TOOLS } from "../../src/mcp/tools.ts";
import { ROUTES } from "../../src/server/app.ts";
import { PAGES } from "../../src/web/site/pages.ts";
import { createEverything, digestTables } from "../everything.ts";
import { createHarness } from "../harness.ts";

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { url, fill, there, database, acme } = await createEverything(harness);
const { body } = await harness.ask(`POST /projects/${acme.project}/keys`, {
  ...{ key: acme.key, body: { name: "reader", scope: "read" } },
});
const authorization = `Bearer ${body.key}`;

/** What parameters of the API are called on pages. */
const ofApi = {
  leaseId: crypto.randomUUID(),
  testCaseId: there["testId"]!,
  bugReportId: there["bugId"]!,
  keyId: there["namedKeyId"]!,
};

async function request(method: string, path: string, sent?: unknown) {
  const abort = new AbortController();
  const response = await fetch(`${url}${path}`, {
    ...{ method, redirect: "manual", signal: abort.signal },
    headers: { authorization, ...(sent === undefined ? {} : { "content-type": "application/json" }) },
    ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
  });
  const isStream = response.headers.get("content-type") === "text/event-stream";
  const text = isStream ? "" : await response.text();
  // It would not end.
  if (isStream) abort.abort();
  return { status: response.status, text };
}

test("on every route of the API, all but GETs of its project are refused", async () => {
  const before = await digestTables(database);
  for (const { method, path, access } of ROUTES) {
    const isOpen = access === "project" && method === "GET";
    const { status } = await request(method, `/api/v1${fill(path, ofApi)}`, method === "GET" ? undefined : {});
    expect([method, path, status === 401]).toEqual([method, path, !isOpen]);
    expect([method, path, status < 500]).toEqual([method, path, true]);
  }
  expect(await digestTables(database)).toEqual(before);
});

test("on every page and form of the dashboard, which knows no keys", async () => {
  const before = await digestTables(database);
  for (const { method, path, access } of PAGES.filter(({ access }) => access !== "public")) {
    const { status } = await request(method, fill(path), method === "GET" ? undefined : {});
    expect([method, path, access, [303, 400, 401, 403].includes(status)]).toEqual([method, path, access, true]);
  }
  expect(await digestTables(database)).toEqual(before);
});

test("with every tool for assistants that writes", async () => {
  const before = await digestTables(database);
  const writing = TOOLS.filter(({ scope }) => scope === "triage");
  expect(writing.length).toBeGreaterThan(0);
  for (const { name } of writing) {
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } };
    const { text } = await request("POST", "/mcp", call);
    expect([name, text]).toEqual([name, expect.stringContaining('A key of scope \\"read\\" cannot call')]);
  }
  expect(await digestTables(database)).toEqual(before);
});
