/** Onboarding: finished and next steps of a new project, snippets for its CI, and sample data. */

import {
  addSampleData,
  changeOnboarding,
  findOnboarding,
  removeSampleData,
} from "../operations/projects/onboarding.ts";
import { json, noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { onboarding, onboardingPatch, sampleData } from "../schema/onboarding.ts";

export const onboardings: Route[] = [
  route(
    "GET /projects/:projectId/onboarding",
    {
      summary: "Get the onboarding steps and snippets for CI",
      description:
        "A step is done when it has happened, regardless of clicks. The snippets contain the address of this server and " +
        "the id of the project, and read the key from ASSAY_KEY.",
      answer: onboarding,
    },
    async ({ sql, params, publicUrl }) => await findOnboarding(sql, params.projectId, publicUrl),
  ),

  route(
    "PATCH /projects/:projectId/onboarding",
    {
      summary: "Skip steps, or dismiss the onboarding",
      description: "Completed steps stay completed, even if they are skipped.",
      example: { body: { skip: ["environment"] } },
      body: onboardingPatch,
      answer: onboarding,
    },
    async ({ params: { projectId }, body, publicUrl, transact }) =>
      await transact(async (sql) => {
        await changeOnboarding(sql, projectId, body);
        return await findOnboarding(sql, projectId, publicUrl);
      }),
  ),

  route(
    "POST /projects/:projectId/onboarding/sample-data",
    {
      summary: "Add two weeks of sample data",
      description:
        "Adds executions, failures, flaky tests and bugs that are marked as samples, send no notifications and are not " +
        "included in sums. If sample data exists already, nothing is added.",
      answer: sampleData,
      status: 201,
      otherStatus: 200,
      deadlineSeconds: 60,
    },
    async ({ params: { projectId }, conclude }) =>
      await conclude(async (sql) => {
        const { added, ...there } = await addSampleData(sql, projectId);
        return json(added ? 201 : 200, there);
      }),
  ),

  route(
    "DELETE /projects/:projectId/onboarding/sample-data",
    {
      summary: "Remove the sample data",
      description: "Removes all sample data. Succeeds if there is none.",
      answer: null,
    },
    async ({ params: { projectId }, transact }) => {
      await transact((sql) => removeSampleData(sql, projectId));
      return noContent();
    },
  ),
];
