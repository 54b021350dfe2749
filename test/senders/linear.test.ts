/** Linear: issues, through GraphQL. */

import { expect, test } from "bun:test";
import { expectQuoted, HEADERS, hostile, MARKDOWN, sendTo, shown, testFailures } from "./sending.ts";

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
        variables: { input: { teamId: TEAM, title: "Web: main failed", description: MARKDOWN } },
      },
    },
  ]);
});

test("a rate limit is retried with any status, with a time or without", async () => {
  const body = { errors: [{ message: "other" }, { message: "slow down", extensions: { code: "RATELIMITED" } }] };
  for (const status of [200, 400])
    for (const [headers, more] of [
      [{}, {}],
      [{ "retry-after": "30" }, { afterMs: 30_000 }],
    ] as const) {
      const { outcome } = await sender.deliver({ scripts: [{ status, body, headers }] });
      expect(outcome).toEqual({ status: "retry", error: "Rate limited", ...more });
    }
});

test("what a test is called is quoted", async () => {
  const { requests } = await sender.deliver({ notice: hostile(), scripts: [{ status: 200 }] });
  expectQuoted(requests[0]!.body.variables.input.description);
});

test.each(['{"errors":"x"}', '{"errors":{"a":1}}', '{"errors":[null]}', '{"errors":[{"message":5}]}'])(
  "the answer %s ends in an outcome",
  async (body) => {
    expect((await sender.deliver({ scripts: [{ status: 400, body }] })).outcome.status).toBe("refused");
  },
);

const shownToPeople = { code: "INVALID_INPUT", userPresentableMessage: "teamId must be a UUID." };
const invalid = { message: "Argument Validation Error", extensions: shownToPeople };
testFailures(sender, ["create_issue"], {
  reasons: [
    // Errors come with a 200 as well, and a 200 that is no answer is none.
    [200, { errors: [{ message: "Entity not found: Team" }], data: null }, "Entity not found: Team"],
    [200, { data: { issueCreate: { success: false } } }, "No issue was created"],
    ...["", "<html>", "null", "[]", '{"data":null}'].map((body): [number, string, string] => [
      200,
      body,
      "No issue was created",
    ]),
    [401, { errors: [{ message: "Authentication required" }] }, "Answered 401: Authentication required"],
    [400, { errors: [invalid] }, "Answered 400: teamId must be a UUID."],
  ],
});
