/** Onboarding: what a new project has done and what comes next, snippets for its CI, and sample data. */

import { addSampleData, changeOnboarding, findOnboarding, removeSampleData } from "../operations/onboarding.ts";
import { json, noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { onboarding, onboardingPatch, sampleData } from "../schema/onboarding.ts";

export const onboardings: Route[] = [
  route(
    "GET /projects/:projectId/onboarding",
    { summary: "How far the project has come, and snippets for its CI", answer: onboarding },
    async ({ sql, params, publicUrl }) => await findOnboarding(sql, params.projectId, publicUrl),
  ),

  route(
    "PATCH /projects/:projectId/onboarding",
    { summary: "Skip steps, or dismiss the onboarding", body: onboardingPatch, answer: onboarding },
    async ({ params: { projectId }, body, publicUrl, transact }) =>
      await transact(async (sql) => {
        await changeOnboarding(sql, projectId, body);
        return await findOnboarding(sql, projectId, publicUrl);
      }),
  ),

  route(
    "POST /projects/:projectId/onboarding/sample-data",
    {
      summary: "Add two weeks of sample data; once",
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
    { summary: "Remove the sample data without a trace", answer: null },
    async ({ params: { projectId }, transact }) => {
      await transact((sql) => removeSampleData(sql, projectId));
      return noContent();
    },
  ),
];
