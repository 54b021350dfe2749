import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { countAll } from "../../src/work/count.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

type Case = { name: string; message?: string; stack?: string | undefined; skipped?: boolean };

/** Cases without a message pass. */
async function upload(cases: Case[], query = "", task = "t") {
  const list = cases.map(({ name, message, stack, skipped }) => ({
    name,
    status: skipped ? "skipped" : message === undefined ? "passed" : "failed",
    ...(message === undefined ? {} : { message, stack }),
  }));
  const count = (status: string) => list.filter((one) => one.status === status).length;
  const counts = { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
  return await own.uploadReport({ ...counts, cases: list }, `task_slug=${task}${query}`);
}

const bugs = async (query = "") => await own.list(`/bug-reports${query}`);
const bug = async (id: string) => await own.get(`/bug-reports/${id}`);
const patch = async (id: string, body: object) => await own.patch(`/bug-reports/${id}`, body);
const STACK = "TypeError: x\n    at add (/home/ci/app/src/cart.ts:12:3)\n    at /home/ci/app/test/cart.test.ts:5:1";

describe("automatic bug reports", () => {
  test("the same failure with other numbers, in another run, is one bug, and the upload says so", async () => {
    const first = await upload([
      { name: "a", message: "TypeError: order 17 has no total", stack: STACK },
      { name: "b" },
    ]);
    expect(first.bugReports).toEqual([
      {
        id: expect.any(String),
        number: 1,
        title: "TypeError: order 17 has no total",
        status: "open",
        change: "opened",
      },
    ]);
    const again = await upload(
      [{ name: "a", message: "TypeError: order 918 has no total", stack: STACK.replace("12:3", "14:9") }],
      "&branch=main&commit=abc",
    );
    const { id } = first.bugReports[0];
    expect(again.bugReports).toEqual([{ ...first.bugReports[0], change: "occurred" }]);
    expect(await bug(id)).toEqual({
      id,
      number: 1,
      title: "TypeError: order 17 has no total",
      description: "",
      status: "open",
      severity: "major",
      source: "automatic",
      fingerprint: expect.stringMatching(/^v2:[0-9a-f]{32}$/),
      occurrences: 2,
      impact: 0,
      firstSeenAt: expect.any(String),
      lastSeenAt: expect.any(String),
      firstExecutionId: first.executionId,
      lastExecutionId: again.executionId,
      taskSlugs: ["t"],
      testCaseIds: [expect.any(String)],
      branch: "main",
      commit: "abc",
      assignee: null,
      owners: [],
      labels: [],
      externalUrl: null,
      regressed: false,
      fixedInCommit: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      resolvedAt: null,
      culprit: null,
      mergedInto: null,
      grouping: [
        {
          fingerprint: expect.stringMatching(/^v2:/),
          version: 2,
          kind: "message",
          exceptionType: "TypeError",
          message: "order <n> has no total",
          frames: ["src/cart.ts add"],
          test: null,
        },
        {
          fingerprint: expect.stringMatching(/^v2:/),
          version: 2,
          kind: "case",
          exceptionType: "TypeError",
          message: "",
          frames: ["src/cart.ts add"],
          test: "a",
        },
      ],
      history: [{ from: null, to: "open", cause: "opened", changedAt: expect.any(String) }],
    });
  });

  test("another branch opens none, and its failures join those that exist", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    expect((await upload([failure], "&branch=feature")).bugReports).toEqual([]);
    await upload([failure], "&branch=main");
    expect((await upload([failure], "&branch=feature")).bugReports).toMatchObject([{ number: 1, change: "occurred" }]);
    expect(await bugs()).toMatchObject([{ occurrences: 2, branch: "feature" }]);
  });

  test("identical bytes posted again do not occur again", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    await upload([failure], "&execution_key=a");
    expect((await upload([failure], "&execution_key=a")).bugReports).toMatchObject([{ number: 1, change: "occurred" }]);
    expect(await bugs()).toMatchObject([{ occurrences: 1 }]);
  });

  test("is resolved by three runs of the default branch in a row in which its cases passed", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    const { bugReports } = await upload([failure, { name: "b" }]);
    const { id } = bugReports[0];
    await upload([{ name: "a" }]);
    await upload([{ name: "a" }], "&branch=feature");
    await upload([{ name: "b" }]);
    await upload([{ name: "a", skipped: true }]);
    await upload([{ name: "a" }], "&branch=main");
    expect((await bug(id)).status).toBe("open");
    await upload([failure]);
    for (let run = 0; run < 3; run++) {
      expect((await bug(id)).status).toBe("open");
      await upload([{ name: "a" }]);
    }
    expect(await bug(id)).toMatchObject({
      status: "resolved",
      resolvedAt: expect.any(String),
      history: [{ to: "open" }, { from: "open", to: "resolved", cause: "clean_runs" }],
    });
  });

  test("of cases in two tasks waits for both: three passes of one say nothing of the other", async () => {
    const failure = { name: "a", message: "TypeError: x", stack: STACK };
    const { bugReports } = await upload([failure], "", "unit");
    const { id } = bugReports[0];
    expect((await upload([failure], "", "e2e")).bugReports).toMatchObject([{ id, change: "occurred" }]);
    expect(await bug(id)).toMatchObject({ taskSlugs: ["e2e", "unit"] });
    for (let run = 0; run < 4; run++) await upload([{ name: "a" }], "", "unit");
    expect((await bug(id)).status).toBe("open");
    for (let run = 0; run < 3; run++) {
      expect((await bug(id)).status).toBe("open");
      await upload([{ name: "a" }], "", "e2e");
    }
    expect((await bug(id)).status).toBe("resolved");
  });

  test("of a flaky case alone waits for its recovery: three passes say nothing of it", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    const catchUp = () => own.call("GET", "/test-cases?limit=1");
    await upload([failure], "&branch=main&execution_key=retried");
    await upload([{ name: "a" }], "&branch=main&execution_key=retried");
    await catchUp();
    const { bugReports } = await upload([failure]);
    const { id } = bugReports[0];
    for (let run = 0; run < 19; run++) await upload([{ name: "a" }]);
    await catchUp();
    expect((await bug(id)).status).toBe("open");
    for (let run = 0; run < 2; run++) {
      await upload([{ name: "a" }]);
      await catchUp();
    }
    expect((await bug(id)).status).toBe("resolved");
  });

  test("a resolved bug that comes back is one regression, however many uploads race", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    const { bugReports } = await upload([failure]);
    const { id } = bugReports[0];
    const old = await own.post("/executions", { key: "old" });
    await patch(id, { status: "resolved", fixedInCommit: "abc" });
    expect((await upload([failure], `&execution_id=${old.id}`)).bugReports).toMatchObject([{ status: "resolved" }]);
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => upload([failure], `&commit=c${index}`)));
    const changes = answers.map((answer) => answer.bugReports[0].change);
    expect(changes.filter((change) => change === "regressed")).toHaveLength(1);
    const found = await bug(id);
    expect(found).toMatchObject({ status: "open", regressed: true, occurrences: 10, resolvedAt: null });
    expect(found.history.filter(({ cause }: { cause: string }) => cause === "regression")).toHaveLength(1);
  });

  test("a bug that regressed is no regression any more once it is resolved", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    const { id } = (await upload([failure])).bugReports[0];
    await patch(id, { status: "resolved" });
    expect((await upload([failure])).bugReports).toMatchObject([{ change: "regressed" }]);
    expect(await patch(id, { status: "in_progress" })).toMatchObject({ regressed: true });
    expect(await patch(id, { status: "resolved" })).toMatchObject({ regressed: false });
    expect(await patch(id, { status: "open" })).toMatchObject({ regressed: false });
  });

  test("an ignored bug counts and stays ignored", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    const { bugReports } = await upload([failure]);
    await patch(bugReports[0].id, { status: "ignored" });
    expect((await upload([failure])).bugReports).toMatchObject([{ status: "ignored", change: "occurred" }]);
    for (let run = 0; run < 3; run++) await upload([{ name: "a" }]);
    expect(await bug(bugReports[0].id)).toMatchObject({ status: "ignored", occurrences: 2 });
  });

  test("numbers have no gaps when bugs are opened at once", async () => {
    const words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron".split(" ");
    await Promise.all(words.map((word) => upload([{ name: word, message: `Error: the ${word} service is sad` }])));
    const numbers = (await bugs("?limit=100")).map(({ number }: { number: number }) => number);
    expect(numbers).toEqual(words.map((_, index) => words.length - index));
  });

  test("failures of a sharded run count once all shards are in", async () => {
    const failure = { name: "a", message: "Error: no route to the shop" };
    expect((await upload([failure], "&execution_key=k&shard=1/2")).bugReports).toEqual([]);
    expect((await upload([{ name: "b" }], "&execution_key=k&shard=2/2")).bugReports).toMatchObject([{ number: 1 }]);
  });
});

const numbersOf = (touched: { number: number; change: string }[]) =>
  touched.map(({ number, change }) => [number, change]);
const stackOf = (type: string, place: string) =>
  `${type}: x\n    at add (/ci/src/${place}.ts:12:3)\n    at /ci/test/a.test.ts:5:1`;
const fail = (name: string, message: string, place?: string): Case => ({
  name,
  message,
  ...(place === undefined ? {} : { stack: stackOf(message.split(":")[0]!, place) }),
});

describe("which failures are one bug", () => {
  test("those of one case with one exception in one place, whatever they say", async () => {
    await upload([fail("a", "Error: the zebra is missing", "cart")]);
    expect(numbersOf((await upload([fail("a", "Error: no lion was found", "cart")])).bugReports)).toEqual([
      [1, "occurred"],
    ]);
    const others = [
      fail("a", "RangeError: no lion was found", "cart"),
      fail("a", "Error: no lion was found", "order"),
      fail("b", "Error: no tiger was found", "cart"),
    ];
    for (const [index, other] of others.entries())
      expect(numbersOf((await upload([other])).bugReports)).toEqual([[index + 2, "opened"]]);
  });

  test("a message that is new belongs to the bug of most of those who fail with it", async () => {
    await upload([fail("a", "Error: the zebra is missing", "cart")]);
    const many = ["a", "b", "c", "d"].map((name) => fail(name, "Error: the shop has burned down", "cart"));
    expect(numbersOf((await upload(many)).bugReports)).toEqual([[2, "opened"]]);
    const two = ["a", "e"].map((name) => fail(name, "Error: a giraffe is in the way", "cart"));
    expect(numbersOf((await upload(two)).bugReports)).toEqual([[1, "occurred"]]);
  });

  test("a test that is known to be flaky has one of its own, and shares those of others", async () => {
    const passed = { name: "b" };
    for (const build of ["1", "2"]) {
      await upload([fail("a", "Error: the first animal hides"), passed], `&execution_key=${build}`);
      await upload([{ name: "a" }, passed], `&execution_key=${build}`);
    }
    await countAll(database);
    const animals = ["zebra sleeps", "lion roars loudly", "tiger is hungry", "giraffe looks away"];
    for (const animal of animals)
      expect(numbersOf((await upload([fail("a", `Error: the ${animal}`), passed])).bugReports)).toEqual([
        [1, "occurred"],
      ]);
    const both = ["a", "b"].map((name) => fail(name, "Error: the whole zoo is closed"));
    expect(numbersOf((await upload(both)).bugReports)).toEqual([[2, "opened"]]);
    expect(numbersOf((await upload([fail("a", "Error: the keeper is ill"), passed])).bugReports)).toEqual([
      [1, "occurred"],
    ]);
  });

  test("two tests that are known to be flaky have one each beside the one that they share", async () => {
    const names = ["a", "b"];
    for (const letters of [
      names.map((name) => fail(name, "Error: the shared animal hides")),
      [...names.map((name) => ({ name }))],
    ])
      await upload(letters, "&execution_key=1");
    await countAll(database);
    for (const [index, animal] of ["zebra", "lion", "tiger"].entries()) {
      await upload([fail("a", `Error: the ${animal} sleeps at home`), { name: "b" }], `&commit=a${index}`);
      await upload([fail("b", `Error: the ${animal} eats in bed`), { name: "a" }], `&commit=b${index}`);
    }
    expect(await bugs()).toHaveLength(3);
    expect((await bugs()).map(({ testCaseIds }: { testCaseIds: string[] }) => testCaseIds.length)).toEqual([1, 1, 2]);
  });

  test("what bugs of the first version were known by is found by case, place and words", async () => {
    const placed = fail("a", "Error: the zebra is missing", "cart");
    const told = fail("b", "Error: no route to 'shop' 17");
    await upload([placed, told]);
    await database.pool`
      delete from bug_fingerprint where project_id = ${own.project} and kind = 'case'`;
    await database.pool`
      update bug_fingerprint set version = 1, digest = gen_random_uuid(),
        message = case when cardinality(frames) = 0 then 'no route to <value> <n>' else message end
      where project_id = ${own.project}`;
    const found = await upload([placed, told, fail("b2", "Error: something else entirely")]);
    expect(numbersOf(found.bugReports)).toEqual([
      [1, "occurred"],
      [2, "occurred"],
      [3, "opened"],
    ]);
    // From now on the new fingerprints tell, in other cases as well.
    expect(numbersOf((await upload([{ ...told, name: "c" }])).bugReports)).toEqual([[2, "occurred"]]);
  });
});

describe("an outage", () => {
  const everything = (message: (index: number) => string, count = 20) =>
    Array.from({ length: count }, (_, index) => fail(`c${index}`, message(index)));
  const word = (index: number) => "abcdefghijklmnopqrst"[index]!.repeat(3);

  test("is one bug for all tasks of its execution, and for what told its cause before", async () => {
    const away = () => "Error: connect ECONNREFUSED 10.0.0.7:6379";
    const first = await upload([...everything(away, 4), { name: "p" }], "&execution_key=k");
    expect(numbersOf(first.bugReports)).toEqual([[1, "opened"]]);
    const run = (slug: string, cases: Case[]) => upload(cases, "&execution_key=k", slug);
    expect(numbersOf((await run("e2e", everything(away))).bugReports)).toEqual([[1, "occurred"]]);
    const vague = everything((index) => `Error: the ${word(index)} page is blank`);
    expect(numbersOf((await run("ui", vague)).bugReports)).toEqual([[1, "occurred"]]);
  });

  test("of another cause is another bug, and of the same one the same", async () => {
    const cases = (what: string) => everything(() => `Error: ${what}`);
    const [redis, disk] = [
      cases("connect ECONNREFUSED 10.0.0.7:6379"),
      cases("ENOSPC: no space left on device, write"),
    ];
    expect(numbersOf((await upload(redis)).bugReports)).toEqual([[1, "opened"]]);
    expect(numbersOf((await upload(disk)).bugReports)).toEqual([[2, "opened"]]);
    expect(numbersOf((await upload(redis, "&commit=c2")).bugReports)).toEqual([[1, "occurred"]]);
    expect((await bugs()).map(({ title, severity }: { title: string; severity: string }) => [title, severity])).toEqual(
      [
        [`Nearly all test cases of "t" failed: Error: ENOSPC: no space left on device, write`, "critical"],
        [`Nearly all test cases of "t" failed: Error: connect ECONNREFUSED 10.0.0.7:6379`, "critical"],
      ],
    );
  });

  test("of a branch that breaks everything itself is none of the default branch's", async () => {
    const vague = (what: string) => everything((index) => `Error: the ${word(index)} ${what}`);
    await upload(vague("page is blank"));
    expect((await upload(vague("file has no end"), "&branch=feature")).bugReports).toEqual([]);
  });
});

describe("on another branch", () => {
  const failure = fail("a", "Error: no route to the shop");

  test("a resolved bug occurs and stays resolved: the branch may not have the fix", async () => {
    const { id } = (await upload([failure], "&branch=main&commit=m1")).bugReports[0];
    await patch(id, { status: "resolved" });
    const { bugReports } = await upload([failure], "&branch=feature&commit=f1");
    expect(bugReports).toMatchObject([{ status: "resolved", change: "occurred" }]);
    expect(await bug(id)).toMatchObject({ status: "resolved", regressed: false, occurrences: 2, branch: "feature" });
  });

  test("what it fails with is not what events about the bug tell of", async () => {
    const opened = await upload([failure], "&branch=main&commit=m1");
    await upload([failure], "&branch=feature&commit=f1");
    for (const commit of ["m2", "m3", "m4"]) await upload([{ name: "a" }], `&branch=main&commit=${commit}`);
    const [event] = await database.pool<{ data: { bugReport: object } }[]>`
      select data from event where project_id = ${own.project} and type = 'bug_report.resolved'`;
    expect(event!.data.bugReport).toMatchObject({
      status: "resolved",
      branch: "main",
      commit: "m1",
      lastExecutionId: opened.executionId,
    });
  });

  test("and merging keeps what was on the default branch", async () => {
    const [a] = (await upload([failure], "&branch=main&commit=m1")).bugReports;
    const [b] = (await upload([fail("b", "Error: the till is stuck")], "&branch=main&commit=m2")).bugReports;
    await upload([failure], "&branch=feature&commit=f1");
    await own.post(`/bug-reports/${b.id}/merge`, { into: a.id });
    await patch(a.id, { status: "resolved" });
    const events = await database.pool<{ data: { bugReport: object } }[]>`
      select data from event where project_id = ${own.project} and type = 'bug_report.resolved' order by id`;
    expect(events.at(-1)!.data.bugReport).toMatchObject({ id: a.id, branch: "main", commit: "m2" });
  });
});

describe("the list", () => {
  /** Opens that many with these, by number: occurrences, the second of the last one, severity, status. */
  async function open(rows: [number, number | null, string, string][]) {
    for (const [index] of rows.entries()) await own.post("/bug-reports", { title: `bug ${index + 1}` });
    for (const [index, [occurrences, second, severity, status]] of rows.entries())
      await database.pool`
        update bug_report set occurrences = ${occurrences}, severity = ${severity}, status = ${status},
          last_seen_at = ${second === null ? null : new Date(second * 1000 + 7).toISOString()}
        where project_id = ${own.project} and number = ${index + 1}`;
  }
  const ROWS: [number, number | null, string, string][] = [
    [3, 50, "major", "open"],
    [9, 50, "trivial", "resolved"],
    [0, null, "critical", "in_progress"],
    [3, 90, "minor", "open"],
    [3, 10, "major", "ignored"],
    [1, 10, "critical", "open"],
    [0, null, "major", "in_progress"],
  ];

  test("is walked exactly, whatever the size of a page", async () => {
    await open(ROWS);
    for (const [query, expected] of [
      ["", [7, 6, 5, 4, 3, 2, 1]],
      ["&status=open,in_progress", [7, 6, 4, 3, 1]],
      ["&status=resolved", [2]],
      ["&sort=newest&status=resolved,ignored", [5, 2]],
      ["&sort=occurrences", [2, 5, 4, 1, 6, 7, 3]],
      ["&sort=occurrences&status=in_progress,open", [4, 1, 6, 7, 3]],
      ["&sort=lastSeenAt", [4, 2, 1, 6, 5, 7, 3]],
      ["&sort=lastSeenAt&status=open,in_progress", [4, 1, 6, 7, 3]],
      ["&sort=severity", [6, 3, 7, 5, 1, 4, 2]],
      ["&sort=severity&status=open,open,in_progress", [6, 3, 7, 1, 4]],
      ["&sort=severity&severity=major", [7, 5, 1]],
    ] as const)
      for (const limit of [1, 2, 100]) {
        const numbers = (await own.walk(`/bug-reports?limit=${limit}${query}`)).map(({ number }) => number);
        expect([query, limit, numbers]).toEqual([query, limit, [...expected]]);
      }
  });

  test.each(["sort=number", "status=open,closed", "status=", "status=open,"])("%s is refused", async (query) => {
    const { status, body } = await own.call("GET", `/bug-reports?${query}`);
    expect([status, body.error.message.includes(`"${query.split("=")[0]}"`)]).toEqual([400, true]);
  });
});

describe("bug reports by hand", () => {
  test("are opened, edited, filtered and walked", async () => {
    await upload([{ name: "a" }]);
    const [{ id: testCase }] = await own.list("/test-cases");
    const { status, body } = await own.call("POST", "/bug-reports", {
      title: "Slow checkout",
      severity: "minor",
      labels: ["perf", "perf"],
      testCaseIds: [testCase],
    });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      number: 1,
      source: "manual",
      status: "open",
      labels: ["perf"],
      fingerprint: null,
      testCaseIds: [testCase],
      taskSlugs: ["t"],
    });
    for (const title of ["Two", "Three"]) await own.post("/bug-reports", { title });
    expect(
      await patch(body.id, {
        assignee: "ann",
        status: "in_progress",
        externalUrl: "https://example.com/1",
        title: "Slow",
      }),
    ).toMatchObject({ assignee: "ann", status: "in_progress", title: "Slow", externalUrl: "https://example.com/1" });
    const numbers = async (query: string) => (await bugs(query)).map(({ number }: { number: number }) => number);
    expect(await numbers("?assignee=ann")).toEqual([1]);
    expect(await numbers("?status=open")).toEqual([3, 2]);
    expect(await numbers("?severity=minor")).toEqual([1]);
    expect(await numbers("?source=automatic")).toEqual([]);
    expect(await numbers("?task_slug=t")).toEqual([1]);
    expect(await numbers("?q=THRE")).toEqual([3]);
    expect((await own.walk("/bug-reports?limit=2")).map(({ number }) => number)).toEqual([3, 2, 1]);
  });

  test("each bad field is named", async () => {
    const bad = { title: "", severity: "bad", labels: "x", externalUrl: "javascript:alert(1)", owner: 1 };
    const { status, body } = await own.call("POST", "/bug-reports", bad);
    expect(status).toBe(400);
    for (const name of Object.keys(bad)) expect(body.error.message).toContain(`"${name}"`);
  });

  test("a merged bug gives its fingerprints and occurrences, and future failures follow", async () => {
    const [a, b] = [
      { name: "a", message: "Error: no route to the shop" },
      { name: "b", message: "Error: the shop is closed" },
    ];
    const { bugReports } = await upload([a!, b!, { name: "c" }]);
    const [first, second] = bugReports;
    const merge = (from: string, into: string) => own.call("POST", `/bug-reports/${from}/merge`, { into });
    expect((await merge(second.id, first.id)).body).toMatchObject({
      number: 1,
      occurrences: 2,
      grouping: [{ kind: "message" }, { kind: "message" }, { kind: "case", test: "a" }, { kind: "case", test: "b" }],
      testCaseIds: [expect.any(String), expect.any(String)],
    });
    expect(await bug(second.id)).toMatchObject({ status: "resolved", mergedInto: first.id, occurrences: 0 });
    const told = await database.pool<{ id: string }[]>`
      select data -> 'bugReport' ->> 'id' as id from event
      where project_id = ${own.project} and type = 'bug_report.resolved'`;
    expect(told).toEqual([{ id: second.id }] as never);
    expect((await bugs()).map(({ number }: { number: number }) => number)).toEqual([1]);
    expect((await upload([b!])).bugReports).toMatchObject([{ number: 1, change: "occurred" }]);
    const again = await upload([{ ...a!, message: "Error: a third thing" }], "&execution_key=both");
    await upload([a!], "&execution_key=both");
    await merge(again.bugReports[0].id, first.id);
    expect(await bug(first.id)).toMatchObject({ occurrences: 4 });
    const body = await own.get(`/bug-reports/${first.id}/occurrences?limit=2`);
    expect(body.data.slice(1)).toEqual([
      {
        executionId: expect.any(String),
        taskSlug: "t",
        testCaseId: expect.any(String),
        branch: null,
        commit: null,
        message: "Error: the shop is closed",
        seenAt: expect.any(String),
      },
    ]);
    const next = `occurrences?limit=2&cursor=${body.pagination.cursor}`;
    const rest = await own.get(`/bug-reports/${first.id}/${next}`);
    expect(rest.data.map(({ message }: { message: string }) => message)).toEqual([
      "Error: the shop is closed",
      "Error: no route to the shop",
    ]);
    for (const [from, into] of [
      [first.id, first.id],
      [second.id, first.id],
      [first.id, second.id],
      [first.id, crypto.randomUUID()],
    ])
      expect((await merge(from, into)).status).toBe(400);
  });
});

test("merging an open bug into a resolved one opens that again", async () => {
  const create = async (title: string) => (await own.post("/bug-reports", { title })).id;
  const [from, into] = [await create("from"), await create("into")];
  const path = "/bug-reports";
  await own.patch(`${path}/${into}`, { status: "resolved" });
  await own.patch(`${path}/${from}`, { status: "in_progress" });
  const body = await own.post(`${path}/${from}/merge`, { into });
  expect(body).toMatchObject({ id: into, status: "in_progress", resolvedAt: null, regressed: false });
  expect(body.history.at(-1)).toMatchObject({ from: "resolved", to: "in_progress", cause: "merge" });
});
