/** GitHub: commit statuses, issues, comments on pull requests, workflow runs. */

import { describe, expect, test } from "bun:test";
import { createReceiver, type Script } from "../receiver.ts";
import { BAD, GOOD, HEADERS as COMMON, HOSTILE, hostile, MARKDOWN, sendTo, shown, testFailures } from "./sending.ts";

const config = (url: string) => ({ baseUrl: url, repository: "acme/web", token: "S3CRET-token", workflow: "ci.yml" });
const sender = sendTo("github", config, "set_commit_status");
const HEADERS = {
  ...COMMON,
  authorization: "Bearer S3CRET-token",
  accept: "application/vnd.github+json",
  "x-github-api-version": "2022-11-28",
};
const { "content-type": _, ...READING } = HEADERS;
const MARKER = `<!-- assay ${BAD.topic.replace(" ", "_")} -->`;

test("set_commit_status sets the state of the commit", async () => {
  const { outcome, requests } = await sender.deliver({
    scripts: [{ status: 201 }],
    options: { context: "assay/unit" },
  });
  expect(outcome).toEqual({ status: "sent" });
  expect(shown(requests)).toEqual([
    {
      method: "POST",
      path: "/repos/acme/web/statuses/0123456789abcdef",
      headers: HEADERS,
      body: { state: "failure", target_url: BAD.url, description: "1 failed, 9 passed", context: "assay/unit" },
    },
  ]);
  const green = await sender.deliver({ notice: GOOD, scripts: [{ status: 201 }] });
  expect(green.requests[0]!.body).toMatchObject({ state: "success", context: "assay" });
  const long = await sender.deliver({ notice: { ...BAD, text: "x".repeat(500) }, scripts: [{ status: 201 }] });
  expect(long.requests[0]!.body.description).toHaveLength(140);
  const none = await sender.deliver({ notice: { ...BAD, commit: null } });
  expect([none.outcome, none.requests]).toEqual([{ status: "refused", error: "The execution has no commit" }, []]);
});

describe("create_issue", () => {
  const action = "create_issue" as const;

  test("opens one and tells its address", async () => {
    const answer = { status: 201, body: { number: 7, html_url: "https://github.test/acme/web/issues/7" } };
    const { outcome, requests } = await sender.deliver({ action, scripts: [answer] });
    expect(outcome).toEqual({ status: "sent", link: "https://github.test/acme/web/issues/7" });
    expect(shown(requests)).toEqual([
      {
        method: "POST",
        path: "/repos/acme/web/issues",
        headers: HEADERS,
        body: { title: "Web: main failed", body: MARKDOWN, labels: ["assay"] },
      },
    ]);
    const labelled = await sender.deliver({ action, options: { labels: ["bug"] }, scripts: [answer] });
    expect(labelled.requests[0]!.body.labels).toEqual(["bug"]);
  });

  test("what a test is called mentions nobody, links nowhere and closes nothing", async () => {
    const { requests } = await sender.deliver({ action, notice: hostile(), scripts: [{ status: 201 }] });
    const { body } = requests[0]!.body as { body: string };
    const fence = /^(`{3,})$/m.exec(body)![1]!;
    expect(fence.length).toBeGreaterThan(3);
    const outside = body
      .split(fence)
      .filter((_, index) => index % 2 === 0)
      .join("")
      .replace(/`[^`\n]*`/g, "");
    expect(outside).not.toMatch(/@everyone|<script|javascript:|channel/);
    expect(body).not.toContain("\u001b");
    expect(HOSTILE).toContain("\u001b");
  });

  test("a repository without issues, and a validation error, are final", async () => {
    const off = await sender.deliver({ action, scripts: [{ status: 410, body: { message: "Issues are disabled" } }] });
    expect(off.outcome).toMatchObject({ status: "refused", error: expect.stringContaining("issues are off") });
    const invalid = await sender.deliver({
      action,
      scripts: [{ status: 422, body: { message: "Validation Failed" } }],
    });
    expect(invalid.outcome).toEqual({ status: "refused", error: "Answered 422: Validation Failed" });
  });
});

describe("notify", () => {
  const action = "notify" as const;

  test("comments on the pull request once, and changes that comment from then on", async () => {
    const comments: { id: number; body: string }[] = Array.from({ length: 60 }, (_, id) => ({ id, body: "+1" }));
    const play: Script = ({ method, path, body }) => {
      if (method === "GET") {
        const page = Number(new URL(`http://x${path}`).searchParams.get("page"));
        return { status: 200, body: comments.slice((page - 1) * 50, page * 50) };
      }
      if (method === "PATCH") return { status: 200, body: {} };
      comments.push({ id: 99, body: body.body });
      return { status: 201, body: {} };
    };
    const first = await sender.deliver({ action, scripts: [play] });
    expect(first.outcome).toEqual({ status: "sent" });
    const list = "/repos/acme/web/issues/12/comments";
    const reads = [1, 2].map((page) => ({
      method: "GET",
      path: `${list}?per_page=50&page=${page}`,
      headers: READING,
      body: null,
    }));
    const body = `${MARKER}\n### \`Web: main failed\`\n\n${MARKDOWN}`;
    expect(shown(first.requests)).toEqual([...reads, { method: "POST", path: list, headers: HEADERS, body: { body } }]);
    const second = await sender.deliver({ action, scripts: [play] });
    expect(second.outcome).toEqual({ status: "sent" });
    expect(shown(second.requests)).toEqual([
      ...reads,
      { method: "PATCH", path: "/repos/acme/web/issues/comments/99", headers: HEADERS, body: { body } },
    ]);
    const good = await sender.deliver({ action, notice: GOOD, scripts: [play] });
    expect(good.requests.at(-1)!.body.body).toStartWith(`${MARKER}\n### \`Web: main is green again\`\n\n\`10 passed\``);
  });

  test("a comment that quotes the marker, or belongs to another branch, is not changed", async () => {
    const others = [{ id: 1, body: `> ${MARKER}` }, { id: 2, body: MARKER.replace("main", "main2") }, { id: 3 }];
    const { requests } = await sender.deliver({ action, scripts: [{ status: 200, body: others }, { status: 201 }] });
    expect(requests.map(({ method }) => method)).toEqual(["GET", "POST"]);
  });

  test("what fails after the comments were read is judged by itself", async () => {
    const known = [{ id: 99, body: MARKER }];
    for (const list of [[], known]) {
      const read = { status: 200, body: list };
      const limited = { status: 429, headers: { "retry-after": "60" } };
      expect((await sender.deliver({ action, scripts: [read, limited] })).outcome).toEqual({
        status: "retry",
        error: "Answered 429",
        afterMs: 60_000,
      });
      const hung = await sender.deliver({ action, scripts: [read, "hang"] });
      expect([hung.outcome.status, hung.attempt.statusCode, hung.attempt.answer]).toEqual(["retry", null, null]);
      const locked = { status: 403, body: { message: "Unable to create comment because issue is locked." } };
      expect((await sender.deliver({ action, scripts: [read, locked] })).outcome).toEqual({
        status: "refused",
        error: "Answered 403: Unable to create comment because issue is locked.",
      });
    }
  });

  test("a list of comments with nonsense in it ends in an outcome", async () => {
    for (const body of [[null], [{ id: 1, body: 5 }]]) {
      const { outcome } = await sender.deliver({ action, scripts: [{ status: 200, body }, { status: 201 }] });
      expect(["sent", "retry", "refused"]).toContain(outcome.status);
    }
  });

  test("without a pull request there is nothing to comment on", async () => {
    for (const pullRequest of [null, "../../x"]) {
      const { outcome, requests } = await sender.deliver({ action, notice: { ...BAD, pullRequest } });
      expect([outcome.status, requests]).toEqual(["refused", []]);
    }
  });
});

test("dispatch starts a workflow", async () => {
  const action = "dispatch" as const;
  const options = { ref: "release", inputs: { reason: "red" } };
  const { outcome, requests } = await sender.deliver({ action, options, scripts: [{ status: 204 }] });
  expect(outcome).toEqual({ status: "sent" });
  expect(shown(requests)).toEqual([
    {
      method: "POST",
      path: "/repos/acme/web/actions/workflows/ci.yml/dispatches",
      headers: HEADERS,
      body: { ref: "release", inputs: { reason: "red" } },
    },
  ]);
  const plain = await sender.deliver({ action, options: { workflow: "other.yml" }, scripts: [{ status: 204 }] });
  expect([plain.requests[0]!.path, plain.requests[0]!.body]).toEqual([
    "/repos/acme/web/actions/workflows/other.yml/dispatches",
    { ref: "main", inputs: {} },
  ]);
  const missing = await sendTo("github", (url) => ({ ...config(url), workflow: null }), "dispatch").deliver();
  expect([missing.outcome.status, missing.requests]).toEqual(["refused", []]);
});

describe("a workflow that is told its execution", () => {
  const id = "0197f000-0000-7000-8000-0000000000ee";
  const execution = { projectId: "0197f000-0000-7000-8000-0000000000aa", id, waits: false };
  const inputsOf = (requests: readonly { body: any }[]) => requests.map(({ body }) => body.inputs);
  const unknown = {
    status: 422,
    body: { message: 'Unexpected inputs provided: ["assay_execution_id"]', status: "422" },
  };
  const send = (options: object, ...scripts: Script[]) =>
    sender.deliver({ action: "dispatch", options: { inputs: { a: "b" }, execution, ...options }, scripts });

  test("gets its id as an input beside the others", async () => {
    const { outcome, requests } = await send({}, { status: 204 });
    expect([outcome.status, inputsOf(requests)]).toEqual(["sent", [{ a: "b", assay_execution_id: id }]]);
  });

  test("which it does not declare, starts without, unless an execution waits for it", async () => {
    const { outcome, requests } = await send({}, unknown, { status: 204 });
    expect([outcome.status, inputsOf(requests)]).toEqual(["sent", [{ a: "b", assay_execution_id: id }, { a: "b" }]]);
    const waited = await send({ execution: { ...execution, waits: true } }, unknown, { status: 204 });
    expect(waited.outcome).toEqual({
      status: "refused",
      error: 'Answered 422: Unexpected inputs provided: ["assay_execution_id"]',
    });
    expect(waited.requests).toHaveLength(1);
  });

  test("another input that it does not declare is as final as ever", async () => {
    const other = { status: 422, body: { message: 'Unexpected inputs provided: ["a"]' } };
    const { outcome, requests } = await send({}, other, { status: 204 });
    expect([outcome.status, requests.length]).toEqual(["refused", 1]);
  });

  test("has no room for it beside 25 others, unless an execution waits for it", async () => {
    const inputs = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`i${index}`, "x"]));
    const { requests } = await send({ inputs }, { status: 204 });
    expect(inputsOf(requests)).toEqual([inputs]);
  });
});

test("a secondary limit, which is a 403 with Retry-After, is retried; another 403 is final", async () => {
  const limited = { status: 403, headers: { "retry-after": "60" }, body: { message: "secondary rate limit" } };
  expect((await sender.deliver({ scripts: [limited] })).outcome).toMatchObject({ status: "retry", afterMs: 60_000 });
  const forbidden = { status: 403, body: { message: "Resource not accessible" } };
  expect((await sender.deliver({ scripts: [forbidden] })).outcome.status).toBe("refused");
});

test.each(["set_commit_status", "create_issue", "dispatch"] as const)("%s: a 422 is final", async (action) => {
  const body = { message: "Validation Failed", documentation_url: "https://docs.github.com/rest" };
  const { outcome } = await sender.deliver({ action, scripts: [{ status: 422, body }] });
  expect(outcome).toEqual({ status: "refused", error: "Answered 422: Validation Failed" });
});

test("a 422 says which field was wrong", async () => {
  const body = { message: "Validation Failed", errors: [{ resource: "Issue", field: "labels", code: "invalid" }] };
  const { outcome } = await sender.deliver({ action: "create_issue", scripts: [{ status: 422, body }] });
  expect(outcome).toMatchObject({ status: "refused", error: expect.stringContaining("labels") });
});

test("the primary limit, which is a 403 with the time of its reset, is retried", async () => {
  const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(Date.UTC(2026, 0, 31, 12, 10) / 1000) };
  const limited = { status: 403, headers, body: { message: "API rate limit exceeded" } };
  expect((await sender.deliver({ scripts: [limited] })).outcome).toMatchObject({ status: "retry", afterMs: 600_000 });
});

test("a commit that is no commit leaves the repository's statuses alone", async () => {
  const { requests } = await sender.deliver({ notice: { ...BAD, commit: ".." }, scripts: [{ status: 201 }] });
  expect(requests.map(({ path }) => path)).toEqual([]);
});

test("a reason that is cut within a secret shows no part of it", async () => {
  const script: Script = ({ headers }) => ({
    status: 400,
    body: { message: "x".repeat(490) + headers["authorization"]!.slice("Bearer ".length) },
  });
  expect((await sender.deliver({ scripts: [script] })).attempt.error).not.toContain("S3CRET");
});

test("a redirect of the second request is not followed either, and sends no token", async () => {
  const elsewhere = createReceiver();
  const { outcome } = await sender.deliver({
    action: "notify",
    scripts: [
      { status: 200, body: [] },
      { status: 307, headers: { location: elsewhere.url } },
    ],
  });
  expect([outcome.status, elsewhere.requests]).toEqual(["refused", []]);
});

testFailures(sender, ["set_commit_status", "create_issue", "notify", "dispatch"]);
