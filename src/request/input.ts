/** Reads the query and body of a request as its route declares them; an upload may be read in another thread. */

import * as v from "valibot";
import { ATTACHMENT_FIELD, type ReceivedAttachments, type ReceivedUpload } from "./attachment_parts.ts";
import {
  type BodyFilter,
  type BodyLimits,
  type Bytes,
  type Encoding,
  type Grow,
  inflate,
  inflateSmall,
  join,
  lengthOf,
  readBody,
  receiveBody,
} from "../http/body.ts";
import { check, decodeText, parseBody, parseQuery } from "../http/input.ts";
import { fail } from "../http/problem.ts";
import { isForm, isPacked, parseUpload, type Upload } from "../http/upload.ts";
import type { Route, TextBody } from "./route.ts";
import { isCostly } from "./reading_cost.ts";
import { toGiven, type UploadFacts } from "./upload_log.ts";

/** A JSON body is a handful of fields; only uploads may be large. */
const JSON_LIMITS: BodyLimits = { maxBytes: 1_048_576, maxInflatedBytes: 1_048_576, maxSeconds: 60 };
const TEXT_LIMITS: BodyLimits = { maxBytes: 8 * 1_048_576, maxInflatedBytes: 8 * 1_048_576 };

/** Content types that are read as JSON, including the default of curl. */
const MAY_BE_JSON =
  /^(?:application\/(?:[\w.-]+\+)?json|application\/(?:x-www-form-urlencoded|octet-stream)|text\/plain)\s*(?:;|$)/i;

/** A header that is sent more than once arrives joined by commas, which a single type contains only within quotes. */
const REPEATED = /^(?:[^",]|"(?:[^"\\]|\\.)*")*,/;

function requireOneType(contentType: string): void {
  if (REPEATED.test(contentType))
    fail("VALIDATION_ERROR", `Cannot read the header "Content-Type": given more than once`);
}

function requireJson(contentType: string): void {
  if (contentType !== "" && !MAY_BE_JSON.test(contentType))
    fail(
      "VALIDATION_ERROR",
      `Cannot read the body: expected application/json, got ${JSON.stringify(contentType.slice(0, 100))}`,
    );
}

export type Input = {
  query: unknown;
  body: unknown;
  /** Hexadecimal SHA-256 of the whole request, for telling whether two are the same. */
  digest: () => string;
};

/** Whether the schema of the route's query has a list under this name, whose items may be separate parameters. */
function mayRepeat({ query }: Route, name: string): boolean {
  const { wrapped } = (query.entries[name] ?? {}) as Partial<v.OptionalSchema<v.GenericSchema, unknown>>;
  return wrapped !== undefined && v.getMetadata(wrapped)["isRepeatable"] === true;
}

const parseParameters = (route: Route, search: string) => parseQuery(search, (name) => mayRepeat(route, name));

const digestOf =
  ({ url }: { url: string }, route: Route, search: string, body: string) =>
  () =>
    Bun.SHA256.hash(JSON.stringify([route.method, new URL(url).pathname, search, body]), "hex");

/** For a route without a body, or whose body is read elsewhere: nothing to wait for. `body` identifies the latter. */
export const readQuery = (request: Request, route: Route, search: string, body?: () => string): Input => ({
  query: check(route.query, parseParameters(route, search)),
  body: undefined,
  digest: () => digestOf(request, route, search, body?.() ?? "")(),
});

/** Reads and checks query and body as the route declares them; not for uploads. `grow` is asked before bytes are kept. */
export async function readInput(request: Request, route: Route, search: string, grow?: Grow): Promise<Input> {
  const query = check(route.query, parseParameters(route, search));
  const contentType = request.headers.get("content-type") ?? "";
  requireOneType(contentType);
  const bytes = await readBody(request, {
    ...(route.body === "text" ? TEXT_LIMITS : JSON_LIMITS),
    ...(grow ? { grow } : {}),
  });
  const digest = digestOf(request, route, search, Bun.SHA256.hash(bytes, "hex"));
  if (route.body === "text")
    return { query, body: { text: decodeText(bytes), contentType } satisfies TextBody, digest };
  if (bytes.byteLength > 0) requireJson(contentType);
  const body = check(route.body as v.GenericSchema, parseBody(bytes, !route.isSecret), !route.isSecret);
  return { query, body, digest };
}

/** An upload as it was sent; plain data, so that it can be read in another thread. */
export type SentUpload = {
  url: string;
  search: string;
  /** Checked; undefined: the form may hold a part of it. */
  query: unknown;
  contentType: string;
  encoding: Encoding | null;
  blocks: Bytes[];
  facts: UploadFacts;
  /** Parts of the form that were written to disk. */
  attachments: ReceivedAttachments;
};

export type UploadReceiving = {
  maxBytes: number;
  grow: Grow;
  facts: UploadFacts;
  /** Takes the attachments out of a form. */
  filter: BodyFilter | undefined;
  /** The attachments that the filter has taken out. */
  attachments: ReceivedAttachments;
};

/**
 * Receives the body of an upload. `grow` is called before bytes are kept, and `facts` count the bytes. Fails with VALIDATION_ERROR for an
 * invalid query or an incomplete body.
 */
export async function receiveUpload(
  request: Request,
  route: Route,
  search: string,
  { maxBytes, grow, facts, filter, attachments }: UploadReceiving,
): Promise<SentUpload> {
  const contentType = request.headers.get("content-type") ?? "";
  requireOneType(contentType);
  // A mistyped parameter should not cost the upload of the body.
  const given = parseParameters(route, search);
  const query = isForm(contentType) ? undefined : check(route.query, given);
  const body = await receiveBody(request, {
    maxBytes,
    variable: "MAX_BODY_MB",
    filter,
    grow(bytes) {
      facts.bytes += bytes;
      return grow(bytes);
    },
  });
  facts.arrivedAt = performance.now();
  return { url: request.url, search, query, contentType, facts, attachments, ...body };
}

/** Form fields count as query parameters. Fails with VALIDATION_ERROR, also above `maxInflatedBytes`. */
export async function readUpload(sent: SentUpload, route: Route, maxInflatedBytes: number): Promise<Input> {
  const { blocks, encoding } = sent;
  const bytes = encoding ? await inflate(blocks, encoding, maxInflatedBytes, "MAX_INFLATED_MB") : join(blocks);
  sent.blocks = [];
  return await toInput(sent, route, bytes);
}

/**
 * Parses a small upload, which does not block other requests for long. Returns undefined if the upload is larger than `maxBytes`, or
 * contains compressed files that may be.
 */
export async function readSmallUpload(sent: SentUpload, route: Route, maxBytes: number): Promise<Input | undefined> {
  const { blocks, encoding } = sent;
  if (lengthOf(blocks) > maxBytes) return undefined;
  const bytes = encoding ? await inflateSmall(blocks, encoding, maxBytes) : join(blocks);
  if (!bytes) return undefined;
  // `join` has emptied the blocks.
  if (!encoding) sent.blocks = [bytes];
  const input = await toInput(sent, route, bytes);
  const { files } = input.body as Upload;
  return files.some(({ bytes }) => isPacked(bytes)) || isCostly(files) ? undefined : input;
}

async function toInput(sent: SentUpload, route: Route, bytes: Bytes): Promise<Input> {
  const { search, query, contentType } = sent;
  const upload = await parseUpload(bytes, contentType, {
    attachments: ATTACHMENT_FIELD,
    mayRepeat: (name) => mayRepeat(route, name),
  });
  sent.facts.parameters = toGiven(Object.entries(upload.fields));
  const given = query === undefined ? parseParameters(route, search) : {};
  const twice = Object.keys(upload.fields).find((name) => name in given);
  if (twice !== undefined) fail("VALIDATION_ERROR", `Cannot read "${twice}": given in the query and in the form`);
  return {
    query: query ?? check(route.query, { ...given, ...upload.fields }),
    body: { ...upload, received: sent.attachments } satisfies ReceivedUpload,
    digest: digestOf(sent, route, search, digestWithAttachments(upload, sent.attachments)),
  };
}

/** Returns the digest of the upload with its attachments, because requests that differ only in their attachments are not the same. */
function digestWithAttachments({ digest, attachments }: Upload, { files }: ReceivedAttachments): string {
  if (attachments.length + files.length === 0) return digest;
  const hashes = [
    ...files.map(({ path, sha256 }) => [path, sha256]),
    ...attachments.map(({ path, bytes }) => [path, Bun.SHA256.hash(bytes, "hex")]),
  ];
  return Bun.SHA256.hash(JSON.stringify([digest, hashes]), "hex");
}

/** Identifies a form of attachments by its files: the same form sent again has another boundary. */
export const digestOfFiles = ({ files, warnings }: ReceivedAttachments): string =>
  Bun.SHA256.hash(JSON.stringify([files.map(({ path, sha256 }) => [path, sha256]), warnings]), "hex");
