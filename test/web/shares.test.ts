import { describe, expect, test } from "bun:test";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { createHarness, junit } from "../harness.ts";
import { createBrowser, type Shown, toWords } from "./browser.ts";

const harness = await createHarness();
const { acme, rival, ask, addProject, database, url } = harness;
const { pool } = database;
const owner = await createBrowser(harness, { team: acme.team, role: "owner" });
const member = await createBrowser(harness, { team: acme.team, role: "member" });
const viewer = await createBrowser(harness, { team: acme.team, role: "viewer" });
const stranger = await createBrowser(harness, { team: rival.team, role: "owner" });
const nobody = await createBrowser(harness, undefined);

type Own = { project: string; key: string };

/** Without the places at which long names may break: a name is found whole. */
const unbroken = (html: string): string => html.replaceAll("<wbr>", "");

const upload = async ({ project, key }: Own, query: string, body: string): Promise<string> =>
  (await ask(`POST /projects/${project}/test-runs${query}`, { key, body })).body.executionId;

/** The path of the link or badge that a page shows. */
const made = ({ html }: Shown): string =>
  new URL(/https?:[^\s"<&]+\/(?:shared|badge)\/[^\s"<&)]+/.exec(html)![0]).pathname;

const shareExecution = ({ project }: Pick<Own, "project">, executionId: string) =>
  member.send(`/projects/${project}/executions/${executionId}/share`);
const listed = async ({ project }: Pick<Own, "project">) => (await member.get(`/projects/${project}/shares`)).html;
const revokeLast = async ({ project }: Pick<Own, "project">) => {
  const action = /action="([^"]+\/revoke)"/.exec(await listed({ project }))![1]!;
  return await member.send(action);
};
const audited = () => pool<{ actor: string; action: string; subject: string; details: object }[]>`
  select actor, action, subject, details from audit_entry
  where team_id = ${acme.team} and action like 'share.%' order by id desc`;

const failure = (message: string, stack = "") =>
  `<failure message="${Bun.escapeHTML(message)}">${Bun.escapeHTML(stack)}</failure><system-out>OUTPUT-OF-THE-CASE</system-out>`;
const report = `<testsuite name="cart">
<testcase classname="cart" name="works" time="0.5"/>
<testcase classname="cart" name="line 1">${failure("TypeError: no currency", "TypeError: no currency\n    at priceOf (src/price.ts:41:17)")}</testcase>
<testcase classname="cart" name="line 2">${failure("TypeError: no currency", "TypeError: no currency\n    at priceOf (src/price.ts:41:17)")}</testcase>
<testcase classname="cart" name="&lt;b&gt;bold&lt;/b&gt; svc_proj_abcdefghijklmnopqrstuvwxyzABCDEF">${failure(`"><script>alert(1)</script> svc_proj_0123456789abcdefghijABCDEFGHIJ`)}</testcase>
</testsuite>`;

describe("a link to an execution", () => {
  test("shows outcome, counts, failures by cause and tasks, to whoever has it", async () => {
    const own = await addProject(acme);
    const id = await upload(own, "?task_slug=unit&branch=feature/cart&commit=1a2b3c4d5e&execution_key=413", report);
    await upload(
      own,
      "?task_slug=api&branch=feature/cart&commit=1a2b3c4d5e&execution_key=413&complete=true",
      junit("pps"),
    );
    const shown = await shareExecution(own, id);
    expect(shown.status).toBe(200);
    expect(shown.words).toContain("Copy it now. It is not shown again");
    const path = made(shown);
    expect(path).toMatch(/^\/shared\/[0-9a-hjkmnp-tv-z]{32}$/);

    const { status, headers, html, words } = await nobody.get(path);
    expect(status).toBe(200);
    for (const told of [
      "3 new failures",
      "#413 feature/cart 1a2b3c4",
      "3 passed, 3 failed, 1 skipped",
      "2 causes, 3 failures",
      "TypeError: no currency",
      "2 tests",
      "at priceOf (src/price.ts:41:17)",
      "unit › cart › line 1",
      "unit › cart › line 2",
      `"><script>alert(1)</script> svc_proj_01234567…`,
      "<b>bold</b> svc_proj_abcdefgh…",
      "unit 1 3 0",
      "api 2 0 1",
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
    const own = await addProject(acme);
    const { project, key } = own;
    const other = await upload(own, "?branch=main&execution_key=OTHER-BUILD&complete=true", junit("ppf"));
    const created = await ask(`POST /projects/${project}/executions`, {
      key,
      body: {
        mode: "run",
        key: "run-7",
        branch: "x",
        tasks: ["unit"],
        variables: { SECRET: "VALUE-OF-IT" },
      },
    });
    expect(created.status).toBe(201);
    const { body } = await ask(`POST /projects/${project}/leases`, { key, body: { runner: "RUNNER-NAME" } });
    const [lease] = body.leases;
    const held = [{ id: lease.id, log: { offset: 0, text: "LINE-OF-THE-LOG\n" } }];
    const synced = await ask(`POST /projects/${project}/leases`, {
      key,
      body: { runner: "RUNNER-NAME", free: 0, held },
    });
    expect(synced.body.held[0].logOffset).toBeGreaterThan(0);
    await upload(own, `?lease_id=${lease.id}&host=HOST-NAME&system=SYSTEM-NAME&image=IMAGE-NAME`, report);
    // There is something to hide.
    expect((await member.get(`/projects/${project}/executions/${created.body.id}`)).html).toContain("HOST-NAME");
    await pool`update test_case set owner = 'owner@acme.example' where project_id = ${project}`;
    const path = made(await shareExecution(own, created.body.id));
    const { html, words } = await nobody.get(path);
    expect(words).toContain("TypeError: no currency");
    const hidden = [
      "OUTPUT-OF-THE-CASE",
      "LINE-OF-THE-LOG",
      "VALUE-OF-IT",
      "SECRET",
      "RUNNER-NAME",
      "HOST-NAME",
      "SYSTEM-NAME",
      "IMAGE-NAME",
      "OTHER-BUILD",
      other,
    ];
    for (const secret of [...hidden, "@acme.example", "Person", project, acme.team, created.body.id])
      expect([secret, unbroken(html).includes(secret)]).toEqual([secret, false]);
    const links = [...html.matchAll(/(?:href|action)="([^"]*)"/g)].map(([, to]) => to!);
    expect(links.filter((to) => !/^(?:#main|\/assets\/|\/icon\.svg)/.test(to))).toEqual([]);
    // Also to somebody who is signed in.
    expect((await owner.get(path)).html).not.toContain("Sign out");
  });

  test("does not show what runners and pipelines say of a task without results, nor does the page of the project", async () => {
    const own = await addProject(acme);
    const { project, key } = own;
    const post = async (path: string, body: object) =>
      (await ask(`POST /projects/${project}${path}`, { key, body })).body;
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
      expect((await member.get(`/projects/${project}/executions/${id}`)).html).toContain(".acme.internal");
    const pages = [
      [await shareExecution(own, lost), "Timed out: unit did not report"],
      [await shareExecution(own, crashed), "Failed: e2e test runner exited with code 3"],
      [await member.send(`/projects/${project}/shares`), "Timed out: unit did not report"],
      [await member.send(`/projects/${project}/shares`), "Failed: e2e test runner exited with code 3"],
    ] as const;
    for (const [shared, outcome] of pages) {
      const { html, words } = await nobody.get(made(shared));
      expect(words).toContain(outcome);
      expect(unbroken(html)).not.toContain(".acme.internal");
    }
  });

  test("is paged where thousands fail, and no failure is lost", async () => {
    const own = await addProject(acme);
    const cases = Array.from(
      { length: 450 },
      (_, index) =>
        `<testcase name="case ${index}">${failure(`Error in ${String.fromCharCode(97 + (index % 26), 97 + (Math.floor(index / 26) % 26))}mod: ${"abcdefghij"[index % 10]} broke`)}</testcase>`,
    );
    const id = await upload(own, "?task_slug=t&complete=true", `<testsuite name="s">${cases.join("")}</testsuite>`);
    const seen = new Set<string>();
    let path: string | undefined = made(await shareExecution(own, id));
    let pages = 0;
    for (; path; pages++) {
      const { html, status, words }: Shown = await nobody.get(path);
      expect(status).toBe(200);
      expect(words).toMatch(/\d+ of \d+ causes, 450 failures/);
      for (const [name] of toWords(html).matchAll(/t › s › case \d+/g)) seen.add(name);
      path = /rel="next" href="([^"]+)"/.exec(html)?.[1]?.replaceAll("&amp;", "&");
    }
    expect(pages).toBeGreaterThan(2);
    expect(seen.size).toBe(450);
  });

  test("ends with its execution", async () => {
    const own = await addProject(acme);
    const id = await upload(own, "", junit("p"));
    const path = made(await shareExecution(own, id));
    expect((await nobody.get(path)).status).toBe(200);
    await ask(`DELETE /projects/${own.project}/executions/${id}`, { key: own.key });
    expect((await nobody.get(path)).status).toBe(404);
    expect(await listed(own)).toContain("No links or badges yet");
    expect((await shareExecution(own, id)).status).toBe(404);
  });

  test("is not made for an execution of another project", async () => {
    const [own, other] = [await addProject(acme), await addProject(acme)];
    const id = await upload(other, "", junit("p"));
    expect((await shareExecution(own, id)).status).toBe(404);
  });

  test("is made, listed and revoked, and the audit log tells who did that", async () => {
    const own = await addProject(acme);
    const id = await upload(own, "?execution_key=412", junit("p"));
    const path = made(await shareExecution(own, id));
    const words = toWords(await listed(own));
    expect(words).toContain("Execution #412");
    expect(words).toMatch(/Person \d+ just now/);
    expect(await listed(own)).not.toContain(path.split("/").pop()!);
    expect(await pool`select from share where encode(digest, 'hex') like ${`%${path.slice(8)}%`}`).toHaveLength(0);
    expect((await revokeLast(own)).location).toBe(`/projects/${own.project}/shares`);
    expect((await nobody.get(path)).status).toBe(404);
    const [revoked, created] = await audited();
    const { email } = member.person!;
    const entry = {
      actor: email,
      subject: "other: link to execution 412",
      details: { kind: "execution", projectId: own.project },
    };
    expect([revoked, created]).toEqual([
      { ...entry, action: "share.revoked" },
      { ...entry, action: "share.created" },
    ] as never);
  });
});

describe("a link to a project", () => {
  test("shows the state of its default branch, the trend and how the newest executions ended; nothing behind them", async () => {
    const own = await addProject(acme);
    const id = await upload(own, "?branch=main&execution_key=1&complete=true", junit("ppp"));
    await upload(own, "?branch=feature/x&execution_key=2&complete=true", report);
    const path = made(await member.send(`/projects/${own.project}/shares`));
    // One day is no trend.
    expect((await nobody.get(path)).words).not.toContain("Trend");
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    await upload(own, `?branch=main&execution_key=0&complete=true&completed_at=${yesterday}`, junit("ppp"));
    const { status, html, words, headers } = await nobody.get(path);
    expect(status).toBe(200);
    expect(words).toContain("Trend");
    for (const told of ["main has been green", "other", "#1 main 3 passed", "#2 feature/x 3 new failures", "100 %"])
      expect(words).toContain(told);
    for (const secret of ["no currency", "line 1", id, own.project]) expect(unbroken(html)).not.toContain(secret);
    expect([...html.matchAll(/href="(?!#main|\/assets\/|\/icon\.svg)/g)]).toHaveLength(0);
    expect(headers.get("x-robots-tag")).toBe("noindex");
    await revokeLast(own);
    expect((await nobody.get(path)).status).toBe(404);
  });

  test("is there before anything has ended", async () => {
    const own = await addProject(acme);
    const path = made(await member.send(`/projects/${own.project}/shares`));
    expect((await nobody.get(path)).words).toContain("No finished executions on main yet");
  });
});

describe("a badge", () => {
  const make = async (own: Own, fields: Record<string, string>) => {
    const shown = await member.send(`/projects/${own.project}/badges`, fields);
    return { shown, path: made(shown) };
  };
  const messageOf = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text).join(" | ");

  test("shows how many tests passed on the default branch, as it is now", async () => {
    const own = await addProject(acme);
    const { path, shown } = await make(own, { shows: "tests", branch: "" });
    expect(path).toMatch(/^\/badge\/[0-9a-hjkmnp-tv-z]{32}\.svg$/);
    expect(shown.words).toContain(`[![Tests on main](${url}${path})](${url}/projects/${own.project})`);
    expect(shown.words).toContain(
      `<a href="${url}/projects/${own.project}"><img src="${url}${path}" alt="Tests on main" height="20"></a>`,
    );
    const first = await nobody.get(path);
    expect(first.status).toBe(200);
    expect(first.headers.get("content-type")).toBe("image/svg+xml");
    expect(first.headers.get("cache-control")).toBe("max-age=60");
    expect(messageOf(first.html)).toBe("tests | no results");
    await upload(own, "?branch=main&execution_key=1&complete=true", junit("p".repeat(1_204)));
    const etag = first.headers.get("etag")!;
    const second = await nobody.get(path, { "if-none-match": etag });
    expect([second.status, messageOf(second.html)]).toEqual([200, "tests | 1,204 passed"]);
    const third = await nobody.get(path, { "if-none-match": `"x", ${second.headers.get("etag")}` });
    expect([third.status, third.html]).toEqual([304, ""]);
    await upload(own, "?branch=main&execution_key=2&complete=true", junit("ppf"));
    expect(messageOf((await nobody.get(path)).html)).toBe("tests | 1 failed, 2 passed");
  });

  test("shows the status of a branch", async () => {
    const own = await addProject(acme);
    await upload(own, "?branch=main&execution_key=1&complete=true", junit("f"));
    await upload(own, "?branch=release&execution_key=2&complete=true", junit("pp"));
    const [main, release, tests] = [
      await make(own, { shows: "status", branch: "" }),
      await make(own, { shows: "status", branch: "refs/heads/release" }),
      await make(own, { shows: "tests", branch: "release" }),
    ];
    expect(messageOf((await nobody.get(main.path)).html)).toBe("main | failed");
    expect(messageOf((await nobody.get(release.path)).html)).toBe("release | passed");
    expect(messageOf((await nobody.get(tests.path)).html)).toBe("tests on release | 2 passed");
    await pool`update project set default_branch = 'release' where id = ${own.project}`;
    expect(messageOf((await nobody.get(main.path)).html)).toBe("release | passed");
  });

  test("is grey and unknown where there is none, or not any more; and opens nothing else", async () => {
    const own = await addProject(acme);
    const { path } = await make(own, { shows: "status", branch: "" });
    const token = path.slice("/badge/".length, -".svg".length);
    const link = made(await member.send(`/projects/${own.project}/shares`)).slice("/shared/".length);
    expect((await nobody.get(`/shared/${token}`)).status).toBe(404);
    await pool`delete from share where project_id = ${own.project} and kind = 'badge'`;
    for (const unknown of [path, `/badge/${link}.svg`, `/badge/${token}`, "/badge/x.svg", "/badge/.svg"]) {
      const { status, html, headers } = await nobody.get(unknown);
      expect([unknown, status, messageOf(html)]).toEqual([unknown, 404, "tests | unknown"]);
      expect(headers.get("content-type")).toBe("image/svg+xml");
    }
  });

  test("of a branch with a hostile name is a picture with words", async () => {
    const own = await addProject(acme);
    const branch = `]("><script>alert(1)</script>`;
    const { shown, path } = await make(own, { shows: "status", branch });
    expect(shown.html).not.toContain("<script>alert");
    expect(shown.words).toContain('[![Status on (" script alert(1) /script](');
    expect((await nobody.get(path)).html).not.toContain("<script");
    expect((await member.send(`/projects/${own.project}/badges`, { shows: "colour", branch: "" })).status).toBe(400);
  });
});

test("unknown links are no page, whatever they look like", async () => {
  for (const token of ["x", "0".repeat(32), "i".repeat(32), "0".repeat(31), `${"0".repeat(32)}.svg`, "a%2Fb"])
    expect([token, (await nobody.get(`/shared/${token}`)).status]).toEqual([token, 404]);
});

test("links are listed page by page", async () => {
  const own = await addProject(acme);
  for (let index = 0; index < 22; index++) await member.send(`/projects/${own.project}/shares`);
  const first = await listed(own);
  expect(first.match(/\/revoke"/g)).toHaveLength(20);
  const next = /rel="next" href="([^"]+)"/.exec(first)![1]!;
  const second = (await member.get(next.replaceAll("&amp;", "&"))).html;
  expect(second.match(/\/revoke"/g)).toHaveLength(2);
});

test("members make and revoke, viewers look, others learn of nothing", async () => {
  const id = await upload(acme, "?execution_key=9", junit("p"));
  const path = made(await shareExecution(acme, id));
  const base = `/projects/${acme.project}`;
  const share = /\/shares\/([^/"]+)\/revoke/.exec(await listed(acme))![1]!;
  const looked = await viewer.get(`${base}/shares`);
  expect(looked.status).toBe(200);
  expect(looked.words).toContain("Execution #9");
  expect(looked.html).not.toMatch(/method="post" action="\/projects/);
  expect((await stranger.get(`${base}/shares`)).status).toBe(404);
  expect((await nobody.get(`${base}/shares`)).status).toBe(303);
  const forms: [path: string, fields: Record<string, string>][] = [
    [`${base}/shares`, {}],
    [`${base}/badges`, { shows: "tests", branch: "" }],
    [`${base}/executions/${id}/share`, {}],
    [`${base}/shares/${share}/revoke`, {}],
  ];
  const count = async () => (await pool`select from share where project_id = ${acme.project}`).length;
  for (const [form, fields] of forms) {
    expect([form, (await viewer.send(form, fields)).status]).toEqual([form, 403]);
    expect([form, (await stranger.send(form, fields)).status]).toEqual([form, 404]);
    expect([form, (await nobody.send(form, fields)).location]).toEqual([form, "/login"]);
    expect([form, (await member.send(form, { ...fields, csrf: "x" })).status]).toEqual([form, 403]);
    expect([form, (await member.get(form)).status]).toEqual([form, form === `${base}/shares` ? 200 : 404]);
  }
  expect(await count()).toBe(1);
  // A link of another project is not found in this one.
  const other = await addProject(acme);
  expect((await member.send(`/projects/${other.project}/shares/${share}/revoke`)).status).toBe(404);
  expect((await nobody.get(path)).status).toBe(200);
});

test("links stay when the account that made them goes", async () => {
  const own = await addProject(acme);
  const leaver = await createBrowser(harness, { team: acme.team, role: "member" });
  const path = made(await leaver.send(`/projects/${own.project}/shares`));
  await pool`delete from account where id = ${leaver.person!.accountId}`;
  expect((await nobody.get(path)).status).toBe(200);
  expect(toWords(await listed(own))).toContain("a former member");
});
