import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { isFull } from "../depth.ts";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, rival, addProject } = await createHarness();
const own = createAsking(ask, acme);
const freshProject = async () => createAsking(ask, await addProject(acme));
const upload = (query: string, body: unknown) => own.call("POST", `/test-runs${query}`, body);
const toForm = (files: Record<string, string>) => {
  const form = new FormData();
  for (const [name, content] of Object.entries(files)) form.append("file", new File([content], name));
  return form;
};

const NO_TESTS = { count: 0, testCases: [] };

describe("POST /projects/:projectId/test-runs", () => {
  test("a report as curl sends it becomes a run", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const { status, body } = await own.call("POST", "/test-runs", junit("ppfs"), headers);
    expect(status).toBe(201);
    const none = { newFailures: 0, unclearFailures: 0, stillFailing: 0, flakyFailures: 0, alsoFailingOnMain: 0 };
    expect(body).toEqual({
      ...{ executionId: expect.any(String), taskSlug: "unit", tags: [], attempt: 1 },
      completedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      ...{ passed: 2, failed: 1, skipped: 1, total: 4, flaky: 0, durationMs: 40 },
      ...{ status: "failed", verdict: "failed", reason: null, outage: false, warnings: [] },
      ...{ arrivedShards: [1], missingShards: [], ranOn: [] },
      counts: { ...none, newFailures: 1, quarantinedFailures: 0, incidentFailures: 0 },
      newFailures: [{ testCaseId: expect.any(String), taskSlug: "unit", suite: "unit", name: "case 2", file: null }],
      ...{
        unclearFailures: [],
        flakyFailures: [],
        alsoFailingOnMain: [],
        stillFailing: [],
        quarantinedFailures: [],
        incidentFailures: [],
      },
      ...{ slower: null, slowerTests: [] },
      ...{ missing: NO_TESTS, newlySkipped: NO_TESTS, notRerun: NO_TESTS },
      bugReports: [{ id: expect.any(String), number: 1, title: "case 2 failed", status: "open", change: "opened" }],
      url: expect.stringContaining(`/projects/${acme.project}/executions/${body.executionId}`),
    });
    const { executionId, taskSlug, completedAt, passed, failed, skipped, total } = body;
    expect(await own.get(`/test-runs?execution_id=${executionId}`)).toEqual({
      data: [{ executionId, taskSlug, completedAt, passed, failed, skipped, total }],
      pagination: { hasMore: false },
    });
  });

  test("several files of a form are merged into one run, and form fields are parameters", async () => {
    const form = toForm({ "a.xml": junit("pp", "a"), "../b.xml": junit("f", "b") });
    form.append("task_slug", "both");
    form.append("branch", "main");
    const { status, body } = await upload("?commit=abc", form);
    expect(status).toBe(201);
    expect(body).toMatchObject({ taskSlug: "both", passed: 2, failed: 1, total: 3 });
    const execution = await own.get(`/executions/${body.executionId}`);
    expect(execution).toMatchObject({ branch: "main", commit: "abc", status: "failed", trigger: "upload" });
  });

  test("one bad file of a form stores nothing", async () => {
    const form = toForm({ "a.xml": junit("pp", "a"), "b.xml": "<html><body>502</body></html>" });
    const { status, body } = await upload("?execution_key=bad-form", form);
    expect(status).toBe(400);
    expect(body.error.message).toContain(`"b.xml"`);
    expect(await own.list("/executions?key=bad-form")).toEqual([]);
  });

  test("native JSON with counts alone is taken at its word", async () => {
    const report = { taskSlug: "native", passed: 3, failed: 0, skipped: 1, durationMs: 1234 };
    const { status, body } = await upload("", report);
    expect(status).toBe(201);
    expect(body).toMatchObject({ ...report, total: 4 });
  });

  test("a report that is no text is read", async () => {
    const bytes = await Bun.file(`${import.meta.dir}/../fixtures/subunit.bin`).bytes();
    const headers = { "content-type": "application/octet-stream" };
    const { status, body } = await own.call("POST", "/test-runs?task_slug=stream", bytes, headers);
    expect(status).toBe(201);
    expect(body).toMatchObject({ passed: 3, failed: 4, skipped: 2, warnings: [] });
  });

  test("gzip and zstd bodies are read", async () => {
    for (const [encoding, bytes] of [
      ["gzip", Bun.gzipSync(junit("pp"))],
      ["zstd", Bun.zstdCompressSync(junit("pp"))],
    ] as const) {
      const { status, body } = await own.call("POST", "/test-runs", bytes, { "content-encoding": encoding });
      expect([status, body.passed]).toEqual([201, 2]);
    }
  });

  test("Accept: text/plain gets one line for people", async () => {
    const { status, text, headers } = await own.send(junit("pf"), "task_slug=line", { accept: "text/plain" });
    expect(status).toBe(201);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(text).toMatch(/^FAILED line: 1 passed, 1 failed \(1 new\), 0 skipped, attempt 1 http:\S+\n$/);
  });

  test("the line of a run whose shards are not all in is not green: it waits, unless it has failed already", async () => {
    const line = async (key: string, shard: string, letters: string) => {
      const query = `execution_key=${key}&shard=${shard}`;
      const { text } = await own.send(junit(letters, `part ${shard}`), query, { accept: "text/plain" });
      return text.replace(/http:\S+\n$/, "");
    };
    const counts = (passed: number) => `${passed} passed, 0 failed, 0 skipped, attempt 1 `;
    expect(await line("waits", "2/4", "pp")).toBe(`WAITING t: 1 of 4 shards, missing shards 1, 3 and 4; ${counts(2)}`);
    expect(await line("waits", "1/4", "p")).toBe(`WAITING t: 2 of 4 shards, missing shards 3 and 4; ${counts(3)}`);
    const failed = "3 passed, 1 failed (1 new), 0 skipped, attempt 1 ";
    expect(await line("waits", "4/4", "f")).toBe(`FAILED t: 3 of 4 shards, missing shard 3; ${failed}`);
    expect(await line("waits", "3/4", "p")).toBe(`FAILED t: ${failed.replace("3 passed", "4 passed")}`);
    expect(await line("green", "1/2", "p")).toBe(`WAITING t: 1 of 2 shards, missing shard 2; ${counts(1)}`);
    expect(await line("green", "2/2", "p")).toBe(`PASSED t: ${counts(2)}`);
    const many = "WAITING t: 1 of 9999 shards, missing shards 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 9988 more; ";
    expect(await line("many", "9999/9999", "p")).toBe(`${many}${counts(1)}`);
  });

  test("the line of a report that broke off says that there is a warning", async () => {
    const broken = junit("ppp").split("case 2")[0];
    const { text } = await own.send(broken, {}, { accept: "text/plain" });
    const line = "FAILED t: report is incomplete; 2 passed, 0 failed, 0 skipped, 1 warning, attempt 1 http";
    expect(text).toStartWith(line);
  });

  test("a report without cases is refused, unless allow_empty says that it is right", async () => {
    const refused = await upload("", `<testsuites/>`);
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toContain("allow_empty");
    const { status, body } = await upload("?allow_empty=true", `<testsuites/>`);
    expect([status, body.total, body.verdict]).toEqual([201, 0, "passed"]);
  });

  test("an exit code without a failed case adds one that says so", async () => {
    const { body } = await upload("?exit_code=137&execution_key=exit&task_slug=t", junit("pp"));
    expect(body).toMatchObject({ passed: 2, failed: 1, total: 3, verdict: "failed" });
    const cases = await own.get(`/executions/${body.executionId}/test-runs/t/cases?status=failed`);
    expect(cases.data[0]).toMatchObject({ name: "runner exited 137", kind: "error", status: "failed" });
    const again = await upload("?exit_code=0&execution_key=exit&task_slug=t", junit("pp"));
    expect(again.body).toMatchObject({ passed: 2, failed: 0, attempt: 2, verdict: "passed", flaky: 0 });
  });

  test("an exit code that Windows gives without a sign is the negative one", async () => {
    const { body } = await upload("?exit_code=3221225477&task_slug=t", junit("p"));
    expect((await own.get(`/executions/${body.executionId}/test-runs/t`)).exitCode).toBe(-1_073_741_819);
    for (const code of ["4294967295", "-2147483648"])
      expect((await upload(`?exit_code=${code}`, junit("p"))).status).toBe(201);
    for (const code of ["4294967296", "-2147483649", "9999999999"])
      expect((await upload(`?exit_code=${code}`, junit("p"))).body.error.message).toContain(`"exit_code"`);
  });

  test("counts of several files are refused where no column holds their sum", async () => {
    const counts = `{"passed":2000000000,"failed":0,"skipped":0}`;
    const form = toForm({ a: counts, b: counts });
    const { status, body } = await upload("", form);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("count more than 2,147,483,647 cases")]);
  });

  test("a report without test cases, or none at all, is a failure where the runner says that it failed", async () => {
    const green = junit("pp", "good");
    const form = toForm({ "good.xml": green, "empty.xml": "" });
    const exits = { failed: 1, verdict: "failed" };
    for (const [body, passed, warnings] of [
      ["<testsuites/>", 0, []],
      [" \n", 0, ["The report is empty"]],
      [form, 2, ["empty.xml: The report is empty"]],
    ] as const)
      expect((await upload("?exit_code=139&task_slug=died", body)).body).toMatchObject({ ...exits, passed, warnings });
    for (const body of ["<testsuites/>", " \n", form])
      expect((await upload("?exit_code=0&task_slug=died", body)).status).toBe(400);
    expect((await upload("?exit_code=139&task_slug=died", "Segmentation fault")).status).toBe(400);
    const half = toForm({ "good.xml": green, "none.xml": "<testsuites/>" });
    expect((await upload("?task_slug=half", half)).body.warnings).toEqual(["none.xml: It holds no test case"]);
  });

  test("a truncated report is read up to its last whole case, warns, and is never green", async () => {
    const whole = junit("pppp");
    const { status, body } = await upload("?execution_key=cut", whole.slice(0, whole.indexOf("case 3")));
    expect(status).toBe(201);
    expect(body).toMatchObject({ passed: 3, failed: 0, total: 3, verdict: "failed" });
    expect(body.warnings).toHaveLength(1);
    const complete = await upload("?execution_key=cut", whole);
    expect(complete.body).toMatchObject({ passed: 4, attempt: 2, verdict: "passed", warnings: [] });
  });

  test("every bad parameter is named in one message", async () => {
    const { status, body } = await upload("?shard=5/4&exit_code=x&allow_empty=yes&nope=1", junit("p"));
    expect(status).toBe(400);
    for (const name of ["shard", "exit_code", "allow_empty", "nope"]) expect(body.error.message).toContain(`"${name}"`);
  });

  test("an unknown execution_id is a 404, and so is another project's", async () => {
    const theirs = await (await freshProject()).post("/executions", {});
    const missing = await upload(`?execution_id=${crypto.randomUUID()}`, junit("p"));
    const foreign = await upload(`?execution_id=${theirs.id}`, junit("p"));
    expect([missing.status, foreign.status]).toEqual([404, 404]);
    expect(foreign.text).toBe(missing.text);
  });

  test("a body over the limit is refused", async () => {
    const small = await createHarness({ maxBodyBytes: 1000, maxInflatedBytes: 5000 });
    const path = `POST /projects/${small.acme.project}/test-runs`;
    const post = (body: Uint8Array | string, headers = {}) => small.ask(path, { key: small.acme.key, body, headers });
    const padded = (length: number) => junit("p").padEnd(length, " ");
    expect((await post(padded(1000))).status).toBe(201);
    expect((await post(padded(1001))).body.error.message).toContain("(MAX_BODY_MB of the server)");
    const bomb = Bun.gzipSync("a".repeat(900_000));
    const refused = await post(bomb, { "content-encoding": "gzip" });
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining("Body too large")]);
  });

  test("a body that is not encoded as it says is refused", async () => {
    const good = Bun.gzipSync(junit("p".repeat(100)));
    for (const [encoding, bytes] of [
      ["gzip", good.slice(0, 60)],
      ["gzip", Buffer.from(junit("p"))],
      ["br", good],
      ["gzip, gzip", Bun.gzipSync(good)],
    ] as const) {
      const { status } = await own.call("POST", "/test-runs", bytes, { "content-encoding": encoding });
      expect(status).toBe(400);
    }
  });
});

describe("where a run ran", () => {
  const detail = async (executionId: string) => await own.get(`/executions/${executionId}/test-runs/t`);
  const names = (host: string) => `host=${host}&system=linux%20x64&image=ubuntu-24.04`;
  const onHost = (host: string) => ({ host, system: "linux x64", image: "ubuntu-24.04" });
  const reportOf = (letters: string, host: string) =>
    junit(letters).replace("<testsuite ", `<testsuite hostname="${host}" `);

  test.each(["pp", "pf"])("is answered to the upload and to who asks for the run (%s)", async (letters) => {
    const { body } = await upload(`?task_slug=t&${names("ci-3")}`, junit(letters));
    expect(body.ranOn).toEqual([{ shard: null, ...onHost("ci-3") }]);
    expect((await detail(body.executionId)).ranOn).toEqual(body.ranOn);
  });

  test("is that of the latest upload of each shard", async () => {
    const shard = (index: number, letters: string, more: string) =>
      upload(`?execution_key=where&task_slug=t&shard=${index}/3&${more}`, junit(letters, `part ${index}`));
    await shard(2, "pf", names("ci-2"));
    await shard(3, "p", "");
    await shard(1, "p", "image=alpine");
    const { body } = await shard(2, "pp", names("ci-9"));
    const alpine = { shard: 1, host: null, system: null, image: "alpine" };
    expect(body.ranOn).toEqual([alpine, { shard: 2, ...onHost("ci-9") }]);
    expect((await detail(body.executionId)).ranOn).toEqual(body.ranOn);
  });

  test.skipIf(!isFull)("is told of the first hundred shards: there may be thousands", async () => {
    const shard = (index: number) =>
      upload(`?execution_key=many&task_slug=t&shard=${index}/9999&host=ci-${index}`, junit("p", `part ${index}`));
    const answers = await Promise.all(Array.from({ length: 101 }, (_, index) => shard(index + 1)));
    const { ranOn } = await detail(answers[0]!.body.executionId);
    expect(ranOn.map(({ shard }: { shard: number }) => shard)).toEqual(Array.from({ length: 100 }, (_, at) => at + 1));
    expect((await shard(102)).body.ranOn).toEqual(ranOn);
  });

  test("is told by a report of JUnit where no parameter says the host", async () => {
    const hostOf = async (query: string, report: string) =>
      (await upload(`?task_slug=t&${query}`, report)).body.ranOn[0]?.host;
    expect(await hostOf("", reportOf("p", "ci-7"))).toBe("ci-7");
    expect(await hostOf("host=", reportOf("f", "ci-7"))).toBe("ci-7");
    expect(await hostOf("host=ci-8", reportOf("p", "ci-7"))).toBe("ci-8");
    expect(await hostOf("", reportOf("p", "h".repeat(300)))).toBe("h".repeat(200));
    expect(await hostOf("", reportOf("p", "localhost"))).toBeUndefined();
  });

  test("is refused, with its name, where it is too long or cannot be stored", async () => {
    for (const name of ["host", "system", "image"])
      for (const value of ["x".repeat(201), "%00"]) {
        const { status, body } = await upload(`?${name}=${value}`, junit("p"));
        expect([status, body.error.message]).toEqual([400, expect.stringContaining(`"${name}"`)]);
      }
  });
});

describe("attempts and shards", () => {
  const post = (key: string, letters: string, more = "") =>
    upload(`?execution_key=${key}&task_slug=t${more}`, junit(letters));

  test("identical bytes posted again change nothing and answer 200 with the same run", async () => {
    const first = await post("same", "pf");
    const second = await post("same", "pf");
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body).toEqual(first.body);
  });

  test("a case that failed before and passes now is flaky, and the run green", async () => {
    await post("flaky", "pfp");
    const { body } = await post("flaky", "ppp");
    expect(body).toMatchObject({ passed: 3, failed: 0, flaky: 1, attempt: 2, verdict: "passed" });
  });

  test("a case that passed and fails now is failed", async () => {
    await post("worse", "pp");
    const { body } = await post("worse", "pf");
    expect(body).toMatchObject({ passed: 1, failed: 1, flaky: 0 });
  });

  test("two shards that report the same case differently are not green, whichever comes last", async () => {
    for (const [key, order] of [
      ["order a", ["p", "f"]],
      ["order b", ["f", "p"]],
    ] as const) {
      await post(key, order[0], "&shard=1/2");
      const { body } = await post(key, order[1], "&shard=2/2");
      expect(body).toMatchObject({ passed: 0, failed: 1, flaky: 0, verdict: "failed" });
    }
  });

  test("a retry of only some tests neither loses passes nor turns other failures green", async () => {
    await post("part", "pffp");
    const only = `<testsuite name="unit"><testcase classname="unit" name="case 1" time="0.01"/></testsuite>`;
    const { body } = await upload("?execution_key=part&task_slug=t", only);
    expect(body).toMatchObject({ passed: 3, failed: 1, total: 4, flaky: 1, verdict: "failed" });
  });

  test("a sharded run is listed, and complete, only when all announced shards are in", async () => {
    const shard = (index: number, letters: string) =>
      upload(`?execution_key=shards&task_slug=t&shard=${index}/3`, junit(letters, `part ${index}`));
    const first = await shard(2, "pf");
    expect(first.body).not.toHaveProperty("completedAt");
    expect(first.body).toMatchObject({ arrivedShards: [2], missingShards: [1, 3] });
    const detail = async () => await own.get(`/executions/${first.body.executionId}/test-runs/t`);
    expect(await detail()).toMatchObject({ shards: 3, arrivedShards: [2], missingShards: [1, 3] });
    expect((await shard(2, "pf")).body).toMatchObject({ arrivedShards: [2], missingShards: [1, 3] });
    const list = () => own.list(`/test-runs?execution_id=${first.body.executionId}`);
    expect(await list()).toEqual([]);
    await shard(1, "pp");
    const all = { arrivedShards: [1, 2, 3], missingShards: [] };
    const last = await shard(3, "ps");
    expect(last.body).toMatchObject({ passed: 4, failed: 1, skipped: 1, total: 6, attempt: 1, ...all });
    expect(await detail()).toMatchObject(all);
    expect(await list()).toHaveLength(1);
    const retried = await shard(2, "pp");
    expect(retried.body).toMatchObject({ passed: 5, failed: 0, flaky: 1, attempt: 2, verdict: "passed" });
    expect(await list()).toHaveLength(1);
  });

  test("a shard whose report broke off is not made green by a whole one after it, but by its own retry", async () => {
    const send = (shard: string, report: string) => upload(`?execution_key=broken&task_slug=t&shard=${shard}`, report);
    const whole = junit("pp", "part 1");
    expect((await send("1/2", whole.slice(0, whole.lastIndexOf("<testcase")))).status).toBe(201);
    expect((await send("2/2", junit("pp"))).body).toMatchObject({ missingShards: [], failed: 0, verdict: "failed" });
    expect((await send("1/2", whole)).body).toMatchObject({ failed: 0, verdict: "passed" });
  });

  test("shards that disagree on their number are refused", async () => {
    await post("disagree", "p", "&shard=1/2");
    const { status, body } = await post("disagree", "pp", "&shard=2/3");
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(`"shard"`)]);
  });

  test("parallel shards that create their execution together lose nothing", async () => {
    const shard = (index: number) =>
      upload(`?execution_key=race&task_slug=t&shard=${index}/12`, junit("ppf", `part ${index}`));
    const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => shard(index + 1)));
    expect(new Set(answers.map(({ body }) => body.executionId)).size).toBe(1);
    const runs = await own.list(`/test-runs?execution_id=${answers[0]!.body.executionId}`);
    expect(runs).toEqual([expect.objectContaining({ passed: 24, failed: 12, skipped: 0, total: 36 })]);
  });
});

describe("GET /projects/:projectId/test-runs", () => {
  test("walks newest first through equal times, none twice and none missing, while runs are added", async () => {
    const fresh = await freshProject();
    const counts = { taskSlug: "t", passed: 1, failed: 0, skipped: 0 };
    const post = (minute: number) => fresh.post(`/test-runs?completed_at=2026-01-01T00:0${minute}:00Z`, counts);
    for (let index = 0; index < 25; index++) await post(index % 3);
    const all = await fresh.walk("/test-runs?limit=100");
    const seen = [];
    for (let cursor = "", more = true; more;) {
      const body = await fresh.get(`/test-runs?limit=4${cursor}`);
      seen.push(...body.data);
      await post(9);
      more = body.pagination.hasMore;
      cursor = `&cursor=${body.pagination.cursor}`;
    }
    expect(seen).toEqual(all);
    const times = all.map(({ completedAt }) => completedAt);
    expect(times).toEqual(times.toSorted().reverse());
    expect(new Set(all.map(({ executionId }) => executionId)).size).toBe(25);
  });

  test("ten by default, and task_slug filters", async () => {
    const fresh = await freshProject();
    for (let index = 0; index < 12; index++)
      await fresh.post(`/test-runs?task_slug=${index % 2 ? "odd" : "even"}`, junit("p"));
    const body = await fresh.get("/test-runs");
    expect(body.data).toHaveLength(10);
    expect(body.pagination).toEqual({ hasMore: true, cursor: expect.any(String) });
    const odd = await fresh.list("/test-runs?task_slug=odd");
    expect(odd.map(({ taskSlug }) => taskSlug)).toEqual(Array(6).fill("odd"));
  });

  test("an execution_id that matches nothing is an empty list", async () => {
    const { status, body } = await own.call("GET", `/test-runs?execution_id=${crypto.randomUUID()}`);
    expect([status, body]).toEqual([200, { data: [], pagination: { hasMore: false } }]);
  });

  test("what is not a parameter is a 400 that names it", async () => {
    const limits = ["0", "-1", "101", "1e9", "1.5", "0x10", "", "1&limit=2", "%ff"].map((limit) => `limit=${limit}`);
    for (const query of [...limits, "limit[]=1", "executionid=1", "execution_id=1", "cursor=", "task_slug="]) {
      const { status, body } = await own.call("GET", `/test-runs?${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(body.error.message).toContain(query.split("=")[0]!);
    }
  });

  test("a cursor that was changed, or is another list's, is refused like any other text", async () => {
    const theirs = createAsking(ask, rival, "c");
    for (let index = 0; index < 3; index++) {
      await upload("?task_slug=c", junit("p"));
      await theirs.upload("p");
    }
    const { cursor } = (await own.get("/test-runs?limit=1")).pagination;
    expect((await own.call("GET", `/test-runs?limit=2&cursor=${cursor}`)).status).toBe(200);
    const foreign = (await theirs.get("/test-runs?limit=1")).pagination.cursor;
    const executions = (await own.get("/executions?limit=1")).pagination.cursor;
    const flipped = `${cursor.slice(0, 5)}${cursor[5] === "A" ? "B" : "A"}${cursor.slice(6)}`;
    const texts = [foreign, executions, flipped, cursor.slice(0, -1), `${cursor}A`, "A", "A".repeat(5_000)];
    const queries = [...texts.map((text) => `limit=1&cursor=${text}`), `task_slug=c&cursor=${cursor}`];
    const answers = await Promise.all(queries.map((query) => own.call("GET", `/test-runs?${query}`)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([400]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });
});

describe("one test run", () => {
  test("is answered in detail, with its slug as it was given", async () => {
    const slug = "unit/api %2F 100% ünï";
    const { body } = await upload(`?task_slug=${encodeURIComponent(slug)}&exit_code=1`, junit("pf"));
    const detail = await own.get(`/executions/${body.executionId}/test-runs/${encodeURIComponent(slug)}`);
    const {
      newFailures: _,
      unclearFailures: _u,
      flakyFailures: _f,
      alsoFailingOnMain: _a,
      stillFailing: _s,
      ...more
    } = body;
    const { quarantinedFailures: _q, incidentFailures: _i, bugReports: _b, counts: _c, ...run } = more;
    const only = { taskSlug: slug, shards: 1, format: "junit", exitCode: 1, machineTimeMs: 20, forgiven: 0, gates: [] };
    expect(detail).toEqual({ ...run, ...only });
  });

  test("lists its cases, failed first, page by page", async () => {
    const { body } = await upload("?task_slug=cases", junit("ppfspf"));
    const path = `/executions/${body.executionId}/test-runs/cases/cases`;
    const all = await own.walk(`${path}?limit=2`);
    const order = [
      "case 2 failed",
      "case 5 failed",
      "case 0 passed",
      "case 1 passed",
      "case 3 skipped",
      "case 4 passed",
    ];
    expect(all.map(({ name, status }) => `${name} ${status}`)).toEqual(order);
    expect(all[0]).toEqual({
      ...{ testCaseId: expect.any(String), suite: "unit", name: "case 2", file: null, line: null },
      ...{ status: "failed", kind: "failure", flaky: false, attempt: 1, durationMs: 10 },
      ...{ message: "case 2 failed", stack: null, output: null, properties: null, attachments: [] },
    });
    expect(await own.list(`${path}?status=skipped`)).toMatchObject([{ name: "case 3" }]);
  });

  test("walks the cases of a large run exactly once each", async () => {
    const { body } = await upload("?task_slug=large", junit("pppf".repeat(200), "large"));
    const path = `/executions/${body.executionId}/test-runs/large/cases?limit=100`;
    const all = await own.walk(path);
    expect(new Set(all.map(({ testCaseId }) => testCaseId)).size).toBe(800);
    expect(all.slice(0, 200).every(({ status }) => status === "failed")).toBe(true);
    const flaky = await upload(`?task_slug=large&execution_id=${body.executionId}`, junit("pppp".repeat(200), "large"));
    expect(flaky.body).toMatchObject({ flaky: 200, failed: 0 });
    expect(await own.walk(`${path}&flaky=true`)).toHaveLength(200);
    expect(await own.walk(`${path}&flaky=false`)).toHaveLength(600);
  });
});

describe("what contradicts itself", () => {
  test("counts beyond what can be counted are refused, also over shards", async () => {
    const fresh = await freshProject();
    const post = (body: object, query = "") => fresh.call("POST", `/test-runs${query}`, body);
    const counts = { passed: 2_147_483_647, failed: 0, skipped: 0 };
    expect((await post({ ...counts, failed: 1 })).status).toBe(400);
    expect((await post(counts)).body.total).toBe(2_147_483_647);
    const shard = (index: number) => `?execution_key=k&task_slug=t&shard=${index}/2`;
    expect((await post(counts, shard(1))).status).toBe(201);
    expect((await post({ ...counts, passed: 1 }, shard(2))).status).toBe(400);
  });

  test("counts without cases are not added to cases that are known", async () => {
    const fresh = await freshProject();
    const post = (body: string | object, query: string) =>
      fresh.call("POST", `/test-runs?execution_key=k&${query}`, body);
    const counts = { passed: 4, failed: 0, skipped: 0 };
    for (const shard of ["1/2", "2/2"]) await post(junit("pp", `suite ${shard}`), `task_slug=s&shard=${shard}`);
    expect((await post(counts, "task_slug=s")).body.error.message).toContain(`"shard"`);
    await post(junit("pp"), "task_slug=t");
    expect((await post(counts, "task_slug=t")).status).toBe(400);
    expect((await post(counts, "task_slug=u")).body.total).toBe(4);
    expect((await post({ ...counts, passed: 5 }, "task_slug=u")).body).toMatchObject({ total: 5, attempt: 2 });
    expect((await post(junit("pp"), "task_slug=u")).body).toMatchObject({ total: 2, attempt: 3 });
  });

  test("completedAt of our own body counts, and is held to the present", async () => {
    const fresh = await freshProject();
    const post = (completedAt: string) =>
      fresh.call("POST", "/test-runs", { passed: 1, failed: 0, skipped: 0, completedAt });
    expect((await post("2026-01-31T12:00:00+02:00")).body.completedAt).toBe("2026-01-31T10:00:00.000Z");
    for (const time of ["2100-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "1969-12-31T23:59:59Z"]) {
      const { status, body } = await post(time);
      expect([status, body.error.message]).toEqual([400, expect.stringContaining(`"completedAt"`)]);
    }
  });

  test("an execution's id and another one's key are refused", async () => {
    const fresh = await freshProject();
    const create = async (name: string) => (await fresh.post("/executions", { key: name })).id;
    const [id] = [await create("a"), await create("b")];
    const post = (name: string) =>
      fresh.call("POST", `/test-runs?execution_id=${id}&execution_key=${name}`, junit("p"));
    expect([(await post("a")).status, (await post("b")).status, (await post("c")).status]).toEqual([201, 400, 400]);
  });

  test("what CI leaves empty says nothing, and a build is an address", async () => {
    const fresh = await freshProject();
    const post = (query: string) => fresh.call("POST", `/test-runs?${query}`, junit("p"));
    const { body } = await post("branch=&commit=&pull_request=&environment=&build_url=https://ci.test/My%20project");
    expect(await fresh.get(`/executions/${body.executionId}`)).toMatchObject({
      ...{ branch: null, commit: null, pullRequest: null, environment: null },
      buildUrl: "https://ci.test/My%20project",
    });
    const refused = await post(`build_url=javascript:alert(1)&branch=${"x".repeat(501)}&shard=3/2`);
    for (const part of [
      `"build_url": expected an http or https address, got "javascript:alert(1)"`,
      `"branch": expected a text of 1 to 500 characters`,
      `"shard": expected a shard from "1/2" to "2/2", got "3/2"`,
    ])
      expect(refused.body.error.message).toContain(part);
  });
});
