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
const FAILURE: Case = { name: "a", message: "Error: no route to the shop" };
const PASS: Case[] = [{ name: "a" }];
/** The bug report of the failure, opened. */
const open = async (query = ""): Promise<string> => (await upload([FAILURE], query)).bugReports[0].id;
/** The largest gate share: a failure whose best explanation is not the change is never unclear. */
const hasNoUnclear = () => own.patch("", { gateShare: 0.5 });
const numberOf = ({ number }: { number: number }) => number;

describe("automatic bug reports", () => {
  test("the title is the line that says what went wrong, not the one that only names the kind of error", async () => {
    const titles = async (name: string, message: string) =>
      (await upload([{ name, message }])).bugReports.map(({ title }: { title: string }) => title);
    expect(await titles("c", "AssertionError\n\nthe basket is empty")).toEqual(["AssertionError: the basket is empty"]);
    expect(await titles("d", "Error:\nno such voucher")).toEqual([
      expect.stringMatching(/^(?:Error: )?no such voucher$/),
    ]);
  });

  test("the same failure with other numbers, in another run, is one bug, and the upload says so", async () => {
    const title = "TypeError: order 17 has no total";
    const first = await upload([{ name: "a", message: title, stack: STACK }, { name: "b" }]);
    const { id } = first.bugReports[0];
    expect(first.bugReports).toEqual([{ id: expect.any(String), number: 1, title, status: "open", change: "opened" }]);
    const again = await upload(
      [{ name: "a", message: "TypeError: order 918 has no total", stack: STACK.replace("12:3", "14:9") }],
      "&branch=main&commit=abc",
    );

    expect(again.bugReports).toEqual([{ ...first.bugReports[0], change: "occurred" }]);
    const times = ["firstSeenAt", "lastSeenAt", "createdAt", "updatedAt"].map((name) => [name, expect.any(String)]);
    const fingerprint = {
      ...{ fingerprint: expect.stringMatching(/^v2:[0-9a-f]{32}$/), version: 2 },
      ...{ exceptionType: "TypeError", frames: ["src/cart.ts add"] },
    };
    expect(await bug(id)).toEqual({
      ...{ id, number: 1, title, description: "", status: "open", severity: "major", source: "automatic" },
      ...{ fingerprint: fingerprint.fingerprint, occurrences: 2, impact: 0, ...Object.fromEntries(times) },
      ...{ firstExecutionId: first.executionId, lastExecutionId: again.executionId, branch: "main", commit: "abc" },
      ...{ taskSlugs: ["t"], testCaseIds: [expect.any(String)], assignee: null, owners: [], labels: [] },
      ...{
        externalUrl: null,
        regressed: false,
        fixedInCommit: null,
        resolvedAt: null,
        culprit: null,
        mergedInto: null,
      },
      grouping: [
        { ...fingerprint, kind: "message", message: "order <n> has no total", test: null },
        { ...fingerprint, kind: "case", message: "", test: "a" },
      ],
      history: [{ from: null, to: "open", cause: "opened", changedAt: expect.any(String) }],
    });
  });

  test("an unclear failure opens none, and joins that of its test", async () => {
    await open();
    const other = { name: "a", message: "RangeError: the cart has no end" };
    const { bugReports, unclearFailures } = await upload([other]);
    expect([bugReports, unclearFailures]).toMatchObject([[], [{ name: "a" }]]);
    // Where it fails for that reason again, that is clear.
    expect((await upload([other])).bugReports).toMatchObject([{ number: 2, change: "opened" }]);
  });

  test("about a runner that failed, or a hook, is resolved after three builds of the task without it", async () => {
    const run = async (key: number, query = "", cases = PASS) =>
      await upload(cases, `&branch=main&commit=aa${key}0000&execution_key=${key}${query}`);
    await run(1);
    await run(2, "&exit_code=3");
    const hook = { name: '"before all" hook for "cart"', message: "Error: no database" };
    await run(3, "", [...PASS, hook, { name: "b", message: "Error: broken" }]);
    const statuses = async () => {
      await countAll(database);
      return (await bugs()).map(({ title, status }) => `${title}: ${status}`).toSorted();
    };
    const is = (...states: string[]) => [
      `Error: broken: ${states[0]}`,
      `Error: no database: ${states[1]}`,
      `The test runner exited with code 3 although no test case failed: ${states[2]}`,
    ];
    await run(4);
    expect(await statuses()).toEqual(is("open", "open", "open"));
    await run(5);
    await upload(PASS, "&branch=x&execution_key=6");
    expect(await statuses()).toEqual(is("open", "open", "resolved"));
    await run(7);
    // A test that is missing may only not have run.
    expect(await statuses()).toEqual(is("open", "resolved", "resolved"));
  });

  test("another branch opens none, and its failures join those that exist", async () => {
    expect((await upload([FAILURE], "&branch=feature")).bugReports).toEqual([]);
    await open("&branch=main");
    expect((await upload([FAILURE], "&branch=feature")).bugReports).toMatchObject([{ number: 1, change: "occurred" }]);
    expect(await bugs()).toMatchObject([{ occurrences: 2, branch: "feature" }]);
  });

  test("identical bytes posted again do not occur again", async () => {
    await open("&execution_key=a");
    expect((await upload([FAILURE], "&execution_key=a")).bugReports).toMatchObject([{ number: 1, change: "occurred" }]);
    expect(await bugs()).toMatchObject([{ occurrences: 1 }]);
  });

  test("is resolved by three runs of the default branch in a row in which its cases passed", async () => {
    const { id } = (await upload([FAILURE, { name: "b" }])).bugReports[0];
    await upload(PASS);
    await upload(PASS, "&branch=feature");
    await upload([{ name: "b" }]);
    await upload([{ name: "a", skipped: true }]);
    await upload(PASS, "&branch=main");
    expect((await bug(id)).status).toBe("open");
    await upload([FAILURE]);
    for (let run = 0; run < 3; run++) {
      expect((await bug(id)).status).toBe("open");
      await upload(PASS);
    }
    const history = [{ to: "open" }, { from: "open", to: "resolved", cause: "clean_runs" }];
    expect(await bug(id)).toMatchObject({ status: "resolved", resolvedAt: expect.any(String), history });
  });

  test("of cases in two tasks waits for both: three passes of one say nothing of the other", async () => {
    const failure = { name: "a", message: "TypeError: x", stack: STACK };
    const { id } = (await upload([failure], "", "unit")).bugReports[0];
    expect((await upload([failure], "", "e2e")).bugReports).toMatchObject([{ id, change: "occurred" }]);
    expect(await bug(id)).toMatchObject({ taskSlugs: ["e2e", "unit"] });
    for (let run = 0; run < 4; run++) await upload(PASS, "", "unit");
    expect((await bug(id)).status).toBe("open");
    for (let run = 0; run < 3; run++) {
      expect((await bug(id)).status).toBe("open");
      await upload(PASS, "", "e2e");
    }
    expect((await bug(id)).status).toBe("resolved");
  });

  test("of a flaky case alone waits for its recovery: three passes say nothing of it", async () => {
    const catchUp = () => own.call("GET", "/test-cases?limit=1");
    await upload([FAILURE], "&branch=main&execution_key=retried");
    await upload(PASS, "&branch=main&execution_key=retried");
    await catchUp();
    const id = await open();
    for (let run = 0; run < 19; run++) await upload(PASS);
    await catchUp();
    expect((await bug(id)).status).toBe("open");
    for (let run = 0; run < 4; run++) {
      await upload(PASS);
      await catchUp();
    }
    expect((await bug(id)).status).toBe("resolved");
  });

  test("a resolved bug that comes back is one regression, however many uploads race", async () => {
    const id = await open();
    const old = await own.post("/executions", { key: "old" });
    await patch(id, { status: "resolved", fixedInCommit: "abc" });
    expect((await upload([FAILURE], `&execution_id=${old.id}`)).bugReports).toMatchObject([{ status: "resolved" }]);
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => upload([FAILURE], `&commit=c${index}`)));
    const changes = answers.map((answer) => answer.bugReports[0].change);
    expect(changes.filter((change) => change === "regressed")).toHaveLength(1);
    const found = await bug(id);
    expect(found).toMatchObject({ status: "open", regressed: true, occurrences: 10, resolvedAt: null });
    expect(found.history.filter(({ cause }: { cause: string }) => cause === "regression")).toHaveLength(1);
  });

  test("a bug that regressed is no regression any more once it is resolved", async () => {
    const id = await open();
    await patch(id, { status: "resolved" });
    expect((await upload([FAILURE])).bugReports).toMatchObject([{ change: "regressed" }]);
    expect(await patch(id, { status: "in_progress" })).toMatchObject({ regressed: true });
    expect(await patch(id, { status: "resolved" })).toMatchObject({ regressed: false });
    expect(await patch(id, { status: "open" })).toMatchObject({ regressed: false });
  });

  test("an ignored bug counts and stays ignored", async () => {
    const id = await open();
    await patch(id, { status: "ignored" });
    expect((await upload([FAILURE])).bugReports).toMatchObject([{ status: "ignored", change: "occurred" }]);
    for (let run = 0; run < 3; run++) await upload(PASS);
    expect(await bug(id)).toMatchObject({ status: "ignored", occurrences: 2 });
  });

  test("numbers have no gaps when bugs are opened at once", async () => {
    const words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron".split(" ");
    await Promise.all(words.map((word) => upload([{ name: word, message: `Error: the ${word} service is sad` }])));
    expect((await bugs("?limit=100")).map(numberOf)).toEqual(words.map((_, index) => words.length - index));
  });

  test("failures of a sharded run count once all shards are in", async () => {
    expect((await upload([FAILURE], "&execution_key=k&shard=1/2")).bugReports).toEqual([]);
    expect((await upload([{ name: "b" }], "&execution_key=k&shard=2/2")).bugReports).toMatchObject([{ number: 1 }]);
  });
});

/** The bug reports that an upload of the cases touches, by their numbers. */
const touch = async (cases: Case[], query = "", task = "t") =>
  (await upload(cases, query, task)).bugReports.map(({ number, change }: any) => [number, change]);
const stackOf = (type: string, place: string) =>
  `${type}: x\n    at add (/ci/src/${place}.ts:12:3)\n    at /ci/test/a.test.ts:5:1`;
const fail = (name: string, message: string, place?: string): Case => ({
  name,
  message,
  ...(place === undefined ? {} : { stack: stackOf(message.split(":")[0]!, place) }),
});

describe("which failures are one bug", () => {
  test("those of one case with one exception in one place, whatever they say", async () => {
    await hasNoUnclear();
    await upload([fail("a", "Error: the zebra is missing", "cart")]);
    expect(await touch([fail("a", "Error: no lion was found", "cart")])).toEqual([[1, "occurred"]]);
    const others = [
      fail("a", "RangeError: no lion was found", "cart"),
      fail("a", "Error: no lion was found", "order"),
      fail("b", "Error: no tiger was found", "cart"),
    ];
    for (const [index, other] of others.entries()) expect(await touch([other])).toEqual([[index + 2, "opened"]]);
  });

  test("a message that is new belongs to the bug of most of those who fail with it", async () => {
    await upload([fail("a", "Error: the zebra is missing", "cart")]);
    const many = ["a", "b", "c", "d"].map((name) => fail(name, "Error: the shop has burned down", "cart"));
    expect(await touch(many)).toEqual([[2, "opened"]]);
    const two = ["a", "e"].map((name) => fail(name, "Error: a giraffe is in the way", "cart"));
    expect(await touch(two)).toEqual([[1, "occurred"]]);
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
      expect(await touch([fail("a", `Error: the ${animal}`), passed])).toEqual([[1, "occurred"]]);
    const both = ["a", "b"].map((name) => fail(name, "Error: the whole zoo is closed"));
    expect(await touch(both)).toEqual([[2, "opened"]]);
    expect(await touch([fail("a", "Error: the keeper is ill"), passed])).toEqual([[1, "occurred"]]);
  });

  test("two tests that are known to be flaky have one each beside the one that they share", async () => {
    const names = ["a", "b"];
    const shared = names.map((name) => fail(name, "Error: the shared animal hides"));
    for (const cases of [shared, names.map((name) => ({ name }))]) await upload(cases, "&execution_key=1");
    for (let build = 0; build < 12; build++) await upload(names.map((name) => ({ name })));
    await countAll(database);
    for (const [index, animal] of ["zebra", "lion", "tiger"].entries()) {
      await upload([fail("a", `Error: the ${animal} sleeps at home`), { name: "b" }], `&commit=a${index}`);
      await upload([fail("b", `Error: the ${animal} eats in bed`), { name: "a" }], `&commit=b${index}`);
    }
    expect((await bugs()).map(({ testCaseIds }) => testCaseIds.length)).toEqual([1, 1, 2]);
  });

  test("what bugs of the first version were known by is found by case, place and words", async () => {
    const placed = fail("a", "Error: the zebra is missing", "cart");
    const told = fail("b", "Error: no route to 'shop' 17");
    await upload([placed, told]);
    await database.pool`delete from bug_fingerprint where project_id = ${own.project} and kind = 'case'`;
    await database.pool`
      update bug_fingerprint set version = 1, digest = gen_random_uuid(),
        message = case when cardinality(frames) = 0 then 'no route to <value> <n>' else message end
      where project_id = ${own.project}`;
    expect(await touch([placed, told, fail("b2", "Error: something else entirely")])).toEqual([
      [1, "occurred"],
      [2, "occurred"],
      [3, "opened"],
    ]);
    // From now on the new fingerprints tell, in other cases as well.
    expect(await touch([{ ...told, name: "c" }])).toEqual([[2, "occurred"]]);
  });
});

describe("an outage", () => {
  const everything = (message: (index: number) => string, count = 20) =>
    Array.from({ length: count }, (_, index) => fail(`c${index}`, message(index)));
  const word = (index: number) => "abcdefghijklmnopqrst"[index]!.repeat(3);

  test("is one bug for all tasks of its execution, and for what told its cause before", async () => {
    const away = () => "Error: connect ECONNREFUSED 10.0.0.7:6379";
    expect(await touch([...everything(away, 4), { name: "p" }], "&execution_key=k")).toEqual([[1, "opened"]]);
    const run = (slug: string, cases: Case[]) => touch(cases, "&execution_key=k", slug);
    expect(await run("e2e", everything(away))).toEqual([[1, "occurred"]]);
    expect(
      await run(
        "ui",
        everything((index) => `Error: the ${word(index)} page is blank`),
      ),
    ).toEqual([[1, "occurred"]]);
  });

  test("of another cause is another bug, and of the same one the same", async () => {
    const cases = (what: string) => everything(() => `Error: ${what}`);
    const [away, full] = ["connect ECONNREFUSED 10.0.0.7:6379", "ENOSPC: no space left on device, write"];
    expect(await touch(cases(away))).toEqual([[1, "opened"]]);
    expect(await touch(cases(full))).toEqual([[2, "opened"]]);
    expect(await touch(cases(away), "&commit=c2")).toEqual([[1, "occurred"]]);
    expect(await bugs()).toMatchObject([
      { title: `Nearly all test cases of "t" failed: Error: ${full}`, severity: "critical" },
      { title: `Nearly all test cases of "t" failed: Error: ${away}`, severity: "critical" },
    ]);
  });

  test("of a branch that breaks everything itself is none of the default branch's", async () => {
    const vague = (what: string) => everything((index) => `Error: the ${word(index)} ${what}`);
    await upload(vague("page is blank"));
    expect((await upload(vague("file has no end"), "&branch=feature")).bugReports).toEqual([]);
  });
});

describe("on another branch", () => {
  const eventsOf = () => database.pool<{ data: { bugReport: object } }[]>`
    select data from event where project_id = ${own.project} and type = 'bug_report.resolved' order by id`;
  test("a resolved bug occurs and stays resolved: the branch may not have the fix", async () => {
    const id = await open("&branch=main&commit=m1");
    await patch(id, { status: "resolved" });
    const { bugReports } = await upload([FAILURE], "&branch=feature&commit=f1");
    expect(bugReports).toMatchObject([{ status: "resolved", change: "occurred" }]);
    expect(await bug(id)).toMatchObject({ status: "resolved", regressed: false, occurrences: 2, branch: "feature" });
  });

  test("what it fails with is not what events about the bug tell of", async () => {
    const { executionId: lastExecutionId } = await upload([FAILURE], "&branch=main&commit=m1");
    await upload([FAILURE], "&branch=feature&commit=f1");
    for (const commit of ["m2", "m3", "m4"]) await upload(PASS, `&branch=main&commit=${commit}`);
    const [event] = await eventsOf();
    const seen = { status: "resolved", branch: "main", commit: "m1", lastExecutionId };
    expect(event!.data.bugReport).toMatchObject(seen);
  });

  test("and merging keeps what was on the default branch", async () => {
    const a = await open("&branch=main&commit=m1");
    const [b] = (await upload([fail("b", "Error: the till is stuck")], "&branch=main&commit=m2")).bugReports;
    await upload([FAILURE], "&branch=feature&commit=f1");
    await own.post(`/bug-reports/${b.id}/merge`, { into: a });
    await patch(a, { status: "resolved" });
    expect((await eventsOf()).at(-1)!.data.bugReport).toMatchObject({ id: a, branch: "main", commit: "m2" });
  });
});

describe("the list", () => {
  /** Opens that many with these, by number: occurrences, the second of the last one, severity, status. */
  async function create(rows: [number, number | null, string, string][]) {
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
    await create(ROWS);
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
        const numbers = (await own.walk(`/bug-reports?limit=${limit}${query}`)).map(numberOf);
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
    const given = { title: "Slow checkout", severity: "minor", labels: ["perf", "perf"], testCaseIds: [testCase] };
    const { status, body } = await own.call("POST", "/bug-reports", given);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      ...{ number: 1, source: "manual", status: "open", labels: ["perf"], fingerprint: null },
      ...{ testCaseIds: [testCase], taskSlugs: ["t"] },
    });
    for (const title of ["Two", "Three"]) await own.post("/bug-reports", { title });
    const changes = { assignee: "ann", status: "in_progress", externalUrl: "https://example.com/1", title: "Slow" };
    expect(await patch(body.id, changes)).toMatchObject(changes);
    const numbers = async (query: string) => (await bugs(query)).map(numberOf);
    expect(await numbers("?assignee=ann")).toEqual([1]);
    expect(await numbers("?status=open")).toEqual([3, 2]);
    expect(await numbers("?severity=minor")).toEqual([1]);
    expect(await numbers("?source=automatic")).toEqual([]);
    expect(await numbers("?task_slug=t")).toEqual([1]);
    expect(await numbers("?q=THRE")).toEqual([3]);
    await patch(body.id, { labels: ["check out"] });
    await database.pool`
      update bug_report set first_seen_at = '2026-03-31T23:59:59.999Z', last_seen_at = '2026-04-02T00:00:00Z'
      where project_id = ${own.project} and number = 1`;
    for (const [q, found] of [
      ["is:open", [3, 2]],
      ["is:in_progress,resolved", [1]],
      ["is:open is:resolved", []],
      ["is:any three", [3]],
      ["is:regressed", []],
      ["is:manual severity:minor,trivial", [1]],
      ["assignee:ann", [1]],
      ["owner:nobody", []],
      ['label:"check out"', [1]],
      ["label:check", []],
      ["task:t", [1]],
      [`test:${testCase}`, [1]],
      ["test:A", [1]],
      ["test:nothing", []],
      ["first:2026-03-31", [1]],
      ["first:>2026-03-31", []],
      ["first:>=2026-03-31", [1]],
      ["first:<2026-04-01", [1]],
      ["first:<2026-03-31", []],
      ["last:<=2026-04-01", []],
      ["last:>2026-04-01", [1]],
    ] as const)
      expect([q, ...(await numbers(`?q=${encodeURIComponent(q)}`))]).toEqual([q, ...found]);
    expect(await numbers("?q=is:open&status=in_progress")).toEqual([]);
    expect(await numbers("?q=is:any&status=in_progress&sort=severity")).toEqual([1]);
    for (const q of ["first:2026-02-30", "is:closed", "colour:red"]) {
      const { status, body: wrong } = await own.call("GET", `/bug-reports?q=${q}`);
      expect([q, status]).toEqual([q, 400]);
      expect(wrong.error.message).toMatch(new RegExp(`^Cannot read "q": expected .*"${q}"`));
    }
    expect((await own.walk("/bug-reports?limit=2")).map(numberOf)).toEqual([3, 2, 1]);
  });

  test("each bad field is named", async () => {
    const bad = { title: "", severity: "bad", labels: "x", externalUrl: "javascript:alert(1)", owner: 1 };
    const { status, body } = await own.call("POST", "/bug-reports", bad);
    expect(status).toBe(400);
    for (const name of Object.keys(bad)) expect(body.error.message).toContain(`"${name}"`);
  });

  test("a merged bug gives its fingerprints and occurrences, and future failures follow", async () => {
    await hasNoUnclear();
    const b = { name: "b", message: "Error: the shop is closed" };
    const [first, second] = (await upload([FAILURE, b, { name: "c" }])).bugReports;
    const merge = (from: string, into: string) => own.call("POST", `/bug-reports/${from}/merge`, { into });
    expect((await merge(second.id, first.id)).body).toMatchObject({
      ...{ number: 1, occurrences: 2 },
      grouping: [{ kind: "message" }, { kind: "message" }, { kind: "case", test: "a" }, { kind: "case", test: "b" }],
      testCaseIds: [expect.any(String), expect.any(String)],
    });
    expect(await bug(second.id)).toMatchObject({ status: "resolved", mergedInto: first.id, occurrences: 0 });
    const told = await database.pool<{ id: string }[]>`
      select data -> 'bugReport' ->> 'id' as id from event
      where project_id = ${own.project} and type = 'bug_report.resolved'`;
    expect(told).toEqual([{ id: second.id }] as never);
    expect((await bugs()).map(numberOf)).toEqual([1]);
    expect((await upload([b])).bugReports).toMatchObject([{ number: 1, change: "occurred" }]);
    const again = await upload([{ name: "a", message: "Error: a third thing" }], "&execution_key=both");
    await upload([FAILURE], "&execution_key=both");
    await merge(again.bugReports[0].id, first.id);
    expect(await bug(first.id)).toMatchObject({ occurrences: 4 });
    const path = `/bug-reports/${first.id}/occurrences?limit=2`;
    const body = await own.get(path);
    const ids = { executionId: expect.any(String), testCaseId: expect.any(String) };
    const seen = { taskSlug: "t", branch: null, commit: null, seenAt: expect.any(String) };
    expect(body.data.slice(1)).toEqual([{ ...ids, ...seen, message: b.message }]);
    const rest = await own.list(`${path}&cursor=${body.pagination.cursor}`);
    expect(rest.map(({ message }) => message)).toEqual([b.message, FAILURE.message]);
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
  await patch(into, { status: "resolved" });
  await patch(from, { status: "in_progress" });
  const body = await own.post(`/bug-reports/${from}/merge`, { into });
  expect(body).toMatchObject({ id: into, status: "in_progress", resolvedAt: null, regressed: false });
  expect(body.history.at(-1)).toMatchObject({ from: "resolved", to: "in_progress", cause: "merge" });
});
