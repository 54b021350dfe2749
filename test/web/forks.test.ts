/** Pages show untrusted executions, and builds of merge queues, as what they are. */

import { expect, test } from "bun:test";
import { junit } from "../harness.ts";
import { createRoles } from "./browser.ts";

const { ask, acme, addProject, look } = await createRoles();

test("untrusted executions and builds of merge queues are marked in the list and on their pages", async () => {
  const { project, key } = await addProject(acme);
  const upload = async (letters: string, query: string): Promise<string> => {
    const path = `POST /projects/${project}/test-runs?task_slug=t&complete=true&${query}`;
    return (await ask(path, { key, body: junit(letters) })).body.executionId;
  };
  const words = async (path: string) => {
    const { status, html } = await look("owner", `/projects/${project}${path}`);
    expect([path, status]).toEqual([path, 200]);
    return html.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
  };
  await upload("pp", "branch=main");
  const fork = await upload("pf", "branch=alice:topic&pull_request=9&untrusted=true");
  const queued = await upload("fp", `branch=gh-readonly-queue/main/pr-12-${"c".repeat(40)}`);
  const list = await words("/executions?untrusted=true");
  expect(list).toContain("alice:topic");
  expect(list).not.toContain("merge queue of main");
  expect(await words("/executions?untrusted=false")).not.toContain("alice:topic");
  const page = await words(`/executions/${fork}`);
  expect(page).toContain("untrusted (fork)");
  expect(page).toContain("pull request 9");
  expect(page).toContain("1 new failure");
  const ofQueue = await words(`/executions/${queued}`);
  expect(ofQueue).toContain("merge queue of main");
  expect(ofQueue).toContain("pull request 12");
  expect(ofQueue).not.toContain("untrusted (fork)");
  // What needs attention: the pull request in the queue, and nothing that a fork reports.
  const [attention] = (await words("")).split("all executions");
  expect(attention).toContain("merge queue of main");
  expect(attention).not.toContain("alice:topic");
});
