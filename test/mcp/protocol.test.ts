/** The Model Context Protocol message by message: what is malformed is refused in its words, and nothing runs. */

import { describe, expect, test } from "bun:test";
import { createHarness } from "../harness.ts";
import { createAssistant, STATELESS } from "./assistant.ts";

const { acme, url } = await createHarness();
const { key } = acme;
const { post, request } = createAssistant(url);

const ping = (id: number | string = 1) => ({ jsonrpc: "2.0", id, method: "ping" });

describe("a message", () => {
  test.each([
    ["{", null, -32700],
    ["", null, -32700],
    ["1", null, -32600],
    ["null", null, -32600],
    [`{"id":7}`, 7, -32600],
    [`{"jsonrpc":"1.0","id":7,"method":"ping"}`, 7, -32600],
    [`{"jsonrpc":"2.0","id":7,"method":5}`, 7, -32600],
    [`{"jsonrpc":"2.0","id":{},"method":"ping"}`, null, -32600],
    [`{"jsonrpc":"2.0","id":null,"method":"ping"}`, null, -32600],
    [`{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}`, 7, -32600],
    ["[]", null, -32600],
  ])("that is malformed is a 400 with its id: %s", async (text, id, code) => {
    const { status, body } = await post(text, key);
    expect([status, body]).toEqual([400, { jsonrpc: "2.0", id, error: { code, message: expect.any(String) } }]);
  });

  test("of an unknown method is an error of the protocol in both eras", async () => {
    for (const method of ["resources/list", "constructor", "server/discover"]) {
      const { status, body } = await post({ jsonrpc: "2.0", id: "a", method }, key);
      const error = { code: -32601, message: `Unknown method "${method}"` };
      expect([status, body]).toEqual([200, { jsonrpc: "2.0", id: "a", error }]);
    }
    for (const method of ["initialize", "ping", "subscriptions/listen"]) {
      const { status, body } = await request(method, {}, key);
      expect([method, status, body.error.code]).toEqual([method, 404, -32601]);
    }
  });

  test("that needs no answer gets none", async () => {
    const quiet = [
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 1, result: {} },
      [{ jsonrpc: "2.0", method: "notifications/cancelled" }],
    ];
    for (const message of quiet) {
      const { status, body } = await post(message, key);
      expect([message, status, body]).toEqual([message, 202, undefined]);
    }
  });

  test("larger than 64 KiB is a 400 in our shape", async () => {
    const { status, body } = await post({ ...ping(), params: { x: "a".repeat(70_000) } }, key);
    const error = { code: "VALIDATION_ERROR", message: "Body too large: at most 64 KiB" };
    expect([status, body]).toEqual([400, { error }]);
  });

  test("nested a thousand levels deep is answered", async () => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${"[".repeat(1_000)}${"]".repeat(1_000)}}}`;
    expect((await post(text, key)).body).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  });
});

describe("initialize", () => {
  test("agrees on the revision that the client asks for, or offers the newest", async () => {
    const agreed = async (protocolVersion: unknown) => {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } };
      return (await post({ jsonrpc: "2.0", id: 1, method: "initialize", params }, key)).body.result;
    };
    for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25"])
      expect((await agreed(revision)).protocolVersion).toBe(revision);
    for (const other of ["2024-11-05", "2030-01-01", 5])
      expect(await agreed(other)).toEqual({
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "assay", title: "Assay", version: expect.any(String) },
        instructions: expect.stringContaining("why_is_it_red"),
      });
  });

  test("is followed by a header, in which a revision that nobody knows is refused", async () => {
    for (const requested of ["2001-01-01", "2031-01-01", "x"]) {
      const { status, body } = await post(ping(), key, { "mcp-protocol-version": requested });
      const error = { code: -32022, data: { requested, supported: expect.arrayContaining([STATELESS]) } };
      expect([status, body]).toMatchObject([400, { id: 1, error }]);
    }
  });
});

describe("the revision without a handshake", () => {
  test("discovers the server, and lists may be kept by this client", async () => {
    const kept = { resultType: "complete", ttlMs: expect.any(Number), cacheScope: "private" };
    const { body } = await request("server/discover", {}, key);
    expect(body.result).toMatchObject({
      ...kept,
      supportedVersions: [STATELESS, "2025-11-25", "2025-06-18", "2025-03-26"],
      capabilities: { tools: {} },
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "assay" } },
    });
    expect((await request("tools/list", {}, key)).body.result).toMatchObject(kept);
    const called = await request("tools/call", { name: "flaky_tests", arguments: {} }, key);
    expect(called.body.result).toMatchObject({ resultType: "complete", content: [{ type: "text" }] });
  });

  const VERSION = "io.modelcontextprotocol/protocolVersion";
  const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
  const listOf = (_meta: object) => ({ jsonrpc: "2.0", id: 3, method: "tools/list", params: { _meta } });
  const said = { "mcp-protocol-version": STATELESS, "mcp-method": "tools/list" };
  const meta = { [VERSION]: STATELESS, [CAPABILITIES]: {} };

  test.each<[what: string, meta: object, headers: Record<string, string>, code: number]>([
    ["an unknown revision", { ...meta, [VERSION]: "2027-01-01" }, { "mcp-method": "tools/list" }, -32022],
    ["a header that says another revision", meta, { ...said, "mcp-protocol-version": "2025-11-25" }, -32020],
    ["no header of the revision", meta, { "mcp-method": "tools/list" }, -32020],
    ["no header of the method", meta, { "mcp-protocol-version": STATELESS }, -32020],
    ["a header of another method", meta, { ...said, "mcp-method": "tools/call" }, -32020],
    ["no revision in the message", {}, said, -32602],
    ["a revision that is no text", { ...meta, [VERSION]: 5 }, said, -32602],
    ["no capabilities", { [VERSION]: STATELESS }, said, -32602],
  ])("refuses %s", async (_, given, headers, code) => {
    const { status, body } = await post(listOf(given), key, headers);
    expect([status, body]).toMatchObject([400, { jsonrpc: "2.0", id: 3, error: { code } }]);
  });

  test("refuses a name that differs from its header, and decodes that", async () => {
    const call = (header: string) =>
      request("tools/call", { name: "flaky_tests", arguments: {} }, key, { "mcp-name": header });
    expect((await call("list_executions")).body.error.code).toBe(-32020);
    expect((await call(`=?base64?${btoa("flaky_tests")}?=`)).body.result.isError).toBeUndefined();
  });

  test("has no batches", async () => {
    const { status, body } = await post([listOf(meta)], key, said);
    expect([status, body.error.code]).toEqual([400, -32600]);
    const hidden = await post([listOf(meta)], key);
    expect(hidden.body[0].error.code).toBe(-32600);
  });
});

describe("a batch", () => {
  test("is answered in its order, each message by itself", async () => {
    const call = { method: "tools/call", params: { name: "flaky_tests", arguments: {} } };
    const batch = [
      ping("a"),
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 2, ...call },
      { jsonrpc: "2.0", id: 3, method: "nope" },
      { jsonrpc: "2.0", id: 4, method: "initialize", params: {} },
      5,
    ];
    const { status, body } = await post(batch, key, { "mcp-protocol-version": "2025-03-26" });
    expect([status, body]).toMatchObject([
      200,
      [
        { id: "a", result: {} },
        { id: 2, result: { content: [{ type: "text" }] } },
        { id: 3, error: { code: -32601 } },
        { id: 4, error: { code: -32600 } },
        { id: null, error: { code: -32600 } },
      ],
    ]);
  });

  test("is refused where the revision has none, and above 20 messages", async () => {
    for (const revision of ["2025-06-18", "2025-11-25"])
      expect((await post([ping()], key, { "mcp-protocol-version": revision })).body.error.code).toBe(-32600);
    const { status, body } = await post(Array(21).fill(ping()), key);
    expect([status, body.error.message]).toEqual([400, "Cannot read the batch: expected 1 to 20 messages"]);
  });
});

describe("a call", () => {
  const call = (params: object) => post({ jsonrpc: "2.0", id: 1, method: "tools/call", params }, key);

  test("of what is no tool is an error of the protocol", async () => {
    for (const [params, message] of [
      [{}, `Cannot read "name": expected a text`],
      [{ name: 5 }, `Cannot read "name": expected a text`],
      [{ name: "constructor" }, `Unknown tool "constructor"`],
      [{ name: "flaky_tests", arguments: [] }, `Cannot read "arguments": expected an object`],
    ] as const)
      expect((await call(params)).body.error).toEqual({ code: -32602, message });
  });

  test.each<[name: string, args: object, message: string]>([
    ["get_failures", {}, `Missing field "executionId"`],
    ["get_failures", { executionId: 5 }, `Cannot read "executionId": expected a UUID, got 5`],
    ["get_failures", { executionId: "x" }, `Cannot read "executionId": expected a UUID, got "x"`],
    ["flaky_tests", { limit: 0 }, `Cannot read "limit": expected an integer from 1 to 50, got 0`],
    ["flaky_tests", { nope: 1 }, `Unknown field "nope"`],
    ["flaky_tests", { cursor: "x" }, `Cannot read "cursor": expected a cursor that this list returned`],
    ["test_history", {}, `Cannot read the arguments: give either "testCaseId" or "name"`],
    ["why_is_it_red", { branch: "a", pullRequest: "1" }, `give one of "branch", "pullRequest", "executionId"`],
    ["triage_bug", { bugReportId: crypto.randomUUID() }, "Not found, or this key has no access to it"],
    ["quarantine", { testCaseIds: [], reason: "x" }, `"testCaseIds": expected 1 to 100 ids of test cases`],
    ["get_log", { executionId: crypto.randomUUID(), task: "../../x" }, "Not found, or this key has no access to it"],
  ])("of %s with %j is a result that says what is wrong", async (name, args, message) => {
    const { body } = await call({ name, arguments: args });
    expect(body.result).toEqual({ content: [{ type: "text", text: expect.stringContaining(message) }], isError: true });
  });
});

describe("the endpoint", () => {
  test("knows POST alone, as clients expect it to say", async () => {
    for (const method of ["GET", "DELETE", "PUT", "OPTIONS"]) {
      const response = await fetch(`${url}/mcp`, { method, headers: { authorization: `Bearer ${key}` } });
      expect([method, response.status, response.headers.get("allow"), await response.json()]).toEqual([
        ...[method, 405, "POST"],
        { error: { code: "NOT_FOUND", message: `Method ${method} is not supported: this endpoint supports POST` } },
      ]);
    }
  });

  test("refuses pages of other sites", async () => {
    const { status, body } = await post(ping(), key, { origin: "https://evil.example" });
    expect([status, body.error.code]).toEqual([403, "UNAUTHORIZED"]);
    expect((await post(ping(), key, { origin: "null" })).status).toBe(403);
    expect((await post(ping(), key, { origin: url })).status).toBe(200);
    // The addresses of this machine, with the port of the server.
    const { port } = new URL(url);
    for (const [host, expected] of [
      [`localhost:${port}`, 200],
      [`127.0.0.1:${port}`, 200],
      [`[::1]:${port}`, 200],
      ["localhost:1", 403],
      [`localhost.evil.example:${port}`, 403],
      [`127.0.0.1.evil.example:${port}`, 403],
    ] as const)
      expect([host, (await post(ping(), key, { origin: `http://${host}` })).status]).toEqual([host, expected]);
  });

  test("answers with the headers of the API", async () => {
    const { headers } = await post(ping(), key);
    for (const name of ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"])
      expect(headers.get(name), name).toBeTruthy();
    expect([headers.get("cache-control"), headers.get("content-type")]).toEqual(["no-store", "application/json"]);
    expect(headers.get("mcp-session-id")).toBeNull();
  });
});
