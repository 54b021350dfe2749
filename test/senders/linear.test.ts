/** Linear: issues, through GraphQL. */

import { expect, test } from "bun:test";
import { HEADERS, hostile, MARKDOWN, sendTo, shown, testFailures } from "./sending.ts";

const TEAM = "0197f000-0000-7000-8000-0000000000cc";
const sender = sendTo("linear", (url) => ({ baseUrl: url, token: "lin_api_S3CRET", teamId: TEAM }), "create_issue");

test("create_issue opens one and tells its address", async () => {
  const issue = { identifier: "WEB-7", url: "https://linear.test/acme/issue/WEB-7" };
  const body = { data: { issueCreate: { success: true, issue } } };
  const { outcome, requests } = await sender.deliver({ scripts: [{ status: 200, body }] });
  expect(outcome).toEqual({ status: "sent", link: issue.url });
  expect(shown(requests)).toEqual([
    {
      method: "POST",
      path: "/graphql",
      headers: { ...HEADERS, authorization: "lin_api_S3CRET" },
      body: {
        query:
          "mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier url } } }",
        variables: {
          input: {
            teamId: TEAM,
            title: "Web: main failed",
            description: MARKDOWN,
          },
        },
      },
    },
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

test("a rate limit is retried with any status, and without a time", async () => {
  const body = { errors: [{ message: "other" }, { message: "slow down", extensions: { code: "RATELIMITED" } }] };
  for (const status of [200, 400])
    expect((await sender.deliver({ scripts: [{ status, body }] })).outcome).toEqual({
      status: "retry",
      error: "Rate limited",
    });
});

test("a refusal tells what Linear would show to people, and a 200 that is no answer is none", async () => {
  const shownToPeople = { code: "INVALID_INPUT", userPresentableMessage: "teamId must be a UUID." };
  const invalid = { errors: [{ message: "Argument Validation Error", extensions: shownToPeople }] };
  expect((await sender.deliver({ scripts: [{ status: 400, body: invalid }] })).outcome).toEqual({
    status: "refused",
    error: "Answered 400: teamId must be a UUID.",
  });
  for (const body of ["", "<html>", "null", "[]", '{"data":null}'])
    expect((await sender.deliver({ scripts: [{ status: 200, body }] })).outcome).toEqual({
      status: "refused",
      error: "No issue was created",
    });
});

test("what a test is called is quoted", async () => {
  const { requests } = await sender.deliver({ notice: hostile(), scripts: [{ status: 200 }] });
  const { description } = requests[0]!.body.variables.input;
  const [before, , after] = description.split(/^`{4,}$/m);
  expect(`${before}${after}`.replace(/`[^`\n]*`/g, "")).not.toMatch(/@everyone|javascript:|<script|!channel/);
});

test.each(['{"errors":"x"}', '{"errors":{"a":1}}', '{"errors":[null]}', '{"errors":[{"message":5}]}'])(
  "the answer %s ends in an outcome",
  async (body) => {
    expect((await sender.deliver({ scripts: [{ status: 400, body }] })).outcome.status).toBe("refused");
  },
);

testFailures(sender, ["create_issue"]);
