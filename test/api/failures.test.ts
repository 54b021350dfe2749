import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking, filledLists } from "../asking.ts";
import { insertFoundSearch } from "../culprit_searches.ts";
import { createHarness, holdTransaction, junit } from "../harness.ts";
import { lockHealth } from "../../src/store/pending_health.ts";
import { countAll } from "../../src/work/count.ts";
import { retainNow } from "../retaining.ts";

const { ask, acme, addProject, database } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

/** One run a letter of the first case, the others pass. */
async function runs(letters: string, branch = "main") {
  for (const letter of letters) await own.upload(`${letter}pp`, `branch=${branch}`);
}
/** What is remembered is counted behind the uploads. */
const catchUp = () => own.call("GET", "/test-cases?limit=1");
const get = async (path: string) => await own.get(`/executions/${path}`);
const compare = (executionId: string, query = "") => get(`${executionId}/comparison${query}`);
const names = (cases: { name: string }[]) => cases.map(({ name }) => name);

const LISTS = [
  "newFailures",
  "unclearFailures",
  "flakyFailures",
  "alsoFailingOnMain",
  "stillFailing",
  "quarantinedFailures",
] as const;
/** The names in each list that is not empty. */
const blames = (answer: any) =>
  Object.fromEntries(LISTS.flatMap((list) => (answer[list].length === 0 ? [] : [[list, names(answer[list])]])));

describe("a failure", () => {
  test("is new where the default branch passed, at every push of a branch, and on the default branch once", async () => {
    expect(blames(await own.upload("fpp", "branch=main"))).toEqual({ newFailures: ["case 0"] });
    const both = { newFailures: ["case 1"], stillFailing: ["case 0"] };
    expect(blames(await own.upload("ffp", "branch=main"))).toEqual(both);
    const push = { newFailures: ["case 2"], stillFailing: ["case 0", "case 1"] };
    expect(blames(await own.upload("fff", "branch=x"))).toEqual(push);
    expect(blames(await own.upload("fff", "branch=x"))).toEqual(push);
    expect(blames(await own.upload("ffp", "branch=main"))).toEqual({ stillFailing: ["case 0", "case 1"] });
  });

  test("of a flaky test is not excused when it fails on one branch more often in a row than its rate allows", async () => {
    // In one result of four it passes only when it is tried again.
    for (let build = 0; build < 20; build++) {
      if (build % 4 === 0) await own.upload("fpp", `branch=main&execution_key=r${build}&complete=true`);
      await own.upload("ppp", `branch=main&execution_key=r${build}&complete=true`);
    }
    await catchUp();
    const push = (commit: number) =>
      own.upload("fpp", `branch=x&commit=abcdef${commit}&execution_key=x${commit}&complete=true`);
    expect(blames(await push(1))).toEqual({ flakyFailures: ["case 0"] });
    for (const commit of [2, 3]) expect(blames(await push(commit))).toEqual({ unclearFailures: ["case 0"] });
    for (const commit of [4, 5]) await push(commit);
    for (const commit of [6, 7]) expect(blames(await push(commit))).toEqual({ newFailures: ["case 0"] });
    // Each says why.
    const reasonOf = async (executionKey: string) => {
      const [{ id }] = await own.list(`/executions?key=${executionKey}`);
      return (await get(`${id}/failures`)).causes[0].failures[0].reason;
    };
    const counts = "It failed in 5 of \\d+ results of other builds";
    expect(await reasonOf("x1")).toMatch(new RegExp(`^${counts}: \\d\\d % not this change$`));
    expect(await reasonOf("x7")).toMatch(
      new RegExp(`^${counts}, failed 7 times in a row on this branch: \\d\\d % this change$`),
    );
    // A pass in between, and another branch, begin anew.
    expect(blames(await own.upload("fpp", "branch=y"))).toEqual({ flakyFailures: ["case 0"] });
    await own.upload("ppp", "branch=x&commit=abcdef8");
    expect(blames(await push(9))).toEqual({ flakyFailures: ["case 0"] });
  });

  test("is answered by what is known so far, while earlier results are being counted", async () => {
    await own.upload("ppp", "branch=main");
    const counting = await holdTransaction(database, (sql) => lockHealth(sql, own.project));
    // All at once: none of them takes the connections that the others need.
    const uploads = Array.from({ length: 12 }, (_, index) => own.upload("fpp", `branch=${index}`));
    await Promise.all(uploads).finally(counting.release);
    await catchUp();
    const cases = await own.list("/test-cases");
    expect(cases).toContainEqual(expect.objectContaining({ name: "case 0", runs: 13, failures: 12 }));
  });

  test("is the default branch's own where that has broken since the execution began", async () => {
    await own.upload("ppp", "branch=main");
    const mine = await own.post("/executions", { branch: "x" });
    await own.upload("fpp", "branch=main");
    const answer = await own.upload("ffp", `execution_id=${mine.id}`);
    expect(blames(answer)).toEqual({ newFailures: ["case 1"], alsoFailingOnMain: ["case 0"] });
    expect(blames(await compare(mine.id))).toEqual(blames(answer));
    expect(blames(await own.upload("fpp", "branch=y"))).toEqual({ stillFailing: ["case 0"] });
  });

  test("of two builds of the default branch side by side is new in the earlier one, whatever the order of their reports", async () => {
    await own.upload("ppp", "branch=main");
    const begin = async (commit: string) => (await own.post("/executions", { branch: "main", commit })).id;
    const [first, second] = [await begin("aaaaaaa"), await begin("bbbbbbb")];
    const blame = async (id: string, letters = "fpp") => blames(await own.upload(letters, `execution_id=${id}`));
    expect(await blame(second)).toEqual({ newFailures: ["case 0"] });
    expect(await blame(first)).toEqual({ newFailures: ["case 0"] });
    // Retries that fail again are judged anew.
    expect(await blame(second, "fp")).toEqual({ alsoFailingOnMain: ["case 0"] });
    expect(await blame(first, "fp")).toEqual({ newFailures: ["case 0"] });
  });

  test("that the default branch had for some builds and has mended is new on a branch that names no base", async () => {
    await runs("ppfffffp");
    await catchUp();
    expect(blames(await own.upload("ffp", "branch=x"))).toEqual({ newFailures: ["case 0", "case 1"] });
  });

  test("of a flaky case is told apart, with its rate and when it was last seen", async () => {
    await own.upload("fpp", "branch=main&execution_key=a");
    await own.upload("ppp", "branch=main&execution_key=a&complete=true");
    const [flaky] = await own.list("/test-cases?health=flaky");
    const answer = await own.upload("ffp", "branch=x");
    expect(blames(answer)).toEqual({ newFailures: ["case 1"], flakyFailures: ["case 0"] });
    expect(answer.flakyFailures[0]).toMatchObject({ flakeRate: 1, lastFlakyAt: flaky.flaky.lastSeenAt });
    expect(answer.verdict).toBe("failed");
  });

  /** The report of one case that fails with the message, beside 49 that pass. */
  const one = (branch: string, message?: string, more = ""): Promise<any> =>
    own.uploadReport(
      `<testsuite name="unit"><testcase name="case 0">${message === undefined ? "" : `<failure message="${message}"/>`}</testcase>` +
        `${Array.from({ length: 49 }, (_, index) => `<testcase name="other ${index}"/>`).join("")}</testsuite>`,
      `branch=${branch}&gate=new&exit_code=1${more}`,
    );
  const BASKET = "Error: the basket has no owner";

  test("of a pull request is new in another one with another message, unclear with the same one, and flaky once main shows it", async () => {
    for (let build = 0; build < 12; build++) await one("main");
    expect(blames(await one("x", BASKET))).toEqual({ newFailures: ["case 0"] });
    const other = await one("y", "Error: the session was lost");
    expect([blames(other), other.gate.pass]).toEqual([{ newFailures: ["case 0"] }, false]);
    for (const branch of ["z", "u", "v"]) {
      const same = await one(branch, BASKET);
      expect([blames(same), same.gate.pass]).toEqual([{ unclearFailures: ["case 0"] }, false]);
      const reason =
        /^It failed in \d of \d\d results of other builds, all in pull requests or branches: \d\d % not this change; a rerun tells$/;
      const { causes } = await get(`${same.executionId}/failures`);
      expect(causes[0].failures[0].reason).toMatch(reason);
    }
    for (const said of [BASKET, undefined]) await one("main", said);
    const flaky = await one("w", BASKET);
    expect([blames(flaky), flaky.gate.pass]).toEqual([{ flakyFailures: ["case 0"] }, true]);
  });

  test("that stands for a task without a report is new once on a branch", async () => {
    const send = (key: string, task: string, report: string, more = "") =>
      own.uploadReport(report, `branch=main&commit=aa${key}0000&execution_key=${key}&task_slug=${task}${more}`);
    const lists: object[] = [];
    for (const key of ["1", "2", "3"]) {
      await send(key, "unit", '<testsuite name="unit"><testcase name="adds"/></testsuite>');
      lists.push(filledLists(await send(key, "api", "", "&exit_code=1&complete=true&failure=No+report")));
    }
    expect(lists).toEqual([{ newFailures: 1 }, { stillFailing: 1 }, { stillFailing: 1 }]);
  });

  test("is since the first build of the branch that has it, whatever main did meanwhile", async () => {
    for (let build = 1; build <= 3; build++) await one("main", undefined, `&commit=aa${build}0000`);
    const first = await one("x", BASKET, "&pull_request=7&commit=bb10000");
    for (let build = 4; build <= 6; build++) await one("main", undefined, `&commit=aa${build}0000`);
    const last = await one("x", BASKET, "&pull_request=7&commit=bb20000&base_commit=aa60000");
    const { causes } = await get(`${last.executionId}/failures`);
    expect(causes[0].failures[0]).toMatchObject({ since: { executionId: first.executionId, commit: "bb10000" } });
  });

  test("that main has since the baseline of a branch is unclear there, and says so", async () => {
    for (let build = 1; build <= 9; build++) await one("main", undefined, `&commit=aa${build}0000`);
    for (let build = 0; build < 2; build++) await one("main", BASKET);
    const mine = await one("x", BASKET, "&pull_request=7&base_branch=main&base_commit=aa90000");
    expect([blames(mine), mine.gate.pass]).toEqual([{ unclearFailures: ["case 0"] }, false]);
    const { causes } = await get(`${mine.executionId}/failures`);
    const reason = expect.stringMatching(
      /^It passed in the baseline, and fails on the default branch since then, with the same message: /,
    );
    expect(causes[0].failures[0]).toMatchObject({ reason, since: { executionId: mine.executionId } });
  });

  test("of a case that fails on the default branch for a short time again and again is explained by that", async () => {
    for (const letter of "pppfpppfpppppp") await one("main", letter === "f" ? BASKET : undefined);
    const answer = await one("x", BASKET);
    expect([blames(answer), answer.gate.pass]).toEqual([{ flakyFailures: ["case 0"] }, true]);
    expect(answer.flakyFailures[0]).toMatchObject({ flakeRate: 0.1429, lastFlakyAt: expect.any(String) });
  });

  test("that a branch has brought to the default branch is new there, in the same words", async () => {
    for (let build = 0; build < 3; build++) await one("main");
    for (const branch of ["x", "main"]) expect(blames(await one(branch, BASKET))).toEqual({ newFailures: ["case 0"] });
  });

  test("of a case that failed once on the default branch and passed since is its own, above all with the same message", async () => {
    await one("main");
    await one("main", BASKET);
    for (let build = 0; build < 6; build++) await one("main");
    const changeOf = async (answer: any) =>
      (await get(`${answer.executionId}/failures`)).causes[0].failures[0].explanations.find(
        ({ kind }: any) => kind === "change",
      ).share;
    const [same, other] = [await one("x", BASKET), await one("y", "Error: the session was lost")];
    expect([blames(same), same.gate.pass]).toEqual([{ flakyFailures: ["case 0"] }, true]);
    expect(await changeOf(other)).toBeGreaterThan(2 * (await changeOf(same)));
  });

  test("of a test that never failed is likelier flaky where many tests of the project fail now and then", async () => {
    const report = (letters: string) =>
      `<testsuite name="unit">${Array.from(letters, (letter, index) => {
        const said = `message="Error: row ${index % 7} is ${"abcdefg"[index % 7]}"`;
        const child = { f: `<failure ${said}/>`, P: `<flakyFailure ${said}/>`, p: "" }[letter];
        return `<testcase name="case ${index}">${child}</testcase>`;
      }).join("")}</testsuite>`;
    const with1 = (letter: string, at: number) => "p".repeat(at) + letter + "p".repeat(79 - at);
    const flakyShare = async (branch: string) => {
      const { executionId } = await own.uploadReport(report(with1("f", 70)), { branch });
      const [{ failures }] = (await get(`${executionId}/failures`)).causes;
      return failures[0].explanations.find(({ kind }: any) => kind === "flaky").share;
    };
    for (let build = 0; build < 20; build++) await own.uploadReport(report(with1("P", build)), "branch=main");
    const before = await flakyShare("x");
    await countAll(database);
    const after = await flakyShare("y");
    expect(before).toBeLessThan(0.1);
    expect(after).toBeGreaterThan(3 * before);
    // Once an hour is enough.
    const fitted = () => database.pool`select flaky_rates_at from project where id = ${own.project}`;
    const first = await fitted();
    await countAll(database);
    expect(await fitted()).toEqual(first);
  });

  test("of one commit on several branches is no record of the case", async () => {
    await runs("p");
    for (const branch of ["a", "b", "c", "d"])
      expect(blames(await own.upload("fpp", `branch=${branch}&commit=77777777`))).toEqual({ newFailures: ["case 0"] });
  });

  test("of a build that is imported after its time is not judged by what its case has become since", async () => {
    const daysAgo = (days: number) => `completed_at=${new Date(Date.now() - days * 86_400_000).toISOString()}`;
    await own.upload("ppp", `branch=main&${daysAgo(12)}`);
    await own.upload("fpp", `branch=main&${daysAgo(10)}&execution_key=a`);
    await own.upload("ppp", `branch=main&${daysAgo(10)}&execution_key=a`);
    await own.upload("fpp", `branch=y&commit=b1&${daysAgo(9)}`);
    await own.upload("fpp", `branch=z&commit=c1&${daysAgo(9)}`);
    expect(blames(await own.upload("fpp", `branch=x&${daysAgo(11)}`))).toEqual({ newFailures: ["case 0"] });
    expect(blames(await own.upload("fpp", `branch=x&${daysAgo(8)}`))).toEqual({ flakyFailures: ["case 0"] });
  });

  test("that is quarantined is told as that and nothing else", async () => {
    const { newFailures } = await own.upload("fpp", "branch=main");
    await own.patch(`/test-cases/${newFailures[0].testCaseId}`, { quarantine: { reason: "later" } });
    expect(blames(await own.upload("fpp", "branch=x"))).toEqual({ quarantinedFailures: ["case 0"] });
  });

  test("of an outage blames nobody", async () => {
    await own.upload("p".repeat(12), "branch=main");
    const outage = await own.upload("f".repeat(12), "branch=main");
    expect([outage.outage, blames(outage)]).toEqual([true, {}]);
    expect(blames(await compare(outage.executionId))).toEqual({});
  });

  test("that a retry has undone is none, and those that stay are judged again", async () => {
    await own.upload("ppp", "branch=main");
    expect(blames(await own.upload("ffp", "branch=x&execution_key=a"))).toEqual({ newFailures: ["case 0", "case 1"] });
    const retried = await own.upload("pfp", "branch=x&execution_key=a");
    expect(blames(retried)).toEqual({ newFailures: ["case 1"] });
    expect(blames(await compare(retried.executionId))).toEqual({ newFailures: ["case 1"] });
  });
});

describe("the baseline", () => {
  test("explains what it has explained when its results are no longer kept; blame goes with the results", async () => {
    const old = new Date(Date.now() - 100 * 86_400_000).toISOString();
    await own.upload("ppp", `branch=main&completed_at=${old}`);
    const base = await own.upload("fpp", `branch=main&completed_at=${old}`);
    const mine = await own.upload("ffp", "branch=x");
    await retainNow(database, { results: 90 }, new Date());
    expect(blames(await compare(mine.executionId))).toEqual(blames(mine));
    expect((await get(`${mine.executionId}/failures`)).counts).toMatchObject({ newFailures: 1, stillFailing: 1 });
    const gone = { failed: 1, counts: { newFailures: 0 }, causes: [] };
    expect(await get(`${base.executionId}/failures`)).toMatchObject(gone);
  });

  test("is fixed when the execution begins, and the same for ever", async () => {
    const base = await own.upload("pfp", "branch=main");
    const mine = await own.upload("ffp", "branch=x&execution_key=a");
    const before = await compare(mine.executionId);
    expect([before.baselineId, (await get(mine.executionId)).baselineId]).toEqual([base.executionId, base.executionId]);
    for (let build = 0; build < 2; build++) await own.upload("ffp", "branch=main");
    expect(await compare(mine.executionId)).toEqual(before);
    const now = { alsoFailingOnMain: ["case 0"], stillFailing: ["case 1"] };
    expect(blames(await own.upload("ffpp", "branch=x&execution_key=a"))).toEqual(now);
    expect((await compare(mine.executionId)).baselineId).toBe(base.executionId);
  });

  test("of a rerun is that of the execution it repeats", async () => {
    const base = await own.upload("ppp", "branch=main");
    const red = await own.upload("fpp", "branch=main");
    const again = await own.call("POST", `/executions/${red.executionId}/rerun`, {});
    expect(again.body.baselineId).toBe(base.executionId);
    expect(blames(await own.upload("fpp", `execution_id=${again.body.id}`))).toEqual({ newFailures: ["case 0"] });
  });

  test("that lacks a test does not leave it to the bug that the same build opens", async () => {
    await own.upload("ppp", "branch=main");
    expect(blames(await own.upload("pppf", "branch=main&execution_key=1"))).toEqual({ newFailures: ["case 3"] });
    const both = { newFailures: ["case 0", "case 3"] };
    expect(blames(await own.upload("fppf", "branch=main&execution_key=1"))).toEqual(both);
  });

  test("that lacks a test does not excuse it by a bug that only other tests have on the default branch", async () => {
    const fault = `<failure message="TypeError: no currency">TypeError: no currency\n    at priceOf (src/price.ts:41:17)</failure>`;
    const failing = (name: string) =>
      junit("ppp").replace("</testsuite>", `<testcase classname="unit" name="${name}">${fault}</testcase></testsuite>`);
    await own.uploadReport(failing("theirs"), "branch=main");
    for (let push = 0; push < 3; push++)
      expect(blames(await own.uploadReport(failing("mine"), "branch=x"))).toEqual({ newFailures: ["mine"] });
  });
});

describe("comparison", () => {
  test("tells new, fixed, still failing, added and missing cases against the default branch or a given execution", async () => {
    const base = await own.upload("pffp", "branch=main");
    const mine = await own.upload("fpfsp", "branch=x");
    const found = await compare(mine.executionId, `?baseline=${base.executionId}`);
    expect(found).toMatchObject({ executionId: mine.executionId, baselineId: base.executionId });
    expect(filledLists(found)).toEqual({ newFailures: 1, stillFailing: 1, fixed: 1, added: 1 });
    expect([blames(found), names(found.fixed), names(found.added), names(found.missing)]).toEqual([
      ...[{ newFailures: ["case 0"], stillFailing: ["case 2"] }, ["case 1"], ["case 4"], []],
    ]);
    expect(await compare(mine.executionId)).toEqual(found);
    expect(blames(mine)).toEqual(blames(found));
    const later = await own.upload("pff", "branch=y");
    expect(await compare(later.executionId, "?branch=x")).toMatchObject({
      ...{ baselineId: mine.executionId, counts: { newFailures: 1, stillFailing: 1, fixed: 1, missing: 2 } },
    });
    const refused = await own.call("GET", `/executions/${mine.executionId}/comparison?branch=y`);
    const none = 'Cannot read "branch": no execution of "y" had ended before this one began';
    expect(refused.body.error.message).toBe(none);
  });

  test("without a baseline everything is new, and one that is not there is named", async () => {
    const { executionId } = await own.upload("pf", "branch=main");
    expect(await compare(executionId)).toMatchObject({ baselineId: null, counts: { newFailures: 1, added: 2 } });
    const other = crypto.randomUUID();
    const refused = await own.call("GET", `/executions/${executionId}/comparison?baseline=${other}`);
    expect(refused.body.error.message).toContain(other);
    expect((await own.call("GET", `/executions/${other}/comparison`)).status).toBe(404);
  });
});

describe("GET …/executions/{executionId}/failures", () => {
  const testcase = (name: string, message?: string, stack = "") =>
    `<testcase classname="s" name="${name}" file="src/${name}.test.ts">` +
    `${message === undefined ? "" : `<failure message="${message}">${stack}</failure>`}</testcase>`;
  const send = (query: string, ...cases: string[]) =>
    own.uploadReport(`<testsuite name="s">${cases.join("")}</testsuite>`, query);
  const refused = "Error: connect ECONNREFUSED 10.0.0.7:5432";

  test("tells of each the machine that it failed on", async () => {
    const shard = (index: number, more: string, ...cases: string[]) =>
      send(`execution_key=hosts&shard=${index}/2&${more}`, ...cases);
    await shard(1, "host=ci-1", testcase("a", "one"), testcase("b", "two"));
    await shard(2, "host=ci-2", testcase("c", "three"), testcase("d", "four"));
    // What is repeated elsewhere fails there; what is not repeated has failed where it was.
    await shard(1, "host=ci-3", testcase("a", "one"));
    const { executionId } = await shard(2, "", testcase("d", "four"));
    const { causes } = await get(`${executionId}/failures`);
    const failures = causes.flatMap((cause: any) => cause.failures);
    const hosts = { a: "ci-3", b: "ci-1", c: "ci-2", d: null };
    expect(Object.fromEntries(failures.map(({ name, host }: any) => [name, host]))).toEqual(hosts);
  });

  test("tells all of them by cause: what, since when, new or not, whose, with the bug report", async () => {
    await send("branch=main&commit=a1", testcase("a"), testcase("b"), testcase("c"));
    const first = await send("branch=main&commit=b2", testcase("a", refused), testcase("b"), testcase("c"));
    await own.patch(`/test-cases/${first.newFailures[0].testCaseId}`, { owner: "storage" });
    const cases = [
      testcase("a", refused),
      testcase("b", "AssertionError: the total is wrong", "at total (src/b.ts:3:1)"),
    ];
    const mine = await send("branch=main&commit=c3", ...cases, testcase("c", refused.replace("10.0.0.7", "10.0.0.8")));
    const body = await get(`${mine.executionId}/failures`);
    expect(body).toMatchObject({ executionId: mine.executionId, baselineId: first.executionId, failed: 3 });
    expect(filledLists(body)).toEqual({ newFailures: 2, stillFailing: 1 });
    expect(body.causes).toMatchObject([
      {
        ...{ message: "AssertionError: the total is wrong", stack: "at total (src/b.ts:3:1)" },
        ...{ exceptionType: "AssertionError", bugReport: { number: 2, status: "open" } },
        failures: [
          {
            ...{
              name: "b",
              blame: "new",
              reason: expect.stringMatching(/^It passed in all 2 results .* % this change$/),
            },
            explanations: [
              { kind: "change", share: expect.any(Number) },
              ...Array(3).fill({ kind: expect.any(String), share: expect.any(Number) }),
            ],
            ...{ since: { executionId: mine.executionId, commit: "c3" }, owner: null, owners: [] },
          },
        ],
      },
      {
        bugReport: { number: 1 },
        failures: [
          { name: "c", blame: "new", since: { executionId: mine.executionId } },
          {
            ...{
              name: "a",
              blame: "still_failing",
              reason: expect.stringMatching(/^It failed in the baseline/),
              owner: "storage",
            },
            since: { executionId: first.executionId, commit: "b2" },
          },
        ],
      },
    ]);
    expect((await own.call("GET", `/executions/${crypto.randomUUID()}/failures`)).status).toBe(404);
  });

  test("says whether its bug was known, and which commit is proven to have broken its test", async () => {
    const upload = (query: string, message?: string) =>
      send(`execution_key=${query}&complete=true`, testcase("a", message));
    const bugIn = async ({ executionId }: any) => (await get(`${executionId}/failures`)).causes[0].bugReport;
    await upload("1&branch=main");
    const first = await upload("2&branch=main", refused);
    const bug = { id: first.bugReports[0].id, number: 1, title: expect.any(String), status: "open" };
    const branch = await upload("3&branch=x", refused);
    expect(await bugIn(first)).toEqual({ ...bug, known: false, culprit: null });
    expect(await bugIn(branch)).toEqual({ ...bug, known: true, culprit: null });

    const searchId = await insertFoundSearch(database, { project: own.project, bugReportId: bug.id });
    const { culprit } = await own.get(`/bug-reports/${bug.id}/culprit`);
    const summary = expect.stringMatching(/^\w{10} by Ada broke it: it failed there 2 of 2 times, on its parent/);
    const proven = { searchId, commit: culprit.commit, author: "Ada", summary };
    expect(await bugIn(first)).toEqual({ ...bug, known: false, culprit: proven });
    expect(await bugIn(branch)).toEqual({ ...bug, known: true, culprit: proven });
    // A search that is repeated, or cancelled, leaves the verdict as it is.
    const again = await insertFoundSearch(database, { project: own.project, bugReportId: bug.id });
    const setSearch = (status: string, verdict: string | null) =>
      database.pool`update culprit_search set status = ${status}, verdict = ${verdict}, culprit = null where id = ${again}`;
    for (const status of ["running", "cancelled"]) {
      await setSearch(status, null);
      expect((await bugIn(branch)).culprit).toEqual(proven);
    }
    await setSearch("completed", "undecided");
    expect((await bugIn(branch)).culprit).toBeNull();

    const setStatus = (status: string) => own.call("PATCH", `/bug-reports/${bug.id}`, { status });
    for (const [status, known] of Object.entries({ in_progress: true, ignored: false, resolved: false })) {
      await setStatus(status);
      expect(await bugIn(branch)).toMatchObject({ status, known });
    }
    const back = await upload("4&branch=main", refused);
    expect(back.bugReports).toMatchObject([{ id: bug.id, change: "regressed" }]);
    expect(await bugIn(back)).toMatchObject({ status: "open", known: false });
    expect(await bugIn(await upload("5&branch=main", refused))).toMatchObject({ status: "open", known: true });
    // Another task of the execution that opened it.
    const report = `<testsuite>${testcase("a", refused)}</testsuite>`;
    await own.uploadReport(report, `task_slug=other&execution_id=${back.executionId}`);
    expect(await bugIn(back)).toMatchObject({ known: false });

    own = createAsking(ask, await addProject(acme));
    expect(await bugIn(await upload("1&branch=x", refused))).toBeNull();
  });

  describe("of many failures", () => {
    const messages = ["Error: the basket is gone", "Error: the mail was not sent"];
    const many = Array.from({ length: 600 }, (_, index) => testcase(`case ${index}`, messages[index % 2]));
    const fine = Array.from({ length: 600 }, (_, index) => testcase(`fine ${index}`));
    const counts = { newFailures: 600 };
    const told = ({ causes }: any) =>
      causes.map(({ message, failed, failures }: any) => [message, failed, failures.length]);

    test("groups all of them, lists a share of each cause, and goes on from cause to cause", async () => {
      const { executionId } = await send("branch=main", ...many, ...fine);
      const whole = await get(`${executionId}/failures`);
      expect(filledLists(whole)).toEqual(counts);
      expect(whole).toMatchObject({ failed: 600, causeCount: 2, pagination: { hasMore: false } });
      expect(told(whole)).toEqual([
        [messages[0], 300, 250],
        [messages[1], 300, 250],
      ]);
      const first = await get(`${executionId}/failures?limit=1`);
      expect(first).toMatchObject({ failed: 600, counts, causeCount: 2, pagination: { hasMore: true } });
      expect(told(first)).toEqual([[messages[0], 300, 300]]);
      const second = await get(`${executionId}/failures?limit=1&cursor=${first.pagination.cursor}`);
      expect(second).toMatchObject({ causeCount: 2, pagination: { hasMore: false } });
      expect(told(second)).toEqual([[messages[1], 300, 300]]);
    });

    test("those that have not joined the bug report of their cause belong to it all the same", async () => {
      const { executionId } = await send("branch=main", ...many, ...fine);
      await database.pool`delete from bug_occurrence where project_id = ${own.project} and test_case % 3 = 0`;
      const { causes, causeCount } = await get(`${executionId}/failures`);
      const bugsOf = (causes: any[]) => causes.map(({ failed, bugReport }) => [failed, bugReport?.number]);
      const half = (count: number) => [
        [count, 1],
        [count, 2],
      ];
      expect([causeCount, bugsOf(causes)]).toEqual([2, half(300)]);
      // Also if none of the owner's failures has joined it.
      await database.pool`update test_case set owner = 'storage' where project_id = ${own.project} and number % 3 = 0`;
      const owned = await get(`${executionId}/failures?owner=storage`);
      expect(bugsOf(owned.causes)).toEqual(half(100));
    });

    test("the answer to an upload counts all of them, as JSON and as text, also when it is repeated", async () => {
      const body = `<testsuite name="s">${[...many, ...fine].join("")}</testsuite>`;
      const answer = await own.uploadReport(body, "execution_key=1");
      expect([filledLists(answer), answer.newFailures.length]).toEqual([counts, 100]);
      const text = await own.send(body, "execution_key=1", { accept: "text/plain" });
      expect(text).toMatchObject({ status: 200, text: expect.stringContaining(" 600 failed (600 new), ") });
    });
  });

  test("an execution without failures has no causes; those of an outage blame nobody", async () => {
    const green = await own.upload("pp", "branch=main");
    expect(await get(`${green.executionId}/failures`)).toMatchObject({ failed: 0, causes: [] });
    const outage = await own.upload("f".repeat(12), "branch=main");
    const { failed, causes, counts } = await get(`${outage.executionId}/failures`);
    expect([failed, counts.newFailures]).toEqual([12, 0]);
    const failures = causes.flatMap(({ failures }: any) => failures);
    expect([failures.length, new Set(failures.map(({ blame }: any) => blame))]).toEqual([12, new Set([null])]);
  });
});
