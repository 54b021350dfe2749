/** Fills a server through its own API, commands and pages with one of everything that it knows. */

import { type Access, PASSWORD, PLAN, VARIABLES, WAITING } from "./dump.ts";
import { createClient } from "./client.ts";
import type { Database } from "../../../src/database/connect.ts";
import { readFixture, REPORTS } from "./reports.ts";

/** `admin` runs a command of `assay admin` and returns what it prints. */
export type FilledServer = {
  url: string;
  admin: (...args: string[]) => Promise<Record<string, string>>;
  database: Pick<Database, "pool">;
};

const DAY = 86_400_000;
const sha = (text: string): string => Bun.SHA1.hash(text, "hex");

type Case = { name: string; says?: string; seconds?: number };
const toJunit = (suite: string, cases: readonly Case[]): string => {
  const inner = ({ says }: Case) =>
    says === undefined ? "" : `<failure message="${says}">${says}\n    at price (src/cart/price.ts:41:17)</failure>`;
  const toCase = (one: Case) =>
    `<testcase classname="${suite}" name="${one.name}" file="test/${suite.toLowerCase()}.test.ts" time="${one.seconds ?? 0.25}">${inner(one)}</testcase>`;
  return `<testsuite name="${suite}">${cases.map(toCase).join("")}</testsuite>`;
};
const CART = ["adds an item", "removes an item", "keeps the cart", "rounds prices"];
/** A letter for each test of the cart: p passed, f failed. */
const cart = (letters: string): string =>
  toJunit(
    "Cart",
    CART.map((name, at) => (letters[at] === "f" ? { name, says: `expected ${at + 1} items, got 0` } : { name })),
  );

async function createTeam({ admin }: FilledServer): Promise<Omit<Access, "environmentId">> {
  const { id: team } = await admin("create-team", "--name", "Acme");
  const { id: project } = await admin("create-project", "--team", team!, "--name", "shop");
  const { key: firstKey } = await admin("generate-key", "--project", project!);
  const { key: projectKey } = await admin("generate-key", "--project", project!);
  const { key: teamKey } = await admin("generate-key", "--team", team!, "--name", "deploy");
  const { id, key: revokedTeamKey } = await admin("generate-key", "--team", team!, "--name", "old");
  await admin("revoke-key", "--id", id!);
  return {
    ...{ team: team!, project: project!, projectKey: projectKey!, teamKey: teamKey! },
    revokedKeys: [firstKey!, revokedTeamKey!],
    ...{ members: [], invitation: "", publicPaths: [] },
  };
}

type Filled = { server: FilledServer; access: Omit<Access, "environmentId"> };

/** Returns the access to what was created. Throws an Error with the answer of the server if it refuses a request. */
export async function fill(server: FilledServer): Promise<Access> {
  const access = await createTeam(server);
  const filled = { server, access };
  const environmentId = await fillTeam(filled);
  const client = createClient(server.url, access);
  await client.project("PATCH", "", { retentionDays: 0 });
  await client.project("PATCH", "/onboarding", { dismissed: true });
  await uploadHistory(filled);
  await uploadFormats(filled);
  await fillExecutions(filled);
  await fillBugs(filled);
  await fillPeople(filled);
  await fillRunners(filled);
  await fillKeys(filled);
  await fillNewest(filled);
  return { ...access, environmentId };
}

/** Returns the id of the environment. */
async function fillTeam({ server, access }: Filled): Promise<string> {
  const { team } = createClient(server.url, access);
  const { id: environmentId } = await team("POST", "/environments", {
    ...{ slug: "staging", name: "Staging", baseUrl: "https://staging.acme.example", description: "Reset every night" },
  });
  for (const [name, value] of Object.entries(VARIABLES))
    await team("PUT", `/environments/${environmentId}/variables/${name}`, { value, secret: name === "API_TOKEN" });
  const { id: other } = await team("POST", "/environments", { slug: "preview", name: "Preview" });
  await team("DELETE", `/environments/${other}`);
  // Nothing is sent there: the address is refused because it is private.
  const { id: webhook } = await team("POST", "/integrations", {
    ...{ kind: "webhook", name: "Deployments" },
    config: { url: "http://127.0.0.1:9/assay", secret: `whsec_${Buffer.alloc(32, 5).toString("base64")}` },
  });
  await team("POST", "/integrations", {
    ...{ kind: "github", name: "GitHub", enabled: false, config: { repository: "acme/shop", token: "ghp_4711" } },
  });
  await team("POST", "/automations", {
    ...{ name: "main is red", trigger: { event: "execution.failed" }, conditions: { branches: ["main"] } },
    actions: [{ type: "notify", integrationId: webhook }],
  });
  await team("POST", "/automations", {
    ...{ name: "Every night", enabled: false, trigger: { schedule: "30 2 * * *", timezone: "Europe/Berlin" } },
    actions: [{ type: "start_execution", projectId: access.project, tasks: ["nightly"], environment: "staging" }],
  });
  return environmentId;
}

/** Twelve builds of the default branch with a flaky test, a bug that ends and one that stays, and a branch beside them. */
async function uploadHistory({ server, access }: Filled): Promise<void> {
  const { upload } = createClient(server.url, access);
  const now = Date.now();
  const at = (day: number) => new Date(now - day * DAY - 3_600_000).toISOString();
  await upload({ task_slug: "unit", branch: "main", commit: sha("long ago"), completed_at: at(45) }, cart("pppp"));
  for (let day = 12; day >= 1; day--) {
    const build = { execution_key: `build-${day}`, branch: "main", commit: sha(`main ${day}`), completed_at: at(day) };
    const letters = day === 9 || day === 8 ? "pfpp" : day <= 2 ? "pppf" : "pppp";
    if (day % 3 === 0) await upload({ ...build, task_slug: "unit" }, cart(letters.replace(/^p/, "f")));
    await upload({ ...build, task_slug: "unit" }, cart(letters));
    for (const index of [1, 2])
      await upload(
        { ...build, task_slug: "e2e", shard: `${index}/2` },
        toJunit("Search", [{ name: `finds ${index}` }]),
      );
    const lint = toJunit("Lint", [{ name: "style", seconds: day <= 2 ? 30 : 2 }]);
    await upload({ ...build, task_slug: "lint", complete: "true" }, lint);
  }
  const topic = {
    ...{ execution_key: "pull-87", branch: "feature/two-currencies", commit: sha("topic"), pull_request: "87" },
    build_url: "https://ci.acme.example/shop/builds/413",
  };
  await upload({ ...topic, task_slug: "unit", exit_code: "1" }, cart("pffp"));
  await upload({ ...topic, task_slug: "lint", exit_code: "2", complete: "true" }, toJunit("Lint", [{ name: "style" }]));
  await upload({ task_slug: "unit", branch: "main", commit: sha("cut") }, cart("pppp").slice(0, -90));
  const moved = { branch: "moved", commit: sha("moved"), task_slug: "unit" };
  await upload(moved, cart("pppp").replaceAll("test/cart.test.ts", "test/shop/cart.test.ts"));
  const incomplete = { execution_key: "shards", branch: "release/1.x", commit: sha("shards"), task_slug: "e2e" };
  await upload({ ...incomplete, shard: "1/2" }, toJunit("Search", [{ name: "finds 1" }]));
}

async function uploadFormats({ server, access }: Filled): Promise<void> {
  const { upload } = createClient(server.url, access);
  for (const name of REPORTS)
    await upload(
      { task_slug: name, execution_key: "formats", branch: "formats", exit_code: "0" },
      await readFixture(name),
    );
}

/** An execution of each state and one that was deleted. */
async function fillExecutions({ server, access }: Filled): Promise<void> {
  const { project, upload } = createClient(server.url, access);
  const start = (key: string, more: object = {}) =>
    project("POST", "/executions", { key, tasks: ["unit", "e2e"], branch: "main", commit: sha(key), ...more });
  const { id: cancelled } = await start("cancelled");
  await project("POST", `/executions/${cancelled}/cancel`);
  const { id: waiting } = await start(WAITING, { environment: "staging", timeoutMinutes: 1_440 });
  const run = `/executions/${waiting}/test-runs/unit`;
  await project("GET", `${run}/${PLAN}`);
  const files = ["test/cart.test.ts", "test/new.test.ts"];
  await project("POST", `${run}/batches`, { shard: "1/2", holder: "job 1", files });
  const { id: half } = await start("half", { timeoutMinutes: 1_440 });
  await upload({ execution_id: half, task_slug: "unit" }, cart("pppp"));
  const { id: deleted } = await start("deleted");
  await upload({ execution_id: deleted, task_slug: "unit" }, cart("pppp"));
  await project("DELETE", `/executions/${deleted}`);
  const { id: red } = await start("red", { tasks: ["unit"], branch: "rerun" });
  await upload({ execution_id: red, task_slug: "unit" }, cart("ffpp"));
  await project("POST", `/executions/${red}/complete`);
  await project("POST", `/executions/${red}/rerun`, { failedOnly: true });
}

async function fillBugs({ server, access }: Filled): Promise<void> {
  const { project } = createClient(server.url, access);
  const { data: cases } = await project("GET", "/test-cases?limit=100");
  const named = (name: string) => cases.find((one: { name: string }) => one.name === name).id;
  const { id: bug } = await project("POST", "/bug-reports", {
    ...{ title: "The cart forgets its items", description: "Since the cart was rewritten.", severity: "critical" },
    ...{ assignee: "Grace Hopper", labels: ["cart"], testCaseIds: [named("keeps the cart")] },
  });
  const once = { "idempotency-key": "items-are-lost" };
  const { id: twin } = await project("POST", "/bug-reports", { title: "Items are lost", severity: "minor" }, once);
  await project("POST", `/bug-reports/${twin}/merge`, { into: bug });
  await project("PATCH", `/bug-reports/${bug}`, { status: "in_progress" });
  const { id: ignored } = await project("POST", "/bug-reports", { title: "A typo", severity: "trivial" });
  await project("PATCH", `/bug-reports/${ignored}`, { status: "ignored" });
  const { id: resolved } = await project("POST", "/bug-reports", { title: "The logo is missing" });
  await project("PATCH", `/bug-reports/${resolved}`, { status: "resolved", fixedInCommit: sha("fix") });
  await project("PATCH", `/test-cases/${named("adds an item")}`, {
    ...{ owner: "cart-team", quarantine: { reason: "The stock is rebuilt: #12", until: "2100-01-01T00:00:00.000Z" } },
  });
}

/** Three members with sessions, an invitation, shared pages, a badge. */
async function fillPeople({ server, access }: Filled): Promise<void> {
  const client = createClient(server.url, access);
  for (const role of ["owner", "member", "viewer"]) {
    const email = `${role}@acme.example`;
    await server.admin("create-user", "--email", email, "--team", access.team, "--role", role, "--password", PASSWORD);
    access.members.push({ email, role, session: await client.signIn(email) });
  }
  const owner = access.members[0]!.session!;
  // They end while the tests are in use otherwise.
  await server.database.pool`update session set expires_at = '2100-01-01'`;
  const invited = await client.submit(owner, `/teams/${access.team}/members`, `/teams/${access.team}/invitations`, {
    ...{ role: "member", email: "new@acme.example" },
  });
  access.invitation = /\/invitations\/[\w-]{20,}/.exec(invited)![0];
  await server.database.pool`update invitation set expires_at = '2100-01-01'`;
  const shares = `/projects/${access.project}/shares`;
  const shared = await client.submit(owner, shares, shares, {});
  access.publicPaths.push(/\/shared\/[\w-]{20,}/.exec(shared)![0]);
  const badges = await client.submit(owner, shares, `/projects/${access.project}/badges`, {
    shows: "status",
    branch: "",
  });
  access.publicPaths.push(/\/badge\/[\w-]{20,}\.svg/.exec(badges)![0]);
}

/** A task that a runner has ended, one that it is running, and one that waits. */
async function fillRunners({ server, access }: Filled): Promise<void> {
  const { project, upload } = createClient(server.url, access);
  const started = await project("POST", "/executions", {
    ...{ mode: "run", key: "run", environment: "staging", branch: "main", commit: sha("run"), timeoutMinutes: 1_440 },
    ...{ tasks: ["unit", "e2e", { slug: "gpu", labels: ["gpu"] }], variables: { SEED: "17" } },
  });
  const sync = { runner: "build-3/1", labels: ["linux"], taskSlugs: ["unit", "e2e"] };
  const { leases } = await project("POST", "/leases", { ...sync, free: 2 });
  await project("POST", "/leases", {
    ...{ ...sync, free: 0 },
    held: leases.map(({ id }: { id: string }) => ({ id, log: { offset: 0, text: "$ bun test\nok 1 adds an item\n" } })),
  });
  const done = { execution_id: started.id, task_slug: leases[0].taskSlug, lease_id: leases[0].id };
  await upload(done, cart("pppp"));
  await project("POST", `/leases/${leases[1].id}/fail`, { exitCode: 127, message: "bun: command not found" });
}

async function fillKeys({ server, access }: Filled): Promise<void> {
  const { project } = createClient(server.url, access);
  await project("POST", "/keys", { name: "nightly e2e", scope: "upload" });
  const { id, key } = await project("POST", "/keys", { name: "old laptop", scope: "read" });
  await project("DELETE", `/keys/${id}`);
  access.revokedKeys.push(key);
  await project("POST", "/runners", { runner: "build-4/1" });
}

/** Owners by CODEOWNERS, infrastructure rules, attachments, trusted CI jobs, a deleted project. */
async function fillNewest({ server, access }: Filled): Promise<void> {
  const { project, team, upload } = createClient(server.url, access);
  await project("PUT", "/owners?path=.github/CODEOWNERS&branch=main", "cart.test.ts @acme/cart\n");
  await team("POST", "/infrastructure-rules", { name: "Search index", pattern: "index * is being rebuilt" });
  const failed = {
    ...{ suite: "Cart", name: "looks as designed", status: "failed", message: "The picture differs" },
    attachments: [{ path: "cart-actual.png" }],
  };
  const form = new FormData();
  form.append("attachment", new Blob(["\x89PNG\r\n\x1a\n of a cart"]), "cart-actual.png");
  form.append("attachment", new Blob(["Listening on 127.0.0.1:3000\n"]), "server.log");
  form.append("file", new Blob([JSON.stringify({ passed: 0, failed: 1, skipped: 0, cases: [failed] })]), "report.json");
  await upload({ task_slug: "visual", branch: "pictures", commit: sha("pictures") }, form);
  const repository = ["--repository-id", "700100", "--owner-id", "4711", "--repository", "acme/shop"];
  await server.admin("trust-ci", "--project", access.project, "--kind", "github", ...repository);
  const { id } = await server.admin("create-project", "--team", access.team, "--name", "mistake");
  await server.admin("delete-project", "--id", id!, "--confirm", "mistake");
}
