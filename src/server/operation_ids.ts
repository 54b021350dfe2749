/** Names the operations of the API: the names of functions in generated clients. */

import type { Route } from "../request/route.ts";

/** Operations that their method and path do not name well. */
const NAMES: Record<string, string> = {
  "POST /projects/:projectId/test-runs": "uploadReport",
  "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/attachments": "uploadAttachments",
  "PUT /projects/:projectId/executions/:executionId/test-runs/:taskSlug/attachments": "uploadAttachment",
  "GET /projects/:projectId/attachments/:attachmentId": "downloadAttachment",
  "POST /projects/:projectId/leases": "syncRunner",
  "POST /projects/:projectId/leases/:leaseId/commit": "setLeaseCommit",
  "POST /projects/:projectId/leases/:leaseId/commits": "sendLeaseCommits",
  "POST /projects/:projectId/runners": "registerRunner",
  "POST /projects/:projectId/runners/pause": "pauseRunner",
  "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/batches": "takeTestRunBatch",
  "GET /projects/:projectId/events": "streamEvents",
  "PATCH /projects/:projectId/test-cases": "updateTestCases",
  "POST /projects/:projectId/test-cases/new": "findNewTestCases",
  "POST /projects/:projectId/bug-reports/:bugReportId/culprit": "searchCulprit",
  "GET /projects/:projectId/bug-reports/:bugReportId/culprit": "getCulprit",
  "POST /projects/:projectId/bug-reports/:bugReportId/culprit/cancel": "cancelCulpritSearch",
  "POST /projects/:projectId/onboarding/sample-data": "addSampleData",
  "DELETE /projects/:projectId/onboarding/sample-data": "deleteSampleData",
  "PUT /teams/:teamId/environments/:environmentId/variables": "replaceEnvironmentVariables",
  "POST /teams/:teamId/integrations/:integrationId/deliveries/:deliveryId/redeliver": "redeliver",
  "POST /teams/:teamId/infrastructure-rules/try": "tryInfrastructureRule",
  "GET /projects/:projectId/export": "exportProject",
  "GET /projects/:projectId/owners": "getOwners",
  "GET /projects/:projectId/trends": "getTrends",
  "POST /projects/:projectId/executions/:executionId/test-runs/:taskSlug/plan": "createTestRunPlan",
};

const VERBS = { GET: "get", POST: "create", PUT: "set", PATCH: "update", DELETE: "delete" };

const toPascalCase = (slug: string): string =>
  slug.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
const toSingular = (noun: string): string => noun.replace(/(?<!s)s$/, "");

/** Returns "listTestRuns" for GET /projects/:projectId/test-runs, and "cancelExecution" for POST …/executions/:executionId/cancel. */
export function operationIdOf({ method, path, query }: Pick<Route, "method" | "path" | "query">): string {
  const named = NAMES[`${method} ${path}`];
  if (named !== undefined) return named;
  const segments = path.split("/").slice(1);
  const nouns = segments.flatMap((segment, index) => {
    if (segment.startsWith(":")) return [];
    const isOne = segments[index + 1]?.startsWith(":") === true;
    return [{ noun: toPascalCase(isOne ? toSingular(segment) : segment), isOne }];
  });
  // A test run is one of an execution, and everything is of a project or a team.
  const own = nouns.length === 1 ? nouns : nouns.slice(nouns[2]?.noun === "TestRun" ? 2 : 1);
  const last = own.at(-1)!;
  const name = own.map(({ noun }) => noun).join("");
  if (method === "GET" && (Object.hasOwn(query.entries, "cursor") || (!last.isOne && last.noun.endsWith("s"))))
    return `list${name}`;
  if (method !== "POST" || own.length === 1) return VERBS[method] + (method === "POST" ? toSingular(name) : name);
  const parents = own
    .slice(0, -1)
    .map(({ noun }) => noun)
    .join("");
  return `${last.noun.toLowerCase()}${parents}`;
}
