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
    const struck = await upload(first(20, AWAY), "branch=main&execution_key=1");
    expect(filledLists(struck)).toEqual({ incidentFailures: 20 });
    expect(struck.incidentFailures).toHaveLength(20);
    expect(struck).toMatchObject({ verdict: "failed", newFailures: [], bugReports: [{ change: "opened" }] });
    const { causes } = await own.get(`/executions/${struck.executionId}/failures`);
    expect(causes).toMatchObject([{ failed: 20, bugReport: { number: 1 } }]);
    const reason = expect.stringContaining("for a cause outside the code");
    expect(causes[0].failures[0]).toMatchObject({ blame: "incident", reason });
    const { counts } = await own.get(`/executions/${struck.executionId}/comparison`);
    expect(counts).toMatchObject({ incidentFailures: 20 });
    // Three such builds would be three short episodes.
    for (let again = 0; again < 3; again++) {
      await upload(none, "branch=main");
      await upload(first(20, AWAY), "branch=main");
    }
    expect(await bugs()).toMatchObject([{ occurrences: 80 }]);
    const [one] = (await own.get("/test-cases?limit=100")).data.filter(({ name }: any) => name === "case 0");
    expect(one).toMatchObject({ health: "new", runs: 4, failures: 0, lastStatus: "failed" });
  });

  test("are not excused again on a branch that alone shows them", async () => {
    await upload(none, "branch=main");
    expect(filledLists(await upload(first(12, AWAY), "branch=a"))).toEqual({ incidentFailures: 12 });
    await upload(none, "branch=main");
    expect(filledLists(await upload(first(12, AWAY), "branch=a"))).toEqual({ newFailures: 12 });
  });

  test("are excused no more when a branch shows them three times in a row while another one ran without", async () => {
    await upload(none, "branch=main");
    expect(filledLists(await upload(first(12, AWAY), "branch=main"))).toEqual({ incidentFailures: 12 });
    // One branch comes from there, and one does not.
    expect(filledLists(await upload(first(12, AWAY), "branch=young"))).toEqual({ incidentFailures: 12 });
    await upload(none, "branch=old");
    expect(filledLists(await upload(first(12, AWAY), "branch=main"))).toEqual({ incidentFailures: 12 });
    expect(filledLists(await upload(first(12, AWAY), "branch=main"))).toEqual({ newFailures: 12 });
    expect(filledLists(await upload(first(12, AWAY), "branch=main"))).toEqual({ stillFailing: 12 });
    expect(filledLists(await upload(first(12, AWAY), "branch=younger"))).toEqual({ stillFailing: 12 });
  });

  test("leave what else fails beside them as it is", async () => {
    await upload(none, "branch=main");
    const said: Said = (index) => (index < 12 ? AWAY : index < 14 ? "expected the basket total to be refunded" : null);
    expect(filledLists(await upload(said, "branch=a"))).toEqual({ incidentFailures: 12, newFailures: 2 });
  });

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

test("a run in which tests begin to look flaky at once excuses what fails on, unless several fail for one reason in the code", async () => {
  await upload(none, "branch=main");
  const query = `branch=a&commit=${"b".repeat(40)}&execution_key=ill`;
  const words = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
  const said = (index: number) => `the ${words[index]} row has no owner`;
  const send = (said: Said) => own.uploadReport(report(said), query);
  await send((index) => (index < 8 ? said(index) : null));
  const body = await send((index) => (index === 7 ? said(7) : null));
  expect(filledLists(body)).toEqual({ incidentFailures: 1 });
  expect((await own.get("/test-cases?health=flaky")).data).toEqual([]);
});

describe("a machine", () => {
  const THINGS = ["basket", "invoice", "refund", "coupon", "address", "parcel"];
  const COLOURS: Record<string, string> = { a: "red", b: "blue", c: "green", d: "yellow", e: "purple" };
  /** Words that no two tests share on any two branches, and that say nothing of the cause. */
  const odd =
    (count: number, branch: string): Said =>
    (index) =>
      index < count ? `the ${COLOURS[branch]} ${THINGS[index]} row has no owner` : null;
  const sick = (branch: string) => upload(odd(6, branch), `branch=${branch}&host=ci-3`);
  const sound = async (count: number) => {
    for (let index = 0; index < count; index++) await upload(none, `branch=main&host=ci-${index % 2}`);
  };

  test("whose last runs are bad on several branches is ill: that is an incident, and so was what it has shown before", async () => {
    await sound(20);
    const first = await sick("a");
    expect(filledLists(first)).toEqual({ newFailures: 6 });
    expect(filledLists(await sick("b"))).toEqual({ newFailures: 6 });
    expect(filledLists(await sick("c"))).toEqual({ incidentFailures: 6 });
    const { causes, counts: now } = await own.get(`/executions/${first.executionId}/failures`);
    expect(now).toMatchObject({ newFailures: 0, incidentFailures: 6 });
    const reason = "Recent runs on this machine failed far more often than runs on other machines";
    expect(causes[0].failures[0]).toMatchObject({ blame: "incident", host: "ci-3", reason });
    // One failure more is not looked at for itself, and elsewhere the same is new.
    expect(filledLists(await upload(odd(1, "d"), "branch=d&host=ci-3"))).toEqual({ incidentFailures: 1 });
    expect(filledLists(await upload(odd(1, "e"), "branch=e&host=ci-1"))).toEqual({ newFailures: 1 });
  });

  test("is not blamed for what one branch breaks, nor where nobody says which it was", async () => {
    await sound(12);
    for (let push = 0; push < 3; push++) expect(filledLists(await sick("a"))).toEqual({ newFailures: 6 });
    for (const branch of ["b", "c"])
      expect(filledLists(await upload(odd(6, branch), `branch=${branch}`))).toEqual({ newFailures: 6 });
  });

  test("that is ill takes back what tests have shown on it", async () => {
    await sound(20);
    const commit = "c".repeat(40);
    const query = (branch: string, host: string) =>
      `branch=${branch}&commit=${commit}&execution_key=${branch}&host=${host}&complete=true`;
    const words: Said = (index) => (index > 37 ? `the ${THINGS[index - 38]} view has no title` : null);
    // Two tests fail on it and pass elsewhere, on one commit: that looks like flaky ones, and not enough at once to tell.
    await own.uploadReport(report(words), query("one", "ci-3"));
    await own.uploadReport(report(none), query("two", "ci-1"));
    const flaky = async () => (await own.get("/test-cases?health=flaky")).data.length;
    expect(await flaky()).toBe(2);
    for (const branch of ["a", "b"]) await sick(branch);
    expect(await flaky()).toBe(2);
    await sick("c");
    expect(await flaky()).toBe(0);
  });
});
