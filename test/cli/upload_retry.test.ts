/** `assay upload --retry`: the tests of a command that failed run again, and what the run, the job and the history say of it. */

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAsking } from "../asking.ts";
import { createFolder } from "../commands.ts";
import { createHarness } from "../harness.ts";
import { createUploads, SOON } from "../uploads.ts";

const harness = await createHarness();
const { acme, addProject, ask } = harness;
const { upload, onlyRun } = await createUploads(harness);

/**
 * A test tool: the file "plan" has a line for each test, "name:results", a letter for each time that it runs; the last one is repeated.
 * Arguments are the names of the tests to run. It exits with 1 if one failed, otherwise with what the file "code" says.
 */
const TOOL = `#!/bin/sh
cases=""; code=$(cat code 2>/dev/null || echo 0)
for line in $(cat plan); do
  name=\${line%%:*}; results=\${line#*:}
  if [ $# -gt 0 ]; then case " $* " in *" $name "*) ;; *) continue ;; esac; fi
  n=$(($(cat "runs-$name" 2>/dev/null || echo 0) + 1)); echo $n > "runs-$name"
  result=$(printf %s "$results" | cut -c$n); [ -n "$result" ] || result=\${results#"\${results%?}"}
  if [ "$result" = p ]; then cases="$cases<testcase name=\\"$name\\"/>"; else
    code=1; cases="$cases<testcase name=\\"$name\\"><failure message=\\"no $n\\"/></testcase>"; fi
done
[ $# -gt 0 ] && [ -e silent ] || echo "<testsuite name=\\"s\\">$cases</testsuite>" > r.xml
exit $code
`;

type Files = { code?: string; silent?: string };

/** A project whose default branch has run the tests named in `known`, and a folder with the tool. */
async function prepare(plan: string[], { known = plan.map((line) => line.split(":")[0]!), files = {} as Files } = {}) {
  const project = await addProject(acme);
  const passed = known.map((name) => `<testcase name="${name}"/>`).join("");
  const own = createAsking(ask, project);
  if (passed !== "") await own.uploadReport(`<testsuite name="s">${passed}</testsuite>`, "task_slug=unit&branch=main");
  const folder = createFolder({ "tool.sh": TOOL, plan: plan.join("\n"), ...files });
  const retry = async (...args: string[]) => {
    const command = [
      "r.xml",
      "--task",
      "unit",
      "--branch",
      "topic",
      "--rerun",
      "sh tool.sh {names}",
      ...args,
      "--",
      "sh",
      "tool.sh",
    ];
    const { code, errors } = await upload(project, command, { folder });
    return { code, lines: errors.trimEnd().split("\n") };
  };
  const run = async () => {
    const [{ id }] = await own.list("/executions?branch=topic");
    return await own.get(`/executions/${id}/test-runs/unit`);
  };
  /** How often the tool has run a test. */
  const timesOf = (name: string) => Number(readFileSync(join(folder, `runs-${name}`), "utf8"));
  return { project, own, folder, retry, run, timesOf };
}

describe("a failure that passes when it runs again", () => {
  test("is flaky: the job and the run are green, no bug is opened, and the history has one result", async () => {
    const { retry, run, own, timesOf } = await prepare(["a:p", "b:fp"]);
    const { code, lines } = await retry("--retry", "2");
    expect([code, lines]).toEqual([
      0,
      [
        "assay: Retry 1 of 2: The test that failed runs again",
        "assay: Retry 1: 1 of 1 passed",
        expect.stringMatching(/^PASSED unit: 2 passed, 0 failed, 0 skipped, 1 flaky, attempt 1 /),
      ],
    ]);
    expect(await run()).toMatchObject({ verdict: "passed", total: 2, flaky: 1, exitCode: 0, attempt: 1 });
    expect(await own.list("/bug-reports")).toEqual([]);
    expect([timesOf("a"), timesOf("b")]).toEqual([1, 2]);
    const [{ id, flakeFailures }] = await own.list("/test-cases?q=b");
    expect(flakeFailures).toBe(1);
    const results = await own.list(`/test-cases/${id}/results?branch=topic`);
    expect(results).toMatchObject([{ status: "passed", flaky: true, message: "no 1" }]);
  });

  test("does so beside one that does not: the job keeps the first exit code, and the run is red by that one alone", async () => {
    const { retry, run, timesOf } = await prepare(["a:p", "b:fp", "c:f"]);
    const { code, lines } = await retry("--retry", "2");
    expect(code).toBe(1);
    expect(lines.slice(0, -1)).toEqual([
      "assay: Retry 1 of 2: The 2 tests that failed run again",
      "assay: Retry 1: 1 of 2 passed",
      "assay: Retry 2 of 2: The test that failed runs again",
      "assay: Retry 2: 0 of 1 passed",
    ]);
    expect(await run()).toMatchObject({ verdict: "failed", passed: 2, failed: 1, flaky: 1, exitCode: 1 });
    expect([timesOf("a"), timesOf("b"), timesOf("c")]).toEqual([1, 2, 3]);
  });

  test("is no pass of the job if the command then fails for another reason", async () => {
    const { retry, run } = await prepare(["a:fp"], { files: { code: "3" } });
    const { code, lines } = await retry("--retry", "1");
    expect([code, lines[2]]).toEqual([
      3,
      "assay: All tests have passed in the end, but the last command exited with 3",
    ]);
    expect(await run()).toMatchObject({ verdict: "failed", exitCode: 3 });
  });

  test("keeps its evidence, although the tool deletes it before it runs again", async () => {
    const { retry, own, folder } = await prepare(["a:fp"]);
    writeFileSync(
      join(folder, "tool.sh"),
      `rm -rf shots; case="<testcase name='a'/>"; code=0
if [ $# -eq 0 ]; then mkdir shots; echo pixels > shots/a.txt; code=1
case="<testcase name='a'><failure/><system-out>[[ATTACHMENT|shots/a.txt]]</system-out></testcase>"; fi
echo "<testsuite name='s'>$case</testsuite>" > r.xml; exit $code`,
    );
    const { code, lines } = await retry("--retry", "1");
    expect([code, lines.at(-1)]).toEqual([0, expect.stringContaining("1 attachment")]);
    const [{ id }] = await own.list("/executions?branch=topic");
    const files = await own.list(`/executions/${id}/test-runs/unit/attachments`);
    expect(files).toMatchObject([{ name: "a.txt", bytes: 7 }]);
  });

  test("decides the gate", async () => {
    const { retry } = await prepare(["a:p", "b:fp"]);
    const { code, lines } = await retry("--retry", "1", "--gate", "new");
    expect([code, lines.join("\n")]).toEqual([0, expect.stringContaining("PASSED unit")]);
  });
});

describe("nothing runs again", () => {
  const NEVER = ["--retry", "2"];
  const red = async (plan: string[], args: string[], options?: Parameters<typeof prepare>[1]) => {
    const { retry, run, timesOf } = await prepare(plan, options);
    const { code, lines } = await retry(...args);
    expect(code).not.toBe(0);
    expect(await run()).toMatchObject({ verdict: "failed", flaky: 0 });
    return { first: lines[0]!, timesOf };
  };

  test("that the default branch has never run: a new test must be stable", async () => {
    const { first, timesOf } = await red(["a:p", "fresh:fp"], NEVER, { known: ["a"] });
    const why = "Not run again, because the default branch has never run";
    expect([first, timesOf("fresh")]).toEqual([`assay: ${why} "s > fresh": a new test must be stable`, 1]);
  });

  test("if more tests failed than may, or the time is over", async () => {
    const plan = ["a:fp", "b:fp"];
    const { first, timesOf } = await red(plan, [...NEVER, "--retry-max", "1"]);
    expect([first, timesOf("a")]).toEqual(["assay: Not run again: 2 tests failed, more than 1 (--retry-max)", 1]);
    const late = await red(plan, [...NEVER, "--retry-budget", "0s"]);
    expect(late.first).toBe("assay: Not run again: the time of --retry-budget is over");
  });

  test("where no test failed: the exit code has another reason", async () => {
    expect((await red(["a:p"], NEVER, { files: { code: "3" } })).first).toStartWith("FAILED unit: test runner exited");
  });

  test("and a retry without a report changes nothing", async () => {
    const { retry, run } = await prepare(["a:fp"], { files: { silent: "yes" } });
    const { code, lines } = await retry(...NEVER);
    expect([code, lines[1]]).toEqual([1, "assay: Retry 1 has written no report: it changes nothing"]);
    expect(await run()).toMatchObject({ verdict: "failed", failed: 1, flaky: 0, exitCode: 1 });
  });

  test("while the server does not say which tests are new", async () => {
    const { project, folder } = await prepare(["a:fp"]);
    const variables = { ASSAY_URL: "http://127.0.0.1:1" };
    const args = ["r.xml", ...SOON, "--retry", "1", "--rerun", "sh tool.sh {names}", "--", "sh", "tool.sh"];
    const { code, errors } = await upload(project, args, { folder, variables });
    expect([code, errors]).toEqual([1, expect.stringContaining("because it is unknown which tests are new: Cannot")]);
    expect(existsSync(join(folder, "runs-a"))).toBe(true);
  });

  test("of a command whose tool is not known", async () => {
    const { project, folder } = await prepare(["a:fp"], { known: [] });
    const { code, errors } = await upload(project, ["r.xml", "--retry", "1", "--", "sh", "tool.sh"], { folder });
    expect([code, errors]).toEqual([1, expect.stringContaining("--rerun can tell")]);
    expect((await onlyRun(project)).failed).toBe(1);
  });
});

test.each([
  [["--retry", "9", "--", "true"], '--retry: expected a number from 0 to 5, got "9"'],
  [["--retry", "1"], "--retry needs the command of the tests after --"],
  [["--retry", "1", "--rerun", "foo", "--", "true"], "--rerun: expected one of jest,"],
  [["--retry", "1", "--retry-budget", "5", "--", "true"], '--retry-budget: expected a time such as "90s" or "5m"'],
  [["--new-tests", "2"], "--new-tests needs the command of the tests after --"],
  [["--strict-new", "--", "true"], "--strict-new needs --new-tests"],
])("%p is an error of the command line", async (args, message) => {
  const { project } = await prepare(["a:p"]);
  const { code, errors } = await upload(project, ["r.xml", ...args]);
  expect([code, errors]).toEqual([2, expect.stringContaining(message)]);
});

describe("a new test", () => {
  const runs = (...args: string[]) => ["--new-tests", "4", ...args];

  test("that passes each time is no news; those that the default branch knows run once", async () => {
    const { retry, run, timesOf } = await prepare(["a:p", "fresh:p"], { known: ["a"] });
    const { code, lines } = await retry(...runs());
    expect([code, lines.slice(0, 2)]).toEqual([
      0,
      ["assay: 1 test is new, and runs up to 4 times", "assay: The new test has passed 4 times"],
    ]);
    expect(await run()).toMatchObject({ verdict: "passed", total: 2, flaky: 0, attempt: 1 });
    expect([timesOf("a"), timesOf("fresh")]).toEqual([1, 5]);
  });

  test("that fails in one of the runs is flaky from its first day, and fails the job if it is to", async () => {
    const plan = ["a:p", "fresh:ppfp"];
    const lax = await prepare(plan, { known: ["a"] });
    const { code, lines } = await lax.retry(...runs());
    const said = 'assay: The new test "s > fresh" is unstable: it failed in 1 of 4 runs';
    expect([code, lines[1]]).toEqual([0, said]);
    expect(await lax.run()).toMatchObject({ verdict: "passed", failed: 0, flaky: 1 });
    const strict = await prepare(plan, { known: ["a"] });
    const ended = await strict.retry(...runs("--strict-new"), "--gate", "new");
    expect([ended.code, ended.lines.join("\n")]).toEqual([1, expect.stringContaining("Gate new: failed")]);
    const red = await strict.run();
    expect(red).toMatchObject({ verdict: "failed", failed: 1, flaky: 1 });
    expect(red.reason).toContain('The new test "s > fresh" is unstable');
  });

  test("that fails already, or none, is left as it is", async () => {
    const failing = await prepare(["a:p", "fresh:f"], { known: ["a"] });
    expect((await failing.retry(...runs())).code).toBe(1);
    expect(failing.timesOf("fresh")).toBe(1);
    const none = await prepare(["a:p"]);
    expect((await none.retry(...runs())).lines).toEqual([expect.stringMatching(/^PASSED unit: 1 passed/)]);
  });

  test("does not run again when the time is over", async () => {
    const { retry, timesOf } = await prepare(["fresh:p"], { known: ["a"] });
    const { code, lines } = await retry(...runs("--new-tests-budget", "0s"));
    expect([code, lines[0]]).toEqual([0, "assay: 1 test is new, and runs up to 4 times"]);
    expect(timesOf("fresh")).toBeLessThan(3);
  });
});
