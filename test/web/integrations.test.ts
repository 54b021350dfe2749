/** Integrations in the dashboard: forms made from their schemas, tests, deliveries. */

import { describe, expect, test } from "bun:test";
import { CONFIGS, KINDS, SECRETS } from "../../src/schema/integration_configs.ts";
import { createReceiver } from "../receiver.ts";
import { createPages, fieldsOf, formsOf, type Shown, valueOf } from "./browser.ts";

const lines: string[] = [];
const { acme, ask, look, fill, database } = await createPages({
  outboundAllow: ["127.0.0.0/8"],
  log: (line) => void lines.push(line),
});
const base = `/teams/${acme.team}/integrations`;
const key = acme.teamKey;

/** What is sent of a form as it is shown, with these fields in it. */
const complete = ({ html }: Shown, fields: Record<string, string>): Record<string, string> => {
  const form = /<form(?:(?!<\/form>)[^])* name="config\.[^]*?<\/form>/.exec(html)![0];
  return { ...fieldsOf(form), ...fields };
};

async function create(kind: string, fields: Record<string, string>): Promise<string> {
  const shown = await look("owner", `${base}/new?kind=${kind}`);
  const { location, words } = await fill("owner", `${base}/new`, { kind, ...complete(shown, fields) });
  if (!location) throw new Error(words);
  return location.replace(/\?.*/, "");
}

const find = async (path: string) => (await ask(`GET ${path}`, { key })).body;

const FIELDS: Record<string, Record<string, string>> = {
  webhook: { "config.url": "https://example.com/hook" },
  slack: { "config.url": "https://hooks.slack.com/services/T/B/sekritsekrit" },
  discord: { "config.url": "https://discord.com/api/webhooks/1/sekritsekrit" },
  teams: { "config.url": "https://prod.example.com/workflows/sekritsekrit" },
  email: {
    "config.host": "smtp.example.com",
    "config.port": "2525",
    "config.user": "assay",
    "config.password": "sekritsekrit",
    "config.from": "assay@example.com",
    "config.to": "ada@example.com, grace@example.com",
  },
  github: { "config.repository": "acme/shop", "config.token": "ghp_sekritsekrit" },
  gitlab: { "config.project": "acme/shop", "config.token": "glpat-sekritsekrit" },
  jira: { "config.baseUrl": "https://acme.atlassian.net/", "config.projectKey": "WEB", "config.token": "sekritsekrit" },
  linear: { "config.token": "lin_sekritsekrit", "config.teamId": "01890000-0000-7000-8000-000000000000" },
  pagerduty: { "config.routingKey": "sekritsekrit", "config.severity": "warning" },
};

describe("the form of a kind", () => {
  test("is there for each, made of its config", async () => {
    const { html } = await look("owner", `${base}/new`);
    for (const kind of KINDS) {
      expect(html).toContain(`${base}/new?kind=${kind}`);
      const shown = await look("owner", `${base}/new?kind=${kind}`);
      for (const name of Object.keys(CONFIGS[kind].entries)) expect(shown.html).toContain(`name="config.${name}"`);
    }
  });

  test.each(KINDS.map((kind) => [kind]))(
    "%s creates what the API would, and shows no secret afterwards",
    async (kind) => {
      const path = await create(kind, { ...FIELDS[kind], name: `My ${kind}` });
      const created = await find(path);
      expect(created).toMatchObject({ kind, name: `My ${kind}`, enabled: true });
      for (const [name, value] of Object.entries(FIELDS[kind]!)) {
        const field = name.replace("config.", "");
        const isSecret = SECRETS[kind].includes(field);
        const shown = field === "to" ? value.split(", ") : field === "port" ? Number(value) : value.replace(/\/$/, "");
        expect([field, created.config[field]]).toEqual([field, isSecret ? null : shown]);
      }
      if ("labels" in created.config) expect(created.config.labels).toEqual(["assay"]);
      for (const who of ["owner", "viewer"] as const)
        for (const at of [path, base]) expect((await look(who, at)).html).not.toContain("sekrit");
      expect(lines.filter((line) => line.includes("sekrit"))).toEqual([]);
    },
  );

  test("offers a webhook its signing secret, which signs what is sent", async () => {
    const receiver = createReceiver({ status: 200 });
    const shown = await look("owner", `${base}/new?kind=webhook`);
    const secret = valueOf(shown, "config.secret")!;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const path = await create("webhook", { "config.url": receiver.url, "config.secret": secret });
    expect((await fill("owner", `${path}/test`)).location).toBe(`${path}?notice=tested#deliveries`);
    const [{ headers, text }] = receiver.requests as [(typeof receiver.requests)[number]];
    const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`;
    const mac = new Bun.CryptoHasher("sha256", Buffer.from(secret.slice(6), "base64")).update(signed).digest("base64");
    expect(headers["webhook-signature"]).toBe(`v1,${mac}`);
    expect((await look("owner", path)).html).not.toContain(secret);
  });

  test("leads to no private address", async () => {
    const away = await fill("owner", `${base}/new`, { kind: "webhook", name: "", "config.url": "http://10.0.0.1/" });
    expect(away.words).toContain("it is a private address");
  });
});

describe("an integration", () => {
  test("is changed with its secret left alone, until another is given", async () => {
    const path = await create("github", { ...FIELDS["github"], "config.workflow": "tests.yml" });
    const shown = await look("owner", path);
    await fill(
      "owner",
      path,
      complete(shown, { name: "renamed", "config.labels": "bug, flaky", "config.workflow": "" }),
    );
    const { name, config } = await find(path);
    expect([name, config.labels, config.workflow, config.repository]).toEqual([
      "renamed",
      ["bug", "flaky"],
      null,
      "acme/shop",
    ]);
    const moved = await fill("owner", path, complete(shown, { "config.baseUrl": "https://evil.example" }));
    expect([moved.status, moved.words]).toEqual([400, expect.stringContaining('without "config.token"')]);
    const emptied = await fill("owner", path, complete(shown, { "config.repository": "" }));
    expect([emptied.status, emptied.words]).toEqual([400, expect.stringContaining("Repository: expected")]);
    await fill("owner", path, complete(shown, { "config.ref": "" }));
    expect((await find(path)).config).toMatchObject({ ref: "main", repository: "acme/shop" });
    expect((await look("owner", `/teams/${acme.team}/audit`)).words).toContain("renamed");
  });

  test("forgets an optional secret where that is ticked", async () => {
    const receiver = createReceiver({ status: 201, body: { web_url: "https://gitlab.example/1" } });
    const path = await create("gitlab", {
      ...FIELDS["gitlab"],
      "config.baseUrl": receiver.url,
      "config.triggerToken": "tr_sekrit",
    });
    const shown = await look("owner", path);
    expect(shown.words).toContain("Remove the trigger token");
    expect((await fill("owner", path, complete(shown, { "forget.triggerToken": "true" }))).location).toBe(
      `${path}?notice=saved`,
    );
    const token = await fill("owner", path, complete(shown, { "config.baseUrl": "https://gitlab.example" }));
    expect(token.words).toContain('without "config.token"');
    expect(token.words).not.toContain("config.triggerToken");
  });

  test("tells what was delivered: status, latency, answer, which is text", async () => {
    const receiver = createReceiver({ status: 503, body: "<script>alert(1)</script> is away" });
    const path = await create("webhook", { name: "gate", "config.url": receiver.url });
    expect((await look("owner", path)).words).toContain("no deliveries yet");
    expect((await fill("owner", `${path}/test`)).location).toBe(`${path}?notice=failed#deliveries`);
    const seen = await look("viewer", `${path}?notice=failed`);
    expect(seen.words).toContain("The test message was not delivered");
    expect(seen.words).toMatch(/Assay can reach gate message · test failed · 503 · \d+ ms just now/);
    expect(seen.words).toContain("<script>alert(1)</script> is away");
    expect(seen.html).not.toContain("<script>alert");
    expect((await look("viewer", base)).words).toContain("last delivery failed, status 503");
    expect((await look("viewer", `${path}?status=sent`)).words).toContain("No deliveries match this status");
    expect((await look("viewer", `${path}?status=`)).words).toContain("Assay can reach gate");
  });

  test("delivers again, but not while it is disabled", async () => {
    const receiver = createReceiver({ status: 200 });
    const path = await create("webhook", { "config.url": receiver.url });
    await fill("owner", `${path}/test`);
    const [to] = formsOf(await look("owner", path)).filter((action) => action.endsWith("/redeliver"));
    expect((await fill("owner", to!)).location).toMatch(/\?notice=redelivered#d-/);
    expect((await look("viewer", path)).words).toMatch(/Next attempt at \d+ \w+/);
    expect((await fill("owner", `${path}/state`, { enabled: "false" })).location).toBe(`${path}?notice=disabled`);
    const disabled = await look("owner", path);
    expect(disabled.words).toContain("disabled");
    expect(formsOf(disabled)).not.toContain(to);
    const refused = await fill("owner", to!);
    expect([refused.status, refused.words]).toEqual([400, expect.stringContaining("the integration is disabled")]);
    await fill("owner", `${path}/state`, { enabled: "true" });
    expect((await find(path)).enabled).toBe(true);
  });

  test("shows a delivery with nothing to send as neither sent nor failed", async () => {
    const receiver = createReceiver({ status: 200 });
    const path = await create("webhook", { "config.url": receiver.url });
    await fill("owner", `${path}/test`);
    const error = "Nothing to send: no merged pull request contains the commit c4d5e6f0127a";
    await database.pool`
      update delivery set status = 'inapplicable', attempts = jsonb_set(attempts::jsonb, '{-1,error}', to_jsonb(${error}::text))::json
      where integration_id = ${path.split("/").at(-1)!}`;
    const { words } = await look("viewer", path);
    expect(words).toContain(error);
    expect(words).toMatch(/test nothing to send · 200/);
    expect(words).not.toMatch(/✕/);
    expect((await look("viewer", base)).words).toContain("nothing to send the last time");
  });
});
