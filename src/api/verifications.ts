/** Verifications: a test case is run many times at one commit, until it is certain how often it fails. */

import { absent, fail } from "../http/problem.ts";
import { beginVerification, cancelVerification } from "../operations/probes/verifications.ts";
import type { Caller } from "../request/callers.ts";
import { toPage } from "../request/page.ts";
import { route, type Route } from "../request/route.ts";
import { CONFIDENCE, failureInterval } from "../rules/failure_rate.ts";
import {
  newVerification,
  type Verification,
  verification,
  verificationFilter,
  verificationPage,
} from "../schema/verifications.ts";
import type { Sql } from "../database/connect.ts";
import { selectTestCase } from "../store/test_cases.ts";
import { selectVerification, selectVerifications, type VerificationRow } from "../store/verifications.ts";
import { stopWords, verificationWords } from "../wording/verification.ts";

function toVerification({ noBuild, ...row }: VerificationRow): Verification {
  const { passed, failed } = row;
  const total = passed + failed;
  return {
    ...row,
    failureRate: total === 0 ? null : { ...failureInterval(failed, total), confidence: CONFIDENCE },
    statement: verificationWords({ ...row, noBuild }),
    stopReason: stopWords({ ...row, noBuild }),
  };
}

const find = async (sql: Sql, projectId: string, id: string): Promise<Verification> =>
  toVerification((await selectVerification(sql, projectId, id)) ?? absent());

const actorOf = ({ leading }: Caller) => ({ accountId: null, name: `key ${leading}` });

export const verifications: Route[] = [
  route(
    "POST /projects/:projectId/test-cases/:testCaseId/verify",
    {
      scope: "run",
      summary: "Run a test case many times at one commit",
      description:
        "Runners run only this test case, with the commands checkout and rerun of their assay.yaml. The runs are probes: " +
        "they are counted nowhere, and other tasks go first. A verification ends when all runs have passed; after 3 " +
        "failures if a run has passed, after 5 failures if none has; or when as many runs have no result as have one, at " +
        "least 5. With release, a key of scope run is answered 401.",
      example: { body: { commit: "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432", runs: 200 } },
      body: newVerification,
      answer: verification,
      status: 201,
    },
    async ({ params, body, caller, conclude }) => {
      const { projectId, testCaseId } = params;
      if (body.release && caller.scope !== null)
        fail("UNAUTHORIZED", `A key of scope "${caller.scope}" cannot end a quarantine: omit "release"`);
      return await conclude(async (sql) => {
        const { id, taskSlug } = (await selectTestCase(sql, projectId, testCaseId)) ?? absent();
        const asked = { ...body, testCase: { id, taskSlug }, actor: actorOf(caller), now: new Date() };
        return await find(sql, projectId, await beginVerification(sql, projectId, asked));
      });
    },
  ),

  route(
    "GET /projects/:projectId/test-cases/:testCaseId/verifications",
    {
      summary: "List the verifications of a test case, newest first",
      description: "All verifications, also those that run or were cancelled.",
      query: verificationFilter,
      answer: verificationPage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const { projectId, testCaseId } = params;
      if (!(await selectTestCase(sql, projectId, testCaseId))) absent();
      const rows = await selectVerifications(sql, projectId, testCaseId, { ...query, after: page.after?.[0] });
      return toPage(context, rows, ({ id }) => [id], toVerification);
    },
  ),

  route(
    "GET /projects/:projectId/verifications/:verificationId",
    {
      summary: "Get a verification",
      description: "Its counts grow while it runs.",
      answer: verification,
    },
    async ({ sql, params }) => await find(sql, params.projectId, params.verificationId),
  ),

  route(
    "POST /projects/:projectId/verifications/:verificationId/cancel",
    {
      scope: "run",
      summary: "Cancel a verification that has not ended",
      description: "Its probes are cancelled. A verification that has already ended is answered 400.",
      answer: verification,
    },
    async ({ params, conclude }) => {
      const { projectId, verificationId } = params;
      return await conclude(async (sql) => {
        await cancelVerification(sql, projectId, verificationId);
        return await find(sql, projectId, verificationId);
      });
    },
  ),
];
