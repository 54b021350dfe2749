/** A server that records the attachments that it is sent, and passes all other requests on to a real one. */

import { afterAll } from "bun:test";

export type RecordedAttachment = { path: string; type: string; text: string };
export type RecordedRequest = {
  method: string;
  /** Behind "/api/v1". */
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  files: RecordedAttachment[];
};

type Answer = { status: number; body?: unknown; headers?: Record<string, string> };

/** `answer` says what a request with attachments is answered with; default: 201. */
export function createAttachmentRecorder(upstream: string) {
  const requests: RecordedRequest[] = [];
  let answer: (request: RecordedRequest) => Answer = ({ files }) => ({
    status: 201,
    body: { attachments: files.map(({ path }) => ({ path })), warnings: [] },
  });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    maxRequestBodySize: 2 ** 31,
    async fetch(request) {
      const { pathname, search, searchParams } = new URL(request.url);
      const body = new Uint8Array(await request.arrayBuffer());
      if (!pathname.endsWith("/attachments")) {
        const headers = new Headers(request.headers);
        headers.delete("host");
        const hasBody = request.method !== "GET";
        return await fetch(`${upstream}${pathname}${search}`, {
          method: request.method,
          headers,
          ...(hasBody ? { body } : {}),
        });
      }
      const type = request.headers.get("content-type") ?? "";
      const query = Object.fromEntries(searchParams);
      const recorded = {
        ...{ method: request.method, path: pathname.replace("/api/v1", ""), query },
        headers: Object.fromEntries(request.headers),
        files: type.startsWith("multipart/")
          ? await readForm(body, type)
          : [{ path: query["path"] ?? "", type, text: new TextDecoder().decode(body) }],
      };
      requests.push(recorded);
      const { status, body: said = {}, headers = {} } = answer(recorded);
      return Response.json(said, { status, headers });
    },
  });
  afterAll(() => server.stop(true));
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    files: () => requests.flatMap(({ files }) => files),
    play: (next: (request: RecordedRequest) => Answer) => void (answer = next),
  };
}

async function readForm(body: Uint8Array<ArrayBuffer>, type: string): Promise<RecordedAttachment[]> {
  const form = await new Response(body, { headers: { "Content-Type": type } }).formData();
  // Bun's own type of a file follows its name.
  const heads = new TextDecoder("latin1").decode(body).matchAll(/filename="[^"]*"\r\nContent-Type: ([^\r]*)\r\n/g);
  const types = [...heads].map(([, sent]) => sent!);
  const files: RecordedAttachment[] = [];
  for (const [name, value] of form) {
    if (name !== "attachment" || typeof value === "string") throw new Error(`Unexpected part "${name}"`);
    files.push({ path: value.name, type: types[files.length]!, text: await value.text() });
  }
  return files;
}
