/** GitHub: commit statuses, issues, comments on pull requests, workflow runs. */

import { describe, expect, test } from "bun:test";
import type { Script } from "../receiver.ts";
import { BAD, GOOD, HOSTILE, hostile, sendTo, testFailures } from "./sending.ts";

const config = (url: string) => ({ baseUrl: url, repository: "acme/web", token: "S3CRET-token", workflow: "ci.yml" });
const sender = sendTo("github", config, "set_commit_status");
const HEADERS = {
  authorization: "Bearer S3CRET-token",
  accept: "application/vnd.github+json",
  "x-github-api-version": "2022-11-28",
  "user-agent": "Assay",
};
const MARKER = `<!-- assay ${BAD.topic.replace(" ", "_")} -->`;

test("set_commit_status sets the state of the commit", async () => {
  const { outcome, requests } = await sender.deliver({
    scripts: [{ status: 201 }],
    options: { context: "assay/unit" },
  });
  expect(outcome).toEqual({ status: "sent" });
  expect(requests).toEqual([
    {
      method: "POST",
      path: "/repos/acme/web/statuses/0123456789abcdef",
      headers: expect.objectContaining(HEADERS),
      body: { state: "failure", target_url: BAD.url, description: "1 failed, 9 passed", context: "assay/unit" },
      text: expect.any(String),
    },
  ]);
  const green = await sender.deliver({ notice: GOOD, scripts: [{ status: 201 }] });
  expect(green.requests[0]!.body).toMatchObject({ state: "success", context: "assay" });
  const long = await sender.deliver({ notice: { ...BAD, text: "x".repeat(500) }, scripts: [{ status: 201 }] });
  expect(long.requests[0]!.body.description).toHaveLength(140);
  const none = await sender.deliver({ notice: { ...BAD, commit: null } });
  expect([none.outcome, none.requests]).toEqual([{ status: "refused", error: "There is no commit" }, []]);
});

describe("create_issue", () => {
  const action = "create_issue" as const;

  test("opens one and tells its address", async () => {
    const answer = { status: 201, body: { number: 7, html_url: "https://github.test/acme/web/issues/7" } };
    const { outcome, requests } = await sender.deliver({ action, scripts: [answer] });
    expect(outcome).toEqual({ status: "sent", link: "https://github.test/acme/web/issues/7" });
    const body = [
      "`1 failed, 9 passed`",
      "- Branch: `main`\n- Commit: `0123456789ab`",
      "```\nunit > adds: expected 1, got 2\n```",
      `[Assay](<${BAD.url}>) · [Build](<${BAD.buildUrl}>)`,
    ].join("\n\n");
    expect(requests).toEqual([
      {
        method: "POST",
        path: "/repos/acme/web/issues",
        headers: expect.objectContaining(HEADERS),
        body: { title: "Web: main failed", body, labels: ["assay"] },
        text: expect.any(String),
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
    expect(first.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /repos/acme/web/issues/12/comments?per_page=50&page=1",
      "GET /repos/acme/web/issues/12/comments?per_page=50&page=2",
      "POST /repos/acme/web/issues/12/comments",
    ]);
    expect(first.requests[2]!.body.body).toStartWith(`${MARKER}\n### \`Web: main failed\`\n\n\`1 failed, 9 passed\``);
    const second = await sender.deliver({ action, notice: GOOD, scripts: [play] });
    expect(second.requests.map(({ method, path }) => `${method} ${path}`).at(-1)).toBe(
      "PATCH /repos/acme/web/issues/comments/99",
    );
    expect(second.requests.at(-1)!.headers).toMatchObject(HEADERS);
    expect(second.requests.at(-1)!.body.body).toContain("10 passed");
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
  expect(requests.map(({ method, path, body }) => ({ method, path, body }))).toEqual([
    {
      method: "POST",
      path: "/repos/acme/web/actions/workflows/ci.yml/dispatches",
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

test("a secondary limit, which is a 403 with Retry-After, is retried; another 403 is final", async () => {
  const limited = { status: 403, headers: { "retry-after": "60" }, body: { message: "secondary rate limit" } };
  expect((await sender.deliver({ scripts: [limited] })).outcome).toMatchObject({ status: "retry", afterMs: 60_000 });
  const forbidden = { status: 403, body: { message: "Resource not accessible" } };
  expect((await sender.deliver({ scripts: [forbidden] })).outcome.status).toBe("refused");
});

testFailures(sender);
