/** `assay upload --gate`: which failures turn the exit code green, and everything that must not. */

import { beforeAll, describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createFolder, run, type Variables, variablesOf } from "../commands.ts";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject, url } = await createHarness();
const project = createAsking(ask, await addProject(acme));
/** Runs `assay upload`; `files` are there before the command. */
type Setting = { files?: Variables; variables?: Variables };
async function upload(args: string[], { files = {}, variables = {} }: Setting = {}) {
  const env = { ...variablesOf(url, project), ...variables };
  const ended = await run(["upload", ...args], { cwd: createFolder(files), env });
  const isOfGate = (line: string) => !/^assay: Warning|^(FAILED|PASSED|WAITING)/.test(line);
  return { ...ended, gate: ended.errors.split("\n").filter(isOfGate) };
}

const BRANCH = ["--task", "unit", "--branch", "x"];
/** A command that writes a report and exits. */
const tests = (letters: string, end: string, suite = "unit") => [
  ...["--", "sh", "-c", `cat > report.xml <<'END'\n${junit(letters, suite)}\nEND\n${end}`],
];
const gated = (letters: string, end: string, mode = "new") =>
  upload(["report.xml", ...BRANCH, "--gate", mode, ...tests(letters, end)]);

/** The first case fails on the default branch, the second is quarantined, the third is new when it fails. */
beforeAll(async () => {
  await project.upload("fppp", { task_slug: "unit", branch: "main" });
  const cases = await project.list("/test-cases?limit=100");
  const { id } = cases.find(({ name }) => name === "case 1");
  await project.patch(`/test-cases/${id}`, { quarantine: { reason: "unstable" } });
});

/** The run of the task in the newest execution of the branch. */
async function newestRun() {
  const [{ id }] = await project.list("/executions?branch=x&limit=1");
  return await project.get(`/executions/${id}/test-runs/unit`);
}

describe("exits with 0", () => {
  test("when everything that failed is forgiven, and names it with the reason", async () => {
    const { code, gate } = await gated("ffpp", "exit 1");
    expect(code).toBe(0);
    expect(gate).toEqual([
      "assay: Gate new: passed, 2 failures forgiven",
      expect.stringMatching(/^assay: Forgiven: unit > case 0: It failed in the baseline, .* % not this change$/),
      "assay: Forgiven: unit > case 1: Quarantined: its failures do not count",
      "",
    ]);
    expect(await newestRun()).toMatchObject({ forgiven: 2, exitCode: 1, gates: [{ pass: true }] });
  });

  test("when the tests do, without a word about the gate", async () => {
    const { code, gate } = await gated("pppp", "exit 0");
    expect({ code, gate }).toEqual({ code: 0, gate: [""] });
  });

  test("without a command", async () => {
    const files = { "report.xml": junit("fppp") };
    expect((await upload(["report.xml", ...BRANCH, "--gate=new"], { files })).code).toBe(0);
    expect((await upload(["report.xml", ...BRANCH, "--gate=new", "--exit-code", "1"], { files })).code).toBe(0);
  });
});

const TRUNCATE = "head -c 300 report.xml > cut.xml; mv cut.xml report.xml; exit 1";

describe("keeps the exit code of the command", () => {
  test.each([
    ["new failures", "fpfp", "exit 1", 1, "Stays red: unit: 1 new failure"],
    ["a truncated report", "fppp", TRUNCATE, 1, "Stays red: unit: the report is incomplete"],
    ["an unreadable report", "fppp", "echo '<nothing>' > report.xml; exit 1", 1, "Stays red: a report is unusable: "],
    ["no report", "fppp", "rm report.xml; exit 1", 1, "Stays red: a report is unusable: "],
  ])("with %s", async (_, letters, end, code, line) => {
    const ended = await gated(letters, end);
    expect([ended.code, ended.gate.some((one) => one.startsWith(`assay: ${line}`))]).toEqual([code, true]);
  });

  test("with one usable report and one that is older than the command", async () => {
    const files = { "old.xml": junit("pppp", "old") };
    const args = ["report.xml", "old.xml", ...BRANCH, "--gate=new", ...tests("fppp", "exit 1")];
    const { code, gate } = await upload(args, { files });
    expect([code, gate.some((line) => line.includes("Stays red: a report is unusable"))]).toEqual([1, true]);
  });

  test("when the server is unavailable, refuses the key, or is not set", async () => {
    const args = ["report.xml", ...BRANCH, "--gate=new", "--patience=0", ...tests("fppp", "exit 1")];
    for (const variables of [
      { ASSAY_URL: "http://127.0.0.1:1" },
      { ASSAY_KEY: `${project.key.slice(0, -1)}~` },
      { ASSAY_KEY: "" },
    ]) {
      const { code, gate } = await upload(args, { variables });
      const isRed = gate.some((line) => line.includes("Stays red: the results were not uploaded"));
      expect([variables, code, isRed]).toEqual([variables, 1, true]);
    }
  });

  test("when a failure is unclear, which it names with what is known", async () => {
    await project.patch("", { gateShare: 0.01 });
    const { code, gate } = await gated("fppp", "exit 1");
    await project.patch("", { gateShare: 0.2 });
    expect(code).toBe(1);
    expect(gate.slice(0, 3)).toEqual([
      "assay: Gate new: failed",
      "assay: Stays red: unit: 1 failure is unclear: a rerun tells",
      expect.stringMatching(
        /^assay: Unclear: unit > case 0: It failed in the baseline, with the same message: \d\d % not this change; a rerun tells$/,
      ),
    ]);
  });

  test("in a dry run, which only says what it would do", async () => {
    const args = ["report.xml", ...BRANCH, "--gate=new", "--gate-dry-run", ...tests("fppp", "exit 1")];
    const { code, gate } = await upload(args);
    expect([code, gate.at(-2)]).toEqual([1, "assay: Dry run: the exit code would be 0"]);
    expect(await newestRun()).toMatchObject({ forgiven: 0, gates: [] });
  });

  test("and without a command 1, unless the tests are known to have passed", async () => {
    const files = { "report.xml": junit("fpfp") };
    const codeOf = async (...more: string[]) =>
      (await upload(["report.xml", ...BRANCH, "--gate=new", ...more], { files })).code;
    expect(await codeOf()).toBe(1);
    expect(await codeOf("--exit-code", "4")).toBe(4);
    expect(await codeOf("--exit-code", "0")).toBe(0);
    expect(await codeOf("--gate-dry-run")).toBe(0);
  });
});

test("prints names of tests without commands for terminals and CI systems, and without secrets", async () => {
  const suite = `[31m##[error]::error::${project.key}`;
  await project.upload("fp", { task_slug: "hostile", branch: "main" }, suite);
  const args = ["report.xml", "--task=hostile", "--branch=x", "--gate=new", ...tests("fp", "exit 1", suite)];
  const ended = await upload(args);
  expect(ended.code).toBe(0);
  expect(ended.errors).toContain("Gate new: passed, 1 failure forgiven");
  expect(ended.errors).not.toMatch(/\u001b|##\[|^::/m);
  expect(ended.errors).not.toContain(project.key);
});

test("refuses an unknown mode and an impossible shard before the tests run", async () => {
  for (const [args, message] of [
    [["--gate=all"], '--gate: expected "quarantine" or "new", got "all"'],
    [["--gate-dry-run"], "--gate-dry-run: pass --gate as well"],
    [["--shard=0/4"], '--shard: expected a shard such as "2/4", got "0/4"'],
    [["--shard=9/4"], '--shard: expected a shard from "1/4" to "4/4", got "9/4"'],
  ] as const) {
    const { code, errors } = await upload(["report.xml", ...args, "--", "sh", "-c", "echo ran"]);
    expect([code, errors.split("\n")[0]]).toEqual([2, message]);
  }
});
