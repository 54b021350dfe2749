/** A client of the API of Assay: one function for each operation. `client.d.ts` describes all of them. */

import { OPERATIONS } from "./operations.js";

/** An answer with an error, or an answer that is not of Assay. */
export class AssayError extends Error {
  name = "AssayError";

  constructor(response, error) {
    super(error?.message ?? `Answered ${response.status}, and not as Assay does`);
    this.status = response.status;
    this.code = error?.code;
    this.requestId = response.headers.get("x-request-id") ?? undefined;
    const seconds = Number(response.headers.get("retry-after") ?? NaN);
    this.retryAfterSeconds = Number.isFinite(seconds) ? seconds : undefined;
  }
}

const isSentAsIs = (body) =>
  typeof body === "string" ||
  body instanceof Blob ||
  body instanceof FormData ||
  body instanceof ArrayBuffer ||
  body instanceof ReadableStream ||
  ArrayBuffer.isView(body);

function toBody(body, contentType) {
  if (body === undefined) return {};
  if (!isSentAsIs(body)) return { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  // A form names its boundary itself.
  const type = body instanceof FormData || (body instanceof Blob && body.type !== "") ? undefined : contentType;
  const headers = type === undefined ? {} : { "Content-Type": type };
  return { body, headers, ...(body instanceof ReadableStream ? { duplex: "half" } : {}) };
}

function toPath(path, values, defaults) {
  return path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name] ?? defaults[name];
    if (value === undefined || value === "") throw new TypeError(`${name} is missing`);
    return encodeURIComponent(value);
  });
}

/** Reads Server-Sent Events; the data of each is JSON. */
async function* readEvents(response) {
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block.split("\n").flatMap((line) => {
          const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
          return name === undefined ? [] : [[name, value]];
        }),
      );
      if (fields.data === undefined) continue;
      yield {
        event: fields.event,
        data: JSON.parse(fields.data),
        ...(fields.id === undefined ? {} : { id: fields.id }),
      };
    }
  }
}

async function toAnswer(response, kind) {
  if (!response.ok) throw new AssayError(response, (await response.json().catch(() => undefined))?.error);
  if (kind === "file") return response;
  if (response.status === 204) return kind === "events" ? readEvents(new Response("")) : undefined;
  if (kind === "events") return readEvents(response);
  try {
    return await response.json();
  } catch {
    throw new AssayError(response);
  }
}

/** Returns an object with a function for each operation. */
export function createClient({ url, key, fetch = globalThis.fetch, ...defaults }) {
  const base = `${url.replace(/\/+$/, "")}/api/v1`;
  const call = async ({ method, path, query, kind, contentType }, parameters = {}, { signal } = {}) => {
    const { body, idempotencyKey, lastEventId, ...values } = parameters;
    const given = query.flatMap((name) => (values[name] === undefined ? [] : [[name, String(values[name])]]));
    const search = new URLSearchParams(given).toString();
    const { headers, ...sent } = toBody(body, contentType);
    const response = await fetch(`${base}${toPath(path, values, defaults)}${search === "" ? "" : `?${search}`}`, {
      method,
      ...sent,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey }),
        ...(lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId }),
        ...headers,
      },
      ...(signal === undefined ? {} : { signal }),
    });
    return await toAnswer(response, kind);
  };
  return Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, operation]) => [name, (...given) => call(operation, ...given)]),
  );
}

/** Yields the elements of all pages of a list. */
export async function* listAll(list, parameters = {}, options) {
  let { cursor } = parameters;
  do {
    const { data, pagination } = await list({ limit: 100, ...parameters, cursor }, options);
    yield* data;
    cursor = pagination.hasMore ? pagination.cursor : undefined;
  } while (cursor !== undefined);
}
