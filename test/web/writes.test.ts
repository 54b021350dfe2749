/** No form of the dashboard changes anything once the role of its visitor is gone, even if the form was sent before. */

import { beforeAll, describe, expect, test } from "bun:test";
import { createRouter } from "../../src/http/router.ts";
import { PAGES } from "../../src/web/site/pages.ts";
import { createEverything, digestTables } from "../everything.ts";
import { createHarness } from "../harness.ts";
import { attributeOf, fieldsOf } from "./browser.ts";

const everything = await createEverything(await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] }));
const { url, people, fill, database, acme, running, there } = everything;
const { pool } = database;
const { owner } = people;

const forms = PAGES.filter(({ method, path }) => method === "POST" && /:projectId|:teamId/.test(path));
const findForm = createRouter(forms);

async function load(path: string): Promise<string> {
  const response = await fetch(`${url}${path}`, {
    redirect: "manual",
    headers: { accept: "text/html", cookie: `assay_session=${owner.token}` },
  });
  if (!response.headers.get("content-type")?.startsWith("text/html"))
    return (await response.body?.cancel().then(() => "")) ?? "";
  return await response.text();
}

type Sent = { to: string; fields: Record<string, string> };

/** Returns the forms that pages show, by path: where each goes, and its fields. */
async function readForms(): Promise<Map<string, Sent>> {
  const pages = PAGES.filter(({ method, path }) => method === "GET" && !path.endsWith("/live")).map(({ path }) =>
    fill(path),
  );
  const special = [
    fill("/teams/:teamId/integrations/new?kind=webhook"),
    fill("/projects/:projectId/executions/:executionId", { executionId: running.id }),
  ];
  const shown = new Map<string, Sent>();
  for (const page of [...pages, ...special]) {
    const text = await load(page);
    for (const [, tag, content] of text.matchAll(/(<form[^>]* method="post"[^>]*>)(.*?)<\/form>/gs)) {
      const to = attributeOf(tag!, "action")!;
      const found = findForm("POST", to.split("?")[0]!);
      if (!found || "allow" in found) continue;
      const button = /<button[^>]* name="[^"]*"[^>]*>/.exec(content!)?.[0];
      const pressed = button ? { [attributeOf(button, "name")!]: attributeOf(button, "value") ?? "" } : {};
      // Required fields are filled in.
      shown.set(found.route.path, { to, fields: { ...fieldsOf(content!, "x"), ...pressed } });
    }
  }
  return shown;
}

/** Shown only where there is something to repeat, where there is sample data, and while a search runs. */
const NOT_SHOWN = [
  "/projects/:projectId/executions/:executionId/rerun",
  "/projects/:projectId/bugs/:bugId/culprit/cancel",
  "/projects/:projectId/onboarding/sample-data/delete",
];

/** What the visitor types or ticks where the form is refused without it. */
const FILLED_IN: Record<string, Record<string, string>> = {
  "/projects/:projectId/settings/gate-share": { choice: "strict", share: "", action: "save" },
  "/projects/:projectId/settings/ci": { repositoryId: "700101", ownerId: "4711" },
  "/projects/:projectId/tests/change": { case0: there["testId"]!, do: "release" },
  "/teams/:teamId/environments/:environmentId/variables/paste": { text: "REGION=eu" },
  "/teams/:teamId/integrations/new": { "config.url": "https://hooks.example.com/1" },
};

const shown = await readForms();
const csrf = /name="csrf" value="([^"]+)"/.exec(await load("/account"))![1]!;

/** Sends a form and takes the role away after the page has let the visitor in, before the form is carried out. */
async function sendWithoutRole({ to, fields }: Sent): Promise<{ status: number; waited: boolean }> {
  const member = { account_id: owner.accountId, team_id: acme.team };
  return await database
    .begin(async (sql) => {
      const where = sql`account_id = ${member.account_id} and team_id = ${member.team_id}`;
      await sql`select from membership where ${where} for update`;
      const [{ pid }] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
      let isAnswered = false;
      const answer = fetch(`${url}${to}`, {
        method: "POST",
        redirect: "manual",
        headers: {
          accept: "text/html",
          cookie: `assay_session=${owner.token}`,
          "content-type": "application/x-www-form-urlencoded",
          origin: url,
        },
        body: new URLSearchParams({ ...fields, csrf }).toString(),
      }).finally(() => (isAnswered = true));
      let waited = false;
      while (!waited && !isAnswered) {
        const [row] = await pool`select exists (
        select from pg_stat_activity where datname = current_database() and ${pid} = any(pg_blocking_pids(pid))) as waits`;
        waited = row!["waits"];
      }
      await sql`update membership set role = 'viewer' where ${where}`;
      return { answer, waited };
    })
    .then(async ({ answer, waited }) => {
      const response = await answer;
      await response.body?.cancel();
      return { status: response.status, waited };
    });
}

test("every form of a team or a project is on a page", () => {
  const hidden = forms.map(({ path }) => path).filter((path) => !shown.has(path));
  expect(forms.length).toBeGreaterThan(40);
  expect(hidden).toEqual(NOT_SHOWN);
});

describe("a role that is taken away while a form is sent", () => {
  let before: Record<string, string>;
  beforeAll(async () => void (before = await digestTables(database)));

  test.each(forms.map(({ path }) => path))("%s changes nothing", async (path) => {
    const { to, fields } = shown.get(path) ?? { to: fill(path), fields: {} };
    const { status, waited } = await sendWithoutRole({ to, fields: { ...fields, ...FILLED_IN[path] } });
    await pool`update membership set role = 'owner' where account_id = ${owner.accountId} and team_id = ${acme.team}`;
    expect([status >= 400 && status < 500, waited]).toEqual([true, true]);
    const last = before;
    before = await digestTables(database);
    expect(before).toEqual(last);
  });
});
