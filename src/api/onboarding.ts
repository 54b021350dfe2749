/** Onboarding: what a new project has done and what comes next, snippets for its CI, and sample data. */

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
      summary: "How far the project has come, and snippets for its CI",
      description:
        "A step is done when it has really happened. The snippets name this server and this project, and take the " +
        "key from ASSAY_KEY.",
      answer: onboarding,
    },
    async ({ sql, params, publicUrl }) => await findOnboarding(sql, params.projectId, publicUrl),
  ),

  route(
    "PATCH /projects/:projectId/onboarding",
    {
      summary: "Skip steps, or dismiss the onboarding",
      description: "Steps that are done stay done, whether they are skipped or not.",
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
      summary: "Add two weeks of sample data; once",
      description:
        "For looking around: executions, failures, flaky tests and bugs that are marked as samples everywhere, tell " +
        "nobody and are in no sum. Where they are there already nothing is added.",
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
      summary: "Remove the sample data without a trace",
      description: "Every trace of it. Where there is none, that is fine.",
      answer: null,
    },
    async ({ params: { projectId }, transact }) => {
      await transact((sql) => removeSampleData(sql, projectId));
      return noContent();
    },
  ),
];
