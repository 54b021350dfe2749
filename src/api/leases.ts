/** Endpoints of runners: take and return tasks, and send the output of tasks. */

import { absent, fail } from "../http/problem.ts";
import { endByInfrastructure, endStopped, endUnopened } from "../operations/executions/lease_ends.ts";
import { settleCommit } from "../operations/executions/lease_commit.ts";
import { type Sync, type Synced, syncRunner } from "../operations/executions/leases.ts";
import { watchExecutions } from "../operations/live/watched.ts";
import { takeReport } from "../operations/ingest/ingest.ts";
import { prepareReport } from "../operations/ingest/prepare.ts";
import { resolveReport } from "../operations/ingest/resolve.ts";
import { emptyReport } from "../reports/report.ts";
import { jsonOnce, plainText } from "../request/reply.ts";
import { toPage } from "../request/page.ts";
import { route, type Route } from "../request/route.ts";
import { joinLog } from "../rules/log_parts.ts";
import { pollIntervalSeconds } from "../rules/poll_interval.ts";
import { commitListing } from "../schema/commit_listings.ts";
import { leaseAnswer, leaseCommit, leaseEnd, leaseFailure, leaseSync, settledCommit } from "../schema/leases.ts";
import { leaseLog, logQuery, runLeasePage } from "../schema/run_leases.ts";
import { runnerFilter } from "../schema/runners.ts";
import { toStorable } from "../schema/fields.ts";
import { lockExecution } from "../store/executions.ts";
import { appendLogs, selectLeasesOfRun, selectLogLease, selectHasShard, selectLogParts } from "../store/lease_logs.ts";
import { selectHasNews } from "../store/lease_offers.ts";
import { type HeldLease, lockLease, selectLease } from "../store/leases.ts";
import { lockListedSearches, selectListedRange } from "../store/culprit_listings.ts";
import { updateRange } from "../store/culprit_searches.ts";
import { updateListedProbe, updateProbeWithoutBuild } from "../store/probes.ts";
import { selectIsUnwatched } from "../store/live.ts";
import { countRunners } from "../store/runners.ts";
import { selectRunId } from "../store/test_runs.ts";

/** Length of the end of a task's output that is stored with its failure. */
const MAX_OUTPUT_LENGTH = 16_384;

/** Maximum number of times that a call searches the queue past tasks whose variables cannot be decrypted. */
const MAX_LOOKS = 20;

/** Time for which a request for a log counts as a viewer. A client that follows the log sends its next request within it. */
const LOG_WATCHED_SECONDS = 30;

/** Maximum number of stored parts of a log in one text response. */
const MAX_TEXT_PARTS = 32;
/** Maximum number of stored parts of a log in one JSON response. */
const MAX_JSON_PARTS = 100_000;

/** Whether its runner must stop it for a reason other than its timeout. */
const isStopped = ({ stopReason, overtime }: HeldLease) => stopReason !== null && !overtime;

export const leases: Route[] = [
  route(
    "POST /projects/:projectId/leases",
    {
      scope: "run",
      isForRunners: true,
      summary: "Synchronise a runner: extend its leases and get new tasks",
      description:
        "The runner reports its leases and gets new ones. Leases in held are extended to 90 seconds from now; the task " +
        "of a lease that is not reported in time goes to another runner. The answer waits up to waitSeconds for a task " +
        "or a change of a held lease. A task goes to one runner, regardless of the number of servers.",
      example: { body: { runner: "build-3", labels: ["linux"], free: 1 } },
      body: leaseSync,
      answer: leaseAnswer,
      deadlineSeconds: 75,
    },
    async ({ sql, params, body, caller, transact, services, budget }) => {
      const { projectId } = params;
      const { labels, taskSlugs, probeSlugs, free, held, waitSeconds } = body;
      const own = caller.scope === "runner" ? caller.name! : undefined;
      const runner =
        body.runner ?? own ?? fail("VALIDATION_ERROR", `Cannot read "runner": expected the name of the runner`);
      if (own !== undefined && runner !== own)
        fail("VALIDATION_ERROR", `Cannot read "runner": this is the key of the runner ${JSON.stringify(own)}`);
      const asker = { runner, labels, taskSlugs, probeSlugs };
      const sync = async (what: Sync): Promise<Synced> => {
        for (let looks = 1; ; looks++) {
          const synced = await transact((sql) => syncRunner(sql, services.seal, projectId, asker, what));
          for (const lease of synced.unopened) {
            const { id, executionId, taskSlug, message, isLeft } = lease;
            if (!isLeft) await transact((sql) => endUnopened(sql, projectId, lease));
            services.log.error(
              isLeft
                ? "Cannot hand out a task: the SECRET_KEY of this server is not that of the database; restart the server with the right key"
                : "Cannot hand out a task: the task was ended",
              { projectId, executionId, taskSlug, leaseId: id, reason: message },
            );
          }
          const mayFindMore = synced.leases.length === 0 && synced.unopened.some(({ isLeft }) => !isLeft);
          if (!mayFindMore || looks === MAX_LOOKS) return synced;
          what = { ...what, held: what.held.map(({ id }) => ({ id })), returned: [] };
        }
      };
      const me = `${projectId} ${runner}`;
      services.signals.tell("sync", me);
      // The watch starts before the first query, because it would otherwise miss events between the two.
      const watch = services.signals.watch([
        ["lease", projectId],
        ["sync", me],
        ["key_revoked", caller.id],
      ]);
      try {
        let synced = await sync(body);
        const before = synced.isWatched;
        // While someone watches the tasks, a call waits no longer than the polling interval.
        const longest = before ? pollIntervalSeconds({ ...budget, ...synced }) : waitSeconds;
        const until = performance.now() + Math.min(waitSeconds, longest) * 1000;
        const ids = held.map(({ id }) => id);
        let waited = false;
        for (;;) {
          const left = until - performance.now();
          const hasNews = synced.leases.length > 0 || synced.hasStops || synced.isWatched !== before;
          if (hasNews || left <= 0) break;
          waited = true;
          const woken = await watch.next(left);
          if (woken === "closed" || woken === "sync" || woken === "key_revoked") break;
          const looking = { wantsWork: free > 0, held: ids, knownAsWatched: before };
          if (await selectHasNews(sql, projectId, asker, looking))
            synced = await sync({ ...body, held: ids.map((id) => ({ id })), returned: [], waitSeconds: 0 });
        }
        // Since the first check the key may have been revoked, and further runners may have registered.
        const runners = waited ? await transact((sql) => countRunners(sql, projectId)) : synced.runners;
        const answer = {
          leases: [],
          held: synced.held,
          nextSeconds: pollIntervalSeconds({ ...budget, ...synced, runners }),
        };
        // The answer has secret variables, so it is not stored for a repetition of the request.
        return jsonOnce(200, { ...answer, leases: synced.leases }, answer);
      } finally {
        watch.end();
      }
    },
  ),

  route(
    "POST /projects/:projectId/leases/:leaseId/fail",
    {
      scope: "run",
      isForRunners: true,
      summary: "Report that a task ended without a test report",
      description:
        "For a command that did not start, was ended, or wrote no report. It counts as a failure unless the server had " +
        "requested the end. If there is a report, upload it with lease_id " +
        "instead.",
      example: { body: { exitCode: 137, message: "The command wrote no report" } },
      body: leaseFailure,
      answer: leaseEnd,
    },
    async ({ sql, params, body, caller, transact, conclude }) => {
      const { projectId, leaseId } = params;
      const known = (await selectLease(sql, projectId, leaseId)) ?? absent();
      if (caller.scope === "runner" && known.runner !== caller.name) absent();
      const { executionId, taskSlug, shard, shards } = known;
      const message = toStorable(body.message);
      const exitCode = body.exitCode === undefined ? undefined : body.exitCode | 0;
      const failure = {
        exitCode: exitCode || undefined,
        message,
        output: body.log ? toStorable(body.log.text).slice(-MAX_OUTPUT_LENGTH).toWellFormed() : null,
      };
      const parameters = {
        execution_id: executionId,
        task_slug: taskSlug,
        ...(shard === 0 ? {} : { shard: { index: shard, of: shards } }),
        exit_code: exitCode,
        ...{ host: body.host, system: body.system, image: body.image },
        lease_id: leaseId,
        allow_empty: true,
        complete: false,
        ...(known.probe ? { untrusted: true } : {}),
      };
      // A lease that must stop is no failure, which would otherwise be shown among the test cases.
      const isFailed = !isStopped(known) && !body.infrastructure;
      const prepared = await prepareReport(projectId, emptyReport("runner"), parameters, `lease ${leaseId}`, failure);
      const numbers = isFailed ? await resolveReport(sql, transact, projectId, prepared, parameters) : [];
      return await conclude(async (sql) => {
        const execution = (await lockExecution(sql, projectId, executionId)) ?? absent();
        const lease = (await lockLease(sql, projectId, leaseId)) ?? absent();
        if (body.log) {
          const bytes = new TextEncoder().encode(body.log.text);
          await appendLogs(sql, projectId, [{ id: leaseId, offset: body.log.offset, bytes }]);
        }
        if (body.infrastructure && !isStopped(lease)) {
          const isAgain = await endByInfrastructure(sql, projectId, { execution, lease }, { message, exitCode });
          return { id: leaseId, executionId, taskSlug, status: isAgain ? "queued" : "incomplete" };
        }
        const isFailure = isFailed && !isStopped(lease);
        if (isFailure && lease.probe && body.reason === "no_build")
          await updateProbeWithoutBuild(sql, projectId, executionId);
        if (isFailure) await takeReport(sql, projectId, { prepared, parameters, numbers, failure });
        else await endStopped(sql, projectId, { execution, lease }, message);
        return { id: leaseId, executionId, taskSlug, status: isFailure ? "failed" : "cancelled" };
      });
    },
  ),

  route(
    "POST /projects/:projectId/leases/:leaseId/commit",
    {
      scope: "run",
      isForRunners: true,
      summary: "Name the commit that an execution tests",
      description:
        "For an execution that names no commit: the runner sends the newest commit of the branch. The first one is stored with the " +
        "execution, and every runner gets it as the answer, so that all tasks and shards test the same commit.",
      example: { body: { commit: "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567" } },
      body: leaseCommit,
      answer: settledCommit,
    },
    async ({ sql, params: { projectId, leaseId }, body, caller, conclude }) => {
      const known = (await selectLease(sql, projectId, leaseId)) ?? absent();
      if (caller.scope === "runner" && known.runner !== caller.name) absent();
      const { executionId } = known;
      return await conclude(async (sql) => ({
        commit: await settleCommit(sql, projectId, { leaseId, executionId }, body.commit),
      }));
    },
  ),

  route(
    "POST /projects/:projectId/leases/:leaseId/commits",
    {
      scope: "run",
      isForRunners: true,
      summary: "Send the commits of a range",
      description:
        "Ends a lease that has commits: the runner has listed them, and the search that waits for them goes on.",
      example: {
        body: {
          commits: [
            {
              hash: "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
              author: "Ada",
              date: "",
              subject: "Add a cart",
              files: [],
            },
            {
              hash: "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234",
              author: "Ada",
              date: "",
              subject: "Round prices",
              files: ["cart.ts"],
            },
          ],
        },
      },
      body: commitListing,
      answer: leaseEnd,
    },
    async ({ sql, params: { projectId, leaseId }, body: { commits }, caller, conclude }) => {
      const known = (await selectLease(sql, projectId, leaseId)) ?? absent();
      if (caller.scope === "runner" && known.runner !== caller.name) absent();
      const { executionId, taskSlug } = known;
      if (!(await selectListedRange(sql, projectId, executionId)))
        fail("VALIDATION_ERROR", "Cannot accept the commits: the lease asks for none");
      const parameters = {
        ...{ execution_id: executionId, task_slug: taskSlug, lease_id: leaseId },
        ...{ allow_empty: true, complete: false, untrusted: true },
      };
      const prepared = await prepareReport(projectId, emptyReport("runner"), parameters, `lease ${leaseId}`);
      return await conclude(async (sql) => {
        // Before its execution: the loop that advances the search locks in this order.
        for (const searchId of await lockListedSearches(sql, projectId, executionId))
          await updateRange(sql, projectId, searchId, commits);
        if (!(await lockExecution(sql, projectId, executionId))) absent();
        await updateListedProbe(sql, projectId, executionId);
        await takeReport(sql, projectId, { prepared, parameters, numbers: [] });
        return { id: leaseId, executionId, taskSlug, status: "passed" as const };
      });
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/test-runs/:taskSlug/log",
    {
      summary: "Read the log of a task from a byte offset",
      description:
        "Works while the task runs: repeat the request with nextOffset until ended is true. The runner then sends new output " +
        "every few seconds, as long as someone reads it. The last mebibyte of a log is kept. The runner has masked secrets.",
      text: "The whole output from the offset on",
      query: logQuery,
      answer: leaseLog,
    },
    async ({ sql, params, query, wantsText, transact }) => {
      const { projectId, executionId, taskSlug } = params;
      const runId = (await selectRunId(sql, projectId, executionId, taskSlug)) ?? absent();
      if (await selectIsUnwatched(sql, projectId, executionId, LOG_WATCHED_SECONDS / 2))
        await transact((sql) => watchExecutions(sql, projectId, [executionId], LOG_WATCHED_SECONDS));
      if (query.shard !== undefined && !(await selectHasShard(sql, projectId, runId, query.shard))) absent();
      const lease = await selectLogLease(sql, projectId, runId, { shard: query.shard, leaseId: query.lease_id });
      if (!lease && query.lease_id !== undefined) absent();
      if (!lease) {
        if (wantsText) return plainText(200, "");
        return { leaseId: null, offset: 0, text: "", nextOffset: 0, ended: false };
      }
      const parts = await selectLogParts(
        sql,
        projectId,
        lease.id,
        query.offset,
        wantsText ? MAX_TEXT_PARTS : MAX_JSON_PARTS,
      );
      const { offset, nextOffset, text } = joinLog(parts, query.offset);
      if (wantsText) return plainText(200, text);
      return { leaseId: lease.id, offset, text, nextOffset, ended: lease.isOver && nextOffset >= lease.logBytes };
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/test-runs/:taskSlug/leases",
    {
      summary: "List the leases of a task, oldest first",
      description:
        "Each assignment of the task, or of one of its shards, to a runner: the runner, how it ended, and the lease_id " +
        "of its log. This shows why a task ran twice.",
      query: runnerFilter,
      answer: runLeasePage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const { projectId, executionId, taskSlug } = params;
      const runId = (await selectRunId(sql, projectId, executionId, taskSlug)) ?? absent();
      const rows = await selectLeasesOfRun(sql, projectId, runId, { limit: query.limit, after: page.after?.[0] });
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),
];
