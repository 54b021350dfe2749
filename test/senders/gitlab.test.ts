/** GitLab: commit statuses, issues, notes on merge requests, pipelines. */

import { expect, test } from "bun:test";
import { BAD, GOOD, hostile, sendTo, testFailures } from "./sending.ts";

const config = (url: string) => ({
  baseUrl: url,
  project: "acme/web",
  token: "S3CRET-token",
  triggerToken: "S3CRET-trigger",
});
const sender = sendTo("gitlab", config, "set_commit_status");
const created = { status: 201, body: {} };
const shown = (requests: { method: string; path: string; headers: Record<string, string>; body: unknown }[]) =>
  requests.map(({ method, path, headers, body }) => ({ method, path, token: headers["private-token"], body }));

test("set_commit_status sets the state of the commit", async () => {
  const { outcome, requests } = await sender.deliver({ scripts: [created] });
  expect(outcome).toEqual({ status: "sent" });
  expect(shown(requests)).toEqual([
    {
      method: "POST",
      path: "/api/v4/projects/acme%2Fweb/statuses/0123456789abcdef",
      token: "S3CRET-token",
      body: { state: "failed", name: "assay", target_url: BAD.url, description: "1 failed, 9 passed" },
    },
  ]);
  const green = await sender.deliver({ notice: GOOD, options: { context: "assay/unit" }, scripts: [created] });
  expect(green.requests[0]!.body).toMatchObject({ state: "success", name: "assay/unit" });
});

test("a state that the commit has already is no failure", async () => {
  const same = { status: 400, body: { message: "Cannot transition status via :run from :running" } };
  expect((await sender.deliver({ scripts: [same] })).outcome).toEqual({ status: "sent" });
  const other = { status: 400, body: { message: "name is invalid" } };
  expect((await sender.deliver({ scripts: [other] })).outcome).toEqual({
    status: "refused",
    error: "Answered 400: name is invalid",
  });
});

test("create_issue opens one and tells its address", async () => {
  const answer = { status: 201, body: { web_url: "https://gitlab.test/acme/web/-/issues/7" } };
  const options = { labels: ["bug", "a,b"] };
  const { outcome, requests } = await sender.deliver({ action: "create_issue", options, scripts: [answer] });
  expect(outcome).toEqual({ status: "sent", link: "https://gitlab.test/acme/web/-/issues/7" });
  expect(shown(requests)).toEqual([
    {
      method: "POST",
      path: "/api/v4/projects/acme%2Fweb/issues",
      token: "S3CRET-token",
      body: {
        title: "Web: main failed",
        description: expect.stringContaining("```\nunit > adds: expected 1, got 2\n```"),
        labels: "bug,a b",
      },
    },
  ]);
});

test("notify writes a note to the merge request, in which no name is a command", async () => {
  const { outcome, requests } = await sender.deliver({ action: "notify", notice: hostile(), scripts: [created] });
  expect(outcome).toEqual({ status: "sent" });
  expect(shown(requests)).toEqual([
    {
      method: "POST",
      path: "/api/v4/projects/acme%2Fweb/merge_requests/12/notes",
      token: "S3CRET-token",
      body: { body: expect.stringMatching(/^\*\*`/) },
    },
  ]);
  expect(requests[0]!.body.body).not.toMatch(/^\s*\/close/m);
  const none = await sender.deliver({ action: "notify", notice: { ...BAD, pullRequest: null } });
  expect([none.outcome.status, none.requests]).toEqual(["refused", []]);
});

test("dispatch starts a pipeline with the trigger token alone", async () => {
  const options = { ref: "release", inputs: { REASON: "red" } };
  const { outcome, requests } = await sender.deliver({ action: "dispatch", options, scripts: [created] });
  expect(outcome).toEqual({ status: "sent" });
  expect(shown(requests) as unknown[]).toEqual([
    {
      method: "POST",
      path: "/api/v4/projects/acme%2Fweb/trigger/pipeline",
      token: undefined,
      body: { token: "S3CRET-trigger", ref: "release", variables: { REASON: "red" } },
    },
  ]);
  const without = sendTo("gitlab", (url) => ({ ...config(url), triggerToken: null }), "dispatch");
  expect((await without.deliver()).outcome.status).toBe("refused");
});

testFailures(sender);
