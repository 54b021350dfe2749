/** What people do to an execution: rerun, cancel, complete and delete it. */

import { describe, expect, test } from "bun:test";
import { junit } from "../harness.ts";
import { createPages, headline } from "./browser.ts";
import { create, createVisit, main, pathOf, upload } from "./executions.ts";

const pages = await createPages();
const { createProject, database } = pages;

const visit = createVisit(pages);

describe("the forms of an execution", () => {
  test("a rerun is offered where a runner was there within the last hour, and goes on to the new execution", async () => {
    const mine = await createProject();
    const id = await create(mine, { mode: "run", key: "7", tasks: [{ slug: "unit", labels: ["linux"] }, "e2e"] });
    const { leases } = await mine.post("/leases", { runner: "build-1", labels: ["linux"], free: 2 });
    for (const lease of leases)
      await mine.call("POST", `/test-runs?lease_id=${lease.id}`, junit(lease.taskSlug === "unit" ? "pf" : "p"));
    const page = await visit(pathOf(mine, id), "member");
    expect(page.words).toContain("Rerun 1 failed Rerun all");
    expect(page.words).not.toContain("Run it again");
    expect(page.words).not.toContain("Delete execution");
    await database.pool`update runner set seen_at = now() - interval '61 minutes' where project_id = ${mine.project}`;
    const alone = await visit(pathOf(mine, id), "member");
    expect(alone.words).toContain("No matching runner has been seen in the last hour. Start one");
    expect(alone.words).not.toContain("Rerun");
    const failed = await visit(`${pathOf(mine, id)}/rerun`, "member", { failedOnly: "true" });
    expect(failed.status).toBe(303);
    const again = await visit(failed.location!);
    expect(headline(again)).toBe("Queued, 0 of 1 task");
    expect(again.words).toContain("repeats #7");
    const all = await visit(`${pathOf(mine, id)}/rerun`, "member", {});
    expect(headline(await visit(all.location!))).toBe("Queued, 0 of 2 tasks");
    const refused = await visit(`${failed.location!}/rerun`, "member", {});
    expect(refused.status).toBe(400);
    expect(refused.words).toContain("Cannot rerun the execution: it has not ended");
  });

  test("where nobody would answer a rerun, the page shows the command that adds a report", async () => {
    const mine = await createProject();
    const id = await upload(mine, { ...main("7"), build_url: "https://ci.example/7" }, junit("pf"));
    const { words, html } = await visit(pathOf(mine, id), "member");
    expect(words).not.toContain("Rerun");
    expect(words).toContain("Run again Restart its job in your CI, or run the tests again");
    expect(html).toContain('href="https://ci.example/7"');
    const [, query] = /test-runs\?(execution_id=[^"]*unit)"/.exec(words)!;
    await upload(mine, Object.fromEntries(new URLSearchParams(query)), junit("pp"));
    expect(headline(await visit(pathOf(mine, id)))).toBe("2 passed in 40 ms, 1 flaky");
    expect((await visit(pathOf(mine, id), "viewer")).words).not.toContain("Run it again");
  });

  test("what its reruns have made of an execution stands on its page and in lists", async () => {
    const mine = await createProject();
    const id = await upload(mine, main("7"), junit("pf"));
    const { location } = await visit(`${pathOf(mine, id)}/rerun`, "member", { failedOnly: "true" });
    const waiting = await visit(pathOf(mine, id));
    expect(waiting.words).toMatch(/rerun by \S.*\(queued\)/);
    expect(waiting.words).not.toContain("when rerun");
    await upload(mine, { execution_id: location!.split("/").at(-1)! }, junit("pp"));
    const { words, html } = await visit(pathOf(mine, id));
    expect(words).toMatch(/passed when rerun:.*\(passed\)/);
    expect(html).toContain(`href="${location}"`);
    const list = (await visit(`${mine.path}/executions`)).words;
    expect(list).toContain("1 new failure, passed when rerun");
    expect(list).toMatch(/ rerun +2 passed/);
  });

  test("a rerun that waits for an upload says how to send one", async () => {
    const mine = await createProject();
    const id = await upload(mine, main("1"), junit("pf"));
    const { id: rerun } = await mine.post(`/executions/${id}/rerun`, { failedOnly: true });
    const { words } = await visit(pathOf(mine, rerun));
    expect(words).toContain("Waiting for results Run the tests again and upload the report to this execution");
    expect(words).toContain(`execution_id=${rerun}&task_slug=unit`);
    await upload(mine, { execution_id: rerun }, junit("pp"));
    expect((await visit(pathOf(mine, rerun))).words).not.toContain("Waiting for results");
  });

  test("the list has a dot for each task, failed ones first", async () => {
    const mine = await createProject();
    for (const [task_slug, letters] of Object.entries({ lint: "p", unit: "pf", e2e: "pp" }))
      await upload(mine, { execution_key: "1", branch: "main", task_slug }, junit(letters));
    const { html } = await visit(`${mine.path}/executions`);
    expect(html).toContain('aria-label="Tasks: 1 failed, 2 passed"');
    expect([...html.matchAll(/<i class="(\w+)">/g)].map(([, status]) => status)).toEqual([
      "failed",
      "passed",
      "passed",
    ]);
  });

  test("cancel and complete, and what cannot be", async () => {
    const mine = await createProject();
    const cancelled = await create(mine, { tasks: ["unit"] });
    expect((await visit(pathOf(mine, cancelled), "member")).words).toMatch(/End early Complete .* Cancel /);
    expect((await visit(`${pathOf(mine, cancelled)}/cancel`, "member", {})).location).toBe(pathOf(mine, cancelled));
    expect(headline(await visit(pathOf(mine, cancelled)))).toBe("Cancelled, 0 of 1 task had reported");
    const refused = await visit(`${pathOf(mine, cancelled)}/complete`, "member", {});
    expect([refused.status, refused.words.includes("it was cancelled")]).toEqual([400, true]);
    const completed = await create(mine, { tasks: ["unit"] });
    await visit(`${pathOf(mine, completed)}/complete`, "member", {});
    expect(headline(await visit(pathOf(mine, completed)))).toBe("Timed out: unit: did not report");
  });

  test("owners delete", async () => {
    const mine = await createProject();
    const id = await upload(mine, main("1"), junit("ppf"));
    expect((await visit(pathOf(mine, id))).words).toContain("Its 3 results, messages and logs are deleted");
    const deleted = await visit(`${pathOf(mine, id)}/delete`, "owner", {});
    expect(deleted.location).toBe(`${mine.path}/executions`);
    expect((await visit(pathOf(mine, id))).status).toBe(404);
    expect((await visit(`${pathOf(mine, id)}/delete`, "owner", {})).status).toBe(404);
  });
});
