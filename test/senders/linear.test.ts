/** Linear: issues, through GraphQL. */

import { expect, test } from "bun:test";
import { sendTo, testFailures } from "./sending.ts";

const TEAM = "0197f000-0000-7000-8000-0000000000cc";
const sender = sendTo("linear", (url) => ({ baseUrl: url, token: "lin_api_S3CRET", teamId: TEAM }), "create_issue");

test("create_issue opens one and tells its address", async () => {
  const issue = { identifier: "WEB-7", url: "https://linear.test/acme/issue/WEB-7" };
  const body = { data: { issueCreate: { success: true, issue } } };
  const { outcome, requests } = await sender.deliver({ scripts: [{ status: 200, body }] });
  expect(outcome).toEqual({ status: "sent", link: issue.url });
  expect(requests.map(({ method, path, headers, body }) => [method, path, headers["authorization"], body])).toEqual([
    [
      "POST",
      "/graphql",
      "lin_api_S3CRET",
      {
        query:
          "mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier url } } }",
        variables: {
          input: {
            teamId: TEAM,
            title: "Web: main failed",
            description: expect.stringContaining("unit > adds: expected 1, got 2"),
          },
        },
      },
    ],
  ]);
});

test("errors come with a 200, and a rate limit with a 400", async () => {
  const entity = { errors: [{ message: "Entity not found: Team" }], data: null };
  expect((await sender.deliver({ scripts: [{ status: 200, body: entity }] })).outcome).toEqual({
    status: "refused",
    error: "Entity not found: Team",
  });
  const failed = { data: { issueCreate: { success: false } } };
  expect((await sender.deliver({ scripts: [{ status: 200, body: failed }] })).outcome.status).toBe("refused");
  const limited = { errors: [{ message: "slow down", extensions: { code: "RATELIMITED" } }] };
  const script = { status: 400, body: limited, headers: { "retry-after": "30" } };
  expect((await sender.deliver({ scripts: [script] })).outcome).toEqual({
    status: "retry",
    error: "Rate limited",
    afterMs: 30_000,
  });
  const unauthorized = { errors: [{ message: "Authentication required" }] };
  expect((await sender.deliver({ scripts: [{ status: 401, body: unauthorized }] })).outcome).toEqual({
    status: "refused",
    error: "Answered 401: Authentication required",
  });
});

testFailures(sender);
