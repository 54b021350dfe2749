/** Speaks the Model Context Protocol to a server as an assistant does, message by message. */

import { expect } from "bun:test";
import { MAX_RESULT_BYTES } from "../../src/mcp/fit.ts";

export const STATELESS = "2026-07-28";

export type McpAnswer = { status: number; headers: Headers; body: any };

export function createAssistant(url: string) {
  /** Sends a body as it is. */
  async function post(body: unknown, key: string | null, headers: Record<string, string> = {}): Promise<McpAnswer> {
    const response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}), ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  }

  /** Sends one request in the revision without handshakes. */
  const request = (method: string, params: object, key: string | null, headers: Record<string, string> = {}) => {
    const { name } = params as { name?: unknown };
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": STATELESS,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const said = {
      "mcp-protocol-version": STATELESS,
      "mcp-method": method,
      ...(method === "tools/call" && typeof name === "string" ? { "mcp-name": name } : {}),
    };
    return post({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }, key, { ...said, ...headers });
  };

  return {
    post,
    request,

    /** Calls a tool and returns its data; a refused call is an error. */
    async call(name: string, args: object, key: string): Promise<any> {
      const { status, body } = await request("tools/call", { name, arguments: args }, key);
      expect([name, status, body.error]).toEqual([name, 200, undefined]);
      expect(Buffer.byteLength(JSON.stringify(body.result))).toBeLessThanOrEqual(MAX_RESULT_BYTES);
      const { content, structuredContent, isError } = body.result;
      if (isError) throw new Error(content[0].text);
      expect(JSON.parse(content[0].text)).toEqual(structuredContent);
      expect(structuredContent.leftOut).toBeArray();
      return structuredContent;
    },
  };
}
