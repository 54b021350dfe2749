import { describe, expect, test } from "bun:test";
import { uploadsHeadline } from "../../src/web/pages/uploads/headline.tsx";
import { shortAgent } from "../../src/web/pages/uploads/upload_table.tsx";
import { junit } from "../harness.ts";
import { createPages, nextOf } from "./browser.ts";
import { toWords } from "../browser.ts";

const pages = await createPages();
const { app, ask, createProject, database } = pages;

type Project = Awaited<ReturnType<typeof createProject>>;

const post = async ({ path, key }: Project, query: string, body: string, headers: Record<string, string> = {}) => {
  const answer = await ask(`POST ${path}/test-runs${query}`, { key, body, headers });
  await app.settled();
  return answer;
};
const look = ({ path }: Project, query = "") => pages.look("viewer", `${path}/uploads${query}`);
const heading = (html: string) => toWords(/<h1>[^]*?<\/h1>/.exec(html)![0]);

describe("/projects/:projectId/uploads", () => {
  test("says that nothing has arrived, and where to look", async () => {
    const { status, html, words } = await look(await createProject());
    expect(status).toBe(200);
    expect(heading(html)).toBe("○ No uploads in the last 24 hours");
    expect(words).toContain("This project has no reports yet");
    expect(words).toContain("Requests with a wrong key get a 401");
    expect(html).toContain("/onboarding");
  });

  test("says how many were refused, what they say, and what to do about it", async () => {
    const own = await createProject();
    for (const build of ["1", "2", "3"]) await post(own, `?execution_key=${build}`, junit("p"));
    for (const _ of [1, 2]) await post(own, "?task_slug=e2e&branch=main", "hello");
    const { html, words } = await look(own);
    expect(heading(html)).toBe("✕ 2 of 5 uploads of the last 24 hours were rejected");
    expect(words).toContain('All: Cannot read "body": it is plain text, not a test report');
    expect(words).toContain("Check the file that the step sends");
  });

  test("shows of each upload its outcome, reason, task, client, parameters and request", async () => {
    const own = await createProject();
    await post(own, "?task_slug=unit&shard=9/4&branch=feature/x", junit("p"), {
      "user-agent": "curl/8.5.0 (x86_64-pc-linux-gnu)",
      "x-request-id": "job-7",
    });
    const { html, words } = await look(own);
    expect(heading(html)).toBe("✕ The only upload of the last 24 hours was rejected");
    for (const told of [
      "rejected",
      'expected a shard from "1/4" to "4/4", got "9/4"',
      "A shard has a number and a total",
      "curl 8.5.0, 127.0.0.1",
      "shard 9/4",
      "branch feature/x",
      "task_slug unit",
      "Request job-7",
      `Key ${own.key.slice(0, 17)}…`,
      "Response 400, ",
    ])
      expect(words).toContain(told);
    expect(html).not.toContain(own.key);
  });

  test("shows warnings of what was accepted, with its execution", async () => {
    const own = await createProject();
    const { body } = await post(own, "?task_slug=unit", junit("pp").replace("<testsuite", `<testsuite tests="7"`));
    const { html, words } = await look(own);
    expect(heading(html)).toBe("◐ The only upload of the last 24 hours had warnings, none was rejected");
    expect(words).toContain(body.warnings[0]);
    expect(html).toContain(`${own.path}/executions/${body.executionId}`);
  });

  test("is content where all that came was clean; sample data is none of it", async () => {
    const own = await createProject();
    await own.post("/onboarding/sample-data");
    await post(own, "?execution_key=1", junit("pfs"));
    await post(own, "?execution_key=2", junit("p"));
    const { html, words } = await look(own);
    expect(heading(html)).toBe("● Both uploads of the last 24 hours were accepted");
    expect(words).not.toContain("With warnings");
  });

  test("counts reports that arrived today for builds of long ago, and none of long ago", async () => {
    const own = await createProject();
    for (const [build, day] of [
      ["1", "2026-08-01"],
      ["2", "2026-09-01"],
    ])
      await post(own, `?execution_key=${build}&completed_at=${day}T10:00:00Z`, junit("p"));
    await post(own, "?execution_key=3", junit("p"));
    expect(heading((await look(own)).html)).toBe("● All 3 uploads of the last 24 hours were accepted");
    await database.pool`
      update attempt set received_at = now() - interval '25 hours'
      where project_id = ${own.project} and run_id = (select max(run_id::text)::uuid from attempt where project_id = ${own.project})`;
    expect(heading((await look(own)).html)).toBe("● Both uploads of the last 24 hours were accepted");
  });

  test("filters by outcome, and goes on page by page without losing the filter", async () => {
    const own = await createProject();
    await post(own, "", junit("pp").replace("<testsuite", `<testsuite tests="7"`));
    for (let index = 0; index < 27; index++) await post(own, `?task_slug=t${index}`, "hello");
    const [all, warned, refused] = [
      await look(own),
      await look(own, "?outcome=warned"),
      await look(own, "?outcome=refused"),
    ];
    expect(all.words).toContain("All 28 Rejected 27 With warnings 1");
    const tasks = (html: string) =>
      [...html.matchAll(/<td class="long wide">\s*([^<]*?)\s*<\/td>/g)].map(([, task]) => task);
    expect(tasks(warned.html)).toEqual(["unit"]);
    expect(tasks(refused.html)).toEqual(Array.from({ length: 25 }, (_, index) => `t${26 - index}`));
    const next = nextOf(refused)!;
    expect(next).toContain("outcome=refused");
    const last = await pages.look("viewer", next);
    expect(tasks(last.html)).toEqual(["t1", "t0"]);
    expect(last.html).not.toContain('rel="next"');
    expect(last.html).toContain("First page");
  });

  test("shows hostile text as text", async () => {
    const own = await createProject();
    const script = `"><script>alert(1)</script>`;
    await post(own, `?task_slug=${encodeURIComponent(script)}&branch=${encodeURIComponent(script)}`, "hello", {
      "user-agent": "<img src=x onerror=alert(1)>",
    });
    const { html, words } = await look(own);
    expect(html).not.toContain("<script>alert");
    expect(html).not.toContain("<img src=x");
    expect(words).toContain(script);
    expect(words).toContain("<img src=x onerror=alert(1)>");
  });
});

test("counts in words, where one is all there is and where more than can be counted", () => {
  const lastAt = "2026-11-22T00:00:00.000Z";
  const refused = (number: number) => [{ outcome: "refused", text: "no", number, lastAt } as const];
  const text = (tally: Parameters<typeof uploadsHeadline>[0], number: number) =>
    uploadsHeadline(tally, { number, lastAt: null }).text;
  expect(text(refused(3), 0)).toBe("All 3 uploads of the last 24 hours were rejected");
  expect(text(refused(2), 0)).toBe("Both uploads of the last 24 hours were rejected");
  expect(text(refused(1), 41)).toBe("1 of 42 uploads of the last 24 hours was rejected");
  expect(text(refused(2), 1_000)).toBe("2 of more than 1,000 uploads of the last 24 hours were rejected");
  expect(text([], 1)).toBe("The only upload of the last 24 hours was accepted");
  expect(text([], 1_000)).toBe("More than 1,000 uploads of the last 24 hours were accepted");
});

test("shortens user agents", () => {
  expect(shortAgent("curl/8.5.0 (x86_64-pc-linux-gnu) libcurl/8.5.0")).toBe("curl 8.5.0");
  expect(shortAgent("Bun/v1.4.5")).toBe("Bun 1.4.5");
  expect(shortAgent("Wget")).toBe("Wget");
  expect(shortAgent("x".repeat(100))).toBe(`${"x".repeat(40)}…`);
  expect(shortAgent(null)).toBe("no user agent");
});
