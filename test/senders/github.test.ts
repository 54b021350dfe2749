/** GitHub: commit statuses, issues, comments on pull requests, workflow runs. */

import { describe, expect, test } from "bun:test";
import { createReceiver, type Script } from "../receiver.ts";
import {
  BAD,
  COMMENT,
  expectQuoted,
  GOOD,
  HEADERS as COMMON,
  hostile,
  MARKDOWN,
  NOW,
  sendTo,
  shown,
  testFailures,
} from "./sending.ts";

const config = (url: string) => ({ baseUrl: url, repository: "acme/web", token: "S3CRET-token", workflow: "ci.yml" });
const sender = sendTo("github", config, "set_commit_status");
const HEADERS = {
  ...COMMON,
  authorization: "Bearer S3CRET-token",
  accept: "application/vnd.github+json",
  "x-github-api-version": "2022-11-28",
};
const { "content-type": _, ...READING } = HEADERS;

test("set_commit_status sets the state of the commit", async () => {
  const answer = { scripts: [{ status: 201 }] };
  const { outcome, requests } = await sender.deliver({ ...answer, options: { context: "assay/unit" } });
  expect(outcome).toEqual({ status: "sent" });
  const body = { state: "failure", target_url: BAD.url, description: "1 failed, 9 passed", context: "assay/unit" };
  expect(shown(requests)).toEqual([
    { method: "POST", path: "/repos/acme/web/statuses/0123456789abcdef", headers: HEADERS, body },
  ]);
  const green = await sender.deliver({ notice: GOOD, ...answer });
  expect(green.requests[0]!.body).toMatchObject({ state: "success", context: "assay" });
  const long = await sender.deliver({ notice: { ...BAD, text: "x".repeat(500) }, ...answer });
  expect(long.requests[0]!.body.description).toHaveLength(140);
  const none = await sender.deliver({ notice: { ...BAD, commit: null } });
  expect([none.outcome, none.requests]).toEqual([{ status: "refused", error: "The execution has no commit" }, []]);
});

describe("create_issue", () => {
  const action = "create_issue" as const;

  test("opens one and tells its address", async () => {
    const link = "https://github.test/acme/web/issues/7";
    const answer = { status: 201, body: { number: 7, html_url: link } };
    const { outcome, requests } = await sender.deliver({ action, scripts: [answer] });
    expect(outcome).toEqual({ status: "sent", link });
    const body = { title: "Web: main failed", body: MARKDOWN, labels: ["assay"] };
    expect(shown(requests)).toEqual([{ method: "POST", path: "/repos/acme/web/issues", headers: HEADERS, body }]);
    const labelled = await sender.deliver({ action, options: { labels: ["bug"] }, scripts: [answer] });
    expect(labelled.requests[0]!.body.labels).toEqual(["bug"]);
  });

  test("what a test is called mentions nobody, links nowhere and closes nothing", async () => {
    const { requests } = await sender.deliver({ action, notice: hostile(), scripts: [{ status: 201 }] });
    expectQuoted(requests[0]!.body.body);
  });

  test("a repository without issues is final", async () => {
    const off = await sender.deliver({ action, scripts: [{ status: 410, body: { message: "Issues are disabled" } }] });
    expect(off.outcome).toMatchObject({ status: "refused", error: expect.stringContaining("issues are off") });
  });
});

describe("notify", () => {
  const action = "notify" as const;

  const list = "/repos/acme/web/issues/12/comments";
  const since = "2026-01-31T11:59:00.000Z";
  const creation = { method: "POST", path: list, headers: HEADERS, body: { body: COMMENT.body } };
  const change = { ...creation, method: "PATCH", path: "/repos/acme/web/issues/comments/99" };
  const reads = [
    { method: "GET", path: `${list}?since=${since}&per_page=100`, headers: READING, body: null },
    { method: "GET", path: "/user", headers: READING, body: null },
  ];

  test("creates the comment and tells its id", async () => {
    const { outcome, requests } = await sender.deliver({ action, scripts: [{ status: 201, body: { id: 99 } }] });
    expect(outcome).toEqual({ status: "sent", commentId: "99" });
    expect(shown(requests)).toEqual([creation]);
  });

  test("changes the comment whose id is known, without reading others", async () => {
    const comment = { ...COMMENT, id: "99", since };
    const scripts = [{ status: 200, body: { id: 99 } }];
    const { outcome, requests } = await sender.deliver({ action, comment, scripts });
    expect(outcome).toEqual({ status: "sent", commentId: "99" });
    expect(shown(requests)).toEqual([change]);
  });

  test("one that somebody has deleted is written again", async () => {
    const scripts = [{ status: 404 }, { status: 201, body: { id: 100 } }];
    const { outcome, requests } = await sender.deliver({ action, comment: { ...COMMENT, id: "99", since }, scripts });
    expect(outcome).toEqual({ status: "sent", commentId: "100" });
    expect(requests.map(({ method }) => method)).toEqual(["PATCH", "POST"]);
  });

  describe("where an earlier try may have created it", () => {
    const deliver = (...scripts: Script[]) => sender.deliver({ action, comment: { ...COMMENT, since }, scripts });
    const own = { id: 99, body: `${COMMENT.marker}\n\nyellow`, user: { id: 7 } };

    test("finds it by its marker and its author", async () => {
      const others = [
        { id: 1, body: `> ${COMMENT.marker}`, user: { id: 7 } },
        { id: 2, body: COMMENT.body, user: { id: 8 } },
        { id: 3 },
        null,
      ];
      const { outcome, requests } = await deliver(
        { status: 200, body: [...others, own] },
        { status: 200, body: { id: 7, login: "assay" } },
        { status: 200, body: {} },
      );
      expect(outcome).toEqual({ status: "sent", commentId: "99" });
      expect(shown(requests)).toEqual([...reads, change]);
    });

    test("a marker that somebody else wrote is not trusted", async () => {
      const found = { status: 200, body: [own] };
      for (const me of [
        { status: 200, body: { id: 8 } },
        { status: 403, body: {} },
      ]) {
        const { outcome, requests } = await deliver(found, me, { status: 201, body: { id: 5 } });
        expect(outcome).toEqual({ status: "sent", commentId: "5" });
        expect(shown(requests)).toEqual([...reads, creation]);
      }
    });

    test("without any it creates one, and does not ask who it is", async () => {
      const { outcome, requests } = await deliver({ status: 200, body: [] }, { status: 201, body: { id: 5 } });
      expect(outcome).toEqual({ status: "sent", commentId: "5" });
      expect(requests.map(({ method }) => method)).toEqual(["GET", "POST"]);
    });

    test("what cannot be read is tried again", async () => {
      expect((await deliver({ status: 502 })).outcome).toEqual({ status: "retry", error: "Answered 502" });
      expect((await deliver({ status: 200, body: "?" })).outcome.status).toBe("retry");
    });
  });

  test("a locked conversation is final", async () => {
    const locked = { status: 403, body: { message: "Unable to create comment because issue is locked." } };
    for (const id of [null, "99"]) {
      const { outcome } = await sender.deliver({ action, comment: { ...COMMENT, id, since: null }, scripts: [locked] });
      expect(outcome).toEqual({ status: "refused", error: `Answered 403: ${locked.body.message}` });
    }
  });

  test("without a pull request there is nothing to comment on", async () => {
    for (const pullRequest of [null, "../../x"]) {
      const { outcome, requests } = await sender.deliver({ action, notice: { ...BAD, pullRequest } });
      expect([outcome.status, requests]).toEqual(["refused", []]);
    }
  });
});

describe("the comment on the pull request that brought a commit", () => {
  const commit = "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234";
  const comment = { ...COMMENT, mergedCommit: commit };
  const deliver = (...scripts: Script[]) =>
    sender.deliver({ action: "notify", comment, notice: { ...BAD, pullRequest: null }, scripts });
  const base = { repo: { full_name: "Acme/Web" } };
  const pull = { number: 128, merged_at: "2026-01-30T10:00:00Z", base };
  const reads = (path: string) => ({ method: "GET", path: `/repos/acme/web${path}`, headers: READING, body: null });
  const find = reads(`/commits/${commit}/pulls?per_page=100`);
  const list = reads("/issues/128/comments?since=2026-01-30T10:00:00.000Z&per_page=100");
  const error = "Nothing to send: no merged pull request contains the commit c4d5e6f0127a";

  test("is written to the first one that was merged into this repository", async () => {
    const others = [
      { number: 1, merged_at: null, base },
      { number: 2, merged_at: "2026-01-29T10:00:00Z", base: { repo: { full_name: "upstream/web" } } },
      { number: 130, merged_at: "2026-01-31T10:00:00Z", base },
    ];
    const { outcome, requests } = await deliver(
      { status: 200, body: [...others, pull] },
      { status: 200, body: [] },
      { status: 201, body: { id: 99 } },
    );
    expect(outcome).toEqual({ status: "sent", commentId: "99" });
    expect(shown(requests)).toEqual([
      find,
      list,
      { method: "POST", path: "/repos/acme/web/issues/128/comments", headers: HEADERS, body: { body: COMMENT.body } },
    ]);
  });

  test("is changed, and not repeated, if it is there already", async () => {
    const { outcome, requests } = await deliver(
      { status: 200, body: [pull] },
      { status: 200, body: [{ id: 99, body: COMMENT.body, user: { id: 7 } }] },
      { status: 200, body: { id: 7 } },
      { status: 200, body: { id: 99 } },
    );
    expect(outcome).toEqual({ status: "sent", commentId: "99" });
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      ...[`GET ${find.path}`, `GET ${list.path}`, "GET /user"],
      "PATCH /repos/acme/web/issues/comments/99",
    ]);
  });

  test.each([
    ["there is none", { status: 200, body: [] }],
    ["it is not merged", { status: 200, body: [{ ...pull, merged_at: null }] }],
    ["the commit is unknown", { status: 422, body: { message: `No commit found for SHA: ${commit}` } }],
  ])("is not written if %s, which is no failure", async (_, script) => {
    const { outcome, attempt, requests } = await deliver(script);
    expect(outcome).toEqual({ status: "inapplicable", error } as never);
    expect(attempt.error).toBe(error);
    expect(shown(requests)).toEqual([find]);
  });

  test("waits for a code host that is away, and needs access", async () => {
    expect((await deliver({ status: 503 })).outcome).toEqual({ status: "retry", error: "Answered 503" });
    const hidden = { status: 404, body: { message: "Not Found" } };
    expect((await deliver(hidden)).outcome).toEqual({ status: "refused", error: "Answered 404: Not Found" });
  });
});

test("dispatch starts a workflow", async () => {
  const deliver = (options: object) => sender.deliver({ action: "dispatch", options, scripts: [{ status: 204 }] });
  const path = (workflow: string) => `/repos/acme/web/actions/workflows/${workflow}/dispatches`;
  const body = { ref: "release", inputs: { reason: "red" } };
  const { outcome, requests } = await deliver(body);
  expect(outcome).toEqual({ status: "sent" });
  expect(shown(requests)).toEqual([{ method: "POST", path: path("ci.yml"), headers: HEADERS, body }]);
  const plain = await deliver({ workflow: "other.yml" });
  expect(plain.requests).toMatchObject([{ path: path("other.yml") }]);
  expect(plain.requests[0]!.body).toEqual({ ref: "main", inputs: {} });
  const missing = await sendTo("github", (url) => ({ ...config(url), workflow: null }), "dispatch").deliver();
  expect([missing.outcome.status, missing.requests]).toEqual(["refused", []]);
});

describe("a workflow that is told its execution", () => {
  const id = "0197f000-0000-7000-8000-0000000000ee";
  const execution = { projectId: "0197f000-0000-7000-8000-0000000000aa", id, waits: false };
  const inputsOf = (requests: readonly { body: any }[]) => requests.map(({ body }) => body.inputs);
  const message = 'Unexpected inputs provided: ["assay_execution_id"]';
  const unknown = { status: 422, body: { message, status: "422" } };
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
    expect(waited.outcome).toEqual({ status: "refused", error: `Answered 422: ${message}` });
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

const reset = `${NOW.getTime() / 1_000 + 600}`;
test.each([
  ["the secondary limit", { "retry-after": "60" }, 60_000],
  ["the primary limit", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset }, 600_000],
] as const)("%s, which is a 403 with the time of its end, is retried", async (_, headers, afterMs) => {
  const { outcome } = await sender.deliver({ scripts: [{ status: 403, headers, body: { message: "rate limit" } }] });
  expect(outcome).toMatchObject({ status: "retry", afterMs });
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
  const scripts = [{ status: 404 }, { status: 307, headers: { location: elsewhere.url } }];
  const { outcome } = await sender.deliver({ action: "notify", comment: { ...COMMENT, id: "99" }, scripts });
  expect([outcome.status, elsewhere.requests]).toEqual(["refused", []]);
});

const errors = [{ resource: "Issue", field: "labels", code: "invalid" }];
testFailures(sender, ["set_commit_status", "create_issue", "notify", "dispatch"], {
  reasons: [
    [403, { message: "Resource not accessible" }, "Answered 403: Resource not accessible"],
    [422, { message: "Validation Failed", documentation_url: "https://x" }, "Answered 422: Validation Failed"],
    [422, { message: "Validation Failed", errors }, `Answered 422: Validation Failed: ${JSON.stringify(errors)}`],
  ],
});
