import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { readHistory } from "../../src/operations/health/case_history.ts";
import { retainNow } from "../retaining.ts";
import { createHarness, junit } from "../harness.ts";
import { isFull } from "../depth.ts";

const { ask, acme, addProject, database } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const catalogue = async (query = "") => await own.list(`/test-cases${query}`);
const one = async (index = 0) => (await catalogue("?limit=100"))[index];
const names = (cases: { name: string }[]) => cases.map(({ name }) => name);
const report = (file: string, ...cases: string[]) =>
  `<testsuite name="s">${cases.map((name) => `<testcase name="${name}" file="${file}"/>`).join("")}</testsuite>`;

/** Reports that cases of these names passed, in a file. */
const pass = (file: string, cases: string[], query = "") => own.uploadReport(report(file, ...cases), query);
const idsOf = (cases: { id: string }[]) => cases.map(({ id }) => id);

describe("health", () => {
  test("what has failed five times in a row on the default branch is broken until it passes there, whatever other branches do", async () => {
    for (let run = 0; run < 5; run++) await own.upload("p", "branch=main");
    await own.upload("f", "branch=feature");
    expect((await one()).health).toBe("healthy");
    for (let run = 0; run < 5; run++) {
      expect((await one()).health).toBe("healthy");
      await own.upload("f");
    }
    expect((await one()).health).toBe("broken");
    expect(names(await catalogue("?health=broken"))).toEqual(["case 0"]);
    await own.upload("p", "branch=feature");
    expect((await one()).health).toBe("broken");
    await own.upload("p", "branch=main");
    expect((await one()).health).toBe("healthy");
  });

  test("a case is new until its fifth result, then healthy", async () => {
    for (let run = 0; run < 4; run++) await own.upload("p", `branch=b${run}`);
    expect(await one()).toMatchObject({ health: "new", runs: 4, failures: 0, lastStatus: "passed", flakeRate: 0 });
    await own.upload("p", "branch=b5");
    const found = await one();
    expect(found).toEqual({
      ...{ id: expect.any(String), taskSlug: "t", tags: [], suite: "unit", name: "case 0", file: null },
      ...{ health: "healthy", lastStatus: "passed", lastRunAt: expect.any(String) },
      ...{ lastPassedAt: found.lastRunAt, lastFailedAt: null, runs: 5, failures: 0 },
      ...{ flaky: null, flakeRate: 0, flakeFailures: 0, flakeResults: 5 },
      ...{ averageMs: 10, p95Ms: 10, quarantine: null, owner: null, owners: [] },
    });
    expect(await own.get(`/test-cases/${found.id}`)).toEqual({ ...found, ...{ variants: [], byTag: [] } });
  });

  test("passed after a failure within a run is flaky, whether the retry comes in time or after the run was counted", async () => {
    await own.upload("fp", "execution_key=a&branch=x");
    expect(await one()).toMatchObject({ health: "new", failures: 1, lastStatus: "failed" });
    await own.upload("p", "execution_key=a&branch=x");
    expect(await one()).toMatchObject({ health: "flaky", runs: 1, failures: 0, lastStatus: "passed", flakeRate: 1 });
    expect(await one(1)).toMatchObject({ health: "new", runs: 1, failures: 0, flakeRate: 0 });
  });

  test("both outcomes on one commit are flaky, by whichever length of its hash it is named, and on two commits they are not", async () => {
    const commit = "0123456789abcdef0123456789abcdef01234567";
    await own.upload("p", "commit=fedcba98&branch=x");
    await own.upload("f", `commit=${commit}&branch=x`);
    expect((await one()).flaky).toBeNull();
    await own.upload("p", `commit=${commit.slice(0, 8)}&branch=x`);
    expect((await one()).flaky).toMatchObject({ signs: ["same_commit"] });
  });

  test("is removed when 20 runs of its task on the default branch do not have it, with its bug, and returns with its history", async () => {
    const send = (body: string, query = "branch=main") => own.uploadReport(body, query);
    const without = junit("fpp").replace(/<testcase classname="unit" name="case 0"[^]*?<\/testcase>/, "");
    const bug = async () => (await own.list("/bug-reports"))[0].status;
    for (let run = 0; run < 5; run++) await send(junit("fpp"));
    expect((await one()).health).toBe("broken");
    for (let run = 0; run < 19; run++) await send(without);
    // Runs of other branches and other tasks, and reruns, tell nothing of it.
    for (let run = 0; run < 3; run++) await send(without, "branch=x");
    expect([(await one()).health, await bug()]).toEqual(["broken", "open"]);
    await send(without);
    expect([(await one()).health, await bug()]).toEqual(["removed", "resolved"]);
    expect(await catalogue("?health=broken")).toEqual([]);
    expect(await catalogue("?health=removed")).toMatchObject([{ name: "case 0", failures: 5 }]);
    // A branch that began before it was deleted still has it.
    await send(junit("fpp"), "branch=x");
    expect([(await one()).health, await bug()]).toEqual(["removed", "resolved"]);
    await send(junit("fpp"));
    expect([(await one()).health, await bug()]).toEqual(["broken", "open"]);
    expect(await one()).toMatchObject({ failures: 7 });
  });

  test("is removed though a branch that began before still runs it, and one that only a branch had when that ends", async () => {
    const send = (letters: string, query = "branch=main") => own.upload(letters, query);
    const health = async () =>
      Object.fromEntries((await catalogue("?limit=100")).map(({ name, health }: any) => [name, health]));
    for (let run = 0; run < 5; run++) await send("pf");
    for (const letters of ["ppf", "ppp"]) await send(letters, "branch=new&execution_key=retried");
    for (let run = 0; run < 20; run++) {
      if (run % 5 === 0) await send("pf", "branch=old");
      expect((await health())["case 1"]).toBe("broken");
      await send("p");
    }
    expect(await health()).toMatchObject({ "case 1": "removed", "case 2": "removed" });
    await send("pfp", "branch=new");
    expect(await health()).toMatchObject({ "case 1": "removed", "case 2": "flaky" });
  });

  test("five cases that begin to look flaky in one run are its machine's, by retries and by another run of the commit", async () => {
    const flaky = async () => (await catalogue("?health=flaky")).length;
    const fail = async (count: number, build: string) => {
      await own.upload("f".repeat(count).padEnd(20, "p"), build);
      await own.upload("p".repeat(20), build);
      return await flaky();
    };
    expect(await fail(5, "execution_key=a")).toBe(0);
    expect(await fail(12, "commit=0123456789&branch=x")).toBe(0);
    expect(await fail(4, "commit=1123456789&branch=x")).toBe(4);
    // Those that are known as flaky are no sign of it.
    expect(await fail(8, "execution_key=b")).toBe(8);
  });

  test("a retry that fails again is no further failure", async () => {
    for (let run = 0; run < 4; run++) {
      const query = `&branch=main&execution_key=${run}`;
      await own.upload("f", `${query}&complete=true`);
      expect((await one()).runs).toBe(run + 1);
      // With a case more it is another report, and not the same one again.
      expect((await own.upload("fp", query)).attempt).toBe(2);
      expect(await one()).toMatchObject({ name: "case 0", runs: run + 1, failures: run + 1, health: "new" });
    }
  });

  test("an outage is marked and says nothing about its cases, until a retry shows that it is over", async () => {
    await own.upload("p".repeat(12));
    const down = await own.upload(`${"f".repeat(11)}p`, "execution_key=down");
    expect(down).toMatchObject({ outage: true, verdict: "failed", failed: 11 });
    expect(await one()).toMatchObject({ runs: 1, failures: 0, lastStatus: "failed" });
    expect(await own.upload("p".repeat(11), "execution_key=down")).toMatchObject({ outage: false, flaky: 11 });
    expect(await one()).toMatchObject({ runs: 2, failures: 0, lastStatus: "passed", health: "new", flaky: null });
    expect((await own.upload(`${"f".repeat(9)}p`)).outage).toBe(false);
    // Half of it is over: what still fails is the outage's.
    await own.upload("f".repeat(20), "execution_key=half");
    expect(await own.upload("p".repeat(10), "execution_key=half")).toMatchObject({ outage: true, newFailures: [] });
    // What did not run tells nothing.
    expect((await own.upload(`${"f".repeat(10)}sssss`)).outage).toBe(true);
  });

  test("skipped results are seen and not counted; a run counts once all its shards are in", async () => {
    await own.upload("s");
    expect(await one()).toMatchObject({ runs: 0, lastStatus: "skipped", health: "new", averageMs: null });
    await own.upload("f", "shard=1/2&execution_key=a");
    expect(await one()).toMatchObject({ runs: 0, lastStatus: "skipped" });
    await own.upload("p", "shard=2/2&execution_key=a", "other");
    expect(await one()).toMatchObject({ runs: 1, failures: 1, lastStatus: "failed" });
  });
});

describe("the catalogue", () => {
  test("is filtered by task, health and text, and each mistake is named", async () => {
    await own.upload("pp");
    await own.post("/test-runs?task_slug=u", report("src/Cart.test.ts", "adds"));
    expect(names(await catalogue("?task_slug=u"))).toEqual(["adds"]);
    expect(names(await catalogue("?q=CART"))).toEqual(["adds"]);
    expect(names(await catalogue("?q=%25"))).toEqual([]);
    expect(names(await catalogue("?health=new,flaky&q=case%201"))).toEqual(["case 1"]);
    const { status, body } = await own.call("GET", "/test-cases?health=sick&sort=name&x=1");
    expect(status).toBe(400);
    for (const name of ["health", "sort", "x"]) expect(body.error.message).toContain(`"${name}"`);
  });

  test("is filtered by owner and quarantine, walked exactly once in any order", async () => {
    await own.upload("pppppp");
    await own.upload("fpfppf");
    await own.upload("fppppp", "execution_key=a");
    await own.upload("p", "execution_key=a");
    const ids = idsOf(await catalogue("?limit=100"));
    const patch = (places: number[], body: object) =>
      own.call("PATCH", "/test-cases", { testCaseIds: places.map((at) => ids[at]), ...body });
    await patch([0, 1, 2, 3], { owner: "ann" });
    await patch([5], { owner: "Ann" });
    await patch([1, 2, 4], { quarantine: { reason: "#1" } });
    await database.pool`
      insert into quarantine (project_id, test_case, reason, until) values (${own.project}, 1, 'over', now())`;
    for (const [filter, places] of [
      ["", [0, 1, 2, 3, 4, 5]],
      ["owner=ann", [0, 1, 2, 3]],
      ["owner=bob", []],
      ["quarantined=true", [1, 2, 4]],
      ["quarantined=false", [0, 3, 5]],
      ["owner=ann&quarantined=true", [1, 2]],
      ["owner=ann&quarantined=false&q=case", [0, 3]],
    ] as const)
      for (const sort of ["", "&sort=flakeRate", "&sort=failures", "&sort=p95Ms", "&sort=lastRunAt"]) {
        const seen = names(await own.walk(`/test-cases?limit=1&${filter}${sort}`));
        expect([filter, sort, ...seen.toSorted()]).toEqual([filter, sort, ...places.map((place) => `case ${place}`)]);
      }
    expect(names(await catalogue("?sort=flakeRate&limit=1"))).toEqual(["case 0"]);
    expect(names(await catalogue("?quarantined=false&sort=failures&limit=2"))).toEqual(["case 5", "case 0"]);
    const { body } = await own.call("GET", "/test-cases?owner=&quarantined=yes");
    for (const name of ["owner", "quarantined"]) expect(body.error.message).toContain(`"${name}"`);
  });

  test("is searched with words, alone and with parameters, walked exactly once in any order", async () => {
    await own.upload("pppppp");
    await own.upload("fpfppf");
    await own.upload("fppppp", "execution_key=a");
    await own.upload("p", "execution_key=a");
    await own.post("/test-runs?task_slug=u&tag=os:linux", report("src/Cart Shop.test.ts", "adds: one"));
    const ids = idsOf(await catalogue("?limit=100"));
    const patch = (places: number[], body: object) =>
      own.call("PATCH", "/test-cases", { testCaseIds: places.map((at) => ids[at]), ...body });
    await patch([0, 1], { owner: "the web team" });
    await patch([1, 2], { quarantine: { reason: "#1" } });
    await patch([3], {
      quarantine: { reason: "#1", until: new Date(Date.now() + 86_400_000).toISOString(), skip: true },
    });
    await database.pool`
      update case_health set flake_rate = case when test_case = 1 then 0.07 else 0 end, p95_ms = 10,
        failures = case when test_case = 1 then 2 else failures end
      where project_id = ${own.project} and test_case < 7`;
    const all = [0, 1, 2, 3, 4, 5].map((place) => `case ${place}`);
    for (const [q, found] of [
      ["is:quarantined", ["case 1", "case 2", "case 3"]],
      ["is:unquarantined task:t", ["case 0", "case 4", "case 5"]],
      ["is:skipped", ["case 3"]],
      ["is:owned", ["case 0", "case 1"]],
      ["is:unowned is:skipped", ["case 3"]],
      ["is:new task:t", all.slice(1)],
      ["is:flaky,new task:t", all],
      ["is:flaky is:broken", []],
      ['owner:"the web team" is:quarantined', ["case 1"]],
      ["owner:nobody", []],
      ["tag:os:linux", ["adds: one"]],
      ["tag:os:mac", []],
      ['file:"CART SHOP"', ["adds: one"]],
      ["name:ADDS", ["adds: one"]],
      ["suite:nothing", []],
      ['"adds: one"', ["adds: one"]],
      ["CASE 1 is:owned", ["case 1"]],
      ["failed:>0", ["case 0", "case 2", "case 5"]],
      ["failed:>=2", ["case 0"]],
      ["failed:1", ["case 2", "case 5"]],
      ["failed:0 is:quarantined", ["case 1", "case 3"]],
      ["failed:<1 is:owned", ["case 1"]],
      ["flaky:>=7%", ["case 0"]],
      ["flaky:>7%", []],
      ["flaky:<7% is:owned", ["case 1"]],
      ["slow:>=10ms task:t", all],
      ["slow:>0.01s task:t", []],
      ["slow:<=1m task:t", all],
    ] as const)
      for (const sort of ["", "&sort=flakeRate", "&sort=failures", "&sort=p95Ms", "&sort=lastRunAt"]) {
        const seen = names(await own.walk(`/test-cases?limit=2&q=${encodeURIComponent(q)}${sort}`));
        expect([q, sort, ...seen.toSorted()]).toEqual([q, sort, ...found]);
      }
    expect(names(await catalogue("?q=is:quarantined&skip=false&task_slug=t"))).toEqual(["case 1", "case 2"]);
    expect(names(await catalogue("?q=owner:nobody&owned=true"))).toEqual([]);
  });

  test("names a word of the search that it cannot read, and what it expects", async () => {
    for (const [q, expected] of [
      [
        "colour:red",
        'expected one of is, owner, task, tag, file, name, suite, failed, flaky, slow before the colon of "colour:red"',
      ],
      ["is:ill", 'in "is:ill"'],
      ["failed:>x", 'expected a number of failures such as >2 in "failed:>x"'],
    ] as const) {
      const { status, body } = await own.call("GET", `/test-cases?q=${encodeURIComponent(q)}`);
      expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
      expect(body.error.message).toStartWith('Cannot read "q": ');
      expect(body.error.message).toContain(expected);
    }
  });

  test("is walked exactly once by an owner of very many, too", async () => {
    await own.upload(`${"f".repeat(120)}${"p".repeat(2_000)}`);
    await catalogue();
    await database.pool`update test_case set owner = 'ann' where project_id = ${own.project} and number > 10`;
    const seen = names(await own.walk(`/test-cases?limit=100&owner=ann&sort=failures`));
    const cases = Array.from({ length: 2_120 }, (_, index) => `case ${index}`);
    // More than are looked up before.
    await database.pool`update case_health set p95_ms = case when test_case > 10 then 7 end
      where project_id = ${own.project}`;
    expect(names(await catalogue("?limit=100&q=slow:%3E6ms&sort=failures"))).toEqual(seen.slice(0, 100));
    expect(seen).toEqual([...cases.slice(10, 120).toReversed(), ...cases.slice(120)]);
  });
});

describe("history", () => {
  test("tells newest first what came of a case, where and why", async () => {
    await own.upload("p", "branch=main&commit=a");
    await own.upload("f", "branch=main&commit=b&execution_key=b");
    await own.upload("p", "execution_key=b");
    await own.upload("f", "branch=x&commit=c");
    const { id } = await one();
    const path = `/test-cases/${id}/results`;
    const body = await own.get(`${path}?limit=2`);
    expect(body.data).toEqual([
      {
        ...{
          executionId: expect.any(String),
          taskSlug: "t",
          branch: "x",
          commit: "c",
          completedAt: expect.any(String),
        },
        ...{ status: "failed", flaky: false, durationMs: 10, attempt: 1, outage: false, message: "case 0 failed" },
      },
      expect.objectContaining({ status: "passed", flaky: true, attempt: 2, commit: "b", message: null }),
    ]);
    const rest = await own.get(`${path}?limit=2&cursor=${body.pagination.cursor}`);
    expect(rest).toMatchObject({ data: [{ status: "passed", commit: "a" }], pagination: { hasMore: false } });
  });

  test("is filtered by status and branch, and walked exactly once", async () => {
    const runs = [..."pfspfpPfFs"].map((letter, index) => ({ letter, branch: ["main", "x", "y"][index % 3]! }));
    for (const [index, { letter, branch }] of runs.entries()) {
      const origin = `&branch=${branch}&commit=${index}&execution_key=${index}`;
      if (letter < "a") await own.upload("f", origin);
      await own.upload(letter.toLowerCase(), origin);
    }
    await own.upload("sfffffffff", "branch=other", "other");
    const { id } = (await catalogue("?q=unit"))[0];
    const statuses: Record<string, string> = { passed: "pP", failed: "fF", skipped: "s" };
    for (const status of [undefined, ...Object.keys(statuses)])
      for (const branch of [undefined, "main", "x", "y", "z"])
        for (const lookedAt of [1, 2, 3, 7, 1_000]) {
          const read = (limit: number, looked: { lookedAt: number; patienceMs: number }, after?: string) => {
            const query = { limit, status: status as "passed", branch, after };
            return readHistory(database.pool, own.project, id, query, looked);
          };
          const seen: (string | null)[] = [];
          let pages = 0;
          for (let after: string | undefined; ;) {
            const { rows, last } = await read(2, { lookedAt, patienceMs: 0 }, after);
            expect(rows.length).toBeLessThanOrEqual(2);
            seen.push(...rows.map(({ commit }) => commit));
            pages++;
            if (last === undefined) break;
            after = last;
          }
          const expected = [...runs.entries()].filter(
            ([, run]) =>
              (status === undefined || statuses[status]!.includes(run.letter)) &&
              (branch === undefined || branch === run.branch),
          );
          const commits = expected.map(([index]) => String(index)).toReversed();
          expect([status, branch, lookedAt, ...seen]).toEqual([status, branch, lookedAt, ...commits]);
          const found = await read(Math.max(1, expected.length), { lookedAt, patienceMs: Infinity });
          expect(found.rows.map(({ commit }) => commit)).toEqual(seen);
          // An empty page is not the end; the run of another suite is looked at as well.
          if (branch === "z") expect(pages).toBe(Math.ceil((runs.length + 1) / lookedAt));
        }
    const path = `/test-cases/${id}/results`;
    const failed = `${path}?status=failed&branch=x&limit=1`;
    const body = await own.get(failed);
    const newest = { status: "failed", branch: "x", commit: "7" };
    expect(body).toMatchObject({ data: [newest], pagination: { hasMore: true } });
    const rest = await own.get(`${failed}&cursor=${body.pagination.cursor}`);
    expect(rest).toMatchObject({ data: [{ commit: "4" }], pagination: { hasMore: true } });
    const other = await own.call("GET", `${path}?status=passed&branch=x&cursor=${body.pagination.cursor}`);
    expect([other.status, other.body.error.message]).toEqual([400, expect.stringContaining(`"cursor"`)]);
    expect((await own.call("GET", `${path}?status=broken&branch=`)).body.error.message).toMatch(/"status".*"branch"/);
  });

  test("survives that the file moves, the workspace changes or the file is renamed as a whole", async () => {
    for (const file of ["src/cart.test.ts", "/mnt/build-7/src/cart.test.ts", "src/basket.test.ts"])
      await pass(file, ["adds", "removes"]);
    expect(await catalogue()).toMatchObject([
      { name: "adds", file: "src/basket.test.ts", runs: 3 },
      { name: "removes", file: "src/basket.test.ts", runs: 3 },
    ]);
  });

  test("is one where branches have a file at its old and its new place, also within one build and its retry", async () => {
    const [old, moved] = ["src/cart.test.ts", "src/shop/cart.test.ts"];
    await pass(old, ["adds", "removes"], "branch=main");
    await pass(moved, ["adds", "removes"], "branch=move&execution_key=a");
    await pass(old, ["adds", "removes", "counts"], "branch=main");
    await pass(moved, ["removes"], "branch=move&execution_key=a");
    await pass(old, ["adds", "removes", "counts"], "branch=other");
    await pass(moved, ["adds", "removes", "counts"], "branch=main");
    expect(await catalogue()).toMatchObject([
      { name: "adds", file: moved, runs: 5 },
      { name: "removes", file: moved, runs: 5 },
      { name: "counts", file: moved, runs: 3 },
    ]);
  });

  test("is not shared by a copy: where both places are in one report they are two cases from then on", async () => {
    const [old, moved] = ["a/cart.test.ts", "b/cart.test.ts"];
    const both = `<testsuites>${report(old, "adds")}${report(moved, "adds")}</testsuites>`;
    for (const file of [old, moved]) await pass(file, ["adds"]);
    expect(await catalogue()).toHaveLength(1);
    expect(await own.uploadReport(both)).toMatchObject({ passed: 2, total: 2 });
    const places = [{ file: moved, runs: 3 }, { file: old }];
    expect(await catalogue()).toMatchObject([places[0], { ...places[1], runs: 1 }]);
    await pass(old, ["adds"]);
    expect(await catalogue()).toMatchObject([places[0], { ...places[1], runs: 2 }]);
  });

  test("is not given to a namesake in another file", async () => {
    await pass("a.test.ts", ["works"], "shard=1/2&execution_key=a");
    await pass("b.test.ts", ["works"], "shard=2/2&execution_key=a");
    await pass("c.test.ts", ["works"], "shard=1/3&execution_key=b");
    await own.uploadReport(`<testsuites>${report("a.test.ts", "works")}${report("d.test.ts", "works")}</testsuites>`);
    const files = ["a.test.ts", "b.test.ts", "c.test.ts", "d.test.ts"];
    expect((await catalogue()).map(({ file }) => file)).toEqual(files);
  });
});

describe("quarantine", () => {
  test("takes a failure out of the verdict, not out of the counts, until it ends", async () => {
    await own.upload("pf");
    const { id } = await one(1);
    const path = `/test-cases/${id}`;
    const body = await own.patch(path, { quarantine: { reason: "#12" }, owner: "ann" });
    expect(body).toMatchObject({ owner: "ann", quarantine: { reason: "#12", until: null } });
    const forgiven = await own.upload("pf");
    const failure = { testCaseId: id, taskSlug: "t", suite: "unit", name: "case 1", file: null };
    expect(forgiven).toMatchObject({ verdict: "passed", failed: 1, quarantinedFailures: [failure] });
    const green = { status: "passed", verdict: "passed", failed: 1 };
    expect(await own.get(`/executions/${forgiven.executionId}`)).toMatchObject(green);
    expect(await own.upload("ff")).toMatchObject({ verdict: "failed" });
    expect(await own.patch(path, { quarantine: null })).toMatchObject({ quarantine: null, owner: "ann" });
    expect(await own.upload("pf")).toMatchObject({ verdict: "failed", quarantinedFailures: [] });
  });

  test("is over when its time is", async () => {
    await own.upload("f");
    const { id } = await one();
    const path = `/test-cases/${id}`;
    const until = new Date(Date.now() + 60_000).toISOString();
    await own.patch(path, { quarantine: { reason: "for now", until } });
    expect(await own.upload("f")).toMatchObject({ verdict: "passed" });
    await database.pool`update quarantine set until = now() - interval '1 minute' where project_id = ${own.project}`;
    expect(await own.upload("f")).toMatchObject({ verdict: "failed", quarantinedFailures: [] });
    expect((await one()).quarantine).toBeNull();
    const past = await own.call("PATCH", path, { quarantine: { reason: "x", until: "2020-01-01T00:00:00Z" } });
    expect(past.status).toBe(400);
    expect(past.body.error.message).toContain("quarantine.until");
  });
});

describe("PATCH /projects/:projectId/test-cases", () => {
  const patch = (body: object) => own.call("PATCH", "/test-cases", body);
  const ids = async () => idsOf(await catalogue("?limit=100"));

  test("quarantines, gives an owner and ends both, for many at once, and tells how many it has changed", async () => {
    await own.upload("pfffp");
    const [, a, b, c] = (await ids()) as [string, string, string, string];
    const quarantine = { reason: "#12", until: null };
    const both = { testCaseIds: [a, b, a.toUpperCase()], quarantine, owner: "ann" };
    expect((await patch(both)).body).toEqual({ changed: 2 });
    expect(await one(1)).toMatchObject({ owner: "ann", quarantine });
    expect((await patch({ testCaseIds: [a, b, c], quarantine })).body).toEqual({ changed: 1 });
    expect(await own.upload("pfffp")).toMatchObject({ verdict: "passed", failed: 3 });
    const { createdAt } = (await one(1)).quarantine;
    expect((await patch({ testCaseIds: [a], quarantine: { reason: "#13" } })).body).toEqual({ changed: 1 });
    expect(await one(1)).toMatchObject({ owner: "ann", quarantine: { reason: "#13", createdAt } });
    expect((await patch({ testCaseIds: await ids(), quarantine: null, owner: null })).body).toEqual({ changed: 3 });
    expect((await patch({ testCaseIds: await ids(), quarantine: null, owner: null })).body).toEqual({ changed: 0 });
    expect(await one(1)).toMatchObject({ owner: null, quarantine: null });
  });

  test("changes nothing where one is not there, and names all of these", async () => {
    await own.upload("pp");
    const [a, b] = await ids();
    const other = createAsking(ask, await addProject(acme));
    await other.upload("p");
    const [foreign] = await other.list("/test-cases");
    const missing = crypto.randomUUID();
    const { status, body } = await patch({ testCaseIds: [a, missing, foreign.id, b], owner: "ann" });
    expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
    for (const id of [missing, foreign.id]) expect(body.error.message).toContain(`"${id}"`);
    for (const id of [a, b]) expect(body.error.message).not.toContain(id);
    expect(await one()).toMatchObject({ owner: null });
  });

  test("names what is wrong with the request", async () => {
    await own.upload("p");
    const testCaseIds = await ids();
    for (const [body, words] of [
      [{}, `"testCaseIds"`],
      [{ testCaseIds }, `"owner" or "quarantine"`],
      [{ testCaseIds: [], owner: "x" }, "1 to 100 ids"],
      [{ testCaseIds: Array(101).fill(testCaseIds[0]), owner: "x" }, "1 to 100 ids"],
      [{ testCaseIds: ["x"], owner: "x" }, "UUID"],
      [{ testCaseIds, quarantine: {} }, `"quarantine.reason"`],
      [{ testCaseIds, quarantine: { reason: "x", until: "2020-01-01T00:00:00Z" } }, `"quarantine.until"`],
      [{ testCaseIds, health: "broken" }, `"health"`],
    ] as const) {
      const { status, body: answer } = await patch(body);
      expect([status, answer.error.message]).toEqual([400, expect.stringContaining(words)]);
    }
    expect((await own.call("PATCH", "/test-cases")).status).toBe(400);
  });

  test("those who want the same ones at once in another order do not wait for each other for ever", async () => {
    await own.upload("p".repeat(40));
    const all = await ids();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => {
        const testCaseIds = index % 2 ? all : all.toReversed();
        return patch({ testCaseIds, owner: `o${index}`, quarantine: { reason: `${index}` } });
      }),
    );
    expect(answers.map(({ body }) => body)).toEqual(Array(12).fill({ changed: 40 }));
    expect(new Set((await catalogue("?limit=100")).map(({ owner }) => owner)).size).toBe(1);
  });
});

describe("retention", () => {
  test.skipIf(!isFull)("a month that no project keeps any more goes with its disk space", async () => {
    await own.upload("p");
    await one();
    const partitions = async () =>
      (await database.pool`select from pg_inherits where inhparent = 'case_result'::regclass`).length;
    const before = await partitions();
    const later = new Date(Date.now() + 100 * 86_400_000);
    await database.pool`update project set retention_days = 0 where id = ${own.project}`;
    await retainNow(database, { results: 30 }, later);
    expect(await partitions()).toBe(before + 2);
    await database.pool`update project set retention_days = null`;
    await retainNow(database, { results: 30 }, later);
    expect(await partitions()).toBe(before);
    expect((await one()).runs).toBe(1);
  });

  test.skipIf(!isFull)(
    "0 keeps the results for ever, as the project's own number of days and as that of the server",
    async () => {
      const forEver = { asking: own, ...(await own.upload("pf")) };
      await own.patch("", { retentionDays: 0 });
      own = createAsking(ask, await addProject(acme));
      const bounded = { asking: own, ...(await own.upload("pf")) };
      const cases = async ({ asking, executionId }: typeof forEver) =>
        (await asking.list(`/executions/${executionId}/test-runs/t/cases`)).length;
      const inAYear = new Date(Date.now() + 366 * 86_400_000);
      await retainNow(database, { results: 0 }, inAYear);
      expect([await cases(forEver), await cases(bounded)]).toEqual([2, 2]);
      await retainNow(database, { results: 90 }, inAYear);
      expect([await cases(forEver), await cases(bounded)]).toEqual([2, 0]);
      await database.pool`update project set retention_days = null`;
    },
  );

  test("deletes the results of old runs and keeps their counts and what is remembered", async () => {
    const { executionId } = await own.upload("pf");
    await one();
    const days = (await own.patch("", { retentionDays: 30 })).retentionDays;
    expect(days).toBe(30);
    const cases = async () => (await own.list(`/executions/${executionId}/test-runs/t/cases`)).length;
    const later = (days: number) => new Date(Date.now() + days * 86_400_000);
    await retainNow(database, { results: 0 }, later(29));
    expect(await cases()).toBe(2);
    await retainNow(database, { results: 0 }, later(31));
    expect(await cases()).toBe(0);
    const run = await own.call("GET", `/executions/${executionId}/test-runs/t`);
    expect(run.body).toMatchObject({ passed: 1, failed: 1 });
    expect(await one(1)).toMatchObject({ runs: 1, failures: 1 });
    expect((await own.patch("", { retentionDays: null })).retentionDays).toBe(90);
  });
});

describe("POST /projects/:projectId/test-cases/new", () => {
  const place = (name: string, file = "a.ts") => ({ suite: "s", name, file });
  const fresh = async (taskSlug: string, ...testCases: object[]) =>
    names((await own.post("/test-cases/new", { taskSlug, testCases })).testCases);

  test("names the test cases that the default branch has never run, task by task", async () => {
    await pass("a.ts", ["old", "skipped"], "task_slug=unit&branch=main");
    await pass("a.ts", ["old", "of a branch"], "task_slug=unit&branch=topic");
    const asked = ["old", "of a branch", "unknown"].map((name) => place(name));
    expect(await fresh("unit", ...asked)).toEqual(["of a branch", "unknown"]);
    expect(await fresh("other", ...asked)).toEqual(["old", "of a branch", "unknown"]);
    expect(await fresh("unit", place("old", "moved.ts"))).toEqual(["old"]);
  });

  test("is refused without test cases, and with more than a thousand", async () => {
    for (const testCases of [[], Array.from({ length: 1_001 }, (_, index) => place(`t${index}`))]) {
      const { status, body } = await own.call("POST", "/test-cases/new", { taskSlug: "unit", testCases });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining("expected 1 to 1000 test cases")]);
    }
  });
});
