/** `assay upload` around a command: its streams, signals and exit code, and the report that it leaves. */

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { hashShard } from "../../src/rules/plan.ts";
import { createAsking } from "../asking.ts";
import { createFolder } from "../commands.ts";
import { createHarness, junit, until } from "../harness.ts";
import { createReceiver } from "../receiver.ts";
import { createUploads, SOON, script, writes } from "../uploads.ts";

const harness = await createHarness();
const { acme, addProject, ask } = harness;
const { start, upload, list, onlyRun, project } = await createUploads(harness);

describe("around a command", () => {
  test.each([
    ["passes", "exit 0", 0],
    ["fails", "exit 3", 3],
  ])("that %s: its exit code is ours, and goes along", async (_, end, code) => {
    const project = await addProject(acme);
    const ended = await upload(project, ["report.xml", ...script(`${writes("pp")}; ${end}`)]);
    expect([ended.code, ended.output]).toEqual([code, ""]);
    const failed = code === 0 ? 0 : 1;
    expect(ended.errors).toStartWith(
      code === 0 ? "PASSED unit: 2 passed" : `FAILED unit: test runner exited with code ${code}; 2 passed, 1 failed`,
    );
    expect(await onlyRun(project)).toMatchObject({ exitCode: code, passed: 2, failed });
  });

  test.each([
    ["KILL", 137],
    ["TERM", 143],
  ])("that SIG%s ends: the signal is named, and no exit code", async (signal, code) => {
    const project = await addProject(acme);
    const ended = await upload(project, ["report.xml", ...script(`${writes("pf")}; kill -${signal} $$`)]);
    const reason = `the command was ended by SIG${signal}`;
    const line = `\nFAILED unit: ${reason}; 1 passed, 2 failed`;
    expect([ended.code, ended.errors]).toEqual([code, expect.stringContaining(line)]);
    expect(await onlyRun(project)).toMatchObject({ exitCode: null, passed: 1, failed: 2, reason });
  });

  test("that succeeds and writes one of two named reports is no pass, and one of a glob is", async () => {
    const project = await addProject(acme);
    const named = await upload(project, ["report.xml", "more.xml", ...script(writes("pp"))]);
    const line = `FAILED unit: no report: File not found: "more.xml"; 2 passed, 1 failed`;
    expect([named.code, named.errors]).toEqual([0, expect.stringContaining(line)]);
    const glob = await upload(await addProject(acme), ["report.xml", "more/*.xml", ...script(writes("pp"))]);
    expect([glob.code, glob.errors]).toEqual([0, expect.stringContaining("PASSED unit: 2 passed")]);
  });

  test.each([
    ["no report", "true"],
    ["an empty report", "echo '<testsuites/>' > r.xml"],
  ])("of a shard to which the split gave no files may leave %s, and every other shard does not", async (_, command) => {
    const project = await addProject(acme);
    const key = "shards without files";
    const { post } = createAsking(ask, project);
    const execution = await post("/executions", { key });
    const file = Array.from({ length: 9 }, (_, at) => `f${at}.ts`).find((file) => hashShard(file, 2) === 1)!;
    await post(`/executions/${execution.id}/test-runs/unit/plan?shard=1/2`, { files: [file] });
    const shard = (index: number) =>
      upload(project, [
        "r.xml",
        "--strict",
        "--task",
        "unit",
        "--execution-key",
        key,
        "--shard",
        `${index}/2`,
        ...script(command),
      ]);
    const [one, two] = [await shard(1), await shard(2)];
    expect([one.code, one.errors]).toEqual([
      1,
      expect.stringContaining("Without a report, this is recorded as a failure"),
    ]);
    expect([two.code, two.errors]).toEqual([
      0,
      expect.stringContaining("Warning: The split gave shard 2 of 2 no files"),
    ]);
    expect(await onlyRun(project)).toMatchObject({ verdict: "failed", missingShards: [], failed: 1, total: 1 });
  });

  test("of timeout that reaches its limit: the limit is named", async () => {
    const project = await addProject(acme);
    const args = ["r.xml", "--task", "unit", "--", "timeout", "-k", "1", "0.1", "sleep", "5"];
    const ended = await upload(project, args);
    const reason = 'test runner exited with code 124 (Timed out after 0.1 s; No report: File not found: "r.xml")';
    expect([ended.code, ended.errors]).toEqual([124, expect.stringContaining(`\nFAILED unit: ${reason}; 0 passed`)]);
    expect(ended.errors).not.toContain("empty");
  });

  test("that is not there, or cannot be executed, as a shell would say", async () => {
    const folder = createFolder({ plain: "x", "no-shebang": "exit 5\n" });
    chmodSync(join(folder, "no-shebang"), 0o755);
    mkdirSync(join(folder, "folder"));
    const project = await addProject(acme);
    const missing = await upload(project, ["r.xml", "--", "no-such-command"], { folder });
    const problem = 'assay: Cannot run "no-such-command": ';
    expect([missing.code, missing.errors]).toEqual([127, expect.stringContaining(problem)]);
    expect(await onlyRun(project)).toMatchObject({ exitCode: 127, failed: 1, total: 1 });
    for (const [command, code] of [
      ["./plain", 126],
      ["./folder", 126],
      ["./no-shebang", 5],
    ] as const)
      expect([command, (await upload(project, ["r.xml", "--", command], { folder })).code]).toEqual([command, code]);
  });

  test("all that it reads and writes is its own", async () => {
    const real = await addProject(acme);
    const input = Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 256)).toString("latin1");
    const text = `${writes("p")}; cat; echo "::error::mine" >&2; printf 'no line break'`;
    const folder = createFolder();
    const { code, output, errors } = await upload(real, ["report.xml", ...script(text)], { folder, input });
    expect([code, output === `${input}no line break`]).toEqual([0, true]);
    expect(errors).toMatch(/^::error::mine\nPASSED unit: 1 passed, 0 failed, 0 skipped, attempt 1 \S+\n$/);
  });

  test("is run even where nothing can be uploaded", async () => {
    const folder = createFolder();
    const command = script(`${writes("p")}; echo done; exit $CODE`);
    const begin = (CODE: string, ...args: string[]) =>
      upload(project, [...SOON, "report.xml", ...args, ...command], {
        ...{ folder, variables: { ASSAY_URL: "http://127.0.0.1:1", CODE } },
      });
    const ends = await Promise.all([begin("0"), begin("0", "--strict"), begin("7", "--strict")]);
    expect(ends.map(({ code, output }) => [code, output])).toEqual([
      [0, "done\n"],
      [3, "done\n"],
      [7, "done\n"],
    ]);
    for (const { errors } of ends) expect(errors).toContain("Results were not uploaded: Cannot reach");
    const fork = await upload(project, ["report.xml", ...command], { folder, variables: { ASSAY_KEY: "", CODE: "4" } });
    expect([fork.code, fork.output, fork.errors]).toEqual([4, "done\n", expect.stringContaining("Set ASSAY_KEY")]);
  });

  describe("that leaves no report of its own", () => {
    /** Of an earlier build. */
    const old = (name: string) => {
      const folder = createFolder({ [name]: junit("ppp") });
      utimesSync(join(folder, name), new Date(Date.now() - 60_000), new Date(Date.now() - 60_000));
      return folder;
    };

    test.each([
      ["fails", "exit 5", 5],
      ["claims success", "exit 0", 0],
    ])("and %s: the stale one is refused, and a failure recorded", async (_, text, code) => {
      const project = await addProject(acme);
      const ended = await upload(project, ["report.xml", ...script(text)], { folder: old("report.xml") });
      expect(ended.code).toBe(code);
      expect(ended.errors).toMatch(/^assay: "report.xml" is stale: .*\nassay: Without a report, this is recorded/);
      expect(await onlyRun(project)).toMatchObject({ exitCode: code, passed: 0, failed: 1, verdict: "failed" });
    });

    test("beside one that is: that is taken alone", async () => {
      const project = await addProject(acme);
      const ended = await upload(project, ["*.xml", ...script(writes("p", "new.xml"))], { folder: old("old.xml") });
      expect([ended.code, ended.errors]).toEqual([0, expect.stringContaining('"old.xml" is stale')]);
      expect(await onlyRun(project)).toMatchObject({ passed: 1, total: 1 });
    });

    test.each([
      ["an empty one", "", []],
      ["one that is no report", "hello\n", []],
      [
        "one that is no report, after a command that failed",
        "hello\n",
        script("cp -p . . 2>/dev/null; touch *.xml; exit 3"),
      ],
    ])("beside %s: the results of the others count, with a failure for it", async (_, text, command) => {
      const project = await addProject(acme);
      const folder = createFolder({ "bad.xml": text, "good.xml": junit("pf") });
      const ended = await upload(project, ["bad.xml", "good.xml", "--task", "unit", ...command], { folder });
      expect([ended.code, ended.errors]).toEqual([command.length === 0 ? 0 : 3, expect.stringContaining('"bad.xml"')]);
      const run = await onlyRun(project);
      expect(run).toMatchObject({ passed: 1, failed: 2, verdict: "failed" });
      const cases = await createAsking(ask, project).list(`/executions/${run.executionId}/test-runs/unit/cases`);
      expect(cases.map(({ message }) => message ?? "").join()).toContain('Cannot read "bad.xml"');
    });

    test.each([
      ["has no test cases", "<testsuite/>", "holds no test case:"],
      ["is broken", "<html/>", 'Cannot read "r.xml"'],
    ])("but one that %s, and claims success: that is no success", async (_, text, why) => {
      const project = await addProject(acme);
      const ended = await upload(project, ["r.xml", "--task", "unit", ...script(`echo '${text}' > r.xml`)]);
      expect([ended.code, ended.output]).toEqual([0, ""]);
      expect(ended.errors).toContain(why);
      expect(ended.errors).toContain("this is recorded as a failure\nFAILED unit: no report: ");
      expect(await onlyRun(project)).toMatchObject({ exitCode: 0, failed: 1, total: 1, verdict: "failed" });
    });

    test("where that is right: --allow-empty", async () => {
      const other = await addProject(acme);
      const empty = script("echo '<testsuite/>' > r.xml");
      expect(await upload(other, ["r.xml", "--allow-empty", ...empty])).toMatchObject({ code: 0 });
      expect(await onlyRun(other)).toMatchObject({ exitCode: 0, total: 0, verdict: "passed" });
      const project = await addProject(acme);
      const { code, errors } = await upload(project, ["r.xml", "--allow-empty", "--strict", ...script("exit 0")]);
      expect([code, errors]).toEqual([0, expect.stringContaining("PASSED default: 0 passed")]);
      expect(await onlyRun(project)).toMatchObject({ total: 0, verdict: "passed" });
    });

    test("or a step before has told how the tests ended", async () => {
      const project = await addProject(acme);
      const { code } = await upload(project, ["r.xml", "--exit-code", "101"]);
      expect([code, await onlyRun(project)]).toEqual([0, expect.objectContaining({ exitCode: 101, failed: 1 })]);
    });
  });

  describe("a signal", () => {
    test("reaches the command, which ends as it likes, and a cancelled build has no result", async () => {
      const project = await addProject(acme);
      const folder = createFolder({ source: junit("p") });
      const text = `trap "cp source report.xml; echo caught; exit 42" TERM; : > ready; for i in $(seq 500); do sleep 0.02; done`;
      const { signal, ended } = start(project, ["report.xml", ...script(text)], { folder });
      await until(() => existsSync(join(folder, "ready")));
      signal("SIGTERM");
      const errors = "assay: Results were not uploaded: Interrupted\n";
      expect(await ended).toEqual({ code: 42, output: "caught\n", errors });
      expect(await list(project)).toEqual([]);
    });

    test("during the upload: it is left, and the exit code stays the command's", async () => {
      const hanging = createReceiver("hang");
      const variables = { ASSAY_URL: hanging.url };
      const { signal, ended } = start(project, ["report.xml", ...script(`${writes("p")}; exit 6`)], { variables });
      await until(() => hanging.requests.length > 0);
      signal("SIGTERM");
      expect(await ended).toMatchObject({ code: 6, errors: "assay: Results were not uploaded: Interrupted\n" });
    });
  });
});
