/** Comments on pull requests and check runs, from uploads to the requests that a code host gets. */

import { generateKeyPairSync } from "node:crypto";
import { beforeEach, describe, expect, test } from "bun:test";
import { expireExecutions } from "../../src/work/expire.ts";
import { createAsking } from "../asking.ts";
import { createAutomating, PUBLIC_URL } from "../automating.ts";
import { insertFoundSearch } from "../culprit_searches.ts";
import { createHarness, until } from "../harness.ts";
import { createReceiver, type Recorded } from "../receiver.ts";

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, addProject, database } = harness;
const { call, integrate, createSender, handle, deliver, settle, ...automating } = createAutomating(harness, acme);

let project: ReturnType<typeof createAsking>;
beforeEach(async () => {
  await automating.deleteAutomations();
  project = createAsking(ask, await addProject(acme));
});

/** A code host with comments: those of others are there already. */
function createHost() {
  const comments = new Map<number, string>();
  const answer = ({ method, path, body }: Recorded) => {
    const id = Number(path.split("/").at(-1)!.split("?")[0]);
    if (method === "GET" && path.endsWith("/user")) return { status: 200, body: { id: 7 } };
    if (method === "GET") {
      const me = { user: { id: 7 }, author: { id: 7 } };
      return { status: 200, body: [...comments].map(([id, body]) => ({ id, body, ...me })) };
    }
    if (method === "POST") comments.set(100 + comments.size, body.body);
    else if (!comments.has(id)) return { status: 404, body: {} };
    else comments.set(id, body.body);
    return { status: method === "POST" ? 201 : 200, body: { id: method === "POST" ? 99 + comments.size : id } };
  };
  const receiver = createReceiver(answer);
  return { ...receiver, comments, answer };
}

const automate = (event: string, integrationId: string, type = "notify") =>
  automating.automate({ name: event, trigger: { event }, actions: [{ type, integrationId }] });

/** A code host that gets comments on what happens in executions. */
async function beginComments({ kind = "github", events = ["test_run.completed"] } = {}) {
  const host = createHost();
  const where = kind === "github" ? { repository: "acme/web" } : { project: "acme/web" };
  const integrationId = await integrate(kind, { baseUrl: host.url, token: "S3CRET-token", ...where });
  for (const event of events) await automate(event, integrationId);
  const shown = () => [...host.comments.values()];
  return { ...host, integrationId, shown };
}

type Case = { name: string; fails?: boolean; file?: string; line?: number };
const toReport = (...cases: Case[]) => {
  const written = cases.map(({ name, fails, file = "test/cart.test.ts", line = 3 }) => {
    const failure = fails ? `<failure message="${name} broke"/>` : "";
    return `<testcase classname="Cart" name="${name}" file="${file}" line="${line}" time="1">${failure}</testcase>`;
  });
  return `<testsuite name="Cart">${written.join("")}</testsuite>`;
};

async function upload(parameters: Record<string, string>, ...cases: Case[]) {
  const query = new URLSearchParams({ branch: "feature", pull_request: "12", task_slug: "unit", ...parameters });
  const { status, body } = await project.send(toReport(...cases), `${query}`);
  expect(status).toBe(201);
  return body;
}
/** Uploads, and sends what is to be said of it. */
async function report(parameters: Record<string, string>, ...cases: Case[]) {
  const run = await upload(parameters, ...cases);
  await settle();
  return run;
}
const methods = ({ requests }: { requests: Recorded[] }) => requests.map(({ method, path }) => `${method} ${path}`);
const notesAt = "/api/v4/projects/acme%2Fweb/merge_requests/12/notes";
/** Uploads a build of one case for the pull request, and sends what is to be said of it. */
async function push(key: string, { name = "adds", fails = false } = {}, more: Record<string, string> = {}) {
  return await report({ execution_key: key, complete: "true", ...more }, { name, fails });
}

describe.each([
  ["github", "/repos/acme/web/issues/12/comments", "PATCH /repos/acme/web/issues/comments/100"],
  ["gitlab", notesAt, `PUT ${notesAt}/100`],
])("%s", (kind, list, edit) => {
  test("two pushes are one comment: the second one changes it", async () => {
    const host = await beginComments({ kind });
    await push("1", { fails: true });
    expect(host.comments.get(100)).toContain("`1 new failure`");
    await push("2", {}, { commit: "0123456789abcdef" });
    expect([...host.comments.keys()]).toEqual([100]);
    expect(host.comments.get(100)).toContain("<code>other: 1 passed");
    expect(methods(host)).toEqual([`POST ${list}`, edit]);
  });
});

describe("the comment", () => {
  test("says how far the execution has come, and then how it ended", async () => {
    const host = await beginComments();
    const tasks = ["unit", "e2e", "lint"];
    await project.post("/executions", { key: "1", tasks, branch: "feature", pullRequest: "12" });
    await report({ execution_key: "1" }, { name: "adds" });
    expect(host.comments.get(100)).toContain("### `other`: `Running, 1 of 3 tasks`");
    await report({ execution_key: "1", task_slug: "e2e" }, { name: "pays", fails: true });
    expect(host.comments.get(100)).toContain("`Running, 2 of 3 tasks, 1 new failure so far`");
    await report({ execution_key: "1", task_slug: "lint" }, { name: "style" });
    expect(host.comments.get(100)).toContain("### `other`: `1 new failure`");
    expect(host.comments.size).toBe(1);
  });

  test("is not folded where tests of the baseline did not run, and names them", async () => {
    const host = await beginComments();
    const main = { branch: "main", pull_request: "", complete: "true" };
    await upload(main, ...["adds", "removes", "pays"].map((name) => ({ name })));
    await report({ execution_key: "1", complete: "true" }, { name: "adds" });
    const comment = host.comments.get(100)!;
    expect(comment).toContain("### `other`: `1 passed");
    expect(comment).toContain("**Tests of the baseline that did not run (2)**\n\n- [`Cart › removes`]");
  });

  test("names new failures with owner, line and link, and what it was compared with", async () => {
    const host = await beginComments();
    await project.call("PUT", "/owners", "/test/cart* @acme/cart\n");
    const main = { branch: "main", pull_request: "", complete: "true" };
    await upload({ ...main, execution_key: "main1" }, { name: "adds" }, { name: "sums", fails: true });
    const passes = Array.from({ length: 40 }, (_, index) => ({ name: `passes ${index}` }));
    const fails = Array.from({ length: 12 }, (_, index) => ({ name: `breaks ${index}`, fails: true, line: index + 1 }));
    const adds = { name: "adds", fails: true, line: 42 };
    await report({ execution_key: "1", complete: "true" }, adds, { name: "sums" }, ...fails, ...passes);
    const text = host.comments.get(100)!;
    const [added] = await project.list("/test-cases?q=adds");
    const address = `${PUBLIC_URL}/projects/${project.project}/tests/${added.id}`;
    const place = "`test/cart.test.ts:42` `@acme/cart`";
    expect(text).toContain(`- [\`Cart › adds\`](<${address}>) ${place}\n  \`adds broke\``);
    expect(text).toContain("**New failures (13)**");
    expect(text.match(/broke`$/gm)).toHaveLength(10);
    expect(text).toContain("- and 3 more");
    expect(text).toContain("**Fixed (1)**\n\n- [`Cart › sums`]");
    expect(text).toMatch(/compared with \[`main #main1`\]\(<\S+\/executions\/\S+>\)/);
  });

  test("names the known bugs of the project that its failures belong to, and the commits that broke their tests", async () => {
    const host = await beginComments();
    const main = { branch: "main", pull_request: "", complete: "true" };
    // The same failure is a bug of another project as well.
    await upload({ ...main, execution_key: "main1" }, { name: "adds", fails: true });
    const others = await upload({ ...main, execution_key: "main2" }, { name: "adds", fails: true });
    project = createAsking(ask, await addProject(acme));
    await upload({ ...main, execution_key: "main1" }, { name: "adds" }, { name: "sums" });
    await push("1", { fails: true });
    expect(host.comments.get(100)).toContain("**New failures (1)**");
    expect(host.comments.get(100)).not.toMatch(/bug/i);

    const broken = await upload({ ...main, execution_key: "main2" }, { name: "adds" }, { name: "sums", fails: true });
    const [{ id }] = broken.bugReports;
    const [{ id: otherId }] = others.bugReports;
    await insertFoundSearch(database, { project: project.project, bugReportId: id });
    const { summary } = await project.get(`/bug-reports/${id}/culprit`);
    await report({ execution_key: "2", complete: "true" }, { name: "adds" }, { name: "sums", fails: true });
    const [comment] = host.shown();
    const bugUrl = `${PUBLIC_URL}/projects/${project.project}/bugs/${id}`;
    expect(comment!.split("\n\n").slice(1, 3)).toEqual([
      "### `other`: `Nothing new since main #main2: 1 still failing`",
      `**Known bugs (1)**`,
    ]);
    const proof = `[\`${summary}\`](<${bugUrl}#culprit>)`;
    expect(comment).toContain(`- [\`Known bug #1 "sums broke"\`](<${bugUrl}>) 1 failure\n  ${proof}\n`);
    expect(comment).not.toContain(otherId);
  });

  test("counts all failures of a known bug, although only one of an outage is matched with it", async () => {
    const host = await beginComments();
    const failure = `<failure message="expected 2 items">Error: expected 2 items\n    at cart (src/cart.ts:42:5)</failure>`;
    const names = Array.from({ length: 12 }, (_, index) => `adds ${index}`);
    const cases = names.map((name) => `<testcase classname="Cart" name="${name}">${failure}</testcase>`);
    const body = `<testsuite>${cases.join("")}</testsuite>`;
    const send = (query: string) => project.uploadReport(body, `complete=true&task_slug=unit&${query}`);
    await send("branch=main");
    const { executionId } = await send("branch=feature&pull_request=12");
    await settle();
    const { causes } = await project.get(`/executions/${executionId}/failures`);
    expect(causes).toMatchObject([{ failed: 12, bugReport: { number: 1, known: true } }]);
    expect(host.shown()[0]).toMatch(/Known bug #1 .*\) 12 failures\n/);
  });

  test("does not go back: an older delivery that comes later shows what is known by then", async () => {
    const host = await beginComments();
    await project.post("/executions", { key: "1", tasks: ["unit", "e2e"], branch: "feature", pullRequest: "12" });
    await upload({ execution_key: "1" }, { name: "adds" });
    await handle();
    // The host is away for the first message, whose retry comes after everything is over.
    host.play({ status: 503, body: "" });
    await deliver();
    await upload({ execution_key: "1", task_slug: "e2e" }, { name: "pays", fails: true });
    host.play(host.answer);
    await database.pool`update integration set paused_until = null`;
    await database.pool`update delivery set due_at = now() - interval '1 second', state_key = null where status = 'pending'`;
    await deliver();
    expect(host.shown()).toEqual([expect.stringContaining("`1 new failure`")]);
    await settle();
    expect(host.shown()).toEqual([expect.stringContaining("`1 new failure`")]);
  });

  test.each([["1"], ["3"]])("of an earlier commit whose build %s ends later is not written", async (key) => {
    const host = await beginComments();
    const [first, second] = [{ commit: "aaaaaaaa" }, { commit: "bbbbbbbb" }];
    await upload({ execution_key: "1", ...first }, { name: "adds", fails: true });
    await upload({ execution_key: "2", complete: "true", ...second }, { name: "adds" });
    await handle();
    await push(key, { name: "pays", fails: true }, { task_slug: "e2e", ...first });
    expect(host.shown()).toEqual([expect.stringContaining("<code>other: 1 passed")]);
    const { body } = await call("GET", `/integrations/${host.integrationId}/deliveries?status=inapplicable`);
    const errors = body.data.map(({ attempts }: any) => attempts.at(-1).error);
    expect(errors).toContain("Nothing to send: the comment shows a later execution");
    await push("4", { name: "pays", fails: true }, second);
    expect(host.shown()).toEqual([expect.stringContaining("`1 new failure")]);
  });

  test.each(["test_run.completed", "execution.completed", "execution.failed"])(
    "begun by %s ends with its execution, and follows later reports",
    async (event) => {
      const host = await beginComments({ events: [event] });
      const { id } = await project.post("/executions", {
        ...{ tasks: [{ slug: "unit", shards: 2 }, "e2e"], branch: "feature", pullRequest: "12" },
      });
      await upload({ execution_id: id, task_slug: "e2e" }, { name: "pays" });
      await report({ execution_id: id, shard: "1/2" }, { name: "adds" });
      await project.post(`/executions/${id}/complete`);
      await settle();
      expect(host.shown()).toEqual([expect.stringContaining("`Incomplete: unit: shard 2 of 2 missing`")]);
      await report({ execution_id: id, shard: "2/2" }, { name: "sums" });
      expect(host.shown()).toEqual([expect.stringContaining("<code>other: 3 passed")]);
    },
  );

  test("ends also where a task never reports, or the execution is cancelled", async () => {
    const host = await beginComments();
    const begin = async (key: string) => {
      const tasks = ["unit", "e2e"];
      const { id } = await project.post("/executions", { key, tasks, branch: "feature", pullRequest: "12" });
      await report({ execution_id: id }, { name: "adds" });
      return id;
    };
    const late = await begin("1");
    await database.pool`update execution set expires_at = now() - interval '1 second' where id = ${late}`;
    await expireExecutions(database);
    await settle();
    expect(host.comments.get(100)).toContain("`Timed out: e2e: did not report within 30 minutes`");
    await project.post(`/executions/${await begin("2")}/cancel`);
    await settle();
    expect(host.comments.get(100)).toContain("`Cancelled, 1 of 2 tasks had reported`");
  });

  test("says what failures of one cause have in common once, and names failures that are known to be flaky", async () => {
    const host = await beginComments();
    const main = { branch: "main", pull_request: "" };
    for (let build = 0; build < 7; build++) {
      const flaky = { name: "flickers", fails: build % 2 === 1 };
      await upload({ ...main, complete: "true", commit: `${build}`.repeat(8) }, flaky, { name: "adds" });
    }
    const failure = `<failure message="no database">Error: no database\n    at open (src/open.ts:4:2)</failure>`;
    const cases = ["adds", "pays"].map((name) => `<testcase classname="Cart" name="${name}">${failure}</testcase>`);
    for (let one = 0; one < 10; one++) cases.push(`<testcase classname="Cart" name="passes ${one}"/>`);
    const flaky = toReport({ name: "flickers", fails: true }).replace("</testsuite>", `${cases.join("")}</testsuite>`);
    await project.uploadReport(flaky, { branch: "feature", pull_request: "12", task_slug: "unit", complete: "true" });
    await settle();
    const text = host.comments.get(100)!.replaceAll(/\(<\S+>\)/g, "");
    expect(text).toContain("**New failures (2)**\n\n- 2 tests: `no database`\n  - [`Cart › adds`]");
    expect(text).toContain("**Failures of known flaky tests (1)**\n\n- [`Cart › flickers`]");
  });

  test("says which failures a gate has forgiven", async () => {
    const host = await beginComments({ events: ["execution.failed"] });
    const cases = [{ name: "adds", fails: true }, { name: "pays" }];
    await upload({ branch: "main", pull_request: "", complete: "true" }, ...cases);
    await upload({ complete: "true", gate: "new", exit_code: "1" }, ...cases);
    await settle();
    expect(host.comments.get(100)).toContain("`1 failed, 1 passed; gate passed, 1 failure forgiven`");
  });

  test("names unclear failures with the sentence about them", async () => {
    const host = await beginComments({ events: ["execution.failed"] });
    await project.patch("", { gateShare: 0.01 });
    const cases = [{ name: "adds", fails: true }, { name: "pays" }];
    await upload({ branch: "main", pull_request: "", complete: "true" }, ...cases);
    await upload({ complete: "true" }, ...cases);
    await settle();
    const text = host.comments.get(100)!.replaceAll(/\(<\S+>\)/g, "");
    expect(text).toContain("`1 unclear failure since main #");
    expect(text).toMatch(
      /\*\*Unclear: a rerun tells \(1\)\*\*\n\n- \[`Cart › adds`\] It failed in the baseline, with the same message: \d\d % not this change; a rerun tells\n/,
    );
    expect(text).not.toMatch(/New failures|flaky/);
  });

  test("is found again after a crash between creating it and storing its id", async () => {
    const host = await beginComments();
    await push("1", { fails: true });
    // As if the server had ended before it stored the answer.
    await database.pool`update pull_request_comment set comment_id = null`;
    host.comments.set(50, host.comments.get(100)!.replace(/^<!--/, "> <!--"));
    await push("2");
    expect([...host.comments.keys()]).toEqual([100, 50]);
    expect(host.comments.get(100)).toContain("1 passed");
    const addresses = methods(host).map((one) => one.split("?")[0]);
    const list = "/repos/acme/web/issues/12/comments";
    expect(addresses.slice(1)).toEqual([`GET ${list}`, "GET /user", "PATCH /repos/acme/web/issues/comments/100"]);
  });

  test("that another server writes at the same time is written once more", async () => {
    const host = await beginComments();
    await push("1", { fails: true });
    await upload({ execution_key: "2", complete: "true" }, { name: "adds" });
    await handle();
    let requests = 0;
    // While this server waits for the answer, another one begins to write.
    host.play((request) => {
      requests++;
      return host.answer(request);
    });
    await database.pool`
      create function begin_elsewhere() returns trigger language plpgsql as $$
      begin
        new.revision := old.revision + 1;
        return new;
      end $$`;
    await database.pool`
      create trigger begin_elsewhere before update of comment_id on pull_request_comment
      for each row execute function begin_elsewhere()`;
    await deliver();
    await database.pool`drop trigger begin_elsewhere on pull_request_comment`;
    const pending = () => database.pool`select from delivery where status = 'pending'`;
    expect([requests, (await pending()).length]).toEqual([1, 1]);
    await database.pool`update integration set paused_until = null`;
    await database.pool`update delivery set due_at = now() - interval '1 second' where status = 'pending'`;
    await deliver();
    expect([requests, (await pending()).length]).toEqual([2, 0]);
    expect(host.comments.size).toBe(1);
  });

  test("several servers write one", async () => {
    const host = await beginComments();
    for (let push = 1; push <= 4; push++)
      await upload({ execution_key: String(push), complete: "true" }, { name: "adds" });
    await handle();
    await Promise.all([1, 2, 3].map(() => deliver(createSender())));
    await until(async () => (await database.pool`select from delivery where status = 'pending'`).length === 0);
    expect(host.comments.size).toBe(1);
  });

  test("of a merge queue goes to its pull request", async () => {
    const host = await beginComments();
    const branch = "gh-readonly-queue/main/pr-12-0123456789abcdef0123456789abcdef01234567";
    await push("1", { fails: true }, { branch, pull_request: "" });
    expect(methods(host)).toEqual(["POST /repos/acme/web/issues/12/comments"]);
    expect(host.comments.get(100)).toContain(`merge queue \`${branch}\``);
  });
});

test("a GitHub App makes a check run with annotations at the lines that failed, and with the known bugs", async () => {
  const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" });
  const receiver = createReceiver(
    { status: 200, body: { id: 31 } },
    { status: 201, body: { token: "ghs_x", expires_at: "2099-01-01T00:00:00Z" } },
    { status: 201, body: { id: 8 } },
  );
  // A password field loses the line breaks.
  const privateKey = String(pem).replaceAll("\n", " ");
  const id = await integrate("github", { baseUrl: receiver.url, repository: "acme/web", appId: "1", privateKey });
  await automate("test_run.completed", id, "set_commit_status");
  await project.call("PUT", "/owners", "*.ts @acme/cart\n");
  const commit = "0123456789abcdef0123456789abcdef01234567";
  const { bugReports } = await push("main1", { fails: true }, { branch: "main", pull_request: "" });
  await upload(
    { execution_key: "1", commit },
    { name: "adds", fails: true, file: "/home/runner/work/web/web/src/a.test.ts", line: 7 },
    { name: "elsewhere", fails: true, file: "/opt/x.ts" },
    { name: "sums" },
  );
  await settle();
  const { path, body } = receiver.requests.at(-1)!;
  expect(path).toBe("/repos/acme/web/check-runs");
  expect(body).toMatchObject({ name: "assay/unit", conclusion: "failure", head_sha: commit });
  expect(body.output.annotations).toEqual([
    {
      ...{ path: "src/a.test.ts", start_line: 7, end_line: 7, annotation_level: "failure" },
      ...{ title: "Cart › adds (known bug #1, @acme/cart)", message: "adds broke" },
    },
  ]);
  const bugUrl = `${PUBLIC_URL}/projects/${project.project}/bugs/${bugReports[0].id}`;
  expect(body.output.summary).toContain(`\n\n- [\`Known bug #1 "adds broke"\`](<${bugUrl}>)\n\n[Assay]`);
});

test("a GitHub App needs both its id and its key, which is nobody's to read", async () => {
  const message = async (config: object) =>
    (await call("POST", "/integrations", { kind: "github", config: { repository: "a/b", ...config } })).body.error
      ?.message;
  const both = 'Cannot read "config": expected a token, or the appId and privateKey of a GitHub App';
  expect(await message({})).toBe(both);
  expect(await message({ appId: "1" })).toBe(both);
  expect(await message({ appId: "1", privateKey: "S3CRET" })).toBe(
    'Cannot read "config.privateKey": expected an RSA private key in PEM, as GitHub gives it to an App',
  );
});
