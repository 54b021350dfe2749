import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking, filledLists } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const AWAY = "connect ECONNREFUSED 10.0.0.7:41022 (payment)";

/** What each of 40 tests in 8 files fails with, by its number; the others pass. */
type Said = (test: number) => string | null;

const report = (said: Said, count = 40) => {
  const cases = Array.from({ length: count }, (_, index) => {
    const message = said(index);
    const file = `test/${index % 8}.test.ts`;
    const failure = message === null ? "" : `<failure message="${message}">${message}\n at f (${file}:3:1)</failure>`;
    return `<testcase classname="c" name="case ${index}" file="${file}" time="0.1">${failure}</testcase>`;
  });
  return `<testsuite name="s">${cases.join("")}</testsuite>`;
};
const none: Said = () => null;
/** The first tests say this. */
const first =
  (count: number, message: string): Said =>
  (index) =>
    index < count ? message : null;

let build = 0;
async function upload(said: Said, query: string) {
  const commit = (++build).toString(16).padStart(40, "a");
  return await own.uploadReport(report(said), `commit=${commit}&complete=true&${query}`);
}
const bugs = async () => (await own.get("/bug-reports?source=automatic")).data;

describe("many failures for one cause outside of the code", () => {
  test("are an incident: nobody's, one bug, and no sign of the tests", async () => {
    await upload(none, "branch=main");
    const struck = await upload(first(12, AWAY), "branch=main&execution_key=1");
    expect(filledLists(struck)).toEqual({ incidentFailures: 12 });
    expect(struck.incidentFailures).toHaveLength(12);
    expect(struck).toMatchObject({ verdict: "failed", newFailures: [], bugReports: [{ change: "opened" }] });
    const { causes } = await own.get(`/executions/${struck.executionId}/failures`);
    expect(causes).toMatchObject([{ failed: 12, bugReport: { number: 1 } }]);
    const reason = expect.stringContaining("for a cause outside the code");
    expect(causes[0].failures[0]).toMatchObject({ blame: "incident", reason });
    const { counts } = await own.get(`/executions/${struck.executionId}/comparison`);
    expect(counts).toMatchObject({ incidentFailures: 12 });
    for (let again = 0; again < 3; again++) {
      await upload(none, "branch=main");
      await upload(first(12, AWAY), "branch=main");
    }
    expect(await bugs()).toMatchObject([{ occurrences: 48 }]);
    const [one] = (await own.get("/test-cases?limit=100")).data.filter(({ name }: any) => name === "case 0");
    expect(one).toMatchObject({ health: "new", runs: 4, failures: 0, lastStatus: "failed" });
  });

  test.each(["cab", "abc", "at once"])("strike all tasks of a build, whichever reports first: %s", async (given) => {
    const order = given === "at once" ? null : [...given];
    const tasks = order ?? ["a", "b", "c"];
    for (const task of tasks) await own.uploadReport(report(none), `branch=main&commit=aa10000&task_slug=${task}`);
    const strike = async (task: string) =>
      await own.uploadReport(
        report(first(task === "c" ? 2 : 12, AWAY)),
        `branch=main&commit=aa20000&execution_key=2&task_slug=${task}`,
      );
    if (order) for (const task of order) await strike(task);
    else await Promise.all(tasks.map(strike));
    const [{ id }] = await own.list("/executions?limit=1");
    const { counts } = await own.get(`/executions/${id}/comparison`);
    expect([counts.newFailures, counts.incidentFailures]).toEqual([0, 26]);
    expect(await bugs()).toMatchObject([{ occurrences: 26 }]);
  });

  test("are not excused again on a branch that alone shows them", async () => {
    await upload(none, "branch=main");
    expect(filledLists(await upload(first(12, AWAY), "branch=a"))).toEqual({ incidentFailures: 12 });
    await upload(none, "branch=main");
    expect(filledLists(await upload(first(12, AWAY), "branch=a"))).toEqual({ newFailures: 12 });
  });

  test("stay an incident as long as another branch shows them too", async () => {
    await upload(none, "branch=main");
    for (const branch of ["main", "young", "main", "main", "younger"])
      expect(filledLists(await upload(first(12, AWAY), `branch=${branch}`))).toEqual({ incidentFailures: 12 });
  });

  test("are one event with what else fails beside them: red under every gate, until a rerun tells", async () => {
    await upload(none, "branch=main");
    const said: Said = (index) => (index < 12 ? AWAY : index < 14 ? "expected the basket total to be refunded" : null);
    const struck = await upload(said, "branch=a&gate=new&exit_code=1");
    expect([filledLists(struck), struck.gate.pass]).toEqual([{ incidentFailures: 14 }, false]);
    expect(filledLists(await upload((index) => (index < 12 ? null : said(index)), "branch=a"))).toEqual({
      newFailures: 2,
    });
  });

  test.each([
    [9, 9],
    [6, 7],
    [9, 20],
  ])("are an incident in a small task as well: %d of %d", async (failed, count) => {
    const send = (said: Said, query: string) => own.uploadReport(report(said, count), `complete=true&${query}`);
    for (let build = 0; build < 4; build++) await send(none, "branch=main");
    const struck = await send(first(failed, AWAY), "branch=a&pull_request=7");
    expect(filledLists(struck)).toEqual({ incidentFailures: failed });
    const broken = await send(first(failed, "cart.items is not a function"), "branch=b&pull_request=8");
    // All tests of a task, shortly after an incident: that is not clear at once.
    expect(filledLists(broken)).toEqual({ [failed === count ? "unclearFailures" : "newFailures"]: failed });
    const bare = report(first(failed, AWAY), count).replaceAll(/ file="[^"]*"/g, "");
    const nameless = await own.uploadReport(bare, "branch=c&pull_request=9&complete=true&task_slug=u");
    expect(filledLists(nameless)).toEqual(2 * failed > count ? { incidentFailures: failed } : { newFailures: failed });
  });

  test.each(["main", "a"])(
    "are put down to the change of %s until another build fails alike: then they are decided again",
    async (branch) => {
      const said = first(12, "expected the price list to have entries");
      for (let build = 0; build < 8; build++) await upload(none, "branch=main");
      const one = await upload(said, `branch=${branch}&execution_key=one`);
      expect(filledLists(one)).toEqual({ newFailures: 12 });
      await upload(none, "branch=main");
      expect(filledLists(await upload(said, "branch=b"))).toEqual({ incidentFailures: 12 });
      const [counted] = (await own.get("/test-cases?limit=100")).data.filter(({ name }: any) => name === "case 0");
      expect(counted).toMatchObject({ runs: 9, failures: 0 });
      const { counts, causes } = await own.get(`/executions/${one.executionId}/failures`);
      expect(counts).toMatchObject({ newFailures: 0, incidentFailures: 12 });
      const reason = expect.stringMatching(
        /^Decided again: 12 failures in other builds or tasks have the same message, .* not this change$/,
      );
      expect(causes[0].failures[0]).toMatchObject({ blame: "incident", reason });
      expect(await bugs()).toMatchObject(branch === "main" ? [{ occurrences: 24 }] : []);
      const gate = await own.get(`/executions/${one.executionId}/verdict?gate=new`);
      expect(gate).toMatchObject({ pass: false, forgivenCount: 0 });
    },
  );

  test("say nothing of the tests in the next build: what fails there for its own reason is new", async () => {
    await upload(none, "branch=main");
    await upload(first(12, AWAY), "branch=main");
    const next = await upload(first(1, "expected the basket total to be refunded"), "branch=a");
    expect(filledLists(next)).toEqual({ newFailures: 1 });
  });

  test("count as passed, and as nothing more, when a retry of a counted run passes", async () => {
    await upload(none, "branch=main");
    const query = "branch=main&execution_key=retried";
    await own.uploadReport(report(first(12, AWAY)), query);
    await own.get("/test-cases?limit=1");
    expect(await own.uploadReport(report(first(12, AWAY)), query)).toMatchObject({ verdict: "failed" });
    await own.get("/test-cases?limit=1");
    const body = await own.uploadReport(report(none), query);
    expect(body).toMatchObject({ verdict: "passed" });
    const all = (await own.get("/test-cases?limit=100")).data;
    const counted = { runs: 2, failures: 0, flakeRate: 0, lastStatus: "passed" };
    expect(all.find(({ name }: any) => name === "case 0")).toMatchObject(counted);
  });
});

test("a run in which many tests begin to look flaky at once makes none of them flaky", async () => {
  await upload(none, "branch=main");
  const query = `branch=a&commit=${"b".repeat(40)}&execution_key=ill`;
  const words = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
  const said = (index: number) => `the ${words[index]} row has no owner`;
  const send = (said: Said) => own.uploadReport(report(said), query);
  await send((index) => (index < 8 ? said(index) : null));
  const body = await send((index) => (index === 7 ? said(7) : null));
  expect(filledLists(body)).toEqual({ newFailures: 1 });
  expect((await own.get("/test-cases?health=flaky")).data).toEqual([]);
});

describe("a machine", () => {
  const THINGS = ["basket", "invoice", "refund", "coupon", "address", "parcel"];
  const COLOURS: Record<string, string> = { a: "red", b: "blue", c: "green", d: "yellow", e: "purple", f: "black" };
  /** Words that no two tests share on any two branches, and that say nothing of the cause. */
  const odd =
    (count: number, branch: string): Said =>
    (index) =>
      index < count ? `the ${COLOURS[branch]} ${THINGS[index % 6]} ${index < 6 ? "row" : "view"} has no owner` : null;
  const sound = async (count: number) => {
    for (let index = 0; index < count; index++) await upload(none, `branch=main&host=ci-${index % 2}`);
  };

  test("on which many tests fail for many reasons disturbs its runs, and other machines do not", async () => {
    await sound(12);
    // Once it may be the change.
    expect(filledLists(await upload(odd(12, "f"), "branch=f&host=ci-3"))).toEqual({ newFailures: 12 });
    for (const branch of ["a", "b", "c"]) {
      const { executionId } = await upload(odd(12, branch), `branch=${branch}&host=ci-3`);
      const { causes } = await own.get(`/executions/${executionId}/failures`);
      const reason = expect.stringMatching(/^Many tests failed together in this run, .* not this change$/);
      expect(causes[0].failures[0]).toMatchObject({ blame: "incident", host: "ci-3", reason });
    }
    const shareOf = async (branch: string, host: string) => {
      const { executionId } = await upload(odd(1, branch), `branch=${branch}&host=${host}`);
      const [{ failures }] = (await own.get(`/executions/${executionId}/failures`)).causes;
      return failures[0].explanations.find(({ kind }: any) => kind === "outside").share;
    };
    expect(await shareOf("d", "ci-3")).toBeGreaterThan(await shareOf("e", "ci-1"));
  });

  test("is not blamed for what one branch breaks, nor where nobody says which it was", async () => {
    await sound(12);
    for (let push = 0; push < 3; push++)
      expect(filledLists(await upload(odd(6, "a"), "branch=a&host=ci-3"))).toEqual({ newFailures: 6 });
    // Nobody is blamed at once where builds of others are disturbed, and nothing is excused.
    expect(filledLists(await upload(odd(6, "b"), "branch=b"))).toEqual({ unclearFailures: 6 });
    expect(filledLists(await upload(odd(6, "b"), "branch=b"))).toEqual({ newFailures: 6 });
  });
});
