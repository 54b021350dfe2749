/** Endpoints for runners: register, pause, resume and list them. */

import { absent } from "../http/problem.ts";
import { registerRunner } from "../operations/people/keys.ts";
import { toPage } from "../request/page.ts";
import { jsonOnce } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { newRunner, registeredRunner } from "../schema/keys.ts";
import { runnerFilter, runnerPage, runnerPause } from "../schema/runners.ts";
import { selectRunners, updateRunnerPause } from "../store/runners.ts";
import { notifyLeases } from "../database/signals.ts";

export const runners: Route[] = [
  route(
    "POST /projects/:projectId/runners",
    {
      scope: "run",
      summary: "Register a runner and create its key",
      description:
        "The key gives access to the leases of the runner, their plans and their reports, and has its own rate limit. It " +
        "expires when the key of this request is revoked or expires, and when it has not been used for an hour. The " +
        "command assay runner does this automatically.",
      example: { body: { runner: "build-3" } },
      body: newRunner,
      answer: registeredRunner,
      status: 201,
    },
    ({ body, caller, conclude }) =>
      conclude(async (sql) => {
        const { id, key, runner } = await registerRunner(sql, caller, body);
        // The key is not kept for a request that is repeated.
        return jsonOnce(201, { runner, id, key }, { runner, id, key: null });
      }),
  ),

  route(
    "POST /projects/:projectId/runners/pause",
    {
      scope: "run",
      summary: "Pause or resume a runner",
      description:
        "A paused runner gets no new tasks and finishes its current ones. A runner that fails to run three tasks in a " +
        "row that others could run is paused automatically for ten minutes.",
      example: { body: { runner: "build-3", paused: true, reason: "The disk is being replaced" } },
      body: runnerPause,
      answer: runnerPause,
    },
    ({ params, body, conclude }) =>
      conclude(async (sql) => {
        const reason = body.paused ? (body.reason ?? "Paused by hand") : null;
        if (!(await updateRunnerPause(sql, params.projectId, body.runner, reason))) absent();
        await notifyLeases(sql, params.projectId);
        return body;
      }),
  ),

  route(
    "GET /projects/:projectId/runners",
    {
      summary: "List the runners of the last days and their leases",
      description: "Shows why a task waits: the labels, tasks and current leases of each runner.",
      query: runnerFilter,
      answer: runnerPage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const rows = await selectRunners(sql, params.projectId, query.limit, page.after?.[0]);
      return toPage(
        context,
        rows,
        ({ name }) => [name],
        (row) => row,
      );
    },
  ),
];
