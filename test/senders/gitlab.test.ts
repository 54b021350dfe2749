/** GitLab: commit statuses, issues, notes on merge requests, pipelines. */

import { describe, expect, test } from "bun:test";
import type { Script } from "../receiver.ts";
import {
  BAD,
  COMMENT,
  expectQuoted,
  GOOD,
  HEADERS as COMMON,
  hostile,
  MARKDOWN,
  sendTo,
  shown,
  testFailures,
} from "./sending.ts";

const config = (url: string) => ({
  baseUrl: url,
  project: "acme/web",
  token: "S3CRET-token",
  triggerToken: "S3CRET-trigger",
});
const sender = sendTo("gitlab", config, "set_commit_status");
const created = { status: 201, body: {} };
const HEADERS = { ...COMMON, "private-token": "S3CRET-token" };
const { "content-type": _, ...READING } = HEADERS;
const project = "/api/v4/projects/acme%2Fweb";

test("set_commit_status sets the state of the commit", async () => {
  const { outcome, requests } = await sender.deliver({ scripts: [created] });
  expect(outcome).toEqual({ status: "sent" });
  const body = { state: "failed", name: "assay", target_url: BAD.url, description: "1 failed, 9 passed" };
  expect(shown(requests)).toEqual([
    { method: "POST", path: `${project}/statuses/0123456789abcdef`, headers: HEADERS, body },
  ]);
  const green = await sender.deliver({ notice: GOOD, options: { context: "assay/unit" }, scripts: [created] });
  expect(green.requests[0]!.body).toMatchObject({ state: "success", name: "assay/unit" });
});

test("a state that the commit has already is no failure; one that it cannot take is, and so is any other action", async () => {
  const from = (state: string) => ({
    status: 400,
    body: { message: `Cannot transition status via :drop from :${state}` },
  });
  expect((await sender.deliver({ scripts: [from("failed")] })).outcome).toEqual({ status: "sent" });
  expect((await sender.deliver({ scripts: [from("canceled")] })).outcome.status).toBe("refused");
  for (const action of ["create_issue", "notify", "dispatch"] as const)
    expect((await sender.deliver({ action, scripts: [from("failed")] })).outcome.status).toBe("refused");
});

test("create_issue opens one and tells its address", async () => {
  const link = "https://gitlab.test/acme/web/-/issues/7";
  const scripts = [{ status: 201, body: { web_url: link } }];
  const options = { labels: ["bug", "a,b"] };
  const { outcome, requests } = await sender.deliver({ action: "create_issue", options, scripts });
  expect(outcome).toEqual({ status: "sent", link });
  const body = { title: "Web: main failed", description: MARKDOWN, labels: "bug,a b" };
  expect(shown(requests)).toEqual([{ method: "POST", path: `${project}/issues`, headers: HEADERS, body }]);
});

describe("notify", () => {
  const action = "notify" as const;
  const list = `${project}/merge_requests/12/notes`;
  const BODY = { body: COMMENT.body };

  test("writes a note to the merge request, and changes it from then on", async () => {
    const first = await sender.deliver({ action, scripts: [{ status: 201, body: { id: 5 } }] });
    expect(first.outcome).toEqual({ status: "sent", commentId: "5" });
    expect(shown(first.requests)).toEqual([{ method: "POST", path: list, headers: HEADERS, body: BODY }]);
    const comment = { ...COMMENT, id: "5" };
    const second = await sender.deliver({ action, comment, scripts: [{ status: 200, body: { id: 5 } }] });
    expect(second.outcome).toEqual({ status: "sent", commentId: "5" });
    expect(shown(second.requests)).toEqual([{ method: "PUT", path: `${list}/5`, headers: HEADERS, body: BODY }]);
    const scripts = [{ status: 404 }, { status: 201, body: { id: 6 } }];
    const deleted = await sender.deliver({ action, comment, scripts });
    expect(deleted.outcome).toEqual({ status: "sent", commentId: "6" });
  });

  test("finds the note of an earlier try by its marker and its author", async () => {
    const notes = [
      { id: 1, body: COMMENT.body, author: { id: 8 } },
      { id: 2, body: COMMENT.body, author: { id: 7 } },
    ];
    const comment = { ...COMMENT, since: "2026-01-31T11:59:00.000Z" };
    const send = (me: object) => {
      const scripts = [notes, me, { id: 2 }].map((body) => ({ status: 200, body }));
      return sender.deliver({ action, comment, scripts });
    };
    const { outcome, requests } = await send({ id: 7 });
    expect(outcome).toEqual({ status: "sent", commentId: "2" });
    expect(shown(requests)).toEqual([
      { method: "GET", path: `${list}?order_by=created_at&sort=desc&per_page=100`, headers: READING, body: null },
      { method: "GET", path: "/api/v4/user", headers: READING, body: null },
      { method: "PUT", path: `${list}/2`, headers: HEADERS, body: BODY },
    ]);
    expect((await send({ id: 9 })).requests.at(-1)!.method).toBe("POST");
  });

  test("without a merge request there is nothing to comment on", async () => {
    const { outcome, requests } = await sender.deliver({ action, notice: { ...BAD, pullRequest: null } });
    expect([outcome.status, requests]).toEqual(["refused", []]);
  });
});

describe("the note on the merge request that brought a commit", () => {
  const commit = "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234";
  const reads = (path: string) => ({ method: "GET", path: `${project}${path}`, headers: READING, body: null });
  const find = reads(`/repository/commits/${commit}/merge_requests?state=merged&per_page=100`);
  const comment = { ...COMMENT, mergedCommit: commit };
  const deliver = (...scripts: Script[]) =>
    sender.deliver({ action: "notify", comment, notice: { ...BAD, pullRequest: null }, scripts });
  const merged = { iid: 128, state: "merged", merged_at: "2026-01-30T10:00:00Z" };

  test("is written to the first one that was merged", async () => {
    const others = [
      { iid: 1, state: "closed", merged_at: null },
      { ...merged, iid: 130, merged_at: "2026-01-31T10:00:00Z" },
    ];
    const { outcome, requests } = await deliver(
      { status: 200, body: [...others, merged] },
      { status: 200, body: [] },
      { status: 201, body: { id: 5 } },
    );
    expect(outcome).toEqual({ status: "sent", commentId: "5" });
    const list = "/merge_requests/128/notes";
    expect(shown(requests)).toEqual([
      ...[find, reads(`${list}?order_by=created_at&sort=desc&per_page=100`)],
      { method: "POST", path: `${project}${list}`, headers: HEADERS, body: { body: COMMENT.body } },
    ]);
  });

  test("is changed, and not repeated, if it is there already", async () => {
    const notes = [{ id: 5, body: COMMENT.body, author: { id: 7 } }];
    const { requests } = await deliver(
      ...[[merged], notes, { id: 7 }, { id: 5 }].map((body) => ({ status: 200, body })),
    );
    expect(requests.slice(2).map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /api/v4/user",
      `PUT ${project}/merge_requests/128/notes/5`,
    ]);
  });

  test.each([
    ["there is none", { status: 200, body: [] }],
    ["it is not merged", { status: 200, body: [{ ...merged, state: "opened", merged_at: null }] }],
    ["the commit is unknown", { status: 404, body: { message: "404 Commit Not Found" } }],
  ])("is not written if %s, which is no failure", async (_, script) => {
    const { outcome, requests } = await deliver(script);
    const error = "Nothing to send: no merged pull request contains the commit c4d5e6f0127a";
    expect(outcome).toEqual({ status: "inapplicable", error });
    expect(shown(requests)).toEqual([find]);
  });

  test("needs access to the project", async () => {
    const hidden = { status: 404, body: { message: "404 Project Not Found" } };
    const error = "Answered 404: 404 Project Not Found";
    expect((await deliver(hidden)).outcome).toEqual({ status: "refused", error });
  });
});

test("no name is a command, a mention or a link: all of it is quoted", async () => {
  const { requests } = await sender.deliver({ action: "create_issue", notice: hostile(), scripts: [created] });
  expectQuoted(requests[0]!.body.description);
});

test("dispatch starts a pipeline with the trigger token alone", async () => {
  const options = { ref: "release", inputs: { REASON: "red" } };
  const { outcome, requests } = await sender.deliver({ action: "dispatch", options, scripts: [created] });
  expect(outcome).toEqual({ status: "sent" });
  const body = { token: "S3CRET-trigger", ref: "release", variables: { REASON: "red" } };
  expect(shown(requests)).toEqual([{ method: "POST", path: `${project}/trigger/pipeline`, headers: COMMON, body }]);
  const without = sendTo("gitlab", (url) => ({ ...config(url), triggerToken: null }), "dispatch");
  expect((await without.deliver()).outcome.status).toBe("refused");
});

test("a pipeline is told its execution; where nobody may set variables it starts without, unless an execution waits for it", async () => {
  const id = "0197f000-0000-7000-8000-0000000000ee";
  const execution = { projectId: "0197f000-0000-7000-8000-0000000000aa", id, waits: false };
  const message = { base: ["Insufficient permissions to set pipeline variables"] };
  const forbidden = { status: 400, body: { message } };
  const send = async (options: object, ...scripts: Script[]) => {
    const sent = await sender.deliver({ action: "dispatch", options: { execution, ...options }, scripts });
    return [sent.outcome.status, sent.requests.map(({ body }) => body.variables)];
  };
  const told = { ASSAY_EXECUTION_ID: id };
  expect(await send({ inputs: { A: "b" } }, created)).toEqual(["sent", [{ A: "b", ...told }]]);
  expect(await send({}, forbidden, created)).toEqual(["sent", [told, {}]]);
  expect(await send({ inputs: { A: "b" } }, forbidden, created)).toEqual(["refused", [{ A: "b", ...told }]]);
  expect(await send({ execution: { ...execution, waits: true } }, forbidden, created)).toEqual(["refused", [told]]);
});

test("a token that JSON writes with escapes is hidden", async () => {
  const odd = sendTo("gitlab", (url) => ({ ...config(url), token: 'S3CRET"tok\\en' }), "create_issue");
  const echo: Script = ({ headers }) => ({ status: 400, body: { headers } });
  expect((await odd.deliver({ scripts: [echo] })).attempt.answer).not.toContain("S3CRET");
});

testFailures(sender, ["set_commit_status", "create_issue", "notify", "dispatch"], {
  reasons: [
    [400, { message: "404 Project Not Found" }, "Answered 400: 404 Project Not Found"],
    [400, { message: { base: ["Reference not found"] } }, 'Answered 400: {"base":["Reference not found"]}'],
    [400, { error: "ref is missing" }, "Answered 400: ref is missing"],
  ],
});
