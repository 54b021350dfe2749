/** As much of oidc-provider, which has no types of its own, as tests use. */
declare module "oidc-provider" {
  import type { Server } from "node:http";
  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): (request: unknown, response: unknown) => void;
    listen(port: number, host: string, listening: () => void): Server;
  }
}
