import { describe, expect, test } from "bun:test";
import { junit } from "../harness.ts";
import { createPages } from "./browser.ts";

const { createProject, look, walk } = await createPages();

type Project = Awaited<ReturnType<typeof createProject>>;
const get = (path: string) => look("viewer", path);
const pathOf = ({ path }: Project, execution: string, slug = "unit") =>
  `${path}/executions/${execution}/tasks/${encodeURIComponent(slug)}`;
const names = (words: string) => [...words.matchAll(/unit › case (\d+)/g)].map((match) => Number(match[1]));

describe("a task", () => {
  test("its cases, failed first, and what was uploaded", async () => {
    const mine = await createProject();
    const { executionId } = await mine.upload("psfp");
    const page = await get(pathOf(mine, executionId));
    expect(page.words).toContain("unit: 1 failed, 2 passed, 1 skipped in 40 ms");
    expect(names(page.words)).toEqual([2, 0, 1, 3]);
    expect(page.words).toContain("case 2 failed");
    expect(page.words).toContain("Uploads 1 report");
    expect((await get(pathOf(mine, executionId, "other"))).status).toBe(404);
    expect((await get(pathOf(mine, crypto.randomUUID()))).status).toBe(404);
  });

  test("says where it ran, and of each failure on which machine; nothing where that is unknown", async () => {
    const mine = await createProject();
    const machine = { host: "ci-3", system: "linux x64", image: "<b>ubuntu</b>-24.04" };
    const one = await mine.upload("pf", machine);
    const page = await get(pathOf(mine, one.executionId));
    const named = "ci-3 (linux x64, &lt;b&gt;ubuntu&lt;/b&gt;-24.04)";
    expect(page.html.replace(/<wbr ?\/?>/g, "")).toContain(`ran on ${named}`);
    expect(page.words.match(/on ci-3/g)).toHaveLength(2);
    const shard = (index: number, more: Record<string, string>) =>
      mine.upload("pf", { execution_key: "s", shard: `${index}/3`, ...more }, `part ${index}`);
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
    const bare = await mine.uploadReport(silent, { host: "ci-5" });
    expect(bare.failed).toBe(1);
    expect((await get(pathOf(mine, bare.executionId))).words).toContain("unit › case 0 on ci-5");
    const unknown = await mine.upload("pf");
    expect((await get(pathOf(mine, unknown.executionId))).words.toLowerCase()).not.toContain("ran on");
  });

  test("filters by status and text, and pages within them", async () => {
    const mine = await createProject();
    await mine.upload(`f${"p".repeat(9)}`, { execution_key: "1" });
    const { executionId } = await mine.upload(`p${"f".repeat(70)}${"p".repeat(200)}ss`, { execution_key: "1" });
    const path = pathOf(mine, executionId);
    expect(names((await get(`${path}?status=skipped`)).words)).toEqual([271, 272]);
    expect(names((await get(`${path}?status=flaky`)).words)).toEqual([0]);
    expect(names((await get(`${path}?q=CASE+26&status=`)).words)).toEqual([
      26, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269,
    ]);
    expect((await get(`${path}?q=nothing`)).words).toContain("No results match the filters");
    expect((await get(`${path}?status=odd`)).status).toBe(400);
    const pages = await walk("viewer", `${path}?q=case`, ({ words }) => names(words));
    const all = Array.from({ length: 273 }, (_, index) => index);
    expect(pages.flat()).toEqual([...all.slice(1, 71), 0, ...all.slice(71)]);
  });

  test("one result is shown whole", async () => {
    const mine = await createProject();
    const stack = Array.from(
      { length: 150 },
      (_, index) => `    at f${"abcdefghij"[index % 10]} (src/a${index}.ts:1:1)`,
    ).join("&#10;");
    const body = `<testsuite><testcase classname="s" name="long"><failure message="${"m".repeat(9_000)} end">${stack}</failure><system-out>${"o".repeat(9_000)} end of output</system-out></testcase><testcase classname="s" name="other"/></testsuite>`;
    const { executionId } = await mine.uploadReport(body);
    const list = await get(pathOf(mine, executionId));
    expect(list.words).not.toContain("m end");
    const link = /href="([^"]*case=[^"]*)"/.exec(list.html)![1]!;
    const page = await get(link);
    expect(page.words).toContain("m end");
    expect(page.words).toContain("src/a149.ts:1:1");
    expect(page.words).toContain("end of output");
    expect(page.words).not.toContain("s › other");
    expect((await get(`${pathOf(mine, executionId)}?case=${crypto.randomUUID()}`)).status).toBe(404);
  });

  test("says what is missing, why, and what was warned of", async () => {
    const mine = await createProject();
    const { id } = await mine.post("/executions", { tasks: ["unit", "e2e"] });
    await mine.upload("pp", { execution_id: id, shard: "1/3" });
    const waiting = await get(pathOf(mine, id));
    expect(waiting.words).toContain("Waiting for shards 2 and 3 of 3");
    expect(waiting.html).toContain(`data-live="${mine.path}/executions/${id}/live"`);
    expect((await get(pathOf(mine, id, "e2e"))).words).toContain("No reports yet");
    await mine.post(`/executions/${id}/complete`);
    const ended = await get(pathOf(mine, id));
    expect(ended.words).toContain("unit: shards 2 and 3 of 3 missing; 2 passed");
    expect(ended.html).not.toContain("data-live");
    expect((await get(pathOf(mine, id, "e2e"))).words).toContain("The execution was completed without this task");
  });

  test.each(["a/b", "100%", "a%2Fb", "what?", "#1", "ü 🦊", "a+b&c=d", "..a", "%00", '"><img src=x>'])(
    "may be called %p",
    async (slug) => {
      const mine = await createProject();
      const { executionId } = await mine.upload("f", { task_slug: slug });
      const page = await get(`${mine.path}/executions/${executionId}`);
      const hrefs = [...page.html.matchAll(/href="([^"]*\/tasks\/[^"]*)"/g)].map((match) =>
        match[1]!.replaceAll("&amp;", "&"),
      );
      expect(hrefs.length).toBeGreaterThan(1);
      for (const href of hrefs) expect((await get(href)).html).toContain(`<title>${Bun.escapeHTML(slug)}: 1 failed`);
      expect((await get(`${pathOf(mine, executionId, slug)}/log`)).status).toBe(200);
    },
  );

  test("of nothing but dots has no page, and no link that leads elsewhere", async () => {
    const mine = await createProject();
    const { executionId } = await mine.upload("f", { task_slug: ".." });
    const { html } = await get(`${mine.path}/executions/${executionId}`);
    expect(html).not.toContain("/tasks/");
  });
});
