import { describe, expect, test } from "bun:test";
import { junit } from "../harness.ts";
import { createVisits } from "./browser.ts";

const { ask, acme, addProject, visit, viewer } = await createVisits();

const get = async (path: string) => {
  const { html, ...page } = await visit(viewer, path);
  return { ...page, text: html };
};
type Project = { project: string; key: string };
const upload = async ({ project, key }: Project, query: Record<string, string>, body: string) =>
  (await ask(`POST /projects/${project}/test-runs?${new URLSearchParams(query)}`, { key, body })).body;
const pathOf = ({ project }: Project, execution: string, slug = "unit") =>
  `/projects/${project}/executions/${execution}/tasks/${encodeURIComponent(slug)}`;
const names = (words: string) => [...words.matchAll(/unit › case (\d+)/g)].map((match) => Number(match[1]));

describe("a task", () => {
  test("its cases, failed first, and what was uploaded", async () => {
    const mine = await addProject(acme);
    const { executionId } = await upload(mine, { task_slug: "unit" }, junit("psfp"));
    const page = await get(pathOf(mine, executionId));
    expect(page.words).toContain("unit: 1 failed, 2 passed, 1 skipped in 40 ms");
    expect(names(page.words)).toEqual([2, 0, 1, 3]);
    expect(page.words).toContain("case 2 failed");
    expect(page.words).toContain("Uploads 1 report");
    expect((await get(pathOf(mine, executionId, "other"))).status).toBe(404);
    expect((await get(pathOf(mine, crypto.randomUUID()))).status).toBe(404);
  });

  test("says where it ran, and of each failure on which machine; nothing where that is unknown", async () => {
    const mine = await addProject(acme);
    const machine = { host: "ci-3", system: "linux x64", image: "<b>ubuntu</b>-24.04" };
    const one = await upload(mine, { task_slug: "unit", ...machine }, junit("pf"));
    const page = await get(pathOf(mine, one.executionId));
    const named = "ci-3 (linux x64, &lt;b&gt;ubuntu&lt;/b&gt;-24.04)";
    expect(page.text.replace(/<wbr ?\/?>/g, "")).toContain(`ran on ${named}`);
    expect(page.words.match(/on ci-3/g)).toHaveLength(2);
    const shard = (index: number, more: Record<string, string>) =>
      upload(
        mine,
        { task_slug: "unit", execution_key: "s", shard: `${index}/3`, ...more },
        junit("pf", `part ${index}`),
      );
    await shard(1, { host: "ci-1" });
    await shard(2, { host: "ci-2" });
    const { executionId } = await shard(3, {});
    const { words } = await get(pathOf(mine, executionId));
    expect(words).toContain("ran on 2 machines");
    expect(words).toMatch(/part 1 › case 1 case 1 failed on ci-1 .*part 2 › case 1 case 1 failed on ci-2 /);
    expect(words).toMatch(/Ran on .* 1 1 junit ci-1 .* 1 2 junit ci-2 .* 1 3 junit – /);
    const silent = junit("p")
      .replace("/>", ' status="failed"/>')
      .replace("></testcase>", ' status="failed"></testcase>');
    const bare = await upload(mine, { task_slug: "unit", host: "ci-5" }, silent);
    expect(bare.failed).toBe(1);
    expect((await get(pathOf(mine, bare.executionId))).words).toContain("unit › case 0 on ci-5");
    const unknown = await upload(mine, { task_slug: "unit" }, junit("pf"));
    expect((await get(pathOf(mine, unknown.executionId))).words.toLowerCase()).not.toContain("ran on");
  });

  test("filters by status and text, and pages within them", async () => {
    const mine = await addProject(acme);
    await upload(mine, { task_slug: "unit", execution_key: "1" }, junit(`f${"p".repeat(9)}`));
    const { executionId } = await upload(
      mine,
      { task_slug: "unit", execution_key: "1" },
      junit(`p${"f".repeat(70)}${"p".repeat(200)}ss`),
    );
    const path = pathOf(mine, executionId);
    expect(names((await get(`${path}?status=skipped`)).words)).toEqual([271, 272]);
    expect(names((await get(`${path}?status=flaky`)).words)).toEqual([0]);
    expect(names((await get(`${path}?q=CASE+26&status=`)).words)).toEqual([
      26, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269,
    ]);
    expect((await get(`${path}?q=nothing`)).words).toContain("No results match the filters");
    expect((await get(`${path}?status=odd`)).status).toBe(400);
    const seen: number[] = [];
    let next: string | undefined = `${path}?q=case`;
    let pages = 0;
    while (next && pages < 10) {
      const page: { text: string; words: string } = await get(next);
      seen.push(...names(page.words));
      next = /rel="next" href="([^"]*)"/.exec(page.text)?.[1]?.replaceAll("&amp;", "&");
      pages++;
    }
    const all = Array.from({ length: 273 }, (_, index) => index);
    expect(seen).toEqual([...all.slice(1, 71), 0, ...all.slice(71)]);
  });

  test("one result is shown whole", async () => {
    const mine = await addProject(acme);
    const stack = Array.from(
      { length: 150 },
      (_, index) => `    at f${"abcdefghij"[index % 10]} (src/a${index}.ts:1:1)`,
    ).join("&#10;");
    const body = `<testsuite><testcase classname="s" name="long"><failure message="${"m".repeat(9_000)} end">${stack}</failure><system-out>${"o".repeat(9_000)} end of output</system-out></testcase><testcase classname="s" name="other"/></testsuite>`;
    const { executionId } = await upload(mine, { task_slug: "unit", execution_key: "1" }, body);
    const list = await get(pathOf(mine, executionId));
    expect(list.words).not.toContain("m end");
    const link = /href="([^"]*case=[^"]*)"/.exec(list.text)![1]!;
    const page = await get(link);
    expect(page.words).toContain("m end");
    expect(page.words).toContain("src/a149.ts:1:1");
    expect(page.words).toContain("end of output");
    expect(page.words).not.toContain("s › other");
    expect((await get(`${pathOf(mine, executionId)}?case=${crypto.randomUUID()}`)).status).toBe(404);
  });

  test("says what is missing, why, and what was warned of", async () => {
    const mine = await addProject(acme);
    const { body } = await ask(`POST /projects/${mine.project}/executions`, {
      key: mine.key,
      body: { tasks: ["unit", "e2e"] },
    });
    await upload(mine, { task_slug: "unit", execution_id: body.id, shard: "1/3" }, junit("pp"));
    const waiting = await get(pathOf(mine, body.id));
    expect(waiting.words).toContain("Waiting for shards 2 and 3 of 3");
    expect(waiting.text).toContain(`data-live="/projects/${mine.project}/executions/${body.id}/live"`);
    expect((await get(pathOf(mine, body.id, "e2e"))).words).toContain("No reports yet");
    await ask(`POST /projects/${mine.project}/executions/${body.id}/complete`, mine);
    const ended = await get(pathOf(mine, body.id));
    expect(ended.words).toContain("unit: shards 2 and 3 of 3 missing; 2 passed");
    expect(ended.text).not.toContain("data-live");
    expect((await get(pathOf(mine, body.id, "e2e"))).words).toContain("The execution was completed without this task");
  });

  test.each(["a/b", "100%", "a%2Fb", "what?", "#1", "ü 🦊", "a+b&c=d", "..a", "%00"])(
    "may be called %p",
    async (slug) => {
      const mine = await addProject(acme);
      const { executionId } = await upload(mine, { task_slug: slug }, junit("f"));
      const page = await get(`/projects/${mine.project}/executions/${executionId}`);
      const hrefs = [...page.text.matchAll(/href="([^"]*\/tasks\/[^"]*)"/g)].map((match) =>
        match[1]!.replaceAll("&amp;", "&"),
      );
      expect(hrefs.length).toBeGreaterThan(1);
      for (const href of hrefs) expect((await get(href)).text).toContain(`<title>${Bun.escapeHTML(slug)}: 1 failed`);
      expect((await get(`${pathOf(mine, executionId, slug)}/log`)).status).toBe(200);
    },
  );

  test("of nothing but dots has no page, and no link that leads elsewhere", async () => {
    const mine = await addProject(acme);
    const { executionId } = await upload(mine, { task_slug: ".." }, junit("f"));
    const { text } = await get(`/projects/${mine.project}/executions/${executionId}`);
    expect(text).not.toContain("/tasks/");
  });
});
