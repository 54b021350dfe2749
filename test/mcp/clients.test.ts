/** The official clients of both eras list and call every tool. */

import { beforeAll, describe, expect, test } from "bun:test";
import { Client as StatelessClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as HandshakeClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as HandshakeTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { TOOLS } from "../../src/mcp/tools.ts";
import { insertFoundSearch } from "../culprit_searches.ts";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, database, url } = await createHarness();
const { project, key } = acme;

let ids: { executionId: string; baselineId: string; testCaseId: string; bugReportId: string };

beforeAll(async () => {
  const { upload, get } = createAsking(ask, acme, "unit");
  const send = (build: string, letters: string, query = "branch=main") =>
    upload(letters, `complete=true&execution_key=${build}&${query}`);
  const first = await send("1", "ppp");
  const second = await send("2", "ppf");
  await send("3", "pff", "branch=feature&pull_request=12");
  const { causes } = await get(`/executions/${second.executionId}/failures`);
  ids = {
    executionId: second.executionId,
    baselineId: first.executionId,
    testCaseId: causes[0].failures[0].testCaseId,
    bugReportId: second.bugReports[0].id,
  };
  await insertFoundSearch(database, { project, bugReportId: ids.bugReportId });
});

/** A call of each tool, and a field that its answer has. */
const calls = (): Record<string, [args: Record<string, unknown>, field: string]> => ({
  why_is_it_red: [{ pullRequest: "12" }, "causes"],
  list_executions: [{ branch: "main", limit: 1 }, "executions"],
  get_failures: [{ executionId: ids.executionId }, "causes"],
  test_history: [{ testCaseId: ids.testCaseId }, "results"],
  flaky_tests: [{}, "tests"],
  bug_reports: [{ status: "open" }, "bugReports"],
  culprit: [{ bugReportId: ids.bugReportId }, "culprit"],
  get_log: [{ executionId: ids.executionId, task: "unit" }, "untrusted"],
  compare: [{ executionId: ids.executionId, baselineId: ids.baselineId }, "newFailures"],
  quarantine: [{ testCaseIds: [ids.testCaseId], reason: "#12" }, "changed"],
  triage_bug: [{ bugReportId: ids.bugReportId, status: "in_progress", assignee: "ada" }, "bugReport"],
  rerun_failed: [{ executionId: ids.executionId }, "execution"],
});

const requestInit = { headers: { authorization: `Bearer ${key}` } };
const endpoint = new URL(`${url}/mcp`);

type Client = StatelessClient | HandshakeClient;
const toConnected = (client: Client, revision: string | undefined) => ({
  revision,
  list: async () => (await client.listTools()).tools,
  call: (name: string, args: Record<string, unknown>): Promise<any> => client.callTool({ name, arguments: args }),
  close: () => client.close(),
});

async function connectStateless(mode: "auto" | "legacy" | { pin: string }) {
  const errors: Error[] = [];
  const client = new StatelessClient({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  client.onerror = (error) => void errors.push(error);
  await client.connect(new StreamableHTTPClientTransport(endpoint, { requestInit }));
  return { errors, ...toConnected(client, client.getNegotiatedProtocolVersion()) };
}

async function connectWithHandshake() {
  const errors: Error[] = [];
  const client = new HandshakeClient({ name: "test", version: "1" });
  client.onerror = (error) => void errors.push(error);
  const transport = new HandshakeTransport(endpoint, { requestInit });
  await client.connect(transport as never);
  return { errors, ...toConnected(client, transport.protocolVersion) };
}

const CLIENTS: [name: string, revision: string, connect: typeof connectWithHandshake][] = [
  ["client 2 that finds out the revision", "2026-07-28", () => connectStateless("auto")],
  ["client 2 that insists on 2026-07-28", "2026-07-28", () => connectStateless({ pin: "2026-07-28" })],
  ["client 2 with a handshake", "2025-11-25", () => connectStateless("legacy")],
  ["sdk 1", "2025-11-25", connectWithHandshake],
];

describe.each(CLIENTS)("%s", (_, revision, connect) => {
  test("lists and calls every tool", async () => {
    const client = await connect();
    expect(client.revision).toBe(revision);
    const tools = await client.list();
    expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
    expect(tools.map(({ name }) => name).sort()).toEqual(Object.keys(calls()).sort());
    for (const [name, [args, field]] of Object.entries(calls())) {
      const { structuredContent, isError, content } = await client.call(name, args);
      expect([name, isError ?? false, content[0].text]).toEqual([name, false, JSON.stringify(structuredContent)]);
      expect(structuredContent).toHaveProperty(field);
      expect(structuredContent).toHaveProperty("leftOut");
    }
    await client.close();
    expect(client.errors).toEqual([]);
  });

  test("gets what is wrong with arguments as a result that names the field", async () => {
    const client = await connect();
    const { isError, content } = await client.call("list_executions", { limit: "many" });
    expect([isError, content[0].text]).toEqual([
      true,
      `Cannot read "limit": expected an integer from 1 to 50, got "many"`,
    ]);
    await expect(client.call("no_such_tool", {})).rejects.toThrow(`Unknown tool "no_such_tool"`);
    await client.close();
  });
});

test("a client that looks for OAuth first finds none, and goes on with its key", async () => {
  for (const path of [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
  ]) {
    for (const accept of ["application/json", "*/*"]) {
      const response = await fetch(`${url}${path}`, { headers: { accept } });
      const body = { error: { code: "NOT_FOUND", message: expect.any(String) } };
      expect([path, response.status, await response.json()]).toEqual([path, 404, body]);
    }
  }
});
