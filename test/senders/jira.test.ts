/** Jira: issues in the Cloud and in a Data Center. */

import { describe, expect, test } from "bun:test";
import type { Script } from "../receiver.ts";
import { BAD, BUG_LINE, BUG_URL, HEADERS, hostile, HOSTILE, KNOWN, sendTo, shown, testFailures } from "./sending.ts";

const common = { token: "S3CRET-token", projectKey: "WEB", labels: ["assay", "flaky test"] };
const cloud = sendTo("jira", (url) => ({ ...common, baseUrl: `${url}/`, email: "bot@example.com" }), "create_issue");
const dataCenter = sendTo("jira", (url) => ({ ...common, baseUrl: `${url}/jira` }), "create_issue");
const created = { status: 201, body: { id: "10000", key: "WEB-24" } };
const fields = {
  ...{ project: { key: "WEB" }, issuetype: { name: "Bug" } },
  ...{ summary: "Web: main failed", labels: ["assay", "flaky-test"] },
};
const CREDENTIAL = Buffer.from("bot@example.com:S3CRET-token").toString("base64");

test("the Cloud gets a document, and knows its user by e-mail and token", async () => {
  const { outcome, requests } = await cloud.deliver({ scripts: [created] });
  expect(outcome).toEqual({ status: "sent", link: expect.stringMatching(/\/browse\/WEB-24$/) });
  const text = (text: string) => ({ type: "text", text });
  const paragraph = (...content: unknown[]) => ({ type: "paragraph", content });
  const item = (value: string) => ({ type: "listItem", content: [paragraph(text(value))] });
  const link = (name: string, href: string | null) => ({ ...text(name), marks: [{ type: "link", attrs: { href } }] });
  const content = [
    paragraph(text("1 failed, 9 passed")),
    { type: "bulletList", content: [item("Branch: main"), item("Commit: 0123456789ab")] },
    { type: "codeBlock", content: [text("unit > adds: expected 1, got 2")] },
    paragraph(link("Assay", BAD.url)),
    paragraph(link("Build", BAD.buildUrl)),
  ];
  expect(shown(requests)).toEqual([
    {
      ...{ method: "POST", path: "/rest/api/3/issue" },
      headers: { ...HEADERS, authorization: `Basic ${CREDENTIAL}`, accept: "application/json" },
      body: { fields: { ...fields, description: { type: "doc", version: 1, content } } },
    },
  ]);
});

test("both link the known bugs", async () => {
  const descriptionOf = async ({ deliver }: typeof cloud, notice: typeof KNOWN) =>
    (await deliver({ notice, scripts: [created] })).requests[0]!.body.fields.description;
  const before = await descriptionOf(cloud, { ...KNOWN, knownBugs: [] });
  const marks = [{ type: "link", attrs: { href: BUG_URL } }];
  expect(await descriptionOf(cloud, KNOWN)).toEqual({
    ...before,
    content: before.content.toSpliced(3, 0, { type: "paragraph", content: [{ type: "text", text: BUG_LINE, marks }] }),
  });
  const lines: string[] = (await descriptionOf(dataCenter, { ...KNOWN, knownBugs: [] })).split("\n");
  const end = lines.lastIndexOf("{noformat}");
  expect((await descriptionOf(dataCenter, KNOWN)).split("\n")).toEqual([
    ...lines.slice(0, end),
    ...[BUG_LINE, "{noformat}", `Bug #12: ${BUG_URL}`],
    ...lines.slice(end + 1),
  ]);
});

test("a Data Center gets text, and knows its user by the token", async () => {
  const { outcome, requests } = await dataCenter.deliver({ scripts: [created] });
  expect(outcome).toEqual({ status: "sent", link: expect.stringMatching(/\/jira\/browse\/WEB-24$/) });
  const lines = ["1 failed, 9 passed", "Branch: main", "Commit: 0123456789ab", "unit > adds: expected 1, got 2"];
  const links = [`Assay: ${BAD.url}`, `Build: ${BAD.buildUrl}`];
  const description = ["{noformat}", ...lines, "{noformat}", ...links].join("\n");
  expect(shown(requests)).toEqual([
    {
      ...{ method: "POST", path: "/jira/rest/api/2/issue", body: { fields: { ...fields, description } } },
      headers: { ...HEADERS, authorization: "Bearer S3CRET-token", accept: "application/json" },
    },
  ]);
  const { requests: risky } = await dataCenter.deliver({ notice: hostile(), scripts: [created] });
  expect(risky[0]!.body.fields.description.match(/\{noformat\}/g)).toHaveLength(2);
});

test("the credential is hidden in whatever spelling it comes back", async () => {
  for (const write of [encodeURIComponent, (text: string) => text.replace(/=+$/, ""), (text: string) => text]) {
    const script: Script = ({ headers }) => ({ status: 400, body: write(headers["authorization"]!) });
    const { attempt } = await cloud.deliver({ scripts: [script] });
    expect(attempt.answer).not.toContain(CREDENTIAL.slice(0, 20));
  }
});

test("a summary has one line of at most 255 characters", async () => {
  const notice = { ...BAD, subject: `${"long ".repeat(100)}\nsecond` };
  const { requests } = await cloud.deliver({ notice, scripts: [created] });
  expect(requests[0]!.body.fields.summary).toHaveLength(255);
});

test("a document holds names as plain text, and no link that is none", async () => {
  const notice = { ...hostile(), buildUrl: "javascript:alert(1)" };
  const { requests } = await cloud.deliver({ notice, scripts: [created] });
  const written = JSON.stringify(requests[0]!.body.fields.description);
  expect(written).not.toMatch(/\\u001b|"href":"javascript/);
  expect(written).toContain(JSON.stringify(Bun.stripANSI(HOSTILE)).slice(1, -1));
});

test("a document has no empty text, which the Cloud refuses", async () => {
  const { requests } = await cloud.deliver({ notice: { ...BAD, lines: ["\u0007"] }, scripts: [created] });
  expect(JSON.stringify(requests[0]!.body.fields.description)).not.toContain('"text":""');
});

const errors = { issuetype: "Specify a valid issue type" };
const both = { errorMessages: ["No project could be found"], errors: { labels: "Too long" } };
describe.each([
  ["the Cloud", cloud],
  ["a Data Center", dataCenter],
])("in %s", (_, sender) =>
  testFailures(sender, ["create_issue"], {
    reasons: [
      [400, { errorMessages: [], errors }, "Answered 400: issuetype: Specify a valid issue type"],
      [400, both, "Answered 400: No project could be found; labels: Too long"],
    ],
  }),
);
