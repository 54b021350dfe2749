/** The settings that owners create: each is listed, changed and removed, a refused form keeps what was typed, and the audit log has it. */

import { describe, expect, test } from "bun:test";
import { unescape } from "../browser.ts";
import { until } from "../harness.ts";
import { attributeOf, createPages, formsOf, valueOf } from "./browser.ts";

const lines: string[] = [];
const { acme, ask, look, fill, people } = await createPages({ log: (line) => void lines.push(line) });
const [team, project] = [`/teams/${acme.team}`, `/projects/${acme.project}`];
const CHAT = { kind: "slack", name: "Team chat", config: { url: "https://hooks.slack.com/services/T/B/abcdefgh" } };
const { body: chat } = await ask(`POST ${team}/integrations`, { key: acme.teamKey, body: CHAT });
const KEY = /svc_(?:proj|team)_[0-9A-Za-z]{44}/;

type Fields = Record<string, string>;
type Resource = {
  /** The page that lists them. `form`: where they are created, if not there. */
  page: string;
  form?: string;
  fields: Fields;
  /** What a viewer reads in the list. */
  listed: string;
  /** The change of a resource with a page of its own, and what the page says then. */
  change?: [fields: Fields, shown: string];
  /** The end of the path of the form that removes it, what the page says before, and afterwards. */
  removal: [path: string, loss: string, notice: string];
  audit: string[];
  /** Fields that are refused, with the message, and the field that is shown again as it was typed. */
  refused: [fields: Fields, message: string, kept: string][];
};

const entries = (noun: string) => ["created", "changed", "deleted"].map((verb) => `${verb} the ${noun}`);
const KEY_REMOVAL: Resource["removal"] = ["/revoke", "will be refused. Never used.", "Key revoked"];
const ENVIRONMENT = { slug: "qa", name: "Quality", baseUrl: "https://qa.example", description: "" };
const RULE = { name: "Registry", pattern: "econnrefused", url: "https://wiki.acme.example/registry", do: "save" };
const JIRA = { name: "Bugs", "config.baseUrl": "https://jira.example", "config.projectKey": "WEB" };
const AUTOMATION = {
  ...{ name: "Red main", event: "execution.failed", branches: "main" },
  ...{ "action.0.type": "notify", "action.0.integrationId": chat.id },
};

const RESOURCES: Record<string, Resource> = {
  environment: {
    page: `${team}/environments`,
    fields: ENVIRONMENT,
    listed: "Quality qa https://qa.example",
    change: [{ ...ENVIRONMENT, slug: "qa2" }, "Quality qa2 https://qa.example"],
    removal: ["/delete", "secrets cannot be recovered", "Environment deleted. Environments"],
    audit: entries("environment qa"),
    refused: [[{ baseUrl: "javascript:alert(1)" }, "Address: expected an http or https address", "name"]],
  },
  "infrastructure rule": {
    page: `${team}/infrastructure-rules`,
    fields: RULE,
    listed: "Registry About contains econnrefused",
    change: [{ ...RULE, pattern: "no space*quota" }, "A failure matches if it contains no space*quota"],
    removal: ["/delete", "Failures that it matched stay as they are", "Rule deleted."],
    audit: entries("infrastructure rule Registry"),
    refused: ["save", "try"].map((what) => [
      { pattern: " * ", do: what },
      "Text: expected a text that is not blank and more than *",
      "pattern",
    ]),
  },
  automation: {
    page: `${team}/automations`,
    form: `${team}/automations/new`,
    fields: AUTOMATION,
    listed: "Red main When an execution has failed on main: send a message to Team chat",
    change: [{ ...AUTOMATION, branches: "trunk" }, "When an execution has failed on trunk"],
    removal: ["/delete", "The history of its runs is deleted", "Automation deleted."],
    audit: entries("automation Red main"),
    refused: [[{ when: "schedule", schedule: "every day" }, "Schedule: expected five cron fields", "schedule"]],
  },
  integration: {
    page: `${team}/integrations`,
    form: `${team}/integrations/new`,
    fields: { kind: "jira", "config.token": "sekritsekrit", ...JIRA },
    listed: "Bugs Jira no deliveries yet",
    change: [{ ...JIRA, "config.projectKey": "APP" }, "projectKey APP"],
    removal: ["/delete", "Its deliveries and secrets are deleted", "Integration deleted."],
    audit: entries("integration Bugs"),
    refused: [[{ "config.baseUrl": "jira" }, "expected an http or https address", "config.baseUrl"]],
  },
  "named key": {
    page: `${project}/settings/keys`,
    fields: { name: "<e2e>", scope: "upload", days: "30", newest: "" },
    listed: "<e2e> KEY upload for 30 days never",
    removal: KEY_REMOVAL,
    audit: ["generated the key svc_proj_", "revoked the key svc_proj_"],
    refused: [
      [{ name: " " }, "Name: expected", "name"],
      [{ scope: "runner" }, "Scope: expected", "name"],
      [{ days: "0" }, "Expires after (days): expected", "name"],
      [{ days: "soon" }, "Expires after (days): expected", "days"],
    ],
  },
  "team key": {
    page: `${team}/settings`,
    form: `${team}/keys`,
    fields: { name: "terraform", newest: "" },
    listed: `terraform KEY just now by ${people.owner.email} never active`,
    removal: KEY_REMOVAL,
    audit: ["generated the key svc_team_", "revoked the key svc_team_"],
    refused: [[{ name: "  " }, "Name: expected", "name"]],
  },
  "trust rule": {
    page: `${project}/settings/ci`,
    fields: {
      ...{ kind: "github", repositoryId: " 700100 ", ownerId: "4711", repository: "acme/<shop>" },
      ...{ events: "push, pull_request", refs: "refs/heads/main", issuer: "", keys: "" },
    },
    listed: "acme/<shop> GitHub Actions 700100 of owner 4711 push, pull_request on refs/heads/main never",
    removal: ["/remove", "keys of running jobs are revoked immediately", "Trust rule removed"],
    audit: ["trusted CI jobs of acme/<shop> in Acme web · kind: github", "stopped trusting CI jobs of acme/<shop>"],
    refused: [
      [{ repositoryId: "acme" }, `Repository id: expected a number such as 123456, got "acme"`, "repositoryId"],
      [{ ownerId: "" }, `Missing field "ownerId"`, "repository"],
      [{ issuer: "http://ci.internal" }, "Issuer: expected an https address", "issuer"],
      [{ refs: "main" }, "Refs: expected a Git ref", "refs"],
      [{ keys: "x" }, "Keys of the issuer: expected a JSON Web Key Set", "keys"],
    ],
  },
};

const statusOf = async (key: string) =>
  (await ask(`GET ${key.startsWith("svc_team") ? `${team}/environments` : project}`, { key })).status;

describe.each(Object.entries(RESOURCES))("a page of settings: %s", (noun, resource) => {
  const { page, form = page, listed, change, removal, audit, refused } = resource;

  /** A form of a key says which one is the newest, so that it makes no second one. */
  const toFields = async (more: Fields = {}): Promise<Fields> => ({
    ...resource.fields,
    ...("newest" in resource.fields ? { newest: valueOf(await look("owner", page), "newest")! } : {}),
    ...more,
  });

  test("is created, listed, changed and removed, and the audit log has it", async () => {
    const made = await fill("owner", form, await toFields());
    const key = KEY.exec(made.words)?.[0] ?? "";
    expect([made.status, made.headers.get("cache-control")]).toEqual([key === "" ? 303 : 200, "no-store"]);
    const list = await look("viewer", page);
    expect(list.words.replace(/svc_\w+…/g, "KEY")).toContain(listed);
    expect(formsOf(list)).toEqual([]);
    const path = change && new RegExp(`${page}/[0-9a-f-]{36}`).exec(list.html)![0];
    if (change) {
      const saved = await fill("owner", path!, change[0]);
      expect((await look("owner", saved.location!)).words).toMatch(/saved/i);
      expect((await look("viewer", path!)).words).toContain(change[1]);
    }
    const shown = await look("owner", path ?? page);
    expect(shown.words).toContain(removal[1]);
    const newest = valueOf(shown, "newest") ?? "";
    if (key !== "") {
      expect(await statusOf(key)).toBe(200);
      // The use of a key is noted after the answer.
      await until(async () => (await look("owner", page)).words.includes(`${key.slice(0, 17)}… will be refused. Last`));
    }
    const to = formsOf(shown).find((action) => action.includes(newest) && action.endsWith(removal[0]));
    const { location } = await fill("owner", to!);
    expect((await look("owner", location!)).words).toContain(removal[2]);
    if (key !== "") expect(await statusOf(key)).toBe(401);
    if (path) expect((await look("owner", path)).status).toBe(404);
    // There are others of these.
    const after = { "team key": /terraform svc_team_\w+… .* revoked/, integration: /1 integration Integrations/ };
    const { words } = await look("viewer", page);
    expect(words).toMatch(after[noun as keyof typeof after] ?? new RegExp(`No ${noun}s yet`));
    const log = await look("owner", `${team}/audit`);
    for (const entry of audit) expect(log.words).toContain(entry);
    const places = [list.html, shown.html, log.html, lines.join("\n")];
    for (const text of places)
      expect([key, key !== "" && text.includes(key), text.includes("sekrit")]).toEqual([key, false, false]);
  });

  test("is refused with what is wrong, and what was typed stays", async () => {
    for (const [more, message, kept] of refused) {
      const fields = await toFields(more);
      const { status, words, html } = await fill("owner", form, fields);
      expect([message, status, words]).toEqual([message, 400, expect.stringContaining(message)]);
      const tags = html.match(/<(?:input|textarea)[^>]*>\n?[^<]*/g)!.filter((tag) => attributeOf(tag, "name") === kept);
      expect(tags.map((tag) => unescape(valueOf({ html: tag }, kept)!))).toContain(fields[kept]!);
      expect(html).not.toContain("sekrit");
    }
  });

  if ("newest" in resource.fields)
    test("is made once by a form that is sent twice", async () => {
      const fields = await toFields();
      expect((await fill("owner", form, fields)).words).toMatch(KEY);
      const again = await fill("owner", form, fields);
      expect((await look("owner", again.location!)).words).toContain("The key was shown once");
    });
});
