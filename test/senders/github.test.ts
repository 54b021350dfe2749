/** GitHub: commit statuses, issues, comments on pull requests, workflow runs. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, jwtVerify } from "jose";
import { createReceiver, type Script } from "../receiver.ts";
import {
  BAD,
  BUG_LINE,
  BUG_URL,
  COMMENT,
  DELIVERY_ID,
  expectQuoted,
  GOOD,
  HEADERS as COMMON,
  hostile,
  KNOWN,
  MARKDOWN,
  sendTo,
  NOW,
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
  const BODY = { body: COMMENT.body };
  const since = "2026-01-31T11:59:00.000Z";
  const reads = [
    { method: "GET", path: `${list}?since=${since}&per_page=100`, headers: READING, body: null },
    { method: "GET", path: "/user", headers: READING, body: null },
  ];

  test("creates the comment and tells its id", async () => {
    const { outcome, requests } = await sender.deliver({ action, scripts: [{ status: 201, body: { id: 99 } }] });
    expect(outcome).toEqual({ status: "sent", commentId: "99" });
    expect(shown(requests)).toEqual([{ method: "POST", path: list, headers: HEADERS, body: BODY }]);
  });

  test("changes the comment whose id is known, without reading others", async () => {
    const comment = { ...COMMENT, id: "99", since };
    const { outcome, requests } = await sender.deliver({
      action,
      comment,
      scripts: [{ status: 200, body: { id: 99 } }],
    });
    expect(outcome).toEqual({ status: "sent", commentId: "99" });
    expect(shown(requests)).toEqual([
      { method: "PATCH", path: "/repos/acme/web/issues/comments/99", headers: HEADERS, body: BODY },
    ]);
  });

  test("one that somebody has deleted is written again", async () => {
    const scripts = [{ status: 404 }, { status: 201, body: { id: 100 } }];
    const { outcome, requests } = await sender.deliver({ action, comment: { ...COMMENT, id: "99", since }, scripts });
    expect(outcome).toEqual({ status: "sent", commentId: "100" });
    expect(requests.map(({ method }) => method)).toEqual(["PATCH", "POST"]);
  });

  describe("where an earlier try may have created it", () => {
    const deliver = (...scripts: Script[]) =>
      sender.deliver({ action, comment: { ...COMMENT, since }, scripts: [...scripts] });
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
      expect(shown(requests)).toEqual([
        ...reads,
        { method: "PATCH", path: "/repos/acme/web/issues/comments/99", headers: HEADERS, body: BODY },
      ]);
    });

    test("a marker that somebody else wrote is not trusted", async () => {
      const found = { status: 200, body: [own] };
      for (const me of [
        { status: 200, body: { id: 8 } },
        { status: 403, body: {} },
      ]) {
        const { outcome, requests } = await deliver(found, me, { status: 201, body: { id: 5 } });
        expect(outcome).toEqual({ status: "sent", commentId: "5" });
        expect(shown(requests)).toEqual([...reads, { method: "POST", path: list, headers: HEADERS, body: BODY }]);
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
    for (const id of [null, "99"])
      expect(
        (await sender.deliver({ action, comment: { ...COMMENT, id, since: null }, scripts: [locked] })).outcome,
      ).toEqual({
        status: "refused",
        error: "Answered 403: Unable to create comment because issue is locked.",
      });
  });

  test("without a pull request there is nothing to comment on", async () => {
    for (const pullRequest of [null, "../../x"]) {
      const { outcome, requests } = await sender.deliver({ action, notice: { ...BAD, pullRequest } });
      expect([outcome.status, requests]).toEqual(["refused", []]);
    }
  });
});

describe("the comment on the pull request that brought a commit", () => {
  const action = "notify" as const;
  const commit = "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234";
  const comment = { ...COMMENT, mergedCommit: commit };
  const deliver = (...scripts: Script[]) =>
    sender.deliver({ action, comment, notice: { ...BAD, pullRequest: null }, scripts });
  const base = { repo: { full_name: "Acme/Web" } };
  const pull = { number: 128, merged_at: "2026-01-30T10:00:00Z", base };
  const find = {
    method: "GET",
    path: `/repos/acme/web/commits/${commit}/pulls?per_page=100`,
    headers: READING,
    body: null,
  };
  const list = {
    method: "GET",
    path: "/repos/acme/web/issues/128/comments?since=2026-01-30T10:00:00.000Z&per_page=100",
    headers: READING,
    body: null,
  };
  const nothing = {
    status: "inapplicable",
    error: "Nothing to send: no merged pull request contains the commit c4d5e6f0127a",
  };

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
      {
        method: "POST",
        path: "/repos/acme/web/issues/128/comments",
        headers: HEADERS,
        body: { body: COMMENT.body },
      },
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
    expect(outcome).toEqual(nothing as never);
    expect(attempt.error).toBe(nothing.error);
    expect(shown(requests)).toEqual([find]);
  });

  test("waits for a code host that is away, and needs access", async () => {
    expect((await deliver({ status: 503 })).outcome).toEqual({ status: "retry", error: "Answered 503" });
    const hidden = { status: 404, body: { message: "Not Found" } };
    expect((await deliver(hidden)).outcome).toEqual({ status: "refused", error: "Answered 404: Not Found" });
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

test.each([
  ["the secondary limit", { "retry-after": "60" }, 60_000],
  [
    "the primary limit",
    { "x-ratelimit-remaining": "0", "x-ratelimit-reset": `${NOW.getTime() / 1_000 + 600}` },
    600_000,
  ],
])("%s, which is a 403 with the time of its end, is retried", async (_, headers, afterMs) => {
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
  const { outcome } = await sender.deliver({
    action: "notify",
    comment: { ...COMMENT, id: "99" },
    scripts: [{ status: 404 }, { status: 307, headers: { location: elsewhere.url } }],
  });
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

describe("a GitHub App", () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  // Tokens are kept by server and key. Each test has a key of its own, because its server may get the port of an earlier one.
  let pem = privateKey.export({ type: "pkcs1", format: "pem" }) as string;
  beforeEach(() => void (pem += "\n"));
  const app = sendTo(
    "github",
    (url) => ({ baseUrl: url, repository: "acme/web", appId: "4711", privateKey: pem }),
    "set_commit_status",
  );
  const COMMIT = "0123456789abcdef0123456789abcdef01234567";
  const notice = { ...BAD, commit: COMMIT };
  const INSTALLED = { status: 200, body: { id: 31 } };
  const TOKEN = { status: 201, body: { token: "ghs_S3CRET", expires_at: "2026-01-31T13:00:00Z" } };
  const RUN = { status: 201, body: { id: 8, html_url: "https://github.test/acme/web/runs/8" } };
  const annotationOf = (line: number) => ({ path: "src/a.test.ts", line, title: `fails ${line}`, message: "no" });

  test("signs in to the installation of the repository, and makes a check run", async () => {
    const { outcome, requests } = await app.deliver({
      notice,
      options: { context: "assay/unit" },
      annotations: [annotationOf(3)],
      scripts: [INSTALLED, TOKEN, RUN],
    });
    expect(outcome).toEqual({ status: "sent", link: "https://github.test/acme/web/runs/8" });
    const [find, ask, make] = requests;
    expect([find!.method, find!.path, ask!.method, ask!.path, ask!.body]).toEqual([
      ...["GET", "/repos/acme/web/installation", "POST", "/app/installations/31/access_tokens"],
      { repositories: ["web"] },
    ]);
    const jwt = find!.headers["authorization"]!.slice("Bearer ".length);
    expect(ask!.headers["authorization"]).toBe(`Bearer ${jwt}`);
    expect(decodeProtectedHeader(jwt)).toEqual({ alg: "RS256" });
    const { payload } = await jwtVerify(jwt, createPublicKey(publicKey.export({ type: "spki", format: "pem" })), {
      currentDate: NOW,
    });
    const seconds = NOW.getTime() / 1_000;
    expect(payload).toEqual({ iss: "4711", iat: seconds - 60, exp: seconds + 540 });
    expect(shown([make!])).toEqual([
      {
        method: "POST",
        path: "/repos/acme/web/check-runs",
        headers: { ...HEADERS, authorization: "Bearer ghs_S3CRET" },
        body: {
          name: "assay/unit",
          head_sha: COMMIT,
          external_id: DELIVERY_ID,
          details_url: BAD.url,
          status: "completed",
          conclusion: "failure",
          output: {
            title: "1 failed, 9 passed",
            summary: MARKDOWN,
            annotations: [
              {
                ...{ path: "src/a.test.ts", start_line: 3, end_line: 3, annotation_level: "failure" },
                ...{ title: "fails 3", message: "no" },
              },
            ],
          },
        },
      },
    ]);
  });

  test("links the known bugs in the summary", async () => {
    const known = { ...KNOWN, commit: COMMIT };
    const { requests } = await app.deliver({ notice: known, scripts: [INSTALLED, TOKEN, RUN] });
    expect(requests.at(-1)!.body.output.summary.split("\n\n")).toEqual([
      "`1 failed, 9 passed`",
      "- Branch: `main`\n- Commit: `0123456789ab`",
      "```\nunit > adds (known bug #12): expected 1, got 2\n```",
      `- [\`${BUG_LINE}\`](<${BUG_URL}>)`,
      `[Assay](<${BAD.url}>) · [Build](<${BAD.buildUrl}>)`,
    ]);
  });

  test("sends 50 annotations at a time, and after a failure only those that are missing", async () => {
    const annotations = Array.from({ length: 120 }, (_, index) => annotationOf(index + 1));
    const lines = (requests: readonly { body: any }[]) =>
      requests.flatMap(({ body }) => (body?.output ? [body.output.annotations.map((one: any) => one.start_line)] : []));
    const ended = { status: 200, body: {} };
    const sent = await app.deliver({ notice, annotations, scripts: [INSTALLED, TOKEN, RUN, ended] });
    expect(sent.outcome.status).toBe("sent");
    expect(lines(sent.requests).map((batch) => [batch[0], batch.length])).toEqual([
      [1, 50],
      [51, 50],
      [101, 20],
    ]);
    expect(sent.requests.slice(3).map(({ method, path }) => `${method} ${path}`)).toEqual([
      "PATCH /repos/acme/web/check-runs/8",
      "PATCH /repos/acme/web/check-runs/8",
    ]);
    const cut = await app.deliver({ notice, annotations, scripts: [INSTALLED, TOKEN, RUN, { status: 502 }] });
    expect(cut.outcome).toEqual({ status: "retry", error: "Answered 502" });
    const runs = [
      { id: 7, external_id: "another" },
      { id: 8, external_id: DELIVERY_ID, output: { annotations_count: 100 } },
    ];
    const scripts = [INSTALLED, TOKEN, { status: 200, body: { check_runs: runs } }, ended];
    const again = await app.deliver({ notice, annotations, isRetry: true, scripts });
    expect(again.outcome.status).toBe("sent");
    expect(again.requests[2]!.path).toBe(
      `/repos/acme/web/commits/${COMMIT}/check-runs?check_name=assay&filter=all&per_page=100`,
    );
    expect(lines(again.requests).map((batch) => [batch[0], batch.length])).toEqual([[101, 20]]);
  });

  test("keeps its token until it is about to expire, or is not taken any more", async () => {
    const receiver = createReceiver(INSTALLED, TOKEN, RUN);
    expect((await app.deliverTo(receiver.url, { notice })).outcome.status).toBe("sent");
    receiver.play(RUN);
    expect((await app.deliverTo(receiver.url, { notice })).outcome.status).toBe("sent");
    expect(receiver.requests).toHaveLength(4);
    receiver.play({ status: 401, body: { message: "Bad credentials" } });
    expect((await app.deliverTo(receiver.url, { notice })).outcome).toEqual({
      status: "retry",
      error: "Answered 401: Bad credentials",
    });
    receiver.play(INSTALLED, { status: 201, body: { token: "ghs_other", expires_at: "2026-01-31T12:04:00Z" } }, RUN);
    await app.deliverTo(receiver.url, { notice });
    receiver.play(INSTALLED, TOKEN, RUN);
    await app.deliverTo(receiver.url, { notice });
    expect(receiver.requests.slice(5).map(({ path }) => path.split("/").at(-1))).toEqual([
      ...["installation", "access_tokens", "check-runs"],
      ...["installation", "access_tokens", "check-runs"],
    ]);
  });

  test("recognises its own comment", async () => {
    const own = { id: 99, body: COMMENT.body, performed_via_github_app: { id: 4711 } };
    const others = [
      { ...own, id: 1, performed_via_github_app: { id: 1 } },
      { ...own, id: 2, performed_via_github_app: null },
    ];
    const { outcome, requests } = await app.deliver({
      action: "notify",
      comment: { ...COMMENT, since: "2026-01-31T11:59:00.000Z" },
      scripts: [INSTALLED, TOKEN, { status: 200, body: [...others, own] }, { status: 200, body: {} }],
    });
    expect([outcome, requests.at(-1)!.path]).toEqual([
      { status: "sent", commentId: "99" },
      "/repos/acme/web/issues/comments/99",
    ]);
  });

  test("says where it is not installed, and refuses what is no commit", async () => {
    expect((await app.deliver({ notice, scripts: [{ status: 404 }] })).outcome).toEqual({
      status: "refused",
      error: "The GitHub App 4711 is not installed in acme/web",
    });
    expect((await app.deliver({ scripts: [INSTALLED, TOKEN, RUN] })).outcome).toEqual({
      status: "refused",
      error: "A check run needs the whole hash of the commit",
    });
    const limited = { status: 403, headers: { "retry-after": "60" }, body: {} };
    expect((await app.deliver({ notice, scripts: [INSTALLED, limited] })).outcome).toEqual({
      status: "retry",
      error: "Answered 403",
      afterMs: 60_000,
    });
  });

  test("no answer shows its key or its tokens", async () => {
    const echo: Script = ({ headers, text }) => ({
      status: 400,
      body: { message: JSON.stringify({ headers, text, pem }) },
    });
    const { attempt, requests } = await app.deliver({ notice, scripts: [INSTALLED, TOKEN, echo] });
    const kept = JSON.stringify(attempt);
    for (const secret of ["S3CRET", pem.split("\n")[1]!, requests[0]!.headers["authorization"]!.slice(7)])
      expect(kept).not.toContain(secret);
  });
});
