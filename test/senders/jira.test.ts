/** Jira: issues in the Cloud and in a Data Center. */

import { expect, test } from "bun:test";
import { BAD, hostile, sendTo, testFailures } from "./sending.ts";

const common = { token: "S3CRET-token", projectKey: "WEB", labels: ["assay", "flaky test"] };
const cloud = sendTo("jira", (url) => ({ ...common, baseUrl: `${url}/`, email: "bot@example.com" }), "create_issue");
const dataCenter = sendTo("jira", (url) => ({ ...common, baseUrl: `${url}/jira` }), "create_issue");
const created = { status: 201, body: { id: "10000", key: "WEB-24" } };
const fields = {
  project: { key: "WEB" },
  issuetype: { name: "Bug" },
  summary: "Web: main failed",
  labels: ["assay", "flaky-test"],
};

test("the Cloud gets a document, and knows its user by e-mail and token", async () => {
  const { outcome, requests } = await cloud.deliver({ scripts: [created] });
  expect(outcome).toEqual({ status: "sent", link: expect.stringMatching(/\/browse\/WEB-24$/) });
  const text = (text: string) => ({ type: "text", text });
  const paragraph = (...content: unknown[]) => ({ type: "paragraph", content });
  const item = (value: string) => ({ type: "listItem", content: [paragraph(text(value))] });
  const link = (name: string, href: string | null) => ({ ...text(name), marks: [{ type: "link", attrs: { href } }] });
  expect(requests).toEqual([
    {
      method: "POST",
      path: "/rest/api/3/issue",
      headers: expect.objectContaining({
        authorization: `Basic ${Buffer.from("bot@example.com:S3CRET-token").toString("base64")}`,
        accept: "application/json",
      }),
      body: {
        fields: {
          ...fields,
          description: {
            type: "doc",
            version: 1,
            content: [
              paragraph(text("1 failed, 9 passed")),
              { type: "bulletList", content: [item("Branch: main"), item("Commit: 0123456789ab")] },
              { type: "codeBlock", content: [text("unit > adds: expected 1, got 2")] },
              paragraph(link("Assay", BAD.url)),
              paragraph(link("Build", BAD.buildUrl)),
            ],
          },
        },
      },
      text: expect.any(String),
    },
  ]);
});

test("a Data Center gets text, and knows its user by the token", async () => {
  const { outcome, requests } = await dataCenter.deliver({ scripts: [created] });
  expect(outcome).toEqual({ status: "sent", link: expect.stringMatching(/\/jira\/browse\/WEB-24$/) });
  expect(requests.map(({ method, path, headers, body }) => [method, path, headers["authorization"], body])).toEqual([
    [
      "POST",
      "/jira/rest/api/2/issue",
      "Bearer S3CRET-token",
      {
        fields: {
          ...fields,
          description: [
            "{noformat}",
            "1 failed, 9 passed",
            "Branch: main",
            "Commit: 0123456789ab",
            "unit > adds: expected 1, got 2",
            "{noformat}",
            `Assay: ${BAD.url}`,
            `Build: ${BAD.buildUrl}`,
          ].join("\n"),
        },
      },
    ],
  ]);
  const { requests: risky } = await dataCenter.deliver({ notice: hostile(), scripts: [created] });
  expect(risky[0]!.body.fields.description.match(/\{noformat\}/g)).toHaveLength(2);
});

test("a summary has one line of at most 255 characters", async () => {
  const notice = { ...BAD, subject: `${"long ".repeat(100)}\nsecond` };
  const { requests } = await cloud.deliver({ notice, scripts: [created] });
  expect(requests[0]!.body.fields.summary).toHaveLength(255);
});

test("a refusal tells which field was wrong", async () => {
  const body = { errorMessages: [], errors: { issuetype: "Specify a valid issue type" } };
  const { outcome } = await cloud.deliver({ scripts: [{ status: 400, body }] });
  expect(outcome).toEqual({ status: "refused", error: "Answered 400: issuetype: Specify a valid issue type" });
});

testFailures(cloud);
