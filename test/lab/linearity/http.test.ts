/** What reads requests and answers takes linear time, whatever they hold. */

import * as v from "valibot";
import { clientAddress, createAddressList, isTrusted } from "../../../src/http/address.ts";
import { inflate, join } from "../../../src/http/body.ts";
import { compress } from "../../../src/http/compress.ts";
import { describeConnectionFailure } from "../../../src/http/connection_failure.ts";
import { createCookie } from "../../../src/http/cookies.ts";
import { formatCsv } from "../../../src/http/csv.ts";
import { createCursors } from "../../../src/http/cursor.ts";
import { toEventText, toKeepAlive } from "../../../src/http/events.ts";
import { createForms } from "../../../src/http/forms.ts";
import { Fragment, jsx } from "../../../src/http/jsx_runtime.ts";
import { escapeText, render, safeUrl } from "../../../src/http/html.ts";
import { parseByteRange } from "../../../src/http/byte_range.ts";
import { boundaryOf } from "../../../src/http/form_parts.ts";
import { check, decodeText, parseBody, parsePath, parseQuery } from "../../../src/http/input.ts";
import { chooseExposition, createCounter, writeExposition } from "../../../src/http/metrics.ts";
import { hostUrl, isReachable, literalAddress } from "../../../src/http/outbound.ts";
import { toOwnPath } from "../../../src/http/own_path.ts";
import { createRouter } from "../../../src/http/router.ts";
import { isAsSent, toRequestTarget } from "../../../src/http/target.ts";
import { isForm, isPacked, parseUpload } from "../../../src/http/upload.ts";
import { testLinearity, withFewTexts } from "./growth.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const secret = new Uint8Array(32);
const publicUrl = "https://assay.example";
const cookie = createCookie(publicUrl, "assay_session");
const cursors = createCursors(secret);
const forms = createForms({ secret, publicUrl });
const trusted = createAddressList(["0.0.0.0/0"]);
const findRoute = createRouter([{ method: "GET", path: "/a/:b/c" } as const]);
const boundary = "multipart/form-data; boundary=x";

/** As many headers as a request may have take 16 KiB. */
const MAX_HEADER = 16_384;
const header = (text: string) => text.slice(0, MAX_HEADER);
testLinearity("http", {
  "address.ts": {
    clientAddress: (text) => clientAddress("10.0.0.1", `${header(text)}, 10.0.0.2`, trusted),
    createAddressList: null,
    isTrusted: (text) => isTrusted(text, trusted),
  },
  "connection_failure.ts": { describeConnectionFailure: (text) => describeConnectionFailure({ code: text }) },
  "body.ts": {
    inflate: withFewTexts((text) => inflate([Bun.gzipSync(bytes(text))], "gzip", 1e6)),
    // Called by inflate.
    inflateSmall: null,
    join: (text) => join([bytes(text), bytes(text)]),
    lengthOf: null,
    readBody: null,
    receiveBody: null,
    streamBody: null,
  },
  "byte_range.ts": {
    parseByteRange: (text) => parseByteRange({ range: `bytes=${text}`, ifRange: text }, { length: 1_000, etag: text }),
    readRangeHeaders: null,
  },
  "compress.ts": { compress: (text) => [compress(text, "gzip"), compress("a".repeat(2_000), header(text))] },
  "cookies.ts": {
    createCookie: (text) => [cookie.read(header(text)), cookie.read(`${cookie.name}=${header(text)}`)],
  },
  "cors.ts": { createCors: null },
  "csv.ts": { formatCsv: (text) => formatCsv([text], [{ [text]: text }]) },
  "cursor.ts": { createCursors: (text) => cursors.read("list", text) },
  "deadline.ts": { createDeadlines: null },
  "descriptors.ts": { areFree: null, descriptorLimit: null },
  "events.ts": {
    createEventStreams: null,
    toEventText: (text) => toEventText({ id: text, event: text, data: text }),
    toKeepAlive,
  },
  "form_budget.ts": { createFormBudget: null },
  "form_parts.ts": {
    // A header has at most 16 KiB.
    boundaryOf: (text) => boundaryOf(`multipart/form-data; ${text.slice(0, 16_384)}`),
    separateParts: null,
  },
  "forms.ts": {
    createForms: (text) => [
      forms.isToken("", text),
      forms.isFromOurPage({ headers: { get: () => header(text) } as unknown as Headers }),
    ],
  },
  "jsx_runtime.ts": {
    Fragment: (text) => Fragment({ children: text }),
    jsx: (text) => jsx("p", { title: text, children: text }),
    ...{ jsxDEV: null, jsxs: null },
  },
  "html.ts": { escapeText, raw: null, render, safeUrl },
  "input.ts": {
    check: (text) => check(v.strictObject({ a: v.pipe(v.string(), v.maxLength(10)) }), { a: text, [text]: text }),
    decodeText: (text) => decodeText(bytes(text)),
    parseBody: (text) => ["", "{", '{"a":"', "["].map((before) => parseBody(bytes(before + text))),
    parsePath: (text) => parsePath(v.strictObject({ a: v.string() }), [text]),
    // Covered by parseQuery.
    addParameter: null,
    parseQuery: (text) => ["", "a=", "a&", "%"].map((before) => parseQuery(before + text)),
  },
  "metrics.ts": {
    chooseExposition: (text) => chooseExposition(text),
    createCounter: (text) => {
      const counter = createCounter({ name: "a", help: text });
      counter.at({ a: text }).value++;
      writeExposition([counter.family]);
    },
    ...{ createHistogram: null, createLoopLag: null, createRequestMetrics: null, gauge: null },
    ...{ processFamilies: null, writeExposition: null },
  },
  // What a provider answers is limited to 1 MiB, and read as JSON.
  "oidc.ts": { createOidc: null },
  // So are the keys of an issuer.
  "issuer_keys.ts": { createIssuerKeys: null },
  "outbound.ts": {
    createOutbound: null,
    hostUrl: (text) => URL.canParse(`http://${text}`) && hostUrl(text),
    isReachable: (text) => isReachable(text, trusted),
    literalAddress: (text) => literalAddress({ hostname: text } as URL),
  },
  "own_path.ts": { toOwnPath: (text) => [toOwnPath(text), toOwnPath(`/${text}`)] },
  "problem.ts": { absent: null, fail: null },
  "rate_limit.ts": { createRateLimit: null },
  "router.ts": { createRouter: (text) => [findRoute("GET", text), findRoute("GET", `/a/${text}`)] },
  "serve.ts": { findPort: null, startServer: null },
  "target.ts": {
    isAsSent: (text) => isAsSent(text, { segment0: text }),
    segmentPatterns: null,
    toRequestTarget: (text) => [toRequestTarget(text), toRequestTarget(`${publicUrl}/${text}`)],
  },
  "fair_queue.ts": { createFairQueue: null, createOwnersQueue: null },
  "upload.ts": {
    isForm: (text) => [isForm(header(text)), isForm(`multipart/${header(text)}`)],
    isPacked: (text) => isPacked(bytes(text)),
    parseUpload: withFewTexts((text) =>
      Promise.allSettled([
        parseUpload(bytes(text), boundary),
        parseUpload(
          bytes(`--x\r\nContent-Disposition: form-data; name="${text}"\r\n\r\n${text}\r\n--x--\r\n`),
          boundary,
        ),
        parseUpload(bytes(`--x\r\n${text}`), boundary),
        parseUpload(bytes(text), `${boundary}${header(text)}`),
      ]),
    ),
  },
  "upload_budget.ts": { createUploadBudget: null },
});
