import { describe, expect, test } from "bun:test";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { createBrowser, createPages, type Shown } from "./browser.ts";

const harness = await createPages();
const { acme, createProject, database, url, people, look, fill, walk } = harness;
const { pool } = database;

type Project = Awaited<ReturnType<typeof createProject>>;

/** Without the places at which long names may break: a name is found whole. */
const unbroken = (html: string): string => html.replaceAll("<wbr>", "");

/** The path of the link or badge that a page shows. */
const made = ({ html }: Shown): string =>
  new URL(/https?:[^\s"<&]+\/(?:shared|badge)\/[^\s"<&)]+/.exec(html)![0]).pathname;

const open = (path: string, headers: Record<string, string> = {}) => look("nobody", path, headers);
const shareExecution = ({ path }: Project, executionId: string) =>
  fill("member", `${path}/executions/${executionId}/share`);
const shareProject = async ({ path }: Project) => made(await fill("member", `${path}/shares`));
const listed = ({ path }: Project) => look("member", `${path}/shares`);
const revokeLast = async (own: Project) =>
  await fill("member", /action="([^"]+\/revoke)"/.exec((await listed(own)).html)![1]!);
const audited = () => pool<{ actor: string; action: string; subject: string; details: object }[]>`
  select actor, action, subject, details from audit_entry
  where team_id = ${acme.team} and action like 'share.%' order by id desc`;

const failure = (message: string, stack = "") =>
  `<failure message="${Bun.escapeHTML(message)}">${Bun.escapeHTML(stack)}</failure><system-out>OUTPUT-OF-THE-CASE</system-out>`;
const CURRENCY = failure("TypeError: no currency", "TypeError: no currency\n    at priceOf (src/price.ts:41:17)");
const report = `<testsuite name="cart">
<testcase classname="cart" name="works" time="0.5"/>
<testcase classname="cart" name="line 1">${CURRENCY}</testcase>
<testcase classname="cart" name="line 2">${CURRENCY}</testcase>
<testcase classname="cart" name="&lt;b&gt;bold&lt;/b&gt; svc_proj_abcdefghijklmnopqrstuvwxyzABCDEF">${failure(`"><script>alert(1)</script> svc_proj_0123456789abcdefghijABCDEFGHIJ`)}</testcase>
</testsuite>`;

describe("a link to an execution", () => {
  test("shows outcome, counts, failures by cause and tasks, to whoever has it", async () => {
    const own = await createProject();
    const id = (await own.uploadReport(report, "branch=feature/cart&commit=1a2b3c4d5e&execution_key=413")).executionId;
    await own.upload("pps", "task_slug=api&branch=feature/cart&commit=1a2b3c4d5e&execution_key=413&complete=true");
    const shown = await shareExecution(own, id);
    expect(shown.status).toBe(200);
    expect(shown.words).toContain("Copy it now. It is not shown again");
    const path = made(shown);
    expect(path).toMatch(/^\/shared\/[0-9a-hjkmnp-tv-z]{32}$/);

    const { status, headers, html, words } = await open(path);
    expect(status).toBe(200);
    for (const told of [
      ...["3 new failures", "#413 feature/cart 1a2b3c4", "3 passed, 3 failed, 1 skipped", "2 causes, 3 failures"],
      ...["TypeError: no currency", "2 tests", "at priceOf (src/price.ts:41:17)"],
      ...["unit › cart › line 1", "unit › cart › line 2", "unit 1 3 0", "api 2 0 1"],
      ...[`"><script>alert(1)</script> svc_proj_01234567…`, "<b>bold</b> svc_proj_abcdefgh…"],
    ])
      expect(words).toContain(told);
    expect(html).not.toContain("<script>alert");
    expect(unbroken(html)).not.toContain("svc_proj_abcdefghi");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-robots-tag")).toBe("noindex");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("set-cookie")).toBeNull();
    expect(html).toContain('<meta name="robots" content="noindex">');
    expect(html.length).toBeLessThan(30_000);
  });

  test("leads nowhere, and shows neither output, log, variables, runners, machines, people nor other executions", async () => {
    const own = await createProject();
    const other = (await own.upload("ppf", "branch=main&execution_key=OTHER-BUILD&complete=true")).executionId;
    const body = { mode: "run", key: "run-7", branch: "x", tasks: ["unit"], variables: { SECRET: "VALUE-OF-IT" } };
    const created = await own.post("/executions", body);
    const runner = "RUNNER-NAME";
    const [lease] = (await own.post("/leases", { runner })).leases;
    const held = [{ id: lease.id, log: { offset: 0, text: "LINE-OF-THE-LOG\n" } }];
    const synced = await own.post("/leases", { runner, free: 0, held });
    expect(synced.held[0].logOffset).toBeGreaterThan(0);
    const where = "host=HOST-NAME&system=SYSTEM-NAME&image=IMAGE-NAME";
    await own.call("POST", `/test-runs?lease_id=${lease.id}&${where}`, report);
    // There is something to hide.
    expect((await look("member", `${own.path}/executions/${created.id}`)).html).toContain("HOST-NAME");
    await pool`update test_case set owner = 'owner@acme.example' where project_id = ${own.project}`;
    const path = made(await shareExecution(own, created.id));
    const { html, words } = await open(path);
    expect(words).toContain("TypeError: no currency");
    const hidden = [
      ...["OUTPUT-OF-THE-CASE", "LINE-OF-THE-LOG", "VALUE-OF-IT", "SECRET", "RUNNER-NAME", "HOST-NAME"],
      ...["SYSTEM-NAME", "IMAGE-NAME", "OTHER-BUILD", other],
    ];
    for (const secret of [...hidden, "@acme.example", "Person", own.project, acme.team, created.id])
      expect([secret, unbroken(html).includes(secret)]).toEqual([secret, false]);
    const links = [...html.matchAll(/(?:href|action)="([^"]*)"/g)].map(([, to]) => to!);
    expect(links.filter((to) => !/^(?:#main|\/assets\/|\/icon\.svg)/.test(to))).toEqual([]);
    // Also to somebody who is signed in.
    expect((await look("owner", path)).html).not.toContain("Sign out");
  });

  test("does not show what runners and pipelines say of a task without results, nor does the page of the project", async () => {
    const own = await createProject();
    const { post } = own;
    const start = async (tasks: string[]) => (await post("/executions", { mode: "run", branch: "main", tasks })).id;
    const take = async (runner: string) => {
      const [{ id }] = (await post("/leases", { runner })).leases;
      await post("/leases", { runner, free: 0, held: [{ id }] });
      return id as string;
    };
    const lost = await start(["unit"]);
    for (const runner of ["build-6.acme.internal", "build-7.acme.internal"]) {
      const id = await take(runner);
      await pool`update lease set expires_at = now() - interval '1 second' where id = ${id}`;
      await reclaimLeases(database);
    }
    const crashed = await start(["e2e"]);
    const message = "Cannot start the command on build-8.acme.internal";
    await post(`/leases/${await take("build-8.acme.internal")}/fail`, { exitCode: 3, message });

    // There is something to hide.
    for (const id of [lost, crashed])
      expect((await look("member", `${own.path}/executions/${id}`)).html).toContain(".acme.internal");
    const [timedOut, failed] = ["Timed out: unit: did not report", "Failed: e2e: test runner exited with code 3"];
    const pages = [
      [made(await shareExecution(own, lost)), timedOut],
      [made(await shareExecution(own, crashed)), failed],
      [await shareProject(own), timedOut],
      [await shareProject(own), failed],
    ] as const;
    for (const [shared, outcome] of pages) {
      const { html, words } = await open(shared);
      expect(words).toContain(outcome);
      expect(unbroken(html)).not.toContain(".acme.internal");
    }
  });

  test("is paged where thousands fail, and no failure is lost", async () => {
    const own = await createProject();
    const cases = Array.from({ length: 450 }, (_, index) => {
      const module = String.fromCharCode(97 + (index % 26), 97 + (Math.floor(index / 26) % 26));
      const message = `Error in ${module}mod: ${"abcdefghij"[index % 10]} broke`;
      return `<testcase name="case ${index}">${failure(message)}</testcase>`;
    });
    const body = `<testsuite name="s">${cases.join("")}</testsuite>`;
    const { executionId } = await own.uploadReport(body, "complete=true");
    const pages = await walk("nobody", made(await shareExecution(own, executionId)), ({ words }) => {
      expect(words).toMatch(/\d+ of \d+ causes, 450 failures/);
      return words.match(/unit › s › case \d+/g)!;
    });
    expect(pages.length).toBeGreaterThan(2);
    expect(new Set(pages.flat()).size).toBe(450);
  });

  test("ends with its execution", async () => {
    const own = await createProject();
    const id = (await own.upload("p")).executionId;
    const path = made(await shareExecution(own, id));
    expect((await open(path)).status).toBe(200);
    await own.call("DELETE", `/executions/${id}`);
    expect((await open(path)).status).toBe(404);
    expect((await listed(own)).words).toContain("No links or badges yet");
    expect((await shareExecution(own, id)).status).toBe(404);
  });

  test("is made, listed and revoked, and the audit log tells who did that", async () => {
    const own = await createProject();
    const id = (await own.upload("p", "execution_key=412")).executionId;
    const path = made(await shareExecution(own, id));
    const { words, html } = await listed(own);
    expect(words).toContain("Execution #412");
    expect(words).toMatch(/Person \d+ just now/);
    expect(html).not.toContain(path.split("/").pop()!);
    expect(await pool`select from share where encode(digest, 'hex') like ${`%${path.slice(8)}%`}`).toHaveLength(0);
    expect((await revokeLast(own)).location).toBe(`${own.path}/shares`);
    expect((await open(path)).status).toBe(404);
    const details = { kind: "execution", projectId: own.project };
    const entry = { actor: people.member.email, subject: "other: link to execution 412", details };
    expect((await audited()).slice(0, 2)).toEqual([
      { ...entry, action: "share.revoked" },
      { ...entry, action: "share.created" },
    ] as never);
  });
});

describe("a link to a project", () => {
  test("shows the state of its default branch, the trend and how the newest executions ended; nothing behind them", async () => {
    const own = await createProject();
    const id = (await own.upload("ppp", "branch=main&execution_key=1&complete=true")).executionId;
    await own.uploadReport(report, "branch=feature/x&execution_key=2&complete=true");
    const path = await shareProject(own);
    // One day is no trend.
    expect((await open(path)).words).not.toContain("Trend");
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    await own.upload("ppp", `branch=main&execution_key=0&complete=true&completed_at=${yesterday}`);
    const { status, html, words, headers } = await open(path);
    expect(status).toBe(200);
    expect(words).toContain("Trend");
    for (const told of ["main has been green", "other", "#1 main 3 passed", "#2 feature/x 3 new failures", "100 %"])
      expect(words).toContain(told);
    for (const secret of ["no currency", "line 1", id, own.project]) expect(unbroken(html)).not.toContain(secret);
    expect([...html.matchAll(/href="(?!#main|\/assets\/|\/icon\.svg)/g)]).toHaveLength(0);
    expect(headers.get("x-robots-tag")).toBe("noindex");
    await revokeLast(own);
    expect((await open(path)).status).toBe(404);
  });

  test("is there before anything has ended", async () => {
    const own = await createProject();
    const path = await shareProject(own);
    expect((await open(path)).words).toContain("No finished executions on main yet");
  });
});

describe("a badge", () => {
  const make = async (own: Project, fields: Record<string, string>) => {
    const shown = await fill("member", `${own.path}/badges`, fields);
    return { shown, path: made(shown) };
  };
  const messageOf = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text).join(" | ");

  test("shows how many tests passed on the default branch, as it is now", async () => {
    const own = await createProject();
    const { path, shown } = await make(own, { shows: "tests", branch: "" });
    expect(path).toMatch(/^\/badge\/[0-9a-hjkmnp-tv-z]{32}\.svg$/);
    expect(shown.words).toContain(`[![Tests on main](${url}${path})](${url}${own.path})`);
    const image = `<img src="${url}${path}" alt="Tests on main" height="20">`;
    expect(shown.words).toContain(`<a href="${url}${own.path}">${image}</a>`);
    const first = await open(path);
    expect(first.status).toBe(200);
    expect(first.headers.get("content-type")).toBe("image/svg+xml");
    expect(first.headers.get("cache-control")).toBe("max-age=60");
    expect(messageOf(first.html)).toBe("tests | no results");
    await own.upload("p".repeat(1_204), "branch=main&execution_key=1&complete=true");
    const etag = first.headers.get("etag")!;
    const second = await open(path, { "if-none-match": etag });
    expect([second.status, messageOf(second.html)]).toEqual([200, "tests | 1,204 passed"]);
    const third = await open(path, { "if-none-match": `"x", ${second.headers.get("etag")}` });
    expect([third.status, third.html]).toEqual([304, ""]);
    await own.upload("ppf", "branch=main&execution_key=2&complete=true");
    expect(messageOf((await open(path)).html)).toBe("tests | 1 failed, 2 passed");
  });

  test("shows the status of a branch", async () => {
    const own = await createProject();
    await own.upload("f", "branch=main&execution_key=1&complete=true");
    await own.upload("pp", "branch=release&execution_key=2&complete=true");
    const [main, release, tests] = [
      await make(own, { shows: "status", branch: "" }),
      await make(own, { shows: "status", branch: "refs/heads/release" }),
      await make(own, { shows: "tests", branch: "release" }),
    ];
    expect(messageOf((await open(main.path)).html)).toBe("main | failed");
    expect(messageOf((await open(release.path)).html)).toBe("release | passed");
    expect(messageOf((await open(tests.path)).html)).toBe("tests on release | 2 passed");
    await pool`update project set default_branch = 'release' where id = ${own.project}`;
    expect(messageOf((await open(main.path)).html)).toBe("release | passed");
  });

  test("is grey and unknown where there is none, or not any more; and opens nothing else", async () => {
    const own = await createProject();
    const { path } = await make(own, { shows: "status", branch: "" });
    const token = path.slice("/badge/".length, -".svg".length);
    const link = (await shareProject(own)).slice("/shared/".length);
    expect((await open(`/shared/${token}`)).status).toBe(404);
    await pool`delete from share where project_id = ${own.project} and kind = 'badge'`;
    for (const unknown of [path, `/badge/${link}.svg`, `/badge/${token}`, "/badge/x.svg", "/badge/.svg"]) {
      const { status, html, headers } = await open(unknown);
      expect([unknown, status, messageOf(html)]).toEqual([unknown, 404, "tests | unknown"]);
      expect(headers.get("content-type")).toBe("image/svg+xml");
    }
  });

  test("of a branch with a hostile name is a picture with words", async () => {
    const own = await createProject();
    const branch = `]("><script>alert(1)</script>`;
    const { shown, path } = await make(own, { shows: "status", branch });
    expect(shown.html).not.toContain("<script>alert");
    expect(shown.words).toContain('[![Status on (" script alert(1) /script](');
    expect((await open(path)).html).not.toContain("<script");
    expect((await fill("member", `${own.path}/badges`, { shows: "colour", branch: "" })).status).toBe(400);
  });
});

test("unknown links are no page, whatever they look like", async () => {
  for (const token of ["x", "0".repeat(32), "i".repeat(32), "0".repeat(31), `${"0".repeat(32)}.svg`, "a%2Fb"])
    expect([token, (await open(`/shared/${token}`)).status]).toEqual([token, 404]);
});

test("links are listed page by page", async () => {
  const own = await createProject();
  for (let index = 0; index < 22; index++) await shareProject(own);
  const pages = await walk("member", `${own.path}/shares`, ({ html }) => html.match(/\/revoke"/g)!);
  expect(pages.map(({ length }) => length)).toEqual([20, 2]);
});

test("links stay when the account that made them goes", async () => {
  const own = await createProject();
  const leaver = await createBrowser(harness, { team: acme.team, role: "member" });
  const path = made(await leaver.send(`${own.path}/shares`));
  await pool`delete from account where id = ${leaver.person!.accountId}`;
  expect((await open(path)).status).toBe(200);
  expect((await listed(own)).words).toContain("a former member");
});
