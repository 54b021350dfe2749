/** No form of the dashboard changes anything once the role of its visitor is gone, even if the form was sent before. */

import { describe, expect, test } from "bun:test";
import { createRouter } from "../../src/http/router.ts";
import { PAGES } from "../../src/web/site/pages.ts";
import { createEverything } from "../everything.ts";
import { createHarness } from "../harness.ts";

const everything = await createEverything(await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] }));
const { url, people, fill, database, acme, running, there } = everything;
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

const decode = (text: string) =>
  text
    .replaceAll("&quot;", '"')
    .replaceAll("&#x27;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
const attribute = (tag: string, name: string) => {
  const found = new RegExp(` ${name}(?:="([^"]*)")?(?=[\\s>])`).exec(tag);
  return found ? decode(found[1] ?? "") : undefined;
};

/** What a browser sends if nothing is filled in but the fields that are required. */
function fieldsOf(form: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [tag, name] of form.matchAll(/<input[^>]* name="([^"]*)"[^>]*>/g)) {
    const type = attribute(tag, "type");
    const isChosen = attribute(tag, "checked") !== undefined;
    if ((type === "checkbox" || type === "radio") && !isChosen && attribute(tag, "required") === undefined) continue;
    fields[name!] = attribute(tag, "value") || (attribute(tag, "required") === undefined ? "" : "x");
  }
  for (const [, name, content] of form.matchAll(/<textarea[^>]* name="([^"]*)"[^>]*>\n?([^<]*)/g))
    fields[name!] =
      decode(content!) || (new RegExp(`<textarea[^>]* name="${name}"[^>]* required`).test(form) ? "x" : "");
  for (const [, name, options] of form.matchAll(/<select[^>]* name="([^"]*)"[^>]*>(.*?)<\/select>/gs)) {
    const tag =
      /<option[^>]* selected[^>]*>[^<]*/.exec(options!)?.[0] ?? /<option[^>]*>[^<]*/.exec(options!)?.[0] ?? "";
    fields[name!] = attribute(tag, "value") ?? decode(tag.replace(/^<option[^>]*>/, "")).trim();
  }
  const button = /<button[^>]* name="[^"]*"[^>]*>/.exec(form)?.[0];
  if (button) fields[attribute(button, "name")!] = attribute(button, "value") ?? "";
  return fields;
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
      const to = attribute(tag!, "action")!;
      const found = findForm("POST", to.split("?")[0]!);
      if (found && "route" in found) shown.set(found.route.path, { to, fields: fieldsOf(content!) });
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
  "/projects/:projectId/settings/ci": { repositoryId: "700101", ownerId: "4711" },
  "/projects/:projectId/tests/change": { case0: there["testId"]!, do: "release" },
  "/teams/:teamId/environments/:environmentId/variables/paste": { text: "REGION=eu" },
  "/teams/:teamId/integrations/new": { "config.url": "https://hooks.example.com/1" },
};

const { pool } = database;
const shown = await readForms();
const csrf = /name="csrf" value="([^"]+)"/.exec(await load("/account"))![1]!;

/** Everything in the database but what every visitor changes. */
async function snapshot(): Promise<Record<string, string>> {
  const tables = await pool<{ name: string }[]>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition and n.nspname = 'public'
    and c.relname not in ('branch_day', 'project_watch', 'session') order by 1`;
  const held: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await pool.unsafe(
      `select count(*) || ' ' || coalesce(md5(string_agg(t, '|' order by t)), '') as held
       from (select (to_jsonb(x) - 'last_used_at')::text as t from "${name}" x) rows`,
    );
    held[name] = row!["held"];
  }
  return held;
}

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
  test.each(forms.map(({ path }) => path))("%s changes nothing", async (path) => {
    const before = await snapshot();
    const { to, fields } = shown.get(path) ?? { to: fill(path), fields: {} };
    const { status, waited } = await sendWithoutRole({ to, fields: { ...fields, ...FILLED_IN[path] } });
    await pool`update membership set role = 'owner' where account_id = ${owner.accountId} and team_id = ${acme.team}`;
    expect([status >= 400 && status < 500, waited]).toEqual([true, true]);
    expect(await snapshot()).toEqual(before);
  });
});
