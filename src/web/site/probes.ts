/** Endpoints for machines besides the API: liveness, readiness, metrics and the OpenAPI document. */

import { chooseExposition, EXPOSITION_TYPES, type ExpositionFormat } from "../../http/metrics.ts";
import { FixedReply, json, Reply } from "../../request/reply.ts";
import openapi from "../../server/openapi.json" with { type: "text" };
import packageJson from "../../../package.json" with { type: "json" };

export type ProbesOptions = {
  /** Without a trailing slash. */
  publicUrl: string;
  /** The path of the API, relative to it. */
  api: string;
  /** Whether the server is ready for requests. */
  isReady: () => Promise<boolean>;
  /** Returns the metrics as of now. */
  exposition: (format: ExpositionFormat) => Promise<string>;
  /** The token that metrics require; undefined: the metrics are public. */
  metricsToken: string | undefined;
};

/** How long the answer with the metrics is kept: whoever may read them could otherwise keep the server busy. */
const METRICS_MS = 1_000;

/** `route` is the pattern of the path, for metrics; `isLimited`: it counts as a request of its address. */
type Probe = { route: string; isLimited: boolean; answer: () => Reply | Promise<Reply> };

export function createHealthProbes({ publicUrl, api, isReady, exposition, metricsToken }: ProbesOptions) {
  const mayReadMetrics = createTokenCheck(metricsToken);
  const writeDocument = () =>
    new FixedReply(
      JSON.stringify({ ...JSON.parse(String(openapi)), servers: [{ url: `${publicUrl}${api}` }] }),
      "application/json",
    );
  let document: FixedReply | undefined;
  const writeMetrics = async (format: ExpositionFormat) =>
    new FixedReply(await exposition(format), EXPOSITION_TYPES[format], { "Cache-Control": "no-store" });
  const metrics: { [Format in ExpositionFormat]?: { reply: Promise<FixedReply>; until: number } } = {};
  const readMetrics = (format: ExpositionFormat) => {
    const now = performance.now();
    const known = metrics[format];
    if (known && known.until > now) return known.reply;
    const reply = writeMetrics(format);
    metrics[format] = { reply, until: now + METRICS_MS };
    return reply;
  };

  /** Returns undefined if the path is not a probe. */
  return function find(request: Request, path: string): Probe | undefined {
    if (request.method !== "GET" && request.method !== "HEAD") return undefined;
    const answer = answerOf(path, request.headers);
    return answer && { route: path, isLimited: path === "/openapi.json", answer };
  };

  function answerOf(path: string, headers: Headers): Probe["answer"] | undefined {
    if (path === "/healthz") return () => json(200, { status: "ok", version: packageJson.version });
    if (path === "/readyz")
      return async () => ((await isReady()) ? json(200, { status: "ready" }) : json(503, { status: "not ready" }));
    if (path === "/metrics")
      return () =>
        mayReadMetrics(headers.get("authorization"))
          ? readMetrics(chooseExposition(headers.get("accept")))
          : metricsUnauthorized();
    if (path === "/openapi.json") return () => (document ??= writeDocument());
    return undefined;
  }
}

const metricsUnauthorized = () =>
  new Reply(401, "Send the header Authorization: Bearer <METRICS_TOKEN>\n", "text/plain; charset=utf-8", {
    "WWW-Authenticate": "Bearer",
  });

/** Compares digests of equal length in constant time. */
function createTokenCheck(token: string | undefined): (authorization: string | null) => boolean {
  if (token === undefined) return () => true;
  const digest = (text: string) => Bun.SHA256.hash(text);
  const expected = digest(token);
  return (authorization) => {
    const token = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? "";
    return crypto.timingSafeEqual(digest(token), expected);
  };
}
