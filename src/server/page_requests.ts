/** Answers the requests outside of the API: probes, and the pages of the dashboard. */

import type { Reply } from "../request/reply.ts";
import type { RateLimit } from "../http/rate_limit.ts";
import { toProblem, toRateLimited } from "../request/failure.ts";
import { toResponse } from "../request/response.ts";
import type { Database } from "../database/connect.ts";
import { createHealthProbes, type ProbesOptions } from "../web/site/probes.ts";
import { createSite, type SiteOptions } from "../web/site/site.ts";
import type { ReadClientAddress } from "./client_address.ts";
import {
  API,
  type IncomingRequest,
  problemReply,
  requireAsSent,
  requireHost,
  UNKNOWN_ROUTE,
} from "./incoming_request.ts";
import type { RecordRequest } from "./request_log.ts";

export type PagesOptions = Omit<SiteOptions, "api" | "poolOf" | "fast" | "begin" | "admitStranger"> &
  Omit<ProbesOptions, "api" | "exposition"> & { database: Database };

type PageRecords = {
  readAddress: ReadClientAddress;
  recordRequest: RecordRequest;
  exposition: ProbesOptions["exposition"];
  /** The rate limit of addresses whose requests have neither a session nor a key. */
  strangers: RateLimit;
};

export function createPageRequests(options: PagesOptions, records: PageRecords) {
  const { readAddress, recordRequest, exposition, strangers } = records;
  const { poolOf, pages: fast, begin } = options.database;
  const findProbe = createHealthProbes({ ...options, api: API, exposition });
  const admitStranger = (address: string) => {
    const admission = strangers.admit(address);
    if (!admission.admitted) throw toRateLimited(admission);
  };
  const findPage = createSite({ ...options, poolOf, fast, begin, api: API, admitStranger });

  /** Never throws. */
  return async function respond(incoming: IncomingRequest): Promise<Response> {
    const { request, target, requestId } = incoming;
    let reply: Reply;
    let route = UNKNOWN_ROUTE;
    try {
      requireHost(incoming);
      // The root has only one spelling that matters.
      if (target.path !== "/") requireAsSent(incoming);
      const address = () => readAddress(incoming);
      const probe = findProbe(request, target.path);
      const page = probe ?? findPage({ request, target, address }, requestId);
      route = page.route;
      if (probe?.isLimited) admitStranger(address());
      reply = await page.answer();
    } catch (error) {
      reply = problemReply(toProblem(error, options.log, requestId));
    }
    const response = toResponse(reply, requestId, request);
    recordRequest(incoming, response.status, route);
    return response;
  };
}
