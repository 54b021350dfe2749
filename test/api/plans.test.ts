import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness, createServer, until } from "../harness.ts";
import { insertPlan } from "../../src/store/plans.ts";
import { hashShard } from "../../src/rules/plan.ts";
import { firstIdAt } from "../../src/database/time_bounds.ts";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { retainNow } from "../retaining.ts";
import { isFull } from "../depth.ts";

const { ask, acme, database } = await createHarness();
const { ask: askOther } = await createServer(database);
const { key, project } = acme;
const own = createAsking(ask, acme);

/** Cases as "file name seconds"; a case without seconds tells no duration. */
const report = (...cases: string[]) =>
  `<testsuite>${cases
    .map((text) => {
      const [file, name, time, letter] = text.split(" ");
      const told = `${file === "-" ? "" : ` file="${file}"`}${time === undefined || time === "-" ? "" : ` time="${time}"`}`;
      return `<testcase classname="c" name="${name}"${told}>${letter === "f" ? "<failure/>" : ""}</testcase>`;
    })
    .join("")}</testsuite>`;

let builds = 0;
async function upload(task: string, cases: string[], parameters: Record<string, string> = {}): Promise<string> {
  const query = new URLSearchParams({
    execution_key: `build ${++builds}`,
    task_slug: task,
    complete: "true",
    ...parameters,
  });
  if (parameters["execution_id"] !== undefined) query.delete("execution_key");
  const { status, body } = await own.call("POST", `/test-runs?${query}`, report(...cases));
  expect(status).toBe(201);
  return body.executionId;
}

async function begin(body: object = {}): Promise<string> {
  const execution = await own.post("/executions", body);
  return execution.id;
}

const pathOf = (execution: string, task: string, shard: string) =>
  `GET /projects/${project}/executions/${execution}/test-runs/${encodeURIComponent(task)}/plan?shard=${shard}`;
async function plan(execution: string, task: string, shard = "1/1") {
  const { status, body } = await ask(pathOf(execution, task, shard), { key });
  expect(status).toBe(200);
  return body as { files: string[]; timings: Record<string, number>; runs: number };
}

describe("GET …/test-runs/{taskSlug}/plan", () => {
  test("is the same for ever once made, whatever comes, on every server; another number of shards has its own", async () => {
    await upload("same", ["a.ts x 4", "b.ts x 3", "c.ts x 2", "d.ts x 1"]);
    const execution = await begin();
    const first = await plan(execution, "same", "2/2");
    expect(first).toEqual({
      files: ["b.ts", "c.ts"],
      timings: { "a.ts": 4000, "b.ts": 3000, "c.ts": 2000, "d.ts": 1000 },
      runs: 1,
    });
    await upload("same", ["a.ts x 1", "b.ts x 90", "e.ts x 2"], { execution_id: execution });
    expect(await plan(execution, "same", "2/2")).toEqual(first);
    expect((await askOther(pathOf(execution, "same", "2/2"), { key })).body).toEqual(first);
    expect((await plan(execution, "same", "1/2")).files).toEqual(["a.ts", "d.ts"]);
    expect((await plan(execution, "same", "1/1")).files).toEqual(["a.ts", "b.ts", "c.ts", "d.ts", "e.ts"]);
  });

  test("shards that ask two servers at the same moment get slices of one plan", async () => {
    const files = Array.from({ length: 60 }, (_, index) => `f${index}.ts x ${1 + (index % 7)}`);
    await upload("crowd", files);
    const execution = await begin();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        (index % 2 ? ask : askOther)(pathOf(execution, "crowd", `${index + 1}/12`), { key }),
      ),
    );
    const own = answers.flatMap(({ body }) => body.files);
    expect([own.length, new Set(own).size]).toEqual([60, 60]);
  });

  test("who asks while another server stores a plan waits for it and gets a slice of that one", async () => {
    await upload("race", ["late.ts x 1"]);
    const executionId = await begin();
    const isWaiting = async () =>
      (await database.pool`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%shard_plan%'`)
        .length > 0;
    let answer: ReturnType<typeof ask> | undefined;
    await database.begin(async (sql) => {
      const files = [{ file: "first.ts", ms: 7, shard: 1 }];
      await insertPlan(sql, { projectId: project, executionId, taskSlug: "race" }, 2, { runs: 1, files, given: null });
      answer = ask(pathOf(executionId, "race", "1/2"), { key });
      await until(isWaiting);
    });
    expect((await answer!).body).toEqual({ files: ["first.ts"], timings: { "first.ts": 7 }, runs: 1 });
  });

  test("a file takes the median of its sums over the last five runs", async () => {
    for (const seconds of [99, 10, 2, 30, 3, 4])
      await upload("median", [`a.ts x ${seconds}`, `a.ts y ${seconds}`, "b.ts x 1"]);
    expect(await plan(await begin(), "median")).toMatchObject({ timings: { "a.ts": 8000, "b.ts": 1000 }, runs: 5 });
  });

  test("cases that are gone, and those whose name is another in every run, do not add up", async () => {
    await upload("names", ["a.ts old 50", "a.ts stays 2", "gone.ts x 9"]);
    for (let run = 0; run < 5; run++) await upload("names", ["a.ts stays 2", `a.ts at-${run} 1`, `a.ts id-${run} 1`]);
    expect((await plan(await begin(), "names")).timings).toEqual({ "a.ts": 4000 });
  });

  test("what has no duration counts as the median of the rest, and what no file is not there", async () => {
    await upload("untold", ["a.ts x 1", "b.ts x", "b.ts y", "c.ts x 5", "c.ts y", "d.ts x 9", "- nowhere 7"]);
    const { timings } = await plan(await begin(), "untold");
    expect(timings).toEqual({ "a.ts": 1000, "b.ts": 5000, "c.ts": 5000, "d.ts": 9000 });
  });

  test("goes by the default branch, and by its own where that has other files; by others where there are no such runs", async () => {
    await upload("branches", ["a.ts x 2"], { branch: "main" });
    await upload("branches", ["a.ts x 2", "new.ts n 3"], { branch: "topic" });
    await upload("branches", ["a.ts x 70", "else.ts e 70"], { branch: "other" });
    const timings = async (branch: string, task = "branches") => (await plan(await begin({ branch }), task)).timings;
    expect(await timings("main")).toEqual({ "a.ts": 2000 });
    expect(await timings("topic")).toEqual({ "a.ts": 2000, "new.ts": 3000 });
    await upload("nowhere else", ["a.ts x 70", "else.ts e 70"], { branch: "other" });
    expect(await timings("main", "nowhere else")).toEqual({ "a.ts": 70000, "else.ts": 70000 });
  });

  test("leaves out reruns, which know some of the cases, and outages, in which everything fails at once", async () => {
    const cases = (seconds: number, letter = "p") =>
      Array.from({ length: 12 }, (_, index) => `f${index}.ts x ${seconds} ${letter}`);
    const execution = await upload("partial", cases(4));
    const rerun = await own.post(`/executions/${execution}/rerun`);
    await upload("partial", ["f0.ts x 400"], { execution_id: rerun.id });
    await upload("partial", cases(0.001, "f"));
    const { timings, runs } = await plan(await begin(), "partial");
    expect([runs, Object.keys(timings).length, timings["f0.ts"]]).toEqual([1, 12, 4000]);
  });

  test("a file of many days is still a number", async () => {
    const cases = Array.from({ length: 4 }, (_, index) => `a.ts x${index} 1500000`);
    await upload("long", cases);
    expect((await plan(await begin(), "long")).timings).toEqual({ "a.ts": 2_147_483_647 });
  });

  test("its execution waits for reports as long as its longest shard takes, beside the time-out", async () => {
    await upload("slow", ["a.ts x 3000", "b.ts x 2000", "c.ts x 1500"]);
    const execution = await begin({ timeoutMinutes: 10 });
    const secondsLeft = async () =>
      (
        await database.pool<{ left: number }[]>`
          select extract(epoch from expires_at - created_at)::int as left from execution where id = ${execution}`
      )[0]!.left;
    expect(await secondsLeft()).toBeWithin(595, 605);
    await plan(execution, "slow", "1/2");
    expect(await secondsLeft()).toBeWithin(4_095, 4_125);
  });

  test("is empty for a task without runs, says so, and stays so", async () => {
    const execution = await begin();
    const empty = { files: [], timings: {}, runs: 0 };
    expect(await plan(execution, "fresh", "1/2")).toEqual(empty);
    await upload("fresh", ["a.ts x 1", "b.ts x 1"]);
    expect(await plan(execution, "fresh", "2/2")).toEqual(empty);
    await upload("no files", ["- x 1"]);
    expect(await plan(execution, "no files")).toEqual({ ...empty, runs: 1 });
  });

  test("knows files and tasks of any name", async () => {
    const names = [`a "b".ts`, "ä,{}\\\\.ts", "__proto__", "NULL"];
    const cases = names.map((file) => ({ suite: "", name: "x", file, status: "passed", durationMs: 7 }));
    const task = "e2e / 100% „Ende“";
    const body = { taskSlug: task, passed: 4, failed: 0, skipped: 0, cases };
    expect((await own.call("POST", "/test-runs", body)).status).toBe(201);
    const execution = await begin();
    for (let time = 0; time < 2; time++) {
      const { text, body } = await ask(pathOf(execution, task, "1/1"), { key });
      expect(body.files).toHaveLength(4);
      expect(Object.entries(JSON.parse(text).timings).map(([file, ms]) => [body.files.includes(file), ms])).toEqual(
        names.map(() => [true, 7]),
      );
    }
  });

  test("is a 400 for what is no shard", async () => {
    const execution = await begin();
    for (const shard of ["", "0/2", "3/2", "2", "1/2/3", "1/10000"]) {
      const { status, body } = await ask(pathOf(execution, "unit", shard), { key });
      expect([shard, status, body.error.message]).toEqual([shard, 400, expect.stringContaining(`Cannot read "shard"`)]);
    }
    const { status, body } = await ask(pathOf(execution, "unit", "x").replace(/\?.*/, ""), { key });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(`"shard"`)]);
  });

  test.skipIf(!isFull)("goes with its execution, and with the results of its time", async () => {
    const stored = async (execution: string) =>
      (await database.pool`select from shard_plan where execution_id = ${execution}`).length;
    const [deleted, old, young] = [await begin(), firstIdAt(Date.now() - 91 * 86_400_000), await begin()];
    await database.pool`update execution set id = ${old} where id = ${await begin()}`;
    for (const execution of [deleted, old, young]) await plan(execution, "unit", "1/3");
    await own.call("DELETE", `/executions/${deleted}`);
    await retainNow(database, { results: 90 }, new Date());
    expect([await stored(deleted), await stored(old), await stored(young)]).toEqual([0, 0, 1]);
  });
});

describe("POST …/test-runs/{taskSlug}/plan", () => {
  test("plans the files that are given: new ones as long as the median, none that is gone; the first list is kept", async () => {
    await upload("posted", ["a.ts x 8", "b.ts x 4", "c.ts x 4", "gone.ts x 100"]);
    const execution = await begin();
    const post = async (shard: string, files: string[], on = ask) => {
      const path = `/projects/${project}/executions/${execution}/test-runs/posted/plan?shard=${shard}`;
      return (await on(`POST ${path}`, { key, body: { files } })).body;
    };
    const files = ["c.ts", "./new.ts".slice(2), "b.ts", "a.ts"];
    const [one, two] = await Promise.all([post("1/2", files), post("2/2", files, askOther)]);
    expect(one.timings).toEqual({ "a.ts": 8000, "b.ts": 4000, "c.ts": 4000, "new.ts": 4000 });
    expect([...one.files, ...two.files].sort()).toEqual(["a.ts", "b.ts", "c.ts", "new.ts"]);
    const sum = (files: string[]) => files.reduce((sum, file) => sum + one.timings[file], 0);
    expect([sum(one.files), sum(two.files)].sort()).toEqual([12_000, 8_000].sort());
    expect(await post("1/2", ["other.ts", "a.ts"])).toEqual(one);
    expect(await plan(execution, "posted", "1/2")).toEqual(one);
  });

  test("is that of GET where none of the files is known", async () => {
    await upload("strange", ["a.ts x 8"]);
    const execution = await begin();
    const path = `/executions/${execution}/test-runs/strange/plan?shard=1/1`;
    expect((await own.post(path, { files: ["x.ts"] })).timings).toEqual({ "a.ts": 8000 });
    const { status, body } = await own.call("POST", path, { files: Array(10_001).fill("x") });
    expect([status, body.error.message]).toEqual([
      400,
      'Cannot read "files": expected at most 10,000 files, got an array of 10001',
    ]);
  });
});

describe("a shard that does not run all files of its plan", () => {
  const FILES = ["a.ts", "b.ts", "c.ts", "d.ts"];
  /** Splits the files over two shards; `ran` answers those of its own files that a shard has run. */
  async function split(task: string, files: string[], ran: (mine: string[], shard: number) => string[]) {
    const execution = await begin();
    const runs: any[] = [];
    for (const shard of [1, 2]) {
      const planned = await own.post(`/executions/${execution}/test-runs/${task}/plan?shard=${shard}/2`, { files });
      const mine = files.filter((file) =>
        planned.timings[file] === undefined ? hashShard(file, 2) === shard : planned.files.includes(file),
      );
      runs.push(await send(execution, task, shard, ran(mine, shard)));
    }
    return { execution, runs };
  }
  async function send(execution: string, task: string, shard: number, files: string[]) {
    const query = `execution_id=${execution}&task_slug=${task}&shard=${shard}/2&allow_empty=true`;
    return (await own.call("POST", `/test-runs?${query}`, report(...files.map((file) => `${file} x 1`)))).body;
  }

  test.each([
    ["skips", true],
    ["skips_first", false],
  ])("is incomplete, until it has reported the file (%s)", async (task, hasRuns) => {
    if (hasRuns)
      await upload(
        task,
        FILES.map((file) => `${file} x 2`),
      );
    const { execution, runs } = await split(task, FILES, (mine, shard) => (shard === 2 ? mine.slice(1) : mine));
    const last = runs[1];
    expect(last).toMatchObject({ verdict: "failed", status: "failed", reason: "report is incomplete", failed: 0 });
    const [, skipped] = /^1 file of the split went to this shard and is in no report: (\S+)$/.exec(last.warnings[0])!;
    expect(await send(execution, task, 2, [skipped!])).toMatchObject({ verdict: "passed", passed: 4, attempt: 2 });
  });

  test("has a warning for a file that no report has ever named, if the task has earlier runs", async () => {
    await upload(
      "never_named",
      FILES.map((file) => `${file} x 2`),
    );
    const files = [...FILES, ...Array.from({ length: 4 }, (_, at) => `helper${at}.ts`)];
    const { runs } = await split("never_named", files, (mine) => mine.filter((file) => FILES.includes(file)));
    expect(runs.map(({ verdict }) => verdict)).toEqual(["passed", "passed"]);
    const warnings: string[] = runs.flatMap((run) => run.warnings);
    const named = warnings.flatMap(
      (text) => /no report has ever named (?:it|them): (.*)$/.exec(text)?.[1]!.split(", ") ?? [],
    );
    expect([...new Set(named)].sort()).toEqual(files.slice(FILES.length));
  });

  test("misses the files of every list that its jobs have split", async () => {
    const task = "two_lists";
    const execution = await begin();
    for (const files of [FILES.slice(0, 1), FILES.slice(1)])
      await own.post(`/executions/${execution}/test-runs/${task}/plan?shard=1/2`, { files });
    const shard = hashShard(FILES[3]!, 2);
    const mine = FILES.filter((file) => hashShard(file, 2) === shard);
    const { warnings } = await send(execution, task, shard, [...mine.slice(0, -1), "other.ts", ...FILES.slice(0, 1)]);
    expect(warnings).toContain(`1 file of the split went to this shard and is in no report: ${FILES[3]}`);
  });

  test("is complete without a report if it has no file, which its report has to claim", async () => {
    const names = Array.from({ length: 9 }, (_, at) => `f${at}.ts`);
    const [mine, theirs] = [1, 2].map((shard) => names.find((file) => hashShard(file, 2) === shard)!);
    const send = async (execution: string, shard: number, allowEmpty: string) =>
      await own.call(
        "POST",
        `/test-runs?execution_id=${execution}&task_slug=none&shard=${shard}/2&allow_empty=${allowEmpty}`,
        "",
      );
    const begun = async (files: string[]) => {
      const execution = await begin();
      await own.post(`/executions/${execution}/test-runs/none/plan?shard=1/2`, { files });
      return execution;
    };
    const half = await begun([mine!]);
    expect(await send(half, 1, "if_no_files")).toMatchObject({
      status: 400,
      body: { error: { message: "The report holds no test case, and the split gave this shard 1 file" } },
    });
    expect((await send(half, 2, "if_no_files")).body.warnings).toEqual(["The split gave shard 2 of 2 no files"]);
    const { status, body } = await send(await begin(), 1, "if_no_files");
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("nothing says that the split gave")]);
    // A run in which no shard has run anything is not green, even if its reports may be empty.
    const both = await begun([mine!, theirs!]);
    expect((await send(both, 1, "true")).body.verdict).toBe("passed");
    const last = (await send(both, 2, "true")).body;
    expect([last.verdict, last.warnings]).toEqual(["failed", expect.arrayContaining(["No shard has run a test"])]);
  });

  test("is complete if the file has no tests in any run", async () => {
    await upload(
      "helpers",
      FILES.map((file) => `${file} x 2`),
    );
    const files = [...FILES, "helper1.ts", "helper2.ts"];
    const { runs } = await split("helpers", files, (mine) => mine.filter((file) => !file.startsWith("helper")));
    expect(runs[1]).toMatchObject({ verdict: "passed", passed: 4 });
  });

  test("is complete if the reports name other files, or none", async () => {
    const { runs } = await split("unnamed", FILES, (mine) => mine.map(() => "-"));
    expect(runs[1]).toMatchObject({ verdict: "passed" });
  });
});

describe("POST …/test-runs/{taskSlug}/batches", () => {
  const FILES = Array.from({ length: 12 }, (_, at) => `f${String(at).padStart(2, "0")}.ts`);
  const next = async (execution: string, shard: string, more: object = {}, on = ask, extra: object = {}) => {
    const path = `/projects/${project}/executions/${execution}/test-runs/queued/batches`;
    return await on(`POST ${path}`, { key, body: { shard, holder: `job ${shard}`, files: FILES, ...more }, ...extra });
  };

  test("hand each file to one job, on whichever server it asks, and once under one Idempotency-Key", async () => {
    const execution = await begin();
    const taken: string[] = [];
    const work = async (shard: string, on: typeof ask) => {
      for (;;) {
        const { status, body } = await next(execution, shard, {}, on);
        expect(status).toBe(200);
        if (body.files.length === 0) return;
        taken.push(...body.files);
      }
    };
    await Promise.all([work("1/3", ask), work("2/3", askOther), work("3/3", ask)]);
    expect(taken.toSorted()).toEqual(FILES);

    const other = await begin();
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const first = await next(other, "1/3", {}, ask, { headers });
    expect((await next(other, "1/3", {}, askOther, { headers })).body).toEqual(first.body);
    expect((await next(other, "1/3")).body.files).not.toContain(first.body.files[0]);
  });

  test("that a job has not acknowledged, or that nobody took, make its report red and say so", async () => {
    const execution = await begin({ key: "unrun" });
    const { body: batch } = await next(execution, "1/2");
    const send = (shard: string, letters: string) =>
      upload("queued", [`${letters}.ts x 1`], { execution_id: execution, shard, complete: "false" }).then(() => see());
    const see = async () => await own.get(`/executions/${execution}/test-runs/queued`);
    const first = await send("1/2", "a");
    expect(first.warnings).toContain(
      `${batch.files.length} files of the split went to this shard, which has not said that it has run them`,
    );
    // It is started again, runs all that it gets, and says so.
    let ran = 0;
    for (let left = 1; left > 0; left = ran < 6 ? 1 : 0)
      ran += (await next(execution, "1/2", { holder: "again" })).body.files.length;
    await next(execution, "1/2", { holder: "again" });
    const last = await send("2/2", "b");
    expect(last.verdict).toBe("failed");
    expect(last.warnings.join()).toMatch(/\d+ files of the split went to no shard/);
  });

  test("that a shard took, and no report has, make its run incomplete", async () => {
    const all = FILES.map((file) => `${file} x 1`);
    await upload("queued", all);
    const execution = await begin({ key: "skipped of a queue" });
    const taken: string[] = [];
    for (let files = ["x"]; files.length > 0; taken.push(...files)) files = (await next(execution, "1/2")).body.files;
    while ((await next(execution, "2/2")).body.files.length > 0);
    const send = async (shard: string, files: string[]) => {
      const query = `execution_id=${execution}&task_slug=queued&shard=${shard}&allow_empty=true`;
      return (await own.call("POST", `/test-runs?${query}`, report(...files.map((file) => `${file} x 1`)))).body;
    };
    await send("2/2", []);
    const run = await send("1/2", taken.slice(1));
    expect(run).toMatchObject({ verdict: "failed", reason: "report is incomplete", failed: 0 });
    expect(run.warnings).toContain(`1 file of the split went to this shard and is in no report: ${taken[0]}`);
    expect((await send("1/2", taken)).verdict).toBe("passed");
  });

  test("of a lease that is lost go to the others, and not to its runner any more", async () => {
    const execution = await begin({ mode: "run", tasks: [{ slug: "queued", shards: 2 }] });
    const registered = await own.post("/runners", { runner: "r1" });
    const { key: runnerKey } = registered;
    const sync = async (runner: string, with_: object) =>
      (
        await ask(`POST /projects/${project}/leases`, {
          key: runner === "r1" ? runnerKey : key,
          body: { runner, ...with_ },
        })
      ).body;
    const { leases } = await sync("r1", { free: 2 });
    const held = leases.map(({ id }: { id: string }) => ({ id }));
    await sync("r1", { free: 0, held });
    const plan = (index: number, slug = "queued") =>
      ask(`GET /projects/${project}/executions/${execution}/test-runs/${slug}/plan?shard=${index}/2`, {
        key: runnerKey,
      }).then(({ status }) => status);
    const [first, second] = leases.map((lease: { shard: { index: number } }) => lease.shard.index);
    expect([await plan(first), await plan(second), await plan(first, "other")]).toEqual([200, 200, 404]);
    const ask1 = (at: number, holder = leases[at].id) =>
      next(execution, `${leases[at].shard.index}/2`, { holder }, ask, { key: runnerKey });
    const mine = (await ask1(0)).body.files;
    await ask1(0);
    const others = (await ask1(1)).body.files;
    const refused = await ask1(0, leases[1].id);
    expect(refused.body.error.message).toBe(
      'Cannot read "holder": expected a lease that this runner holds, of this task and shard',
    );
    await database.pool`update lease set expires_at = now() - interval '1 second', started_at = now() - interval '2 minutes' where id = ${leases[0].id}`;
    await reclaimLeases(database);
    expect((await ask1(0)).status).toBe(400);
    expect([await plan(first), await plan(second)]).toEqual([404, 200]);
    const rest: string[] = [];
    for (let files = ["x"]; files.length > 0; rest.push(...files)) files = (await ask1(1)).body.files;
    expect([...others, ...rest].toSorted()).toEqual(FILES);
    expect(rest).toContain(mine[0]);
  });
});

describe("the time of a file", () => {
  const send = async (task: string, body: string, query = "") =>
    expect((await own.call("POST", `/test-runs?task_slug=${task}&complete=true${query}`, body)).status).toBe(201);
  const planOf = async (execution: string, task: string, shard: string, files: string[]) =>
    (await own.post(`/executions/${execution}/test-runs/${task}/plan?shard=${shard}`, { files })) as {
      files: string[];
      timings: Record<string, number>;
    };
  const sumOf = ({ files, timings }: { files: string[]; timings: Record<string, number> }) =>
    files.reduce((sum, file) => sum + timings[file]!, 0) / 1000;

  test.each([
    [
      "Jest says",
      JSON.stringify({
        ...{ numFailedTests: 0, numPassedTests: 4, numTotalTests: 4, success: true, startTime: 1_732_700_000_000 },
        testResults: ["a 300 5", "b 300 5", "c 10 10000", "d 9 9000"].map((text) => {
          const [name, seconds, duration] = text.split(" ");
          const endTime = 1_732_700_000_000 + Number(seconds) * 1000;
          const assertion = { ancestorTitles: [name], title: "t", status: "passed", duration: Number(duration) };
          return {
            ...{ name: `src/${name}.test.js`, status: "passed", startTime: 1_732_700_000_000, endTime },
            assertionResults: [assertion],
          };
        }),
      }),
    ],
    [
      "the suites of JUnit XML say",
      `<testsuites time="619">${["a 300 0.005", "b 300 0.005", "c 10 10", "d 9 9"]
        .map((text) => {
          const [name, time, own] = text.split(" ");
          const file = `file="src/${name}.test.js"`;
          return `<testsuite name="${name}" ${file} time="${time}"><testcase classname="${name}" name="t" ${file} time="${own}"/></testsuite>`;
        })
        .join("")}</testsuites>`,
    ],
  ])("has its hooks and imports, as %s", async (tool, body) => {
    const task = `own-time-${tool.length}`;
    await send(task, body);
    const execution = await begin();
    const files = ["a", "b", "c", "d"].map((name) => `src/${name}.test.js`);
    const shards = [await planOf(execution, task, "1/2", files), await planOf(execution, task, "2/2", files)];
    expect(shards.map(sumOf)).toEqual([310, 309]);
  });

  test("of suites inside suites is counted once, and that of suites of several files not at all", async () => {
    const inside = `<testsuite name="b" file="b.js" time="4"><testcase name="t" file="b.js" time="1"/></testsuite>`;
    const a = `<testcase name="t" file="a.js" time="1"/>`;
    const mixed = `<testsuite name="m" time="90"><testcase name="t" file="c.js" time="2"/><testcase name="t" file="d.js" time="3"/></testsuite>`;
    await send(
      "nested",
      `<testsuites><testsuite name="a" file="a.js" time="10">${a}${inside}</testsuite>${mixed}</testsuites>`,
    );
    const { timings } = await plan(await begin(), "nested");
    expect(timings).toEqual({ "a.js": 6000, "b.js": 4000, "c.js": 2000, "d.js": 3000 });
  });

  test("of a later attempt, which may repeat a part of the file, does not count", async () => {
    const suite = (time: number, cases: string) =>
      `<testsuite name="a" file="a.js" time="${time}">${cases}</testsuite>`;
    const one = (name: string, inside = "") => `<testcase name="${name}" file="a.js" time="1">${inside}</testcase>`;
    const build = "&execution_key=attempts";
    await send("attempts", suite(60, one("x") + one("y", "<failure/>")), build);
    await send("attempts", suite(31, one("y")), build);
    expect((await plan(await begin(), "attempts")).timings).toEqual({ "a.js": 60_000 });
  });

  test("is that of a package for Go, and that of a class for Java: no shard is empty", async () => {
    const packages = ["cart", "pay", "user", "mail"].map((name) => `example.com/shop/${name}`);
    const events = packages.flatMap((Package, at) => [
      { Action: "run", Package, Test: "TestA" },
      { Action: "pass", Package, Test: "TestA", Elapsed: 0.01 },
      { Action: "pass", Package, Elapsed: 10 * (at + 1) },
    ]);
    await send("go", events.map((event) => JSON.stringify(event)).join("\n"));
    const classes = ["Cart", "Pay", "User", "Mail"].map((name) => `com.acme.${name}Test`);
    const suites = classes.map((name, at) => {
      const nested = `<testcase classname="${name}$Inner" name="b" time="0.1"/>`;
      return `<testsuite name="${name}" time="${10 * (at + 1)}"><testcase classname="${name}" name="a" time="0.1"/></testsuite><testsuite name="${name}$Inner" time="1">${nested}</testsuite>`;
    });
    await send("java", `<testsuites>${suites.join("")}</testsuites>`);
    const sources = classes.map((name) => `src/test/java/${name.replaceAll(".", "/")}.java`);
    const execution = await begin();
    for (const [task, files, more] of [
      ["go", packages, 0],
      ["java", classes, 1],
      ["java", sources, 1],
    ] as const) {
      const shards = await Promise.all([1, 2, 3].map((shard) => planOf(execution, task, `${shard}/3`, [...files])));
      expect(shards.map(sumOf).sort()).toEqual([30 + 2 * more, 30 + more, 40 + more].sort());
    }
  });

  test("of a class that no report of a shard has makes the shard incomplete", async () => {
    const classes = Array.from({ length: 6 }, (_, at) => `com.acme.Case${at}Test`);
    const xml = (names: string[]) =>
      `<testsuites>${names.map((name) => `<testsuite name="${name}" time="1"><testcase classname="${name}" name="a"/></testsuite>`).join("")}</testsuites>`;
    await send("classes", xml(classes));
    const execution = await begin({ key: "classes of shards" });
    const { files } = await planOf(execution, "classes", "1/2", classes);
    await own.call("POST", `/test-runs?execution_id=${execution}&task_slug=classes&shard=1/2`, xml(files.slice(1)));
    const { warnings } = await own.get(`/executions/${execution}/test-runs/classes`);
    expect(warnings).toContain(`1 file of the split went to this shard and is in no report: ${files[0]}`);
  });
});
