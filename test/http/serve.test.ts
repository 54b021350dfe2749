/** The listening server, asked over bare sockets what no client library would send. */

import { connect as dial } from "node:net";
import { expect, test } from "bun:test";
import { ROUTES } from "../../src/server/app.ts";
import { MAX_SEGMENTS } from "../../src/http/target.ts";
import { createHarness, junit } from "../harness.ts";

const { acme, rival, database, url } = await createHarness();
const port = Number(new URL(url).port);

/** Sends bytes on a connection of their own; resolves with all that comes until the server closes it. */
function send(bytes: string): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  let text = "";
  const socket = dial(port, "127.0.0.1", () => void socket.write(bytes));
  socket.on("data", (chunk) => (text += chunk));
  socket.on("close", () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text }));
  socket.on("error", reject);
  return promise;
}

const get = (path: string, headers: readonly string[] = [], host = ["Host: h"]) =>
  send([`GET ${path} HTTP/1.1`, ...host, "Connection: close", ...headers, "", ""].join("\r\n"));
const bearer = (key: string) => `Authorization: Bearer ${key}`;

function post(path: string, body: string, headers: readonly string[]) {
  const own = ["Host: h", "Connection: close", `Content-Length: ${body.length}`];
  return send([`POST ${path} HTTP/1.1`, ...own, ...headers, "", body].join("\r\n"));
}

const countRuns = async () => (await database.pool`select from test_run where project_id = ${acme.project}`).length;

const runs = `/api/v1/projects/${acme.project}/test-runs`;
const project = `/api/v1/projects/${acme.project}`;

test("every endpoint lies within the segments that the server sees as sent", () => {
  const depths = ROUTES.map(({ path }) => `/api/v1${path}`.split("/").length - 1);
  expect(Math.max(...depths)).toBeLessThanOrEqual(MAX_SEGMENTS);
});

test("a path that only dot segments or backslashes lead to is a 404, with a key and without", async () => {
  expect((await get(runs, [bearer(acme.key)])).status).toBe(200);
  expect((await get("/healthz")).status).toBe(200);
  const ways = [
    `${project}/a/../test-runs`,
    `${project}/a/%2e%2e/test-runs`,
    `${project}/a/.%2E/test-runs`,
    `${project}/./test-runs`,
    `${project}/%2e/test-runs`,
    `${project}/a/b/../../test-runs`,
    `${project}\\test-runs`,
    `${project}/a\\..\\test-runs`,
    `${project}/a\\../test-runs`,
    `${project}//test-runs`,
    `/a/..${runs}`,
    `/..${runs}`,
    `//..${runs}`,
    `/x//../..${runs}`,
    `/x${"/y/..".repeat(40)}/..${runs}`,
    `http://h/a/..${runs}`,
    `${runs}#/x`,
    `${runs}/..#/../test-runs`,
  ];
  for (const path of ways) {
    const answer = await get(path, [bearer(acme.key)]);
    expect([path, answer.status]).toEqual([path, 404]);
    expect(answer.text).toContain(`{"error":{"code":"NOT_FOUND"`);
    expect([path, (await get(path)).status]).toEqual([path, 401]);
    // Whose project it is has been decided on what would be handled, but nothing is told of it.
    expect([path, (await get(path, [bearer(rival.key)])).status]).toEqual([path, 404]);
  }
  const detours = ["/x/..", "/.", "/%2e", "//..", "/.//.."].map((way) => `${way}/healthz`);
  for (const path of [...detours, "/x\\..\\healthz"]) expect([path, (await get(path)).status]).toEqual([path, 404]);
});

test("what is no dot segment stays what it is", async () => {
  for (const path of [`${runs}?task_slug=/../x`, `http://elsewhere${runs}`, `${runs}?q=a#b`])
    expect([path, (await get(path, [bearer(acme.key)])).text]).not.toEqual([
      path,
      expect.stringContaining("No such endpoint"),
    ]);
  for (const name of ["a%2Fb", "%5C", "%ff", "%zz", "..a", "{a}", "%C3%A9"]) {
    const { status, text } = await get(`${project}/test-cases/${name}`, [bearer(acme.key)]);
    expect([name, status, text]).toEqual([name, 400, expect.stringContaining("testCaseId")]);
  }
});

test("a request with two hosts is a 400, equal or not, whatever it asks for", async () => {
  for (const hosts of [
    ["Host: h", "Host: g"],
    ["Host: h", "Host: h"],
    ["Host: h", "host:"],
    ["Host:", "Host: h"],
    ["Host: h, g"],
  ])
    for (const [path, headers] of [
      ["/healthz", []],
      [runs, [bearer(acme.key)]],
    ] as const) {
      const { status, text } = await get(path, headers, hosts);
      expect([hosts, status]).toEqual([hosts, 400]);
      expect(text).toContain(`{"error":{"code":"VALIDATION_ERROR","message":"Cannot read the header \\"Host\\"`);
    }
});

test("a header that says two things is refused, and nothing is stored", async () => {
  const key = bearer(acme.key);
  const body = junit("p");
  const encoded = [`Content-Encoding: identity`, `Content-Encoding: identity`];
  for (const [status, headers] of [
    [401, [key, key]],
    [401, [key, bearer(rival.key)]],
    [400, [key, ...encoded]],
    [400, [key, "Idempotency-Key: a", "Idempotency-Key: a"]],
    [400, [key, "Idempotency-Key: a", "Idempotency-Key: b"]],
    [400, [key, "Content-Type: application/xml", "Content-Type: application/xml"]],
    [400, [key, "Content-Type: application/xml", "Content-Type: text/plain"]],
    [400, [key, "Content-Length: 5"]],
    [400, [key, `Content-Length: ${body.length}`]],
    [400, [key, "Transfer-Encoding: chunked"]],
    [400, [key, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]],
  ] as const)
    expect([headers, (await post(runs, body, headers)).status]).toEqual([headers, status]);
  expect(await countRuns()).toBe(0);
  const form = `--b\r\nContent-Disposition: form-data; name="f"; filename="a.xml"\r\n\r\n${body}\r\n--b--\r\n`;
  const type = "Content-Type: multipart/form-data; boundary=b";
  expect((await post(runs, form, [key, type, type])).status).toBe(400);
  expect(await countRuns()).toBe(0);
  expect((await post(runs, form, [key, type])).status).toBe(201);
});

/** How many of so many requests, sent at once, are answered until the server closes the connection. */
function countAnswers(path: string, count: number): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let text = "";
  const socket = dial(
    port,
    "127.0.0.1",
    () => void socket.write(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`.repeat(count)),
  );
  socket.on("data", (chunk) => (text += chunk));
  // It is reset, because not all that was sent has been read.
  socket.on("error", () => {});
  socket.on("close", () => resolve(text.split("HTTP/1.1 200").length - 1));
  return promise;
}

test("a connection that sends many requests at once gets few answers before it is closed", async () => {
  expect(await countAnswers("/healthz", 5_000)).toBeLessThan(100);
  // What does not fit into the socket is not held for each further request.
  expect(await countAnswers("/openapi.json", 100)).toBeLessThan(30);
});
