import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createPlace } from "../places.ts";
import { createHarness, createServer, junit } from "../harness.ts";

const directory = createPlace("attachments");
const MIB = 1_048_576;
const harness = await createHarness({
  attachments: { directory, maxBytes: MIB, maxFiles: 5, maxExecutionBytes: 3 * MIB },
});
const { ask, acme, url, database } = harness;
const { key, project } = acme;
const own = createAsking(ask, acme);

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

type Case = {
  name: string;
  status: "passed" | "failed";
  flaky?: boolean;
  attachments?: { path: string; name?: string }[];
};

const toReport = (cases: readonly Case[]): string => {
  const count = (status: string) => cases.filter((one) => one.status === status).length;
  return JSON.stringify({ passed: count("passed"), failed: count("failed"), skipped: 0, cases });
};

function toFiles(files: Record<string, string | Uint8Array>): FormData {
  const form = new FormData();
  for (const [path, content] of Object.entries(files)) form.append("attachment", new Blob([content as never]), path);
  return form;
}
function toForm(report: string, files: Record<string, string | Uint8Array>): FormData {
  const form = toFiles(files);
  form.append("file", new Blob([report]), "report.json");
  return form;
}

const IMAGE = { "test-results/cart/actual.png": PNG };
/** Uploads the report of the failed case, and returns the id of its execution. */
const runFailed = async (): Promise<string> => (await upload("", toReport([FAILED]))).body.executionId;
const incoming = () => readdirSync(join(directory, "incoming"));
const upload = (query: string, body: unknown) => own.call("POST", `/test-runs?task_slug=e2e${query}`, body);
const pathOf = (executionId: string) => `/executions/${executionId}/test-runs/e2e`;
const put = (executionId: string, path: string, body: string | Uint8Array, query = "") =>
  own.call("PUT", `${pathOf(executionId)}/attachments?path=${encodeURIComponent(path)}${query}`, body);
const list = async (executionId: string) => (await own.list(`${pathOf(executionId)}/attachments?limit=100`)) as any[];
const warningsOf = async (executionId: string) => (await own.get(`${pathOf(executionId)}`)).warnings;
const namesOf = (attachments: readonly { name: string }[]) => attachments.map(({ name }) => name);
const fetchContent = (id: string, headers: Record<string, string> = {}) =>
  fetch(`${url}/api/v1/projects/${project}/attachments/${id}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });

/** The files below a directory, by their paths. */
const filesBelow = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

const FAILED: Case = {
  name: "shows the cart",
  status: "failed",
  attachments: [
    { path: "test-results\\cart\\actual.png", name: "screenshot" },
    { path: "./test-results/cart/trace.zip" },
  ],
};

describe("POST /projects/:projectId/test-runs with attachments", () => {
  test("files join the cases that name them, and the others belong to the run", async () => {
    const report = toReport([FAILED, { name: "passes", status: "passed", attachments: [{ path: "passed.png" }] }]);
    const files = { ...IMAGE, "test-results/cart/trace.zip": "PK\x03\x04 trace", "passed.png": PNG };
    const { status, body } = await upload("", toForm(report, { ...files, "server.log": "GET /cart 500\n" }));
    expect([status, body.warnings]).toEqual([201, []]);
    const cases = await own.list(`${pathOf(body.executionId)}/cases`);
    expect(cases[0].attachments).toEqual([
      {
        ...{ id: expect.any(String), name: "screenshot", path: "test-results/cart/actual.png" },
        ...{ contentType: "image/png", bytes: PNG.byteLength, attempt: 1 },
        url: `${url}/projects/${project}/attachments/${cases[0].attachments[0].id}`,
      },
      expect.objectContaining({ name: "trace.zip", contentType: "application/zip" }),
    ]);
    expect(cases[1].attachments).toEqual([]);
    const { causes } = await own.get(`/executions/${body.executionId}/failures`);
    expect(causes[0].failures[0].attachments).toEqual(cases[0].attachments);
    const all = await list(body.executionId);
    // The file of the test that passed is not kept.
    expect(namesOf(all)).toEqual(["actual.png", "trace.zip", "server.log"]);
    expect(all.map(({ testCaseIds }) => testCaseIds)).toEqual([[cases[0].testCaseId], [cases[0].testCaseId], []]);
  });

  test("attachments=all keeps those of tests that passed", async () => {
    const report = toReport([{ name: "passes", status: "passed", attachments: [{ path: "passed.png" }] }]);
    const { body } = await upload("&attachments=all", toForm(report, { "passed.png": PNG }));
    expect(namesOf(await list(body.executionId))).toEqual(["passed.png"]);
  });

  test("those of a test that failed before it passed are kept", async () => {
    const flaky: Case = { ...FAILED, status: "passed", flaky: true };
    const { body } = await upload("", toForm(toReport([flaky]), IMAGE));
    expect(namesOf(await list(body.executionId))).toEqual(["actual.png"]);
  });

  test("each attempt keeps its own file of a path", async () => {
    const send = (content: string, durationMs: number) => {
      const report = toReport([{ ...FAILED, durationMs } as Case]);
      return upload("&execution_key=attempts", toForm(report, { "test-results/cart/actual.png": content }));
    };
    const { body } = await send("first", 1);
    await send("second", 2);
    const [result] = await own.list(`${pathOf(body.executionId)}/cases`);
    const contents: unknown[] = [];
    for (const { id, attempt } of result.attachments) contents.push([attempt, await (await fetchContent(id)).text()]);
    expect(contents).toEqual([
      [2, "second"],
      [1, "first"],
    ]);
  });

  test("the very same upload again adds nothing", async () => {
    const again = () => upload("&execution_key=again", toForm(toReport([FAILED]), { "server.log": "log" }));
    expect((await again()).status).toBe(201);
    const { status, body } = await again();
    expect(status).toBe(200);
    expect(await list(body.executionId)).toHaveLength(1);
  });

  test("beyond the limits the report is taken, with warnings", async () => {
    const many = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`${index}.txt`, `${index}`]));
    const form = toForm(toReport([FAILED]), { "big.bin": new Uint8Array(MIB + 1), ...many });
    const { status, body } = await upload("", form);
    expect([status, body.failed]).toEqual([201, 1]);
    expect(body.warnings).toEqual([
      'Attachment "big.bin" was not stored: larger than 1 MiB (MAX_ATTACHMENT_MB of the server)',
      'Attachment "5.txt" was not stored: the run has 5 attachments, and more are not stored (MAX_RUN_ATTACHMENTS of the server)',
      'Attachment "6.txt" was not stored: the run has 5 attachments, and more are not stored (MAX_RUN_ATTACHMENTS of the server)',
    ]);
    expect(await warningsOf(body.executionId)).toEqual(body.warnings);
    expect(await list(body.executionId)).toHaveLength(5);
  });

  test("the bytes of an execution are counted over its runs and uploads", async () => {
    const send = (task: string, names: string[]) => {
      const files = names.map((name) => [name, new Uint8Array(MIB).fill(name.charCodeAt(0))] as const);
      const form = toForm(toReport([FAILED]), Object.fromEntries(files));
      return own.call("POST", `/test-runs?execution_key=bytes&task_slug=${task}`, form);
    };
    expect((await send("e2e", ["a", "b"])).body.warnings).toEqual([]);
    const { body } = await send("unit", ["c", "d"]);
    expect(body.warnings).toEqual([
      'Attachment "d" was not stored: the attachments of one execution may take 3 MiB (MAX_EXECUTION_ATTACHMENTS_MB of the server)',
    ]);
    const run = await own.get(`/executions/${body.executionId}/test-runs/unit`);
    expect(run.warnings).toEqual(body.warnings);
  });

  test("a compressed form has attachments as well", async () => {
    const sent = new Response(toForm(toReport([FAILED]), IMAGE));
    const headers = { "content-encoding": "gzip", "content-type": sent.headers.get("content-type")! };
    const form = Bun.gzipSync(await sent.arrayBuffer());
    const { status, body } = await own.call("POST", "/test-runs?task_slug=e2e", form, headers);
    expect(status).toBe(201);
    expect(namesOf(await list(body.executionId))).toEqual(["actual.png"]);
  });

  test("a report that is read in a thread of its own brings its attachments along", async () => {
    const passed = Array.from({ length: 20_000 }, (_, index) => `case ${index} of very many`);
    const cases = passed.map((name): Case => ({ name, status: "passed" }));
    const { status, body } = await upload("", toForm(toReport([...cases, FAILED]), IMAGE));
    expect(status).toBe(201);
    expect(namesOf(await list(body.executionId))).toEqual(["actual.png"]);
    expect(await harness.metrics.exposition()).toMatch(/^assay_attachment_bytes_total [1-9]/m);
  });

  test("a form that breaks off or is refused leaves nothing behind", async () => {
    const sent = new Response(toForm("no report", { "a.txt": "text" }));
    const type = sent.headers.get("content-type")!;
    const whole = await sent.bytes();
    for (const body of [whole, whole.slice(0, 150)])
      expect((await own.call("POST", "/test-runs?task_slug=e2e", body, { "content-type": type })).status).toBe(400);
    expect(incoming()).toEqual([]);
  });

  test("the path of a file is a name, and leads nowhere", async () => {
    const { status, body } = await upload("", toForm(toReport([FAILED]), { "../../../../etc/passwd": "x", "..": "y" }));
    expect(status).toBe(201);
    expect((await list(body.executionId)).map(({ path }) => path)).toEqual(["../../../../etc/passwd", ".."]);
  });

  test("content is stored once for a project, for nobody else to read", async () => {
    const content = "the same content of many";
    const { body } = await upload("", toForm(toReport([FAILED]), { "one.txt": content, "two.txt": content }));
    expect(await list(body.executionId)).toHaveLength(2);
    const hash = Bun.SHA256.hash(content, "hex");
    const stored = filesBelow(directory).filter((path) => path.endsWith(hash));
    expect(stored).toEqual([join(directory, project, hash.slice(0, 2), hash.slice(2, 4), hash)]);
    expect(statSync(stored[0]!).mode & 0o777).toBe(0o600);
  });

  test("while the store is away results are stored, and what is missing is named", async () => {
    const { ask: askAway } = await createServer(database, { attachments: { directory: "/dev/null/attachments" } });
    const form = () => toForm(toReport([FAILED]), IMAGE);
    const path = `POST /projects/${project}/test-runs?task_slug=e2e&execution_key=away`;
    const { status, body } = await askAway(path, { key, body: form() });
    const warning =
      'Attachment "test-results/cart/actual.png" was not stored: the store of attachments is not available';
    expect([status, body.failed, body.warnings]).toEqual([201, 1, [warning]]);
    const putting = `PUT /projects/${project}${pathOf(body.executionId)}/attachments?path=a`;
    const { status: refused, headers } = await askAway(putting, { key, body: "a" });
    expect([refused, headers.get("retry-after")]).toEqual([500, "10"]);
    // Once it is back, the same upload brings what is missing.
    expect((await ask(path, { key, body: form() })).status).toBe(200);
    expect(namesOf(await list(body.executionId))).toEqual(["actual.png"]);
    const [{ id }] = await list(body.executionId);
    const reading = await askAway(`GET /projects/${project}/attachments/${id}`, { key });
    expect(reading.status).toBe(404);
  });
});

describe("POST …/attachments", () => {
  type Files = Record<string, string | Uint8Array>;
  const post = (executionId: string, files: Files, query = "", asked: Pick<typeof own, "call"> = own) =>
    asked.call("POST", `${pathOf(executionId)}/attachments${query}`, toFiles(files));

  test("the files of a form join their cases, with the names that the report gives them; the same again changes nothing", async () => {
    const id = await runFailed();
    const files = { ...IMAGE, "server.log": "started" };
    const { status, body } = await post(id, files);
    expect([status, body.warnings]).toEqual([201, []]);
    expect(body.attachments).toMatchObject([
      { name: "screenshot", path: "test-results/cart/actual.png", testCaseIds: [expect.any(String)] },
      { name: "server.log", path: "server.log", testCaseIds: [] },
    ]);
    const again = await post(id, files);
    expect([again.status, again.body.attachments]).toEqual([200, body.attachments]);
    expect(await (await fetchContent(body.attachments[1].id)).text()).toBe("started");
    expect(incoming()).toEqual([]);
  });

  test("a form of very many parts is answered with a bounded number of warnings", async () => {
    const id = await runFailed();
    const many = Object.fromEntries(Array.from({ length: 1_200 }, (_, index) => [`${index}.log`, `${index}`]));
    const { status, body } = await post(id, many);
    expect([status, body.attachments.length, body.warnings.length]).toEqual([201, 5, 1_000]);
  });

  test("what is beyond a limit is named, on the run as well, and the rest is stored", async () => {
    const passed = { name: "passes", status: "passed" as const, attachments: [{ path: "passed.png" }] };
    const { body: run } = await upload("", toReport([FAILED, passed]));
    const many = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`${index}.log`, `${index}`]));
    const { status, body } = await post(run.executionId, { "big.bin": new Uint8Array(MIB + 1), "passed.png": PNG });
    const warnings = [
      'Attachment "big.bin" was not stored: larger than 1 MiB (MAX_ATTACHMENT_MB of the server)',
      'Attachment "passed.png" was not stored: only test cases that passed refer to it (upload the report with attachments=all to keep such files)',
    ];
    expect([status, body]).toEqual([200, { attachments: [], warnings }]);
    const more = await post(run.executionId, many);
    expect([more.status, more.body.attachments.length]).toEqual([201, 5]);
    expect(more.body.warnings).toEqual([expect.stringContaining('"5.log" was not stored: the run has 5 attachments')]);
    expect(await warningsOf(run.executionId)).toEqual([body.warnings[0], more.body.warnings[0]]);
  });

  test("while the store is away it is a 500, and nothing is half stored", async () => {
    const away = await createServer(database, { attachments: { directory: "/dev/null/attachments" } });
    const id = await runFailed();
    const { status, headers, body } = await post(id, { "a.log": "a" }, "", createAsking(away.ask, acme));
    expect([status, headers.get("retry-after"), body.error.code]).toEqual([500, "10", "INTERNAL_ERROR"]);
    expect(await list(id)).toEqual([]);
  });

  test("another body is refused", async () => {
    const id = await runFailed();
    const empty = new FormData();
    empty.append("other", "a");
    for (const [body, message] of [
      ["{}", "expected multipart/form-data"],
      [empty, 'expected files in parts named "attachment"'],
    ] as const) {
      const answer = await own.call("POST", `${pathOf(id)}/attachments`, body);
      expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringContaining(message)]);
    }
    expect((await post(crypto.randomUUID(), { a: "a" })).status).toBe(404);
    expect((await post(id, { a: "a" }, `?lease_id=${crypto.randomUUID()}`)).status).toBe(400);
  });

  test("a runner sends the files of a lease that has ended", async () => {
    const { key } = await own.post("/runners", { runner: "two" });
    const runner = createAsking(ask, { project, key });
    const execution = await own.post("/executions", { mode: "run", tasks: ["e2e"] });
    const [lease] = (await runner.post("/leases", { runner: "two" })).leases;
    const query = `?lease_id=${lease.id}`;
    expect((await runner.call("POST", `/test-runs${query}`, toReport([FAILED]))).status).toBe(201);
    const { status, body } = await post(execution.id, IMAGE, query, runner);
    expect([status, namesOf(body.attachments)]).toEqual([201, ["screenshot"]]);
    expect((await post(await runFailed(), { a: "a" }, query, runner)).status).toBe(404);
  });
});

describe("POST …/attachments, repeated and by runners", () => {
  const form = (text: string) => toFiles({ "server.log": text });

  test("a repetition with its Idempotency-Key has the answer of the first, and other files are refused", async () => {
    const path = `${pathOf(await runFailed())}/attachments`;
    const headers = { "idempotency-key": crypto.randomUUID() };
    const send = (text: string) => own.call("POST", path, form(text), headers);
    const [first, again] = [await send("one"), await send("one")];
    expect([first.status, again.status, again.headers.get("idempotent-replayed")]).toEqual([201, 201, "true"]);
    expect(again.body).toEqual(first.body);
    const other = await send("two");
    expect(other.status).toBe(400);
    expect(other.body.error.message).toContain("was used before for a different request");
  });

  test("a runner names a lease of its own", async () => {
    const own = createAsking(ask, await harness.addProject(acme));
    const execution = await own.post("/executions", { mode: "run", tasks: [{ slug: "e2e", shards: 2 }] });
    const take = async (runner: string) => {
      const { key } = await own.post("/runners", { runner });
      const asking = createAsking(ask, { ...own, key });
      return { asking, lease: (await asking.post("/leases", { runner })).leases[0].id as string };
    };
    const [three, four] = [await take("three"), await take("four")];
    for (const [method, body] of [
      ["POST", form("a")],
      ["PUT", "a"],
    ] as const) {
      const path = method === "PUT" ? "&path=a.log" : "";
      const send = (lease: string) =>
        three.asking.call(method, `${pathOf(execution.id)}/attachments?lease_id=${lease}${path}`, body);
      const foreign = await send(four.lease);
      const message = 'Cannot read "lease_id": it is the lease of another runner';
      expect([foreign.status, foreign.body.error.message]).toEqual([400, message]);
      expect((await send(three.lease)).status).toBe(201);
    }
  });
});

describe("PUT …/attachments", () => {
  test("a file joins the case of a report that has come before it", async () => {
    const id = await runFailed();
    const { status, body } = await put(id, ".\\test-results/cart/actual.png", PNG);
    const [result] = await own.list(`${pathOf(id)}/cases`);
    expect([status, body.reason]).toEqual([201, null]);
    expect(body.attachment).toEqual({
      ...{ id: expect.any(String), name: "actual.png", path: "test-results/cart/actual.png", contentType: "image/png" },
      ...{ bytes: PNG.byteLength, sha256: Bun.SHA256.hash(PNG, "hex"), attempt: 1, testCaseIds: [result.testCaseId] },
      ...{ createdAt: expect.any(String), url: expect.any(String) },
    });
    expect(namesOf(result.attachments)).toEqual(["screenshot"]);
    const again = await put(id, "test-results/cart/actual.png", PNG);
    expect([again.status, again.body.attachment.id]).toEqual([200, body.attachment.id]);
  });

  test("a file that comes before the report joins its case", async () => {
    const execution = await own.post("/executions", { tasks: ["e2e"], key: "early" });
    expect((await put(execution.id, "test-results/cart/actual.png", PNG)).status).toBe(201);
    await upload(`&execution_id=${execution.id}`, toReport([FAILED]));
    const [result] = await own.list(`${pathOf(execution.id)}/cases`);
    expect(namesOf(result.attachments)).toEqual(["screenshot"]);
  });

  test("two shards that name one path both get their files", async () => {
    const send = (shard: string) =>
      upload(`&execution_key=shards&shard=${shard}`, toReport([{ ...FAILED, name: shard }]));
    const { body } = await send("1/2");
    await send("2/2");
    for (const content of ["one", "two"]) await put(body.executionId, "test-results/cart/actual.png", content);
    const results = await own.list(`${pathOf(body.executionId)}/cases`);
    expect(results.map(({ attachments }: any) => attachments.length)).toEqual([1, 1]);
  });

  test("the file of a test that passed is not stored", async () => {
    const report = toReport([{ name: "passes", status: "passed", attachments: [{ path: "passed.png" }] }]);
    const { body: run } = await upload("", report);
    const { status, body } = await put(run.executionId, "passed.png", PNG);
    expect([status, body.attachment, body.reason]).toEqual([200, null, expect.stringContaining("attachments=all")]);
  });

  test("what is too large or too much is a 400 and a warning on the run", async () => {
    const id = await runFailed();
    const large = await put(id, "big.bin", new Uint8Array(MIB + 1));
    const message = "Attachment too large: at most 1 MiB (MAX_ATTACHMENT_MB of the server)";
    expect([large.status, large.body.error.message]).toEqual([400, message]);
    for (let index = 0; index < 5; index++) expect((await put(id, `${index}`, `${index}`)).status).toBe(201);
    const before = filesBelow(directory);
    expect((await put(id, "more", "more")).status).toBe(400);
    expect((await own.call("POST", `${pathOf(id)}/attachments`, toFiles({ "more too": "more too" }))).status).toBe(200);
    expect(filesBelow(directory)).toEqual(before);
    expect(await warningsOf(id)).toEqual([
      'Attachment "big.bin" was not stored: larger than 1 MiB (MAX_ATTACHMENT_MB of the server)',
      'Attachment "more" was not stored: the run has 5 attachments, and more are not stored (MAX_RUN_ATTACHMENTS of the server)',
      expect.stringContaining('"more too"'),
    ]);
  });

  test("what a report brings beyond a limit is removed at once, unless others rely on it", async () => {
    const big = (fill: number) => new Uint8Array(MIB).fill(fill);
    const id = await runFailed();
    const report = toReport([FAILED]);
    const send = (files: Record<string, Uint8Array>) => upload("&execution_key=full", toForm(report, files));
    await send({ a: big(1), b: big(2), c: big(3) });
    const before = filesBelow(directory);
    expect((await send({ d: big(4) })).body.warnings).toContainEqual(expect.stringContaining('"d" was not stored'));
    expect(filesBelow(directory)).toEqual(before);
    expect((await put(id, "e", big(5))).status).toBe(201);
    await send({ e: big(5) });
    const [{ id: attachment }] = await list(id);
    expect((await fetchContent(attachment)).status).toBe(200);
  });

  test("a project has a limit of its own", async () => {
    const limits = { directory, maxBytes: MIB, maxProjectBytes: MIB };
    const { ask } = await createServer(database, { attachments: limits });
    const other = createAsking(ask, await harness.addProject(acme));
    const { executionId } = await other.uploadReport(junit("f"), "task_slug=e2e");
    const path = (name: string) => `${pathOf(executionId)}/attachments?path=${name}`;
    expect((await other.call("PUT", path("a"), new Uint8Array(MIB - 10))).status).toBe(201);
    const before = filesBelow(directory);
    const { status, body } = await other.call("PUT", path("b"), "more than ten bytes");
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("MAX_PROJECT_ATTACHMENTS_MB")]);
    const form = await other.call("POST", `${pathOf(executionId)}/attachments`, toFiles({ b: "more than ten bytes" }));
    expect(form.body).toEqual({ attachments: [], warnings: [expect.stringContaining("MAX_PROJECT_ATTACHMENTS_MB")] });
    expect(filesBelow(directory)).toEqual(before);
    expect((await other.call("PUT", path("c"), "few bytes")).status).toBe(201);
  });

  test("a compressed body is stored as what it was", async () => {
    const id = await runFailed();
    const send = (content: string | Uint8Array<ArrayBuffer>) =>
      own.call("PUT", `${pathOf(id)}/attachments?path=log.txt`, Bun.gzipSync(content), { "content-encoding": "gzip" });
    const { body } = await send("a log");
    expect(await (await fetchContent(body.attachment.id)).text()).toBe("a log");
    expect((await send(new Uint8Array(50 * MIB))).status).toBe(400);
    expect(incoming()).toEqual([]);
  });

  test("a runner's own key reaches the runs of its leases, and no other", async () => {
    const { key } = await own.post("/runners", { runner: "one" });
    const runner = createAsking(ask, { project, key });
    const execution = await own.post("/executions", { mode: "run", tasks: ["e2e"] });
    const putAs = async (id: string) =>
      (await runner.call("PUT", `${pathOf(id)}/attachments?path=log.txt`, "log")).status;
    expect(await putAs(execution.id)).toBe(404);
    await runner.post("/leases", { runner: "one" });
    expect(await putAs(execution.id)).toBe(201);
    expect(await putAs(await runFailed())).toBe(404);
  });

  test("a run that is not there is a 404, and a file without a path a 400", async () => {
    expect((await put(crypto.randomUUID(), "a", "a")).status).toBe(404);
    const id = await runFailed();
    expect((await own.call("PUT", `${pathOf(id)}/attachments`, "a")).status).toBe(400);
    expect((await put(id, "./", "a")).status).toBe(400);
  });
});

describe("GET /projects/:projectId/attachments/:attachmentId", () => {
  async function attach(path: string, content: string | Uint8Array) {
    return (await put(await runFailed(), path, content)).body.attachment as { id: string; sha256: string };
  }

  test("answers the content as what its first bytes show, in a sandbox", async () => {
    const { id, sha256 } = await attach('ä"b\r\n.png', PNG);
    const response = await fetchContent(id);
    expect(Buffer.from(await response.bytes()).equals(PNG)).toBe(true);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      ...{ "content-type": "image/png", "content-length": String(PNG.byteLength), etag: `"${sha256}"` },
      "content-security-policy": expect.stringMatching(/^sandbox;/),
      ...{ "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin" },
      "content-disposition": expect.stringMatching(/^inline; filename="[ -~]+"; filename\*=UTF-8''%C3%A4/),
    });
  });

  test("HTML is plain text, and what is not recognised a download", async () => {
    const { id: html } = await attach("page.html", "<script>alert(1)</script>");
    expect((await fetchContent(html)).headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const { id: unknown } = await attach("a.bin", new Uint8Array([0, 1, 2]));
    const { headers } = await fetchContent(unknown);
    expect(headers.get("content-type")).toBe("application/octet-stream");
    expect(headers.get("content-disposition")).toStartWith("attachment;");
  });

  test("what comes in many pieces comes back whole", async () => {
    const content = crypto.getRandomValues(new Uint8Array(65_536));
    const large = Buffer.concat([Buffer.from([0]), ...Array.from({ length: 15 }, () => content)]);
    const { id, sha256 } = await attach("large.bin", large);
    expect(Bun.SHA256.hash(await (await fetchContent(id)).bytes(), "hex")).toBe(sha256);
    expect(sha256).toBe(Bun.SHA256.hash(large, "hex"));
    const form = await upload("", toForm(toReport([FAILED]), { "large.bin": large }));
    const [{ id: other }] = await list(form.body.executionId);
    expect(Bun.SHA256.hash(await (await fetchContent(other)).bytes(), "hex")).toBe(sha256);
  });

  test("HEAD says how long it is", async () => {
    const { id } = await attach("digits.txt", "0123456789");
    const address = `${url}/api/v1/projects/${project}/attachments/${id}`;
    const head = await fetch(address, { method: "HEAD", headers: { authorization: `Bearer ${key}` } });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "10", ""]);
  });

  test("a part of it is a 206", async () => {
    const { id } = await attach("digits.txt", "0123456789");
    const part = await fetchContent(id, { range: "bytes=2-4" });
    expect([part.status, await part.text(), part.headers.get("content-range")]).toEqual([206, "234", "bytes 2-4/10"]);
    expect(part.headers.get("content-length")).toBe("3");
    expect(await (await fetchContent(id, { range: "bytes=-2" })).text()).toBe("89");
    expect(await (await fetchContent(id, { range: "bytes=2-4", "if-range": '"other"' })).text()).toBe("0123456789");
  });

  test("it goes with its execution", async () => {
    const id = await runFailed();
    const { attachment } = (await put(id, "a", "a")).body;
    await own.call("DELETE", `/executions/${id}`);
    expect((await fetchContent(attachment.id)).status).toBe(404);
  });
});

test("the list of a run's attachments has pages", async () => {
  const { executionId: id } = (await upload("", junit("f"))).body;
  for (const name of ["a", "b", "c"]) await put(id, name, name);
  const all = await own.walk(`${pathOf(id)}/attachments?limit=2`);
  expect(namesOf(all)).toEqual(["a", "b", "c"]);
});
