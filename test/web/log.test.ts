import { describe, expect, test } from "bun:test";
import { junit } from "../harness.ts";
import { createPages, type Shown } from "./browser.ts";

const { createProject, look } = await createPages();
const get = (path: string) => look("viewer", path);

/** Runs a task of an execution, which prints `logs`: one for each shard. */
async function run(...logs: string[]) {
  const { path, post, call } = await createProject();
  const task = logs.length === 1 ? "unit" : { slug: "unit", shards: logs.length };
  const { id } = await post("/executions", { mode: "run", tasks: [task] });
  const sync = (body: object) => post("/leases", { runner: "build-2", ...body });
  const { leases } = await sync({ free: logs.length });
  expect(leases).toHaveLength(logs.length);
  const append = async (shard: number, offset: number, text: string) => {
    const lease = leases.find((one: { shard?: { index: number } }) => (one.shard?.index ?? 1) === shard);
    for (let at = 0; at < text.length; at += 200_000) {
      const part = text.slice(at, at + 200_000);
      await sync({ free: 0, held: [{ id: lease.id, log: { offset, text: part } }] });
      offset += Buffer.byteLength(part);
    }
  };
  for (const [index, log] of logs.entries()) await append(index + 1, 0, log);
  const finish = () =>
    call("POST", `/test-runs?execution_id=${id}&task_slug=unit&lease_id=${leases[0].id}`, junit("p"));
  return { path: `${path}/executions/${id}/tasks/unit`, append, finish, leaseId: leases[0].id as string };
}

const linesOf = (html: string) =>
  [...html.matchAll(/<li id="L(\d+)"(?: class="(\w+)")?>(.*?)<\/li>/gs)].map(([, number, kind, text]) => ({
    number: Number(number),
    isError: kind === "err",
    text,
  }));

describe("the log of a task", () => {
  test("has its colours, and nothing in it is more than text", async () => {
    const { path } = await run(
      "\x1b[1m$ bun test\x1b[0m\n\x1b[31m✗ fails\x1b[0m <script>alert(1)</script>\n10 %\r100 %\n\x1b]0;title\x07\x1b[1;3;38;5;208;48;2;0;0;0mend\x1b[0m\n",
    );
    const page = await get(`${path}/log`);
    expect(linesOf(page.html).map(({ text }) => text)).toEqual([
      "<b>$ bun test</b>",
      '<span class="fg1">✗ fails</span> &lt;script&gt;alert(1)&lt;/script&gt;',
      "100 %",
      '<b class="italic fg208 bg16">end</b>',
    ]);
    expect(page.html).not.toContain(" style=");
    expect(page.html).toContain("data-tail");
    expect(page.html).toContain('data-region="log"');
    expect(page.html).toContain("data-live=");
    expect(page.words).toContain("run by build-2");
    const task = await get(path);
    expect(task.words).toContain("End of the log");
    expect(task.words).toContain("100 % end");
  });

  test("inverse text swaps its colours", async () => {
    const { path } = await run("\x1b[7mA\x1b[31mB\x1b[44mC\x1b[27;9;4mD");
    expect(linesOf((await get(`${path}/log`)).html)[0]!.text).toBe(
      '<span class="inverse">A</span><span class="bg1">B</span><span class="fg4 bg1">C</span><span class="underlined-struck fg1 bg4">D</span>',
    );
  });

  test("of a long one the end is shown, and its lines have their numbers in the whole log", async () => {
    const lines = Array.from({ length: 8_000 }, (_, index) => `${"ü".repeat(40)} line ${index + 1}`);
    const { path } = await run(lines.join("\n"));
    const page = await get(`${path}/log`);
    expect(page.words).toContain("Last 256 KiB");
    expect(page.words).not.toContain("Line numbers count");
    expect(page.words).not.toContain("\ufffd");
    const shown = linesOf(page.html);
    expect(shown.length).toBeGreaterThan(2_000);
    for (const { number, text } of shown) expect(text).toBe(lines[number - 1]!);
    expect(shown.at(-1)!.number).toBe(8_000);
    expect(page.html).toContain(`<ol class="numbered" start="${shown[0]!.number}">`);
    expect(page.html.length).toBeLessThan(300_000);
    const text = await get(`${path}/log/text`);
    expect(text.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(text.headers.get("x-content-type-options")).toBe("nosniff");
    expect(text.html).toBe(lines.join("\n"));
  });

  test("of one whose beginning is not stored any more, says that its numbers count from the first line shown", async () => {
    const { path } = await run(`first\n${"x".repeat(99)}\n`.repeat(12_000));
    const page = await get(`${path}/log`);
    expect(page.words).toContain("Line numbers count from the first line shown");
    expect(linesOf(page.html)[0]!.number).toBe(1);
  });

  test("of very many lines the last are shown, under their own numbers", async () => {
    const { path } = await run("\n".repeat(100_000) + "end");
    const page = await get(`${path}/log`);
    expect(page.words).toContain("Last 10,000 lines");
    const shown = linesOf(page.html);
    expect(shown).toHaveLength(10_000);
    expect(shown.at(-1)).toEqual({ number: 100_001, isError: false, text: "end" });
  });

  test.each([
    ["changes", "\x1b[1ma\x1b[3mb\x1b[4mc\x1b[9md\x1b[38;5;208me\x1b[0mf"],
    ["changes in lines", "\x1b[1;3;4;9;35;45ma\x1b[0mb\n"],
    ["line ends", "\n"],
    ["matches", "a"],
    ["markup", '"&<'],
  ])("of nothing but %s makes a page of bounded size", async (_, text) => {
    const { path } = await run(text.repeat(Math.ceil(300_000 / text.length)));
    const page = await get(`${path}/log?search=a`);
    expect(page.status).toBe(200);
    expect(page.html.length).toBeLessThan(4_000_000);
  });

  test("is searched regardless of case and colours, with links from one matching line to the next", async () => {
    const { path } = await run("\x1b[31mTime\x1b[32mout (a+b)\x1b[0m\nnothing\nTIMEOUT & timeout\nlast timeout\n");
    const page = await get(`${path}/log?search=timeout`);
    expect(linesOf(page.html).map(({ text }) => text)).toEqual([
      '<span class="fg1"><mark>Time</mark></span><span class="fg2"><mark>out</mark> (a+b)</span>',
      "nothing",
      "<mark>TIMEOUT</mark> &amp; <mark>timeout</mark>",
      "last <mark>timeout</mark>",
    ]);
    expect(page.words).toContain("3 matching lines");
    const follow = async (from: Shown, rel: string) => {
      const href = new RegExp(`rel="${rel}" href="([^"]*)"`).exec(from.html)![1]!.replaceAll("&amp;", "&");
      const [address, line] = href.split("#");
      return { ...(await get(address!)), line };
    };
    const first = await follow(page, "next");
    expect([first.line, /\d of 3 matching/.exec(first.words)![0]]).toEqual(["L1", "1 of 3 matching"]);
    const second = await follow(first, "next");
    expect([second.line, /\d of 3 matching/.exec(second.words)![0]]).toEqual(["L3", "2 of 3 matching"]);
    expect((await follow(second, "prev")).line).toBe("L1");
    expect((await follow(first, "prev")).line).toBe("L4");
    expect((await follow(await follow(second, "next"), "next")).line).toBe("L1");
    expect((await get(`${path}/log?search=${encodeURIComponent("(A+B)")}`)).words).toContain("1 matching line");
    expect((await get(`${path}/log?search=.*`)).words).toContain("No matches");
    expect((await get(`${path}/log?search=`)).words).not.toContain("match");
    expect((await get(`${path}/log?search=${"a".repeat(201)}`)).status).toBe(400);
    expect((await get(`${path}/log?search=%22%3E%3Cb%3E`)).html).toContain('value="&quot;&gt;&lt;b&gt;"');
  });

  test("marks the lines that report errors, and links to the first", async () => {
    const { path } = await run("ok\n\x1b[31merror\x1b[0m: broken\n0 errors\n1 failed\n");
    const page = await get(`${path}/log`);
    expect(linesOf(page.html).flatMap(({ number, isError }) => (isError ? [number] : []))).toEqual([2, 4]);
    expect(page.html).toContain('href="#L2" data-next-error');
    expect(page.words).toContain("Next error 2");
    expect((await get(`${(await run("0 failed")).path}/log`)).words).not.toContain("Next error");
  });

  test("of shards each has a tab, and the one that is shown is named", async () => {
    const { path } = await run("one\n", "two\n");
    const page = await get(`${path}/log`);
    expect(page.words).toContain("Log of unit, shard 1");
    expect(page.html).toContain(`href="${path}/log?shard=1" aria-current="page"`);
    expect(linesOf(page.html)[0]!.text).toBe("one");
    const other = await get(`${path}/log?shard=2&search=two`);
    expect(other.words).toContain("Log of unit, shard 2");
    expect(other.html).toContain(`href="${path}/log?shard=2" aria-current="page"`);
    expect(other.html.match(/aria-current="page"/g)!.length).toBe(page.html.match(/aria-current="page"/g)!.length);
    expect(other.html).toContain('<input type="hidden" name="shard" value="2">');
    expect(other.html).toContain("shard=2&amp;search=two&amp;match=1#L1");
    expect(other.html).toContain(`href="${path}/log/text?shard=2"`);
  });

  test("is downloaded as a file that is called as its task is", async () => {
    const { path } = await run("\x1b[31mone\n", "two\n");
    const page = await get(`${path}/log?shard=2`);
    const href = /href="([^"]*download[^"]*)"/.exec(page.html)![1]!.replaceAll("&amp;", "&");
    const file = await get(href);
    expect(file.html).toBe("two\n");
    expect(file.headers.get("content-disposition")).toBe('attachment; filename="unit-shard-2.log"');
    expect(file.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const raw = await get(`${path}/log/text`);
    expect(raw.html).toBe("\x1b[31mone\n");
    expect(raw.headers.has("content-disposition")).toBe(false);
    expect((await get(`${path}/log/text?download=1`)).status).toBe(400);
  });

  test.each([
    ['a"b\r\nc/d', "a-b-c-d.log"],
    ["..", undefined],
    ["ü 🦊", "task.log"],
    ["unit.test_1", "unit.test_1.log"],
  ])("of the task %p is a file of a safe name", async (slug, name) => {
    const mine = await createProject();
    const { executionId } = await mine.upload("p", { task_slug: slug });
    const tasks = `${mine.path}/executions/${executionId}/tasks`;
    const { headers } = await get(`${tasks}/${encodeURIComponent(slug)}/log/text?download=yes`);
    expect(headers.get("content-disposition") ?? undefined).toBe(
      name === undefined ? undefined : `attachment; filename="${name}"`,
    );
  });

  test("can be followed while it grows, and not after its end", async () => {
    const { path, append, finish } = await run("one\n");
    expect((await get(`${path}/log`)).html).toContain("data-follow");
    await append(1, 4, "two\n");
    expect(linesOf((await get(`${path}/log`)).html).map(({ text }) => text)).toEqual(["one", "two"]);
    expect((await finish()).status).toBe(201);
    const ended = await get(`${path}/log`);
    expect(linesOf(ended.html)).toHaveLength(2);
    expect(ended.html).not.toContain("data-follow");
    expect(ended.html).not.toContain("data-live=");
  });

  test("of one attempt keeps to it in its search and its files", async () => {
    const { path, leaseId } = await run("one\n");
    const page = await get(`${path}/log?lease=${leaseId}&search=one`);
    expect(page.words).toContain("an earlier attempt");
    expect(page.html).toContain(`<input type="hidden" name="lease" value="${leaseId}">`);
    expect(page.html).toContain(`lease=${leaseId}&amp;search=one&amp;match=1#L1`);
    expect(page.html).toContain(`/log/text?lease=${leaseId}&amp;download=yes`);
    expect((await get(`${path}/log?lease=${crypto.randomUUID()}`)).status).toBe(404);
  });

  test("is empty until something is printed", async () => {
    const { path } = await run("");
    const page = await get(`${path}/log`);
    expect(page.words).toContain("No output yet");
    expect(page.html).not.toContain("data-next-error");
  });

  test("is not there for a task that no runner of ours has run", async () => {
    const mine = await createProject();
    const { executionId } = await mine.upload("p");
    const path = `${mine.path}/executions/${executionId}/tasks/unit`;
    const page = await get(`${path}/log`);
    expect(page.words).toContain("No log");
    expect(page.html).not.toContain("data-follow");
    expect((await get(`${path}/log/text`)).html).toBe("");
    expect((await get(`${path}/log?shard=0`)).status).toBe(400);
    expect((await get(`${path}/log?match=0`)).status).toBe(400);
  });
});
