/** Who runs tasks: runners register, are paused and resumed, and are listed. */

import { absent } from "../http/problem.ts";
import { registerRunner } from "../operations/people/keys.ts";
import { toPage } from "../request/page.ts";
import { jsonOnce } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { newRunner, registeredRunner } from "../schema/keys.ts";
import { runnerFilter, runnerPage, runnerPause } from "../schema/leases.ts";
import { selectRunners, updateRunnerPause } from "../store/runners.ts";
import { notifyLeases } from "../database/signals.ts";

export const runners: Route[] = [
  route(
    "POST /projects/:projectId/runners",
    {
      scope: "run",
      summary: "Register a runner: it gets a key of its own, with its own rate limit",
      description:
        "The key opens what a runner needs: its leases, their plans and their reports. It ends when the key that asked is " +
        "revoked or ends, and when it has not been used for an hour. assay runner does this by itself.",
      example: { body: { runner: "build-3" } },
      body: newRunner,
      answer: registeredRunner,
      status: 201,
    },
    ({ body: { runner, version }, caller, conclude }) =>
      conclude(async (sql) => {
        const { id, key } = await registerRunner(sql, caller, runner, version ?? null);
        // The key is not kept for a request that is repeated.
        return jsonOnce(201, { runner, id, key }, { runner, id, key: null });
      }),
  ),

  route(
    "POST /projects/:projectId/runners/pause",
    {
      scope: "run",
      summary: "Pause a runner, or resume it: it gets no new tasks, and goes on with what it has",
      description:
        "For taking a machine out of service. A runner that could not run three tasks in a row, which others could, is " +
        "paused for ten minutes by itself.",
      example: { body: { runner: "build-3", paused: true, reason: "The disk is exchanged" } },
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
      summary: "The runners that have asked for tasks in the last days, and what they hold",
      description: "For seeing why a task is not taken: who is there, what each has and can run, and what it is at.",
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
