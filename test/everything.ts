/** A team with something behind every page: two weeks of a shop's builds, one that runs, people, settings, what was sent. */

import { PAGES } from "../src/web/site/pages.ts";
import { invite } from "../src/operations/people/members.ts";
import { createShare } from "../src/operations/people/shares.ts";
import { addTrustRule } from "../src/operations/people/trust_rules.ts";
import { createLog } from "../src/log.ts";
import type { Role } from "../src/schema/accounts.ts";
import { COMMAND_LINE } from "../src/schema/audit.ts";
import { DEFAULT_ISSUERS } from "../src/schema/trust_rules.ts";
import type { Database } from "../src/database/connect.ts";
import { createSeal } from "../src/secrets/seal.ts";
import { createDeliverer } from "../src/work/deliver.ts";
import { createAsking } from "./asking.ts";
import { type createHarness, SECRET_KEY } from "./harness.ts";
import { insertFoundSearch } from "./culprit_searches.ts";
import { createPerson } from "./people.ts";
import { drawPage } from "./png.ts";
import { createReceiver, outboundToReceivers } from "./receiver.ts";

type Harness = Awaited<ReturnType<typeof createHarness>>;
/** What people and programs call things; a hostile one makes something else of it. */
type Naming = (plain: string) => string;

const AUTHORS = ["Ada Lovelace", "Grace Hopper", "Alan Turing"];
const SUBJECTS = ["Round prices to five cents", "Show vouchers in the cart", "Update dependencies", "Cache the search"];

const DAY = 86_400_000;
const xml = (text: string) => Bun.escapeHTML(text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, ""));

type Failure = { says: string; stack: string };
const CURRENCY: Failure = {
  says: "TypeError: Cannot read properties of undefined (reading 'currency')",
  stack: [
    ...[
      "TypeError: Cannot read properties of undefined (reading 'currency')",
      "    at priceOf (src/cart/price.ts:41:17)",
    ],
    ...["    at lineTotal (src/cart/lines.ts:18:10)", "    at Object.<anonymous> (test/cart.test.ts:33:21)"],
    "    at run (node_modules/vitest/dist/chunk.js:1512:12)",
  ].join("\n"),
};
const VOUCHER: Failure = {
  says: "AssertionError: expected 2 items, got 1",
  stack: `AssertionError: expected 2 items, got 1
Expected: 2
Received: 1
    at toHaveLength (test/voucher.test.ts:57:24)`,
};
const SLOW: Failure = { says: "Timed out: no answer within 2000 ms", stack: "at waitFor (test/search.e2e.ts:88:9)" };

/** Of a task: its cases, and how those that do not pass fail. */
function toReport(
  suite: string,
  names: readonly string[],
  failures: Record<string, Failure>,
  naming: Naming,
  pace = 1,
) {
  const cases = names.map((name, index) => {
    const failure = failures[name];
    const inner = failure
      ? `<failure message="${xml(naming(failure.says))}">${xml(naming(failure.stack))}</failure><system-out>${xml(naming("GET /cart 200 in 12 ms\nPOST /cart/lines 500 in 31 ms"))}</system-out>`
      : name.startsWith("skips")
        ? "<skipped/>"
        : "";
    return `<testcase classname="${xml(naming(suite))}" name="${xml(naming(name))}" file="test/${suite.toLowerCase()}.test.ts" line="${12 + index * 9}" time="${((((index * 37) % 11) / 10 + 0.02) * pace * (suite === "Search" ? 24 : 3)).toFixed(3)}">${inner}</testcase>`;
  });
  return `<testsuite name="${xml(naming(suite))}">${cases.join("")}</testsuite>`;
}

const CART = [
  ...[
    "adds an item to the cart",
    "removes an item",
    "keeps the cart over a log-in",
    "adds up prices in two currencies",
  ],
  ...["rounds prices to cents", "shows the delivery date", "refuses an empty cart", "skips gift cards for now"],
];
const VOUCHERS = ["applies a voucher", "refuses an expired voucher", "applies two vouchers at once"];
const SEARCH = ["finds by title", "suggests while typing", "ranks exact matches first", "answers in time"];
const LOG = [
  "$ npx playwright test --shard 1/2",
  "Running 64 tests using 4 workers",
  "",
  ...Array.from({ length: 24 }, (_, index) => {
    const place = `checkout.spec.ts:${12 + index * 7} › checkout › step ${index + 1} (${300 + index * 41}ms)`;
    return `\u001b[32m  ✓\u001b[39m  ${index + 1} [chromium] › ${place}`;
  }),
  "\u001b[31m  ✘\u001b[39m  25 [chromium] › voucher.spec.ts:31 › applies two vouchers at once (2.1s)",
  "",
].join("\n");

/** `there` has something for every parameter of a page's path. */
export async function createEverything(
  harness: Harness,
  naming: Naming = (plain) => plain,
  { days = 9 }: { days?: number } = {},
) {
  const { ask, acme, rival, database } = harness;
  const { project, team, teamKey } = acme;
  const { post, list, patch, call, uploadReport } = createAsking(ask, acme);
  const upload = (query: Record<string, string>, report: string) => uploadReport(report, query);
  const postToTeam = async (path: string, body?: unknown) => {
    const answer = await ask(`POST /teams/${team}${path}`, { key: teamKey, body });
    if (answer.status >= 400) throw new Error(`${path}: ${answer.text}`);
    return answer.body;
  };

  /** A failure with everything that may explain one. */
  async function uploadPictures(query: Record<string, string>): Promise<void> {
    const folder = "test-results/cart-shows-the-cart-as-designed";
    const files: Record<string, string | Uint8Array<ArrayBuffer>> = {
      "cart-expected.png": drawPage(40),
      "cart-actual.png": drawPage(120),
      "cart-diff.png": drawPage(120, 40),
      "test-failed-1.png": drawPage(300),
      "video.webm": new Uint8Array([0x1a, 0x45, 0xdf, 0xa3]),
      "browser.log": naming(
        "GET /cart 200 in 12 ms\n[error] TypeError: price is undefined\nGET /icons.svg 304 in 2 ms\n",
      ),
      "trace.zip": new Uint8Array(Buffer.from("PK\x03\x04", "latin1")),
    };
    const attachments = Object.keys(files).map((name) => ({ path: `${folder}/${name}`, name: naming(name) }));
    const failed = {
      ...{ suite: naming("Cart"), name: naming("shows the cart as designed"), file: "test/cart.visual.ts", line: 18 },
      ...{ status: "failed", message: naming("Error: expect(page).toHaveScreenshot(expected) failed"), attachments },
    };
    const form = new FormData();
    for (const [name, content] of Object.entries(files))
      form.append("attachment", new Blob([content]), `${folder}/${name}`);
    form.append("attachment", new Blob([naming("Listening on 127.0.0.1:3000\n")]), "server.log");
    const report = JSON.stringify({ passed: 0, failed: 1, skipped: 0, cases: [failed] });
    form.append("file", new Blob([report]), "report.json");
    await uploadReport(form, query);
  }

  const create = (name: string, role: Role, team = acme.team) => {
    // Other files may have a fixture in the same database.
    const email = `${name.split(" ")[0]!.toLowerCase()}.${acme.team.slice(-6)}@acme.example`;
    return createPerson(database, { team, role }, { name: naming(name), email });
  };
  const people = {
    owner: await create("Ada Lovelace", "owner"),
    member: await create("Grace Hopper", "member"),
    viewer: await create("Alan Turing", "viewer"),
    stranger: await create("Mallory", "owner", rival.team),
  };
  const { owner } = people;

  await patch("", { name: naming("shop") });
  const sample = createAsking(ask, await harness.addProject(acme));
  await sample.patch("", { name: naming("payments") });
  await sample.post("/onboarding/sample-data");

  // A line has one commit.
  const inLine = (text: string) => naming(text).replaceAll(/[\t\r\n]/g, " ");
  const author = (day: number) => inLine(AUTHORS[day % AUTHORS.length]!);
  const subject = (day: number) => inLine(SUBJECTS[day % SUBJECTS.length]!);
  const now = Date.now();
  const slow = toReport("Search", SEARCH, { "answers in time": SLOW }, naming);
  for (let day = days; day >= 1; day--) {
    const at = new Date(now - day * DAY + 3_600_000).toISOString();
    const commit = Bun.SHA1.hash(`main ${day}`, "hex");
    const parent = Bun.SHA1.hash(`main ${day + 1}`, "hex");
    const build = {
      ...{ execution_key: String(412 - day), branch: "main", commit, completed_at: at },
      commits: [commit, parent, author(day), at.replace(".000", "").replace(/\.\d+/, ""), subject(day)].join("\t"),
    };
    // Now a little faster, now a little slower.
    const pace = 1 + Math.sin(day * 1.7) / 6;
    const failures: Record<string, Failure> = {};
    if (day >= 16 && day <= 18) failures["refuses an expired voucher"] = CURRENCY;
    if (day <= 2) failures["applies two vouchers at once"] = VOUCHER;
    await upload({ ...build, task_slug: "unit" }, toReport("Cart", CART, {}, naming, pace));
    await upload({ ...build, task_slug: "voucher" }, toReport("Voucher", VOUCHERS, failures, naming, pace));
    if (day % 2 === 1)
      await upload(
        { ...build, task_slug: "e2e" },
        toReport("Search", SEARCH, { "answers in time": SLOW }, naming, pace),
      );
    await upload({ ...build, task_slug: "e2e", complete: "true" }, toReport("Search", SEARCH, {}, naming, pace));
  }
  const feature = {
    execution_key: "413",
    branch: naming("feature/two-currencies-in-one-cart"),
    commit: "1a2b3c4d5e6f70819293a4b5c6d7e8f901234567",
    build_url: "https://ci.acme.example/shop/builds/413",
    pull_request: naming("87"),
    ...{ host: naming("ci-3"), system: naming("linux x64"), image: naming("ubuntu-24.04") },
  };
  const broken = ["adds up prices in two currencies", "rounds prices to cents", "refuses an empty cart"];
  const currencies = Object.fromEntries(broken.map((name) => [name, CURRENCY]));
  const voucher = toReport("Voucher", VOUCHERS, { "applies two vouchers at once": VOUCHER }, naming);
  await upload({ ...feature, task_slug: "unit", exit_code: "1" }, toReport("Cart", CART, currencies, naming));
  await upload({ ...feature, task_slug: "voucher" }, voucher);
  await upload({ ...feature, task_slug: "e2e" }, slow);
  await uploadPictures({ ...feature, task_slug: "visual" });
  const run = await upload({ ...feature, task_slug: "e2e", complete: "true" }, toReport("Search", SEARCH, {}, naming));
  await call("POST", "/test-runs?task_slug=unit&branch=main", naming("<testsuite><cut off"));
  await call("POST", "/test-runs?task_slug=unit", `<testsuite name="empty"/>`);

  const owners = "/test/cart.test.ts @acme/cart\n/test/voucher.test.ts @acme/cart @acme/pay\n";
  const ownersFile = `# ${naming("Who looks after the tests of the shop")}\n${owners}`;
  await call("PUT", "/owners?path=.github/CODEOWNERS&branch=main", ownersFile);

  const environment = await postToTeam("/environments", {
    ...{ slug: "staging", name: naming("Staging"), description: naming("Reset every night") },
    baseUrl: "https://staging.acme.example",
  });
  const rule = await postToTeam("/infrastructure-rules", {
    ...{ name: naming("Search index"), pattern: "index * is being rebuilt" },
    url: "https://wiki.acme.example/search",
  });
  const variables = `/teams/${team}/environments/${environment.id}/variables`;
  for (const [name, value, secret] of [
    ["BASE_URL", naming("https://staging.acme.example"), false],
    ["API_TOKEN", "t-4711", true],
  ] as const)
    await ask(`PUT ${variables}/${name}`, { key: teamKey, body: { value, secret } });

  const running = await post("/executions", {
    ...{ mode: "run", key: "414", environment: "staging", tasks: [{ slug: "e2e", shards: 2 }, "unit", "lint"] },
    ...{ branch: naming("main"), commit: "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432" },
  });
  const sync = { runner: naming("build-3/1"), labels: ["linux"] };
  const { leases } = await post("/leases", { ...sync, free: 1 });
  await post("/leases", { ...sync, free: 0, held: [{ id: leases[0].id, log: { offset: 0, text: naming(LOG) } }] });

  const failing = { status: 500, body: naming("the service is away") };
  const receiver = createReceiver({ status: 200 }, failing, { status: 200 });
  const config = { url: `${receiver.url}/assay` };
  const integration = await postToTeam("/integrations", { kind: "webhook", name: naming("Deployments"), config });
  const channel = { url: "https://hooks.slack.invalid/services/T0/B0/X" };
  const slack = await postToTeam("/integrations", { kind: "slack", name: naming("#quality"), config: channel });
  const services = { outbound: outboundToReceivers(2_000), seal: createSeal(SECRET_KEY) };
  const log = createLog("error", () => {}, false);
  const deliverer = createDeliverer(database, services, log);
  let delivery;
  for (let index = 0; index < 2; index++) {
    delivery = await postToTeam(`/integrations/${integration.id}/test`);
    await deliverer.start();
    await deliverer.ended();
  }
  const automation = await postToTeam("/automations", {
    name: naming("Tell the team that main is red"),
    trigger: { event: "execution.failed" },
    conditions: { branches: ["main", "release/*"] },
    actions: [{ type: "notify", integrationId: slack.id }],
  });
  await postToTeam("/automations", {
    name: naming("Every night on staging"),
    trigger: { schedule: "30 2 * * *", timezone: "Europe/Berlin" },
    actions: [{ type: "notify", integrationId: integration.id }],
  });
  await postToTeam(`/automations/${automation.id}/run`, { dryRun: true });

  const cases = await list("/test-cases?health=flaky,broken&limit=50");
  const bugs = await list("/bug-reports?limit=50");
  const bug = await post("/bug-reports", {
    ...{ title: naming("The cart forgets its items after a log-in"), severity: "critical" },
    description: naming("Since the cart was rewritten.\nSeen by two customers."),
    ...{ assignee: naming("Grace Hopper"), testCaseIds: [cases[0].id] },
  });
  const quarantined = cases.find(({ name }: { name: string }) => name.includes("answers in time")) ?? cases[0];
  await patch(`/test-cases/${quarantined.id}`, {
    quarantine: { reason: naming("The search index is rebuilt: #12") },
    owner: naming("search-team"),
  });

  const verified = cases.find(({ name }: { name: string }) => name.includes("voucher")) ?? cases[0];
  await post("/leases", { ...sync, free: 0, probeSlugs: [verified.taskSlug] });
  const verification = await post(`/test-cases/${verified.id}/verify`, {
    ...{ commit: "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432", runs: 200, release: true },
  });

  const place = { teamId: team, id: project, name: naming("shop") };
  const share = await createShare(database, owner, place, { kind: "execution", executionId: run.executionId });
  const projectShare = await createShare(database, owner, place, { kind: "project" });
  const badge = await createShare(database, owner, place, { kind: "badge", branch: null, shows: "status" });
  const invitation = await invite(database, owner, team, { role: "member", email: undefined });
  const namedKey = await post("/keys", { name: naming("nightly e2e"), scope: "upload" });
  const trusted = {
    ...({ kind: "github", issuer: DEFAULT_ISSUERS.github, repositoryId: "700100", ownerId: "4711" } as const),
    ...{ repository: naming("acme/shop"), events: ["push"], refs: ["refs/heads/main"] },
  };
  const trustRuleId = await database.begin((sql) => addTrustRule(sql, project, trusted, COMMAND_LINE));
  const [teamKeyRow] = await database.pool<{ id: string }[]>`
    select id from api_key where team_id = ${team} and revoked_at is null limit 1`;

  const [attachment] = await list(`/executions/${run.executionId}/test-runs/visual/attachments?limit=1`);

  await insertFoundSearch(database, { project, bugReportId: bugs[0].id, naming });

  /** One of each parameter of a path. */
  const there: Record<string, string> = {
    ...{ projectId: project, teamId: team, accountId: people.member.accountId, sessionId: owner.sessionId },
    ...{ executionId: run.executionId, taskSlug: "unit", attachmentId: attachment.id, tag: "test-runs" },
    ...{ testId: verified.id, verificationId: verification.id, bugId: bugs[0].id },
    ...{ environmentId: environment.id, variableName: "BASE_URL", infrastructureRuleId: rule.id },
    ...{ integrationId: integration.id, deliveryId: delivery.id, automationId: automation.id },
    ...{ invitationId: invitation.id, keyId: teamKeyRow!.id, namedKeyId: namedKey.id, trustRuleId },
    shareId: share.share.id,
  };
  const tokens: Record<string, string> = {
    "/invitations/:token": invitation.token,
    "/shared/:token": share.token,
    "/badge/:token": `${badge.token}.svg`,
  };

  /** The path of a page of ours; `other` takes the place of some parameters. */
  function fill(path: string, other: Record<string, string> = {}): string {
    return path.replace(/:(\w+)/g, (_, name: string) => {
      const value = other[name] ?? (name === "token" ? tokens[path] : there[name]);
      if (value === undefined) throw new Error(`There is nothing for ${name} of ${path}`);
      return encodeURIComponent(value);
    });
  }

  return { ...harness, people, there, fill, bug, running, projectShare, bugs, cases };
}

/** A digest of each table, without what a request leaves behind that changes nothing: when somebody was last seen, and counts. */
export async function digestTables({ pool }: Database): Promise<Record<string, string>> {
  const tables = await pool<{ name: string }[]>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition and n.nspname = 'public'
    and c.relname not in ('branch_day', 'project_watch') order by 1`;
  const digests: Record<string, string> = {};
  for (const { name } of tables) {
    const omitted = ["last_seen_at", "last_used_at", "watched_until", ...(name === "session" ? ["expires_at"] : [])];
    const [row] = await pool.unsafe(
      `select count(*) || ' ' || coalesce(md5(string_agg(t, '|' order by t)), '') as digest
       from (select (to_jsonb(x) - $1::text[])::text as t from "${name}" x) rows`,
      [`{${omitted.join(",")}}`],
    );
    digests[name] = row!["digest"];
  }
  return digests;
}

/** Pages that are looked at, beside those that stream, or lead elsewhere, and the viewer of the API, which is not ours. */
export const LOOKED_AT = PAGES.filter(
  ({ method, path }) =>
    method === "GET" &&
    !/\/live$|\/text$|\/export$|\/:attachmentId$|^\/login\/|^\/badge\/|^\/account\/link$|^\/docs\/operations$/.test(
      path,
    ),
);
