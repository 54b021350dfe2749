/** The application: the table of all endpoints, and the function that answers every request. */

import type { BlockList } from "node:net";
import { attachments } from "../api/attachments.ts";
import { automations } from "../api/automations.ts";
import { bugReports } from "../api/bug_reports.ts";
import { culpritSearches } from "../api/culprit_searches.ts";
import { environments } from "../api/environments.ts";
import { events } from "../api/events.ts";
import { executions } from "../api/executions.ts";
import { createExports } from "../api/exports.ts";
import { keys } from "../api/keys.ts";
import { leases } from "../api/leases.ts";
import { runners } from "../api/runners.ts";
import { infrastructureRules } from "../api/infrastructure_rules.ts";
import { integrations } from "../api/integrations.ts";
import { owners } from "../api/owners.ts";
import { onboardings } from "../api/onboarding.ts";
import { plans } from "../api/plans.ts";
import { projects } from "../api/projects.ts";
import { testCases } from "../api/test_cases.ts";
import { reportUploads } from "../api/report_upload.ts";
import { testRuns } from "../api/test_runs.ts";
import { state } from "../api/state.ts";
import { trends } from "../api/trends.ts";
import { uploads } from "../api/uploads.ts";
import { verifications } from "../api/verifications.ts";
import { verdicts } from "../api/verdicts.ts";
import { createRateLimit } from "../http/rate_limit.ts";
import type { Connection } from "../http/serve.ts";
import { exportReply } from "../request/project_export.ts";
import type { Route } from "../request/route.ts";
import { type ApiOptions, createApi } from "./api_requests.ts";
import { CI_AUTH, createCiAuth } from "./ci_auth.ts";
import { createClientAddressReader } from "./client_address.ts";
import { API, toIncomingRequest } from "./incoming_request.ts";
import { createMcpRequests, MCP } from "./mcp_requests.ts";
import type { Metrics } from "./metrics.ts";
import { createPageRequests, type PagesOptions } from "./page_requests.ts";
import { createRequestLog } from "./request_log.ts";
import { createUploadRecord } from "./upload_record.ts";

/** A family a line. */
const FAMILIES: readonly Route[] = [
  ...projects,
  ...keys,
  ...testRuns,
  ...reportUploads,
  ...attachments,
  ...uploads,
  ...executions,
  ...leases,
  ...runners,
  ...plans,
  ...events,
  ...testCases,
  ...verifications,
  ...owners,
  ...trends,
  ...state,
  ...verdicts,
  ...bugReports,
  ...culpritSearches,
  ...onboardings,
  ...environments,
  ...integrations,
  ...automations,
  ...infrastructureRules,
];

/** Every endpoint under /api/v1. */
export const ROUTES: readonly Route[] = [...FAMILIES, ...createExports(FAMILIES)];

export type AppOptions = Omit<ApiOptions, "rateLimit"> &
  Omit<PagesOptions, "exportProject"> & {
    rateLimitPerMinute: number;
    /** The proxies whose X-Forwarded-For is believed. */
    trustProxy: BlockList;
    metrics: Metrics;
  };

/** Pages that an address may open without a session, for each request that a key may send: people share addresses. */
const PAGES_PER_REQUEST = 5;

export function createApp(options: AppOptions) {
  const { database, log, metrics } = options;
  const readAddress = createClientAddressReader(options);
  const recordRequest = createRequestLog(options);
  const uploads = createUploadRecord({ pool: database.pool, log, metrics });
  const rateLimit = createRateLimit(options.rateLimitPerMinute);
  const api = createApi(ROUTES, { ...options, rateLimit }, { readAddress, recordRequest, uploads });
  const respondToAssistant = createMcpRequests(options, { readAddress, recordRequest, api });
  const respondToCi = createCiAuth({ ...options, rateLimit }, { readAddress, recordRequest });
  const strangers = createRateLimit(PAGES_PER_REQUEST * options.rateLimitPerMinute);
  const { begin, pool: sql, openReader } = database;
  const exportProject: PagesOptions["exportProject"] = (request) =>
    exportReply(FAMILIES, { ...options, begin, sql, openReader }, request);
  const respondWithPage = createPageRequests(
    { ...options, exportProject },
    { readAddress, recordRequest, exposition: metrics.exposition, strangers },
  );

  return {
    /** Answers every request; never throws. */
    fetch(request: Request, connection: Connection): Promise<Response> {
      const incoming = toIncomingRequest(request, connection);
      const { path } = incoming.target;
      if (path === API || path.startsWith(`${API}/`)) return api.respond(incoming);
      if (path === MCP) return respondToAssistant(incoming);
      return path === CI_AUTH ? respondToCi(incoming) : respondWithPage(incoming);
    },

    /** Call this every minute. It releases the memory of clients that are gone, and stores how often some were refused. */
    sweep(): void {
      api.sweep();
      strangers.sweep();
      uploads.sweep();
    },

    /** Resolves when nothing is left to be stored beside the requests. */
    settled: uploads.settled,
  };
}
