/** `assay bisect` with a server: a search on its runners, and what it knows of a test for a search on this machine. */

import { expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { advanceSearches } from "../../src/work/culprits.ts";
import { createAsking, type Project } from "../asking.ts";
import { start as startCommand, variablesOf } from "../commands.ts";
import { createHarness, until } from "../harness.ts";
import { createProbedRepository, startProbeRunner } from "../probing.ts";
import { isFull } from "../depth.ts";

const { ask, acme, addProject, database, url } = await createHarness();
const log = createLog("debug", () => {}, false);

/** Starts the command in a directory. */
function start(args: string[], project: Project, cwd?: string) {
  const command = startCommand(["bisect", ...args], { cwd, env: variablesOf(url, project) });
  let hasEnded = false;
  void command.ended.then(() => (hasEnded = true));
  return { ...command, hasEnded: () => hasEnded };
}

const BREAKS = 5;
const repository = await createProbedRepository(
  Array.from({ length: 8 }, (_, at) => ({ test: at >= BREAKS ? "echo too little; exit 1" : "exit 0" })),
);
const { commits } = repository as { commits: string[] };

/** Builds of the first and the last commit, as CI reports them. */
async function report(project: Project) {
  const asking = createAsking(ask, project);
  const build = async (commit: string, inner: string) => {
    const body = `<testsuite name="cart"><testcase classname="cart" name="adds" file="adds.sh">${inner}</testcase></testsuite>`;
    return (await asking.send(body, { task_slug: "unit", branch: "main", commit, complete: "true" })).body;
  };
  await build(commits[0]!, "");
  const { bugReports } = await build(commits.at(-1)!, `<failure message="too little"/>`);
  const [{ id }] = await asking.list("/test-cases");
  return { bug: bugReports[0].id as string, testCase: id as string };
}

test.skipIf(!isFull)(
  "runs the search on the runners of the server, and ends as a search on this machine",
  async () => {
    const project = await addProject(acme);
    const { bug, testCase } = await report(project);
    const runner = await startProbeRunner({ url, project, tasks: { unit: repository.task } });
    await until(
      async () => (await ask(`GET /projects/${project.project}/runners`, project)).body.data.length === 1,
      30,
    );
    const { ended, hasEnded } = start([`${url}/projects/${project.project}/tests/${testCase}`], project);
    await until(async () => {
      await advanceSearches(database, undefined, undefined, log);
      return hasEnded();
    }, 60);
    const { code, output, errors } = await ended;
    expect([code, output]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          `^${commits[BREAKS]!.slice(0, 10)} by Ada broke it: it failed there \\d of \\d times, on its parent ${commits[BREAKS - 1]!.slice(0, 10)} it passed \\d of \\d times\n  change ${BREAKS}\n  \\S+\n  adds.sh\n  number\n$`,
        ),
      ),
    ]);
    expect(errors).toMatch(/^Listing the commits after \w{10} up to \w{10}\n/);
    expect(errors).toMatch(/^Probe 1: (passed|failed): \w{10}$/m);
    expect(errors).toContain("Suspect");
    // The bug has been searched for: the same again, with its id and its probes as JSON.
    const again = start([bug, "--bad", commits.at(-1)!, "--good", "0000000", "--json"], project, repository.path);
    await until(async () => {
      await advanceSearches(database, undefined, undefined, log);
      return again.hasEnded();
    }, 60);
    const json = await again.ended;
    expect([json.code, JSON.parse(json.output)]).toMatchObject([
      4,
      { verdict: "undecided", reason: "no_commits", goodCommit: "0000000", badCommit: commits.at(-1) },
    ]);
    await runner.stop();
  },
  120_000,
);

test.skipIf(!isFull)(
  "says what a search on the server waits for",
  async () => {
    const project = await addProject(acme);
    const { bug } = await report(project);
    const body = { runner: "r", taskSlugs: ["unit"], probeSlugs: ["unit"], free: 0 };
    await ask(`POST /projects/${project.project}/leases`, { key: project.key, body });
    await database.pool`update runner set seen_at = now() - interval '10 minutes' where project_id = ${project.project}`;
    const { errors: said, ended } = start([bug], project);
    const waits = "The list of the commits waits for a runner: no runner has been online in the last 2 minutes";
    await until(async () => {
      await advanceSearches(database, undefined, undefined, log);
      return said().includes(waits);
    }, 30);
    await ask(`POST /projects/${project.project}/bug-reports/${bug}/culprit/cancel`, { key: project.key });
    const { errors } = await ended;
    expect(errors.split(waits)).toHaveLength(2);
  },
  60_000,
);

test("takes the range, the flake rate and the file of a test case for a search on this machine", async () => {
  const project = await addProject(acme);
  const { testCase } = await report(project);
  const { ended } = start([testCase, "--", "sh", "adds.sh"], project, repository.path);
  const { code, output, errors } = await ended;
  expect(errors).toStartWith(`Searching 7 commits after ${commits[0]!.slice(0, 10)}\n`);
  expect([code, output.split("\n")[0]]).toEqual([
    0,
    expect.stringContaining(`${commits[BREAKS]!.slice(0, 10)} by Ada broke it`),
  ]);
}, 60_000);

test("explains what is wrong with the case or the options", async () => {
  const project = await addProject(acme);
  const { bug, testCase } = await report(project);
  const nothing = "0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21";
  const fails = async (args: string[], more: Partial<Project> = {}) => {
    const { code, output, errors } = await start(args, { ...project, ...more }).ended;
    expect(output).toBe("");
    return [code, errors.split("\n")[0]];
  };
  expect(await fails([])).toEqual([2, 'The command is missing: pass it after "--"']);
  expect(await fails(["cart"])).toEqual([
    2,
    'Cannot read CASE: expected the id or the address of a test case or a bug report, got "cart". Pass a command after "--"',
  ]);
  expect(await fails([bug, "--match", "x"])).toEqual([
    2,
    "--match needs a command: the runners of the server run the test as their assay.yaml says",
  ]);
  expect(await fails([bug, "--good", "main"])).toEqual([
    2,
    'Cannot read --good: this directory is in no repository with the commit "main"',
  ]);
  expect(await fails([nothing])).toEqual([1, `The server has no test case or bug report ${nothing}`]);
  expect(await fails([testCase])).toEqual([
    1,
    expect.stringMatching(
      /^Cannot run the test case alone: no runner that was seen within the last hour has "checkout"/,
    ),
  ]);
  expect(await fails([nothing, "--", "true"])).toEqual([1, `The server has no test case ${nothing}`]);
  expect(await fails([bug], { key: "" })).toEqual([2, "Set ASSAY_KEY"]);
}, 60_000);
