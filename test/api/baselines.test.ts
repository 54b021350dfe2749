/** What a build is compared with: histories over HTTP, and the lists that their last build's failures are in. */

import { beforeEach, expect, test } from "bun:test";
import { type Asking, createAsking, filledLists } from "../asking.ts";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

/** A letter per case ("-": not in the report), branch@commit#pull>target^base and ?parameters. Numbers stand for commits. */
const BUILD = /^([a-z-]+) ([^@#^?]+)(?:@(\d))?(?:#(\d)>([^^?]+))?(?:\^(\d))?(?:\?(.*))?$/;

const hash = (commit: string | undefined) => commit && `aaaaaa${commit}`;

/** Uploads builds one after the other, and returns the answer to the last one. */
async function play(builds: string): Promise<any> {
  let last: unknown;
  for (const build of builds.split(", ")) {
    const [, letters, branch, commit, pull, target, base, more = "complete=true"] = BUILD.exec(build)!;
    const fields = { branch, commit: hash(commit), pull_request: pull, base_branch: target, base_commit: hash(base) };
    const query = Object.entries(fields).flatMap(([name, value]) => (value ? `${name}=${value}` : []));
    last = await own.upload(letters!, [...query, more].join("&"));
  }
  return last;
}

const [STILL, NEW] = [{ stillFailing: 1 }, { newFailures: 1 }];
/** A failure of the test itself, or nobody's. */
const OWN = { flakyFailures: 1 };
const BOTH = { ...STILL, ...NEW };
const SHARD = "?shard=1/2&execution_key=s&complete=true";

test.each<[name: string, builds: string, lists: Record<string, number>]>([
  ["only the default branch fails", "f main, p release/2.0, f fix#7>release/2.0", NEW],
  ["only the target branch fails", "f release/2.0, p main, f fix#7>release/2.0", STILL],
  ["the target branch passes again", "f release/2.0@1, p release/2.0@2, p main, f fix#7>release/2.0^1", STILL],
  ["the target branch went on", "f main, p release/2.0@1, p release/2.0@2, f fix#7>release/2.0^1", NEW],
  ["the target branch failed later", "p develop@1, f develop@2, f fix#7>develop^1", NEW],
  ["the base commit has no build", "p release/2.0@1, f release/2.0@2, f fix#7>release/2.0^9", STILL],
  [
    "the build of the base commit is not over, so the commit before it counts",
    "p develop@1, f develop@2?execution_key=r, f develop@3, f fix#7>develop^2",
    NEW,
  ],
  ["an old commit was built again", "f develop@1, p develop@2, f develop@1, f fix#7>develop", OWN],
  [
    "the base commit was built again, after another commit",
    "-p develop@1, -f develop@2, f- develop@1, fp fix#7>develop^1",
    STILL,
  ],
  ["an old commit was built again in between", "-p dev@1, f- dev@2, p- dev@1, -p dev@3, fp fix#7>dev", STILL],
  ["two branches have the base commit", "f- dev@1, -p dev@2, -p main@2, fp fix#7>dev^2", STILL],
  ["the target branch has not run the task", "f main, p release/2.0?task_slug=u, f fix#7>release/2.0", STILL],
  ["its last build has not", "f release/2.0, p release/2.0?task_slug=u, p main, f fix#7>release/2.0", STILL],
  ["the default branch has not", "f main, p main?task_slug=u, f fix", STILL],
  ["a stacked pull request", "p main, f feat#6>main, f fix#7>feat", STILL],
  ["the branch of a fork has the name of its target", "p main, f fix#7>fix, f fix#7>fix", NEW],
  ["a short run", "fppp main, -ppp main, ffpp fix", BOTH],
  ["a test that no build of the branch has had", "-pp main, -pp main, fpp fix", NEW],
  ["a skipped test", "fp main, sp main, fp fix", STILL],
  ["a run that lost a shard", `fp main, -p main${SHARD}, fp fix`, STILL],
  ["the results of such a run", `pp main, -f main${SHARD}, pf fix`, STILL],
  ["a failure before an outage", "pppppppppppf main, ffffffffffff main, pppppppppppf fix", STILL],
  ["a pass before an outage", "pppppppppppp main, ffffffffffff main, fppppppppppp fix", NEW],
  ["a test that 19 runs lack", `fp main, ${"-p main, ".repeat(19)}fp fix`, STILL],
  ["a test that 20 runs lack, and that has an open bug", `fp main, ${"-p main, ".repeat(20)}fp fix`, STILL],
])("%s", async (_, builds, lists) => {
  expect(filledLists(await play(builds))).toEqual(lists);
});

test.each<[name: string, builds: string, fixed: string[]]>([
  ["what failed in the base", "f main@1, p fix#7>main^1", ["case 0"]],
  ["nothing that has failed after the branch began", "p main@1, f main@2, p fix#7>main^1", []],
  ["what the build before has failed with", "p main@1, f fix#7>main^1, p fix#7>main^1", ["case 0"]],
  ["nothing that another pull request has failed with", "p main@1, f fix#6>main^1, p fix#7>main^1", []],
  ["nothing that was fixed before", "p main@1, f fix#7>main^1, p fix#7>main^1, p fix#7>main^1", []],
])("fixed is %s", async (_, builds, fixed) => {
  const { executionId } = await play(builds);
  const comparison = await own.get(`/executions/${executionId}/comparison`);
  expect(comparison.fixed.map(({ name }: { name: string }) => name)).toEqual(fixed);
});

test("a gate forgives what the target branch has broken, and not what an earlier pull request has", async () => {
  const gate = "?gate=new&exit_code=1&complete=true";
  const inherited = await play(`p main, f develop, f fix#7>develop${gate}`);
  expect([filledLists(inherited), inherited.gate.pass]).toEqual([STILL, true]);
  expect(await own.get(`/executions/${inherited.executionId}`)).toMatchObject({ branch: "fix", baseBranch: "develop" });
  const stacked = await play(`pf feat#6>main, pf fix#7>feat${gate}`);
  expect([filledLists(stacked), stacked.gate.pass]).toEqual([STILL, false]);
});

test("the base commit is found short or long, on any branch, and by the request that creates an execution", async () => {
  const long = "b".repeat(40);
  const base = await own.upload("fpp", `branch=topic&commit=${long}`);
  await own.upload("ppp", "branch=main");
  const mine = await own.upload("fpf", `branch=x&base_commit=${long.slice(0, 9)}`);
  expect([filledLists(mine), mine.warnings]).toEqual([BOTH, []]);
  const created = await own.post("/executions", { branch: "y", baseCommit: long });
  expect(created.baselineId).toBe(base.executionId);
});

test("a build that runs, was cancelled, has no report or whose runner died is no baseline; a report that broke off is one of what it has", async () => {
  const base = await own.upload("ppf", "branch=main");
  await own.post("/test-runs?task_slug=t&branch=main&exit_code=1&allow_empty=true", "<testsuites/>");
  const silent = await own.post("/executions", { branch: "main", tasks: ["t"] });
  await own.post(`/executions/${silent.id}/complete`);
  await own.upload("pp", "branch=main&execution_key=running");
  await own.upload("pp", "branch=main&execution_key=cancelled");
  const [{ id }] = await own.list("/executions?key=cancelled");
  await own.post(`/executions/${id}/cancel`);
  const before = await own.upload("ppf", "branch=x");
  expect((await own.get(`/executions/${before.executionId}`)).baselineId).toBe(base.executionId);
  await own.uploadReport(junit("fpp").split('classname="unit" name="case 1"')[0], "branch=main");
  expect(filledLists(await own.upload("fpf", "branch=x"))).toEqual({ stillFailing: 2 });
});

test("a rerun of an old build says nothing about what a later build has", async () => {
  const { executionId } = await play("fpp main@1");
  await play("-f- main@2");
  const { id } = await own.post(`/executions/${executionId}/rerun`, {});
  await own.upload("pp-", `execution_id=${id}&complete=true`);
  expect(filledLists(await play("-fp fix"))).toEqual(STILL);
});
