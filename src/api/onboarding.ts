/** Onboarding: what a new project has done and what comes next, snippets for its CI, and sample data. */

import { absent } from "../http/problem.ts";
import { json, noContent } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { insertSampleData } from "../operations/sample_data.ts";
import { type Onboarding, onboarding, onboardingPatch, sampleData, type StepId, STEPS } from "../schema/onboarding.ts";
import { createSnippets } from "../rules/snippets.ts";
import type { Sql } from "../store/connect.ts";
import { countSample, deleteSample, lockSample, selectOnboarding, upsertOnboarding } from "../store/onboarding.ts";
import { selectProject } from "../store/projects.ts";

const TEXTS: Record<StepId, { title: string; hint: string }> = {
  first_run: {
    title: "Upload a first report",
    hint: "Paste the snippet of your CI, or the one of curl, with your tests in place of npm test.",
  },
  commit_and_branch: {
    title: "Tell the commit and the branch",
    hint: "Send commit and branch with each upload: the snippets for CI do. Flaky tests and bugs are found by them.",
  },
  environment: {
    title: "Tell the environment",
    hint: "Send environment, such as staging, with uploads of tests against a deployed system.",
  },
  integration: {
    title: "Connect what the team uses",
    hint: "POST /teams/{teamId}/integrations with the team key: Slack, Teams, GitHub, Jira, a webhook of your own.",
  },
  automation: {
    title: "Be told when the branch turns red",
    hint: "POST /teams/{teamId}/automations with the team key: what to do on an event, or at a time.",
  },
  bug_triaged: {
    title: "Triage a first bug report",
    hint: "Failures on the default branch open bug reports: set the status of one, or merge two.",
  },
};

type Here = Pick<Context<{ projectId: string }>, "params" | "publicUrl">;

async function find(sql: Sql, { params, publicUrl }: Here): Promise<Onboarding> {
  const { skipped, dismissed, doneAt } = await selectOnboarding(sql, params.projectId);
  const steps = STEPS.map((id): Onboarding["steps"][number] => {
    const status = doneAt[id] !== null ? "done" : skipped.includes(id) ? "skipped" : "todo";
    return { id, title: TEXTS[id].title, status, doneAt: doneAt[id], hint: TEXTS[id].hint };
  });
  return {
    completed: steps.every(({ status }) => status !== "todo"),
    dismissed,
    steps,
    snippets: createSnippets(`${publicUrl}/api/v1/projects/${params.projectId}/test-runs`),
  };
}

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
    async (context) => await find(context.sql, context),
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
    async (context) =>
      await context.transact(async (sql) => {
        await upsertOnboarding(sql, context.params.projectId, context.body);
        return await find(sql, context);
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
        await lockSample(sql, projectId);
        const there = await countSample(sql, projectId);
        if (there.executions > 0) return json(200, there);
        const { defaultBranch } = (await selectProject(sql, projectId)) ?? absent();
        await insertSampleData(sql, projectId, defaultBranch, new Date());
        return json(201, await countSample(sql, projectId));
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
      await transact(async (sql) => {
        await lockSample(sql, projectId);
        await deleteSample(sql, projectId);
      });
      return noContent();
    },
  ),
];
