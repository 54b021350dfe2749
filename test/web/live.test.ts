/** Pages that are told that they have news. */

import { expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness, until } from "../harness.ts";
import type { Visitor } from "../../src/request/visitors.ts";

let visitor: Visitor | undefined;
const { url, ask, acme, rival, eventStreams } = await createHarness({
  visitors: { find: async () => visitor, csrf: () => ({ token: "" }), isOwnForm: () => true },
});
const of = (teamId: string): Visitor => ({
  accountId: crypto.randomUUID(),
  email: "ada@acme.example",
  name: "Ada",
  isQuiet: false,
  plannedDeletions: [],
  sessionId: crypto.randomUUID(),
  teams: [{ teamId, teamName: "Acme", role: "viewer" }],
});

/** What has come of a stream so far. */
async function open(path: string) {
  const response = await fetch(`${url}${path}`, { redirect: "manual" });
  const heard = { status: response.status, text: "", isOver: false, type: response.headers.get("content-type") };
  const decoder = new TextDecoder();
  void (async () => {
    for await (const chunk of response.body!) heard.text += decoder.decode(chunk as Uint8Array);
    heard.isOver = true;
  })().catch(() => (heard.isOver = true));
  return heard;
}

const newsIn = ({ text }: { text: string }) => text.split("event: news").length - 1;

test("an upload is news of its project and its execution, and not of another", async () => {
  visitor = of(acme.team);
  const { upload } = createAsking(ask, acme);
  const { executionId } = await upload("p", "execution_key=1");
  const other = await upload("pp", "execution_key=2");
  const [project, execution, elsewhere] = await Promise.all([
    open(`/projects/${acme.project}/live`),
    open(`/projects/${acme.project}/executions/${executionId}/live`),
    open(`/projects/${acme.project}/executions/${other.executionId}/live`),
  ]);
  expect([project.status, project.type]).toEqual([200, "text/event-stream"]);
  await until(() => [project, execution, elsewhere].every(({ text }) => text.startsWith("retry: ")));
  await until(async () => {
    await upload("f", `execution_key=1&task_slug=t${Math.random()}`);
    return newsIn(project) > 0 && newsIn(execution) > 0;
  });
  expect(newsIn(elsewhere)).toBe(0);
});

test("is for members of the team alone, and ends with the session", async () => {
  visitor = of(rival.team);
  expect((await open(`/projects/${acme.project}/live`)).status).toBe(404);
  visitor = undefined;
  expect((await open(`/projects/${acme.project}/live`)).status).toBe(303);
  visitor = of(acme.team);
  const stream = await open(`/projects/${acme.project}/live`);
  visitor = undefined;
  await until(() => stream.isOver);
});

test("one session has eight streams, and leaves the project's to others", async () => {
  const viewer = of(acme.team);
  visitor = viewer;
  const path = `/projects/${acme.project}/live`;
  const abort = new AbortController();
  const open = async () => {
    const response = await fetch(`${url}${path}`, { signal: abort.signal });
    if (response.status === 200) await response.body!.getReader().read();
    return response.status;
  };
  const statuses = [];
  for (let count = 0; count < 50; count++) statuses.push(await open());
  expect([statuses.slice(0, 8), new Set(statuses.slice(8))]).toEqual([Array(8).fill(200), new Set([204])]);
  visitor = of(acme.team);
  expect(await open()).toBe(200);
  abort.abort();
  visitor = viewer;
  await until(async () => {
    const again = await fetch(`${url}${path}`);
    await again.body?.cancel();
    return again.status === 200;
  });
});

test("ends when the server stops", async () => {
  visitor = of(acme.team);
  const stream = await open(`/projects/${acme.project}/live`);
  await until(() => stream.text !== "");
  eventStreams.close();
  await until(() => stream.isOver);
});
