/** A server with the certificate of hooks.example.com, which answers with the host that it is asked for. */

import { join } from "node:path";

const FIXTURES = join(import.meta.dir, "../fixtures");

export const certificate = (): Promise<string> => Bun.file(join(FIXTURES, "tls_certificate.pem")).text();

export const serveSecurely = () =>
  Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    tls: { key: Bun.file(join(FIXTURES, "tls_key.pem")), cert: Bun.file(join(FIXTURES, "tls_certificate.pem")) },
    fetch: (request) => new Response(`secure ${request.headers.get("host")}`),
  });
