/** Searches for the commit that broke the test of a bug: started, cancelled, and their result. */

import { absent } from "../http/problem.ts";
import { cancelSearch, readNewestSearch, startSearch } from "../operations/bugs/culprit_searches.ts";
import { route, type Route } from "../request/route.ts";
import { culpritSearch, newCulpritSearch } from "../schema/culprit_searches.ts";

export const culpritSearches: Route[] = [
  route(
    "POST /projects/:projectId/bug-reports/:bugReportId/culprit",
    {
      scope: "triage",
      record: "culprit_search.started",
      summary: "Search for the commit that broke the test of a bug",
      description:
        "Runners run the test on commits between the last good and the first bad build of the default branch. No result is " +
        "believed alone: a commit is named only after it failed twice and its parent passed twice. Answers 400 if there is no " +
        "range of commits, for the bug of a flaky test or an outage, if no runner can run the test on a commit, and if a " +
        "search is running.",
      example: { body: { maxProbes: 30, maxMinutes: 60 } },
      body: newCulpritSearch,
      answer: culpritSearch,
      status: 201,
    },
    async ({ params: { projectId, bugReportId }, body, conclude }) =>
      await conclude(async (sql) => {
        await startSearch(sql, projectId, bugReportId, { ...body, now: new Date() });
        return (await readNewestSearch(sql, projectId, bugReportId))!;
      }),
  ),

  route(
    "GET /projects/:projectId/bug-reports/:bugReportId/culprit",
    {
      summary: "Get the newest search for the commit that broke the test of a bug",
      description:
        "What is known, with the suspects and the probes up to now. Each probe is an execution with a log. A bug that was never " +
        "searched for is answered 404.",
      answer: culpritSearch,
    },
    async ({ sql, params: { projectId, bugReportId } }) =>
      (await readNewestSearch(sql, projectId, bugReportId)) ?? absent(),
  ),

  route(
    "POST /projects/:projectId/bug-reports/:bugReportId/culprit/cancel",
    {
      scope: "triage",
      record: "culprit_search.cancelled",
      summary: "Cancel the search for the commit that broke the test of a bug",
      description:
        "Its probes that have not ended are cancelled; the results of the others are kept for the next search.",
      answer: culpritSearch,
    },
    async ({ params: { projectId, bugReportId }, conclude }) =>
      await conclude(async (sql) => {
        await cancelSearch(sql, projectId, bugReportId, new Date());
        return (await readNewestSearch(sql, projectId, bugReportId))!;
      }),
  ),
];
