/** Tools about test cases: the history of one, and the flaky ones. */

import * as v from "valibot";
import { branchName, caseStatus, described, integer, text, uuid } from "../../schema/fields.ts";
import type { ListPage } from "../../schema/page.ts";
import { refuse } from "../../schema/refusal.ts";
import type { TestCase, TestCaseResult } from "../../schema/test_cases.ts";
import { quoteSearchText } from "../../rules/search_words.ts";
import { showTestCase } from "../shown.ts";
import { type ProjectApi, type Tool, tool } from "../tool.ts";

const MAX_CANDIDATES = 10;

/** Finds the test case with the id, or with exactly the name; else those that contain the text in suite, name or file. */
async function findTests(api: ProjectApi, { testCaseId, name }: { testCaseId?: string; name?: string }) {
  if (testCaseId !== undefined) return [await api.get<TestCase>(`/test-cases/${testCaseId}`)];
  const { data } = await api.get<ListPage<TestCase>>("/test-cases", {
    q: quoteSearchText(name ?? ""),
    limit: MAX_CANDIDATES,
  });
  const exact = data.filter((test) => test.name === name);
  return exact.length === 1 ? exact : data;
}

export const testHistoryTool: Tool = tool(
  {
    name: "test_history",
    title: "History of a test",
    description:
      "Whether a test can be trusted: its health, flake rate and owner, and its results, newest first. Takes the id of the test, or " +
      "a part of its name; several tests with that part are listed without their results.",
    scope: "read",
    input: v.strictObject({
      testCaseId: described(v.optional(uuid), "The test, as other tools name it"),
      name: described(v.optional(text(200)), "A part of its suite, name or file, in place of testCaseId"),
      branch: described(v.optional(branchName), "Only results of this branch"),
      status: described(v.optional(caseStatus), "Only results of this status"),
      limit: described(v.optional(integer(1, 50), 15), "How many results to answer"),
      cursor: described(v.optional(v.string()), "nextCursor of the page before, with the same filters"),
    }),
  },
  async ({ api, args: { testCaseId, name, ...filter }, cleaner }) => {
    if ((testCaseId === undefined) === (name === undefined))
      refuse(`Cannot read the arguments: give either "testCaseId" or "name"`);
    const tests = await findTests(api, { ...(testCaseId ? { testCaseId } : {}), ...(name ? { name } : {}) });
    const [test] = tests;
    if (!test || tests.length > 1)
      return {
        data: { found: tests.length, tests: tests.map((one) => showTestCase(one, cleaner)) },
        leftOut: tests.length > 1 ? ["results: call again with the testCaseId of one of these tests"] : [],
      };
    const page = await api.get<ListPage<TestCaseResult>>(`/test-cases/${test.id}/results`, filter);
    return {
      data: {
        test: showTestCase(test, cleaner),
        nextCursor: page.pagination.cursor ?? null,
        results: page.data.map((result) =>
          cleaner.split(result, ["executionId", "status", "flaky", "durationMs", "attempt", "outage", "completedAt"]),
        ),
      },
      leftOut: page.pagination.hasMore ? ["older results: call again with nextCursor as cursor"] : [],
    };
  },
);

export const flakyTestsTool: Tool = tool(
  {
    name: "flaky_tests",
    title: "Flaky tests",
    description:
      "The tests that fail without a reason, the flakiest first, with their flake rates and how they were recognised.",
    scope: "read",
    input: v.strictObject({
      task: described(v.optional(text(200)), "Only those of this task"),
      limit: described(v.optional(integer(1, 50), 10), "How many tests to answer"),
      cursor: described(v.optional(v.string()), "nextCursor of the page before, with the same filters"),
    }),
  },
  async ({ api, args: { task, limit, cursor }, cleaner }) => {
    const query = { health: "flaky", sort: "flakeRate", task_slug: task, limit, cursor };
    const { data, pagination } = await api.get<ListPage<TestCase>>("/test-cases", query);
    return {
      data: { nextCursor: pagination.cursor ?? null, tests: data.map((test) => showTestCase(test, cleaner)) },
      leftOut: pagination.hasMore ? ["less flaky tests: call again with nextCursor as cursor"] : [],
    };
  },
);
