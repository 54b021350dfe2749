/** What is answered beside the API: whether the process lives, whether it takes requests, the OpenAPI document. */

import { json, type Reply } from "../request/reply.ts";
import openapi from "../openapi.json" with { type: "json" };

export type SiteOptions = {
  /** Without a trailing slash. */
  publicUrl: string;
  /** Where the API is, relative to it. */
  api: string;
  /** Whether requests should come here. */
  isReady: () => Promise<boolean>;
};

export function createSite({ publicUrl, api, isReady }: SiteOptions) {
  /** Undefined where there is no such page. */
  return async function page(method: string, path: string): Promise<Reply | undefined> {
    if (method !== "GET" && method !== "HEAD") return undefined;
    if (path === "/healthz") return json(200, { status: "ok" });
    if (path === "/readyz")
      return (await isReady()) ? json(200, { status: "ready" }) : json(503, { status: "not ready" });
    if (path === "/openapi.json") return json(200, { ...openapi, servers: [{ url: `${publicUrl}${api}` }] });
    return undefined;
  };
}
