/** What a gate forgives, and for how long: histories over HTTP, then verdict, gate and sentence. */

import { beforeEach, expect, test } from "bun:test";
import { type Asking, createAsking, filledLists } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const testcase = (said: string | null) =>
  said === null
    ? '<testcase classname="C" name="t"/>'
    : `<testcase classname="C" name="t"><failure message="${said}"/></testcase>`;
/** A report of one test; null: it passed. */
const send = (said: string | null, query: string, others = ""): Promise<any> =>
  own.uploadReport(`<testsuite name="S">${testcase(said)}${others}</testsuite>`, `complete=true&${query}`);
const GATE = "exit_code=1&gate=new";
const others = Array.from({ length: 39 }, (_, at) => `<testcase name="other ${at}"/>`).join("");

test("a test that failed twice by itself in forty results excuses a pull request that breaks it not once in twelve pushes", async () => {
  for (let build = 1; build <= 40; build++)
    await send(build === 10 || build === 25 ? "socket hang up" : null, `branch=main&commit=aa${build}0000`);
  const gates = [];
  for (let push = 1; push <= 12; push++) {
    const answer = await send("TypeError: total of undefined", `branch=f&pull_request=9&commit=bb${push}0000&${GATE}`);
    gates.push(answer.gate.pass);
  }
  expect(gates).not.toContain(true);
});

test("a failure and twelve passes at one commit excuse a pull request at most once", async () => {
  await send(null, "branch=main&commit=e000001");
  for (let build = 1; build <= 13; build++)
    await send(build === 1 ? "expected 3 to be 4" : null, "branch=main&commit=e000002");
  await own.get("/test-cases?limit=1");
  const passes = [];
  for (let push = 1; push <= 4; push++)
    passes.push((await send("expected 3 to be 4", `branch=f&pull_request=7&commit=f00000${push}&${GATE}`)).gate.pass);
  expect(passes.slice(1)).not.toContain(true);
});

test("a test that main broke for some builds and mended excuses nobody who breaks it again in the same words", async () => {
  for (const letter of "pppppppppppfffffp")
    await send(letter === "f" ? "expected 3 to be 4" : null, "branch=main", others);
  const { gate } = await send("expected 3 to be 4", `branch=f&pull_request=7&base_branch=main&${GATE}`, others);
  expect(gate).toMatchObject({ pass: false, forgiven: [] });
});

test("what main broke, mended and broke again excuses no pull request that was green at its base", async () => {
  for (const [build, letter] of [..."pppppppppppfffffppf"].entries())
    await send(letter === "f" ? "expected 3 to be 4" : null, `branch=main&commit=aa${build + 10}000`, others);
  const query = `branch=f&pull_request=7&base_branch=main&base_commit=aa27000&${GATE}`;
  const { gate, executionId } = await send("expected 3 to be 4", query, others);
  expect(gate.pass).toBe(false);
  const { causes } = await own.get(`/executions/${executionId}/failures`);
  expect(causes[0].failures[0].reason).toStartWith(
    "It passed in the baseline, and fails on the default branch since then",
  );
});

test("what a pull request broke in two builds, and main until it was reverted, excuses no other one that breaks it in the same words", async () => {
  const said = "expected 3 to be 4";
  for (let build = 1; build <= 30; build++) await send(null, `branch=main&commit=aa${build + 10}000`, others);
  for (const push of [1, 2]) await send(said, `branch=f&pull_request=7&commit=bb${push}0000`, others);
  await send(said, "branch=main&commit=aa50000", others);
  for (const build of [51, 52]) await send(null, `branch=main&commit=aa${build}000`, others);
  const { gate, executionId } = await send(said, `branch=g&pull_request=8&commit=cc10000&${GATE}`, others);
  expect(gate).toMatchObject({ pass: false, forgiven: [] });
  const { causes } = await own.get(`/executions/${executionId}/failures`);
  expect(causes[0].failures[0].reason).toStartWith(
    "It failed in 3 of 35 results of other builds, each time until it was fixed",
  );
  const { data } = await own.get("/test-cases?health=flaky");
  expect(data).toEqual([]);
});

test("a failure at a commit that has passed is the test's own: nothing changed", async () => {
  await send(null, "branch=main&commit=e000002&execution_key=1", others);
  const again = await send("expected 3 to be 4", "branch=main&commit=e000002&execution_key=2", others);
  expect(filledLists(again)).toEqual({ flakyFailures: 1 });
  const { causes } = await own.get(`/executions/${again.executionId}/failures`);
  const reason = expect.stringMatching(/^It passed in another build of the same commit: \d\d % not this change$/);
  expect(causes[0].failures[0]).toMatchObject({ blame: "flaky", reason });
});

test.each([
  ["undici", "TypeError", "fetch failed", "Caused by: Error: connect ECONNREFUSED 10.0.0.5:8470"],
  [
    "Java",
    "ResourceAccessException",
    "I/O error on GET request",
    "Caused by: java.net.ConnectException: Connection refused",
  ],
  ["Node", "Error", "request failed", "  [cause]: Error: getaddrinfo ENOTFOUND stock.internal"],
  ["Prisma", "PrismaClientInitializationError", "Can't reach database server at db:5432", ""],
])("nine tests that fail for a cause outside of the code are one incident (%s)", async (_, type, message, cause) => {
  const said = `<failure type="${type}" message="${message}">${type}: ${message}\n at src/stock.ts:3:20\n${cause}</failure>`;
  const report = (isAway: boolean) =>
    `<testsuite name="S">${Array.from({ length: 40 }, (_, at) => `<testcase name="asks ${at}" file="test/${at % 5}.test.ts">${isAway && at < 9 ? said : ""}</testcase>`).join("")}</testsuite>`;
  for (let build = 0; build < 3; build++) await own.uploadReport(report(false), "branch=main&complete=true");
  const struck = await own.uploadReport(report(true), `branch=f&pull_request=7&complete=true&${GATE}`);
  expect([filledLists(struck), struck.gate.pass]).toEqual([{ incidentFailures: 9 }, false]);
});
