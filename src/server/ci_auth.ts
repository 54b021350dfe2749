/** Answers `POST /auth/ci`: a CI job sends the id token that its CI system has signed, and gets a key that lives some minutes. */

import { readBody } from "../http/body.ts";
import { createDeadlines } from "../http/deadline.ts";
import { check, parseBody } from "../http/input.ts";
import { createIssuerKeys, IssuerError } from "../http/issuer_keys.ts";
import type { Outbound } from "../http/outbound.ts";
import { fail, Problem } from "../http/problem.ts";
import type { Admission, RateLimit } from "../http/rate_limit.ts";
import type { Database } from "../database/connect.ts";
import type { Log } from "../log.ts";
import { exchangeCiToken, type CiKeyServices } from "../operations/people/ci_keys.ts";
import { toProblem, toRateLimited } from "../request/failure.ts";
import { json, type Reply } from "../request/reply.ts";
import { toResponse } from "../request/response.ts";
import { type CiKey, ciTokenRequest } from "../schema/trust_rules.ts";
import type { ReadClientAddress } from "./client_address.ts";
import { type IncomingRequest, problemReply, requireAsSent, requireHost } from "./incoming_request.ts";
import type { RecordRequest } from "./request_log.ts";

/** The path, relative to the public address. */
export const CI_AUTH = "/auth/ci";

/** A token has 16 KiB at most. */
const BODY_LIMITS = { maxBytes: 32_768, maxInflatedBytes: 32_768, maxSeconds: 10 };
/** The issuer gets two requests, and each answer may take 5 s. */
const DEADLINE_SECONDS = 30;
const MAX_ATTEMPT_LENGTH = 255;

type CiAuthOptions = {
  database: Database;
  outbound: Outbound;
  rateLimit: RateLimit;
  /** The required audience of tokens, without a trailing slash. */
  publicUrl: string;
  log: Log;
  clock?: () => Date;
};

type Records = { readAddress: ReadClientAddress; recordRequest: RecordRequest };

export function createCiAuth(options: CiAuthOptions, { readAddress, recordRequest }: Records) {
  const { database, outbound, rateLimit, publicUrl, log, clock: now = () => new Date() } = options;
  const deadlines = createDeadlines();
  const services: CiKeyServices = {
    sql: database.fast,
    begin: database.begin,
    audience: publicUrl,
    now,
    issuerKeys: createIssuerKeys({ outbound }),
  };

  async function answer({ request }: IncomingRequest): Promise<CiKey> {
    const bytes = await readBody(request, BODY_LIMITS);
    // A message that quotes a value could quote the token.
    const { project, token } = check(ciTokenRequest, parseBody(bytes, false), false);
    const attempt = request.headers.get("idempotency-key");
    if (attempt !== null && attempt.length > MAX_ATTEMPT_LENGTH)
      fail(
        "VALIDATION_ERROR",
        `Cannot read the header "Idempotency-Key": expected at most ${MAX_ATTEMPT_LENGTH} characters`,
      );
    const exchange = { projectId: project, token, attempt: attempt || null };
    const result = await deadlines
      .within(DEADLINE_SECONDS, () => exchangeCiToken(services, exchange))
      .catch(throwAsProblem);
    if ("made" in result) return result.made;
    if ("tooMany" in result) fail("RATE_LIMITED", result.tooMany, { "Retry-After": "60" });
    return fail("UNAUTHORIZED", result.refused, { "WWW-Authenticate": "Bearer" });
  }

  /** Never throws. */
  return async function respond(incoming: IncomingRequest): Promise<Response> {
    const { request, connection, requestId } = incoming;
    // Every request is one without a key.
    const admission: Admission = rateLimit.admit(readAddress(incoming));
    let reply: Reply;
    try {
      requireHost(incoming);
      if (!admission.admitted) throw toRateLimited(admission);
      requireAsSent(incoming);
      if (request.method !== "POST")
        fail("NOT_FOUND", `Method ${request.method} is not supported: this endpoint supports POST`, { Allow: "POST" });
      reply = json(200, await answer(incoming));
    } catch (error) {
      reply = problemReply(toProblem(error, log, requestId));
    }
    const response = toResponse(reply, requestId, request, admission, () => connection.allowSeconds(1));
    recordRequest(incoming, response.status, CI_AUTH);
    return response;
  };
}

/** An unavailable issuer may be back soon, so the request can be retried. */
function throwAsProblem(error: unknown): never {
  if (!(error instanceof IssuerError)) throw error;
  throw new Problem("INTERNAL_ERROR", `Cannot read the keys of the token's issuer: ${error.message}`, {
    "Retry-After": "10",
  });
}
