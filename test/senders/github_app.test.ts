/** A GitHub App: its tokens, and check runs with annotations. */

import { beforeEach, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, jwtVerify } from "jose";
import { createReceiver, type Script } from "../receiver.ts";
import {
  BAD,
  BUG_LINE,
  BUG_URL,
  COMMENT,
  DELIVERY_ID,
  HEADERS as COMMON,
  KNOWN,
  MARKDOWN,
  NOW,
  sendTo,
  shown,
} from "./sending.ts";

const HEADERS = { ...COMMON, accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" };
const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
// Tokens are kept by server and key. Each test has a key of its own, because its server may get the port of an earlier one.
let pem = privateKey.export({ type: "pkcs1", format: "pem" }) as string;
beforeEach(() => void (pem += "\n"));
const config = (url: string) => ({ baseUrl: url, repository: "acme/web", appId: "4711", privateKey: pem });
const app = sendTo("github", config, "set_commit_status");
const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const notice = { ...BAD, commit: COMMIT };
const INSTALLED = { status: 200, body: { id: 31 } };
const TOKEN = { status: 201, body: { token: "ghs_S3CRET", expires_at: "2026-01-31T13:00:00Z" } };
const RUN = { status: 201, body: { id: 8, html_url: "https://github.test/acme/web/runs/8" } };
const annotationOf = (line: number) => ({ path: "src/a.test.ts", line, title: `fails ${line}`, message: "no" });

test("signs in to the installation of the repository, and makes a check run", async () => {
  const scripts = [INSTALLED, TOKEN, RUN];
  const options = { context: "assay/unit" };
  const { outcome, requests } = await app.deliver({ notice, options, annotations: [annotationOf(3)], scripts });
  expect(outcome).toEqual({ status: "sent", link: "https://github.test/acme/web/runs/8" });
  const [find, ask, make] = requests;
  expect([find!.method, find!.path, ask!.method, ask!.path, ask!.body]).toEqual([
    ...["GET", "/repos/acme/web/installation", "POST", "/app/installations/31/access_tokens"],
    { repositories: ["web"] },
  ]);
  const jwt = find!.headers["authorization"]!.slice("Bearer ".length);
  expect(ask!.headers["authorization"]).toBe(`Bearer ${jwt}`);
  expect(decodeProtectedHeader(jwt)).toEqual({ alg: "RS256" });
  const spki = createPublicKey(publicKey.export({ type: "spki", format: "pem" }));
  const { payload } = await jwtVerify(jwt, spki, { currentDate: NOW });
  const seconds = NOW.getTime() / 1_000;
  expect(payload).toEqual({ iss: "4711", iat: seconds - 60, exp: seconds + 540 });
  const annotation = { path: "src/a.test.ts", start_line: 3, end_line: 3, annotation_level: "failure" };
  const output = { title: "1 failed, 9 passed", summary: MARKDOWN };
  expect(shown([make!])).toEqual([
    {
      ...{ method: "POST", path: "/repos/acme/web/check-runs" },
      headers: { ...HEADERS, authorization: "Bearer ghs_S3CRET" },
      body: {
        ...{ name: "assay/unit", head_sha: COMMIT, external_id: DELIVERY_ID, details_url: BAD.url },
        ...{ status: "completed", conclusion: "failure" },
        output: { ...output, annotations: [{ ...annotation, title: "fails 3", message: "no" }] },
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
  const changes = sent.requests.slice(3).map(({ method, path }) => `${method} ${path}`);
  expect(changes).toEqual(Array(2).fill("PATCH /repos/acme/web/check-runs/8"));
  const cut = await app.deliver({ notice, annotations, scripts: [INSTALLED, TOKEN, RUN, { status: 502 }] });
  expect(cut.outcome).toEqual({ status: "retry", error: "Answered 502" });
  const runs = [
    { id: 7, external_id: "another" },
    { id: 8, external_id: DELIVERY_ID, output: { annotations_count: 100 } },
  ];
  const scripts = [INSTALLED, TOKEN, { status: 200, body: { check_runs: runs } }, ended];
  const again = await app.deliver({ notice, annotations, isRetry: true, scripts });
  expect(again.outcome.status).toBe("sent");
  const query = "check_name=assay&filter=all&per_page=100";
  expect(again.requests[2]!.path).toBe(`/repos/acme/web/commits/${COMMIT}/check-runs?${query}`);
  expect(lines(again.requests).map((batch) => [batch[0], batch.length])).toEqual([[101, 20]]);
});

test("keeps its token until it is about to expire, or is not taken any more", async () => {
  const receiver = createReceiver(INSTALLED, TOKEN, RUN);
  const deliver = async (...scripts: Script[]) => {
    receiver.play(...scripts);
    return (await app.deliverTo(receiver.url, { notice })).outcome;
  };
  for (const scripts of [[INSTALLED, TOKEN, RUN], [RUN]]) expect((await deliver(...scripts)).status).toBe("sent");
  expect(receiver.requests).toHaveLength(4);
  const refused = await deliver({ status: 401, body: { message: "Bad credentials" } });
  expect(refused).toEqual({ status: "retry", error: "Answered 401: Bad credentials" });
  await deliver(INSTALLED, { status: 201, body: { token: "ghs_other", expires_at: "2026-01-31T12:04:00Z" } }, RUN);
  await deliver(INSTALLED, TOKEN, RUN);
  const anew = ["installation", "access_tokens", "check-runs"];
  expect(receiver.requests.slice(5).map(({ path }) => path.split("/").at(-1))).toEqual([...anew, ...anew]);
});

test("recognises its own comment", async () => {
  const own = { id: 99, body: COMMENT.body, performed_via_github_app: { id: 4711 } };
  const others = [
    { ...own, id: 1, performed_via_github_app: { id: 1 } },
    { ...own, id: 2, performed_via_github_app: null },
  ];
  const comment = { ...COMMENT, since: "2026-01-31T11:59:00.000Z" };
  const scripts = [INSTALLED, TOKEN, { status: 200, body: [...others, own] }, { status: 200, body: {} }];
  const { outcome, requests } = await app.deliver({ action: "notify", comment, scripts });
  expect(outcome).toEqual({ status: "sent", commentId: "99" });
  expect(requests.at(-1)!.path).toBe("/repos/acme/web/issues/comments/99");
});

test("says where it is not installed, and refuses what is no commit", async () => {
  const missing = "The GitHub App 4711 is not installed in acme/web";
  const short = "A check run needs the whole hash of the commit";
  const limited = { status: 403, headers: { "retry-after": "60" }, body: {} };
  for (const [sent, outcome] of [
    [
      { notice, scripts: [{ status: 404 }] },
      { status: "refused", error: missing },
    ],
    [{ scripts: [INSTALLED, TOKEN, RUN] }, { status: "refused", error: short }],
    [
      { notice, scripts: [INSTALLED, limited] },
      { status: "retry", error: "Answered 403", afterMs: 60_000 },
    ],
  ] as const)
    expect((await app.deliver({ ...sent, scripts: [...sent.scripts] })).outcome).toEqual(outcome as never);
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
