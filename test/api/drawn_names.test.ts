import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

/** A test for each name; what begins with an exclamation mark fails. */
const report = (names: readonly string[]) => {
  const cases = names.map((name) =>
    name.startsWith("!")
      ? `<testcase classname="c" name="${name.slice(1)}" file="a.py"><failure message="wrong total"/></testcase>`
      : `<testcase classname="c" name="${name}" file="a.py"/>`,
  );
  return `<testsuite name="s">${cases.join("")}</testsuite>`;
};
const upload = (names: readonly string[], query = "branch=main") => own.uploadReport(report(names), query);
const catalogue = async () => {
  const body = await own.get("/test-cases?limit=100");
  return body.data.map(({ name, runs }: any) => [name, runs]).sort();
};
const aliases = async () =>
  (await database.pool`select count(*)::int as count from test_case_alias where project_id = ${own.project}`)[0]!.count;

describe("a test whose name holds a drawn value", () => {
  test("is one test under all its names, and is shown without the value", async () => {
    for (const seed of [48213, 991, 77120, 5, 60021]) await upload([`total[seed=${seed}]`, "plain"]);
    expect(await catalogue()).toEqual([
      ["plain", 5],
      ["total[seed=<n>]", 5],
    ]);
  });

  test("leaves nothing behind in further runs", async () => {
    for (const seed of [1, 2, 3]) await upload([`total[seed=${seed}]`]);
    const before = await aliases();
    for (const seed of [4, 5, 6, 7]) await upload([`total[seed=${seed}]`]);
    expect(await aliases()).toBe(before);
  });

  test("fails for the first time once: then it is still failing, and the bug is one", async () => {
    await upload(["total[seed=1]"]);
    expect(await upload(["!total[seed=2]"])).toMatchObject({ newFailures: [{ name: "total[seed=<n>]" }] });
    expect(await upload(["!total[seed=3]"])).toMatchObject({
      newFailures: [],
      stillFailing: [{ name: "total[seed=<n>]" }],
    });
    const body = await own.get("/bug-reports");
    expect(body.data).toMatchObject([{ occurrences: 2 }]);
  });

  test("is reached by a retry that draws anew", async () => {
    await upload(["total[seed=1]", "plain"]);
    await upload(["!total[seed=2]", "plain"], "branch=main&execution_key=k");
    const retried = await upload(["total[seed=3]"], "branch=main&execution_key=k");
    expect(retried).toMatchObject({ verdict: "passed", total: 2, flaky: 1 });
  });

  test("stays several tests where a report has several of them, by their order", async () => {
    await upload(["total[seed=11]", "total[seed=12]"]);
    await upload(["total[seed=13]", "!total[seed=14]"]);
    await upload(["total[seed=15]", "!total[seed=16]"]);
    expect(await catalogue()).toEqual([
      ["total[seed=<n>]", 3],
      ["total[seed=<n>]", 3],
    ]);
    const body = await own.get("/test-cases?limit=100");
    expect(body.data.map(({ failures }: any) => failures).sort()).toEqual([0, 2]);
  });
});

describe("a fixed set of values", () => {
  const days = ["holiday[2024-12-25]", "holiday[2025-01-01]"];

  test("is as many tests for ever", async () => {
    for (let run = 0; run < 3; run++) await upload(days);
    expect(await catalogue()).toEqual(days.map((day) => [day, 3]));
  });

  test("that grows has one test more", async () => {
    await upload(days);
    await upload([...days, "holiday[2025-12-25]"]);
    await upload([...days, "holiday[2025-12-25]"]);
    expect(await catalogue()).toEqual([...days.map((day) => [day, 3]), ["holiday[2025-12-25]", 2]]);
  });
});

test("shards do not take each other's tests for their own", async () => {
  for (const run of [1, 2]) {
    const query = `branch=main&execution_key=${run}`;
    await upload([`total[seed=${run}1]`], `${query}&shard=1/2`);
    await upload([`total[seed=${run}2]`], `${query}&shard=2/2`);
  }
  const body = await own.get("/executions?limit=1");
  expect(body.data[0].tasks[0]).toMatchObject({ total: 2 });
});

test("two uploads at once are no two tests", async () => {
  await upload(["total[seed=1]"]);
  await upload(["total[seed=2]"]);
  await Promise.all(Array.from({ length: 8 }, (_, index) => upload([`total[seed=9${index}]`], `branch=b${index}`)));
  expect(await catalogue()).toEqual([["total[seed=<n>]", 10]]);
});
