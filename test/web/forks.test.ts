/** Pages show untrusted executions, and builds of merge queues, as what they are. */

import { expect, test } from "bun:test";
import { createPages } from "./browser.ts";

const { createProject, look } = await createPages();

test("untrusted executions and builds of merge queues are marked in the list and on their pages", async () => {
  const mine = await createProject();
  const upload = async (letters: string, query: string) =>
    (await mine.upload(letters, `complete=true&${query}`)).executionId;
  const words = async (path: string) => {
    const { status, words } = await look("owner", `${mine.path}${path}`);
    expect([path, status]).toEqual([path, 200]);
    return words;
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
