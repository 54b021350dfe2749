import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

/** In one build of four of the default branch the first test passes only when it is tried again. */
async function prepare() {
  for (let build = 0; build < 20; build++) {
    if (build % 4 === 0) await own.upload("fpp", `branch=main&execution_key=r${build}&complete=true`);
    await own.upload("ppp", `branch=main&execution_key=r${build}&complete=true`);
  }
  await own.list("/test-cases?limit=1");
}
/** A build of a branch in which the first test fails. */
const push = (branch: string, commit: number) =>
  own.upload(
    "fpp",
    `branch=${branch}&commit=abcdef${commit}&execution_key=${branch}${commit}&complete=true&gate=new&exit_code=1`,
  );
/** The share of the change in its failure. */
const changeOf = async ({ executionId }: { executionId: string }): Promise<number> => {
  const { causes } = await own.get(`/executions/${executionId}/failures`);
  return causes[0].failures[0].explanations.find(({ kind }: { kind: string }) => kind === "change").share;
};
const choose = (gateShare: unknown) => own.call("PATCH", "", { gateShare });
const preview = (query: string) => own.get(`/gate-preview?${query}`);

const SENTENCE = /^It failed in 6 of \d+ results of other builds: \d\d % not this change; a rerun tells$/;

describe("the share of the change up to which gates forgive", () => {
  test("is normal unless the project chooses another one, which only a number in bounds is", async () => {
    expect((await own.get("")).gateShare).toBe(0.2);
    for (const bad of [0, 0.009, 0.51, -1, "strict", null])
      expect((await choose(bad)).body.error?.message).toContain(
        'Cannot read "gateShare": expected a number from 0.01 to 0.5',
      );
    for (const good of [0.05, 0.01, 0.5, 0.125]) expect((await choose(good)).body).toMatchObject({ gateShare: good });
    // An upload cannot forgive itself.
    expect((await own.call("POST", "/test-runs?task_slug=t&gate=new&gate_share=0.5", "<testsuite/>")).status).toBe(400);
  });

  test("decides which failures are unclear, in all answers, from the next upload on", async () => {
    await prepare();
    expect((await push("a", 1)).gate).toMatchObject({ pass: true, forgiven: [{ list: "flaky" }], unclear: [] });
    await choose(0.01);
    const run = await push("b", 1);
    expect(run.gate).toMatchObject({
      ...{ pass: false, reasons: ["t: 1 failure is unclear: a rerun tells"], forgivenCount: 0, forgiven: [] },
      unclear: [{ name: "case 0", reason: expect.stringMatching(SENTENCE) }],
    });
    expect(run).toMatchObject({ counts: { unclearFailures: 1, flakyFailures: 0 }, flakyFailures: [] });
    const path = `/executions/${run.executionId}`;
    const { headline, counts, causes } = await own.get(`${path}/failures`);
    expect(headline).toStartWith("1 unclear failure since");
    expect(counts.unclearFailures).toBe(1);
    const [{ blame, reason, explanations }] = causes[0].failures;
    expect([blame, reason]).toEqual(["unclear", expect.stringMatching(SENTENCE)]);
    expect(explanations[0].kind).toBe("flaky");
    expect(await own.get(`${path}/comparison`)).toMatchObject({
      unclearFailures: [{ name: "case 0" }],
      flakyFailures: [],
    });
    expect(await own.get(`${path}/verdict?gate=new`)).toMatchObject({ pass: false, unclear: [{ name: "case 0" }] });
    const { text } = await ask(`GET /projects/${own.project}${path}/verdict?gate=new`, {
      ...{ key: own.key, headers: { accept: "text/plain" } },
    });
    expect(text.split("\n").slice(0, 3)).toEqual([
      "Gate new: failed",
      "Stays red: t: 1 failure is unclear: a rerun tells",
      expect.stringMatching(/^Unclear: unit > case 0: It failed in 6 of /),
    ]);
    // What was judged stays.
    await choose(0.5);
    expect(await own.get(`${path}/verdict?gate=new`)).toMatchObject({ pass: false });
  });
});

describe("GET /projects/:projectId/gate-preview", () => {
  test("counts guilty builds that a share lets through, and others that it stops", async () => {
    await prepare();
    await own.post("/executions", { branch: "z" });
    expect(await preview("days=1")).toEqual({
      ...{ share: 0.2, guiltyBuilds: 0, guiltyPassed: 0, otherBuilds: 0, otherStopped: 0 },
      since: expect.any(String),
      summary: "In the last day no build was red because of failed tests",
    });
    // It fails again and again: the last builds say that it was the change's all along.
    const shares: number[] = [];
    for (let commit = 1; commit <= 7; commit++) shares.push(await changeOf(await push("x", commit)));
    const passing = (share: number) => shares.filter((change) => change <= share).length;
    for (const branch of ["y", "z"]) await push(branch, 1);
    const { since, ...normal } = await preview("share=0.2");
    expect(Date.now() - Date.parse(since)).toBeWithin(29 * 86_400_000, 31 * 86_400_000);
    expect(normal).toEqual({
      ...{ share: 0.2, guiltyBuilds: 7, guiltyPassed: passing(0.2), otherBuilds: 2, otherStopped: 0 },
      summary: `In the last 30 days this would have let through ${passing(0.2)} of 7 guilty builds and stopped 0 of 2 others`,
    });
    expect(await preview("share=0.01")).toMatchObject({ guiltyPassed: 0, otherStopped: 2 });
    expect(await preview("share=.5")).toMatchObject({ guiltyPassed: passing(0.5), otherStopped: 0 });
    expect(passing(0.2)).toBeWithin(1, passing(0.5));
    expect(passing(0.5)).toBeWithin(2, 7);
    // The setting does not change what it says.
    await choose(0.01);
    expect(await preview("share=0.2")).toMatchObject(normal);
    expect(await preview("")).toMatchObject({ share: 0.01, otherStopped: 2 });
  });

  test("calls a build guilty only as long as no rerun of it has passed", async () => {
    await own.upload("ppp", "branch=main");
    const { executionId } = await own.upload("fpp", "branch=x&execution_key=1&complete=true");
    expect(await preview("")).toMatchObject({ guiltyBuilds: 1, guiltyPassed: 0, otherBuilds: 0 });
    const rerun = await own.post(`/executions/${executionId}/rerun`, {});
    await own.upload("ppp", `execution_id=${rerun.id}&complete=true`);
    expect(await preview("")).toMatchObject({ guiltyBuilds: 0, otherBuilds: 1, otherStopped: 1 });
  });

  test("forgives no build that a gate keeps red for another reason", async () => {
    await own.upload("fppppppppppppppppppp", "branch=main");
    const { gate } = await own.upload("f", "branch=x&gate=new&exit_code=1");
    expect(gate).toMatchObject({ pass: false, reasons: [expect.stringContaining("did not run")] });
    await own.upload("fppppppppppppppppppp", "branch=y");
    // The broken build of the default branch, which is guilty, and that of x stay red.
    expect(await preview("share=0.5")).toMatchObject({
      ...{ guiltyBuilds: 1, guiltyPassed: 0, otherBuilds: 2, otherStopped: 1 },
    });
  });

  test("has nothing of other projects", async () => {
    const rival = createAsking(ask, await addProject(acme));
    await rival.upload("fpp", "branch=main");
    expect(await preview("")).toMatchObject({ guiltyBuilds: 0, otherBuilds: 0 });
  });

  test.each(["share=0.6", "share=0", "share=x", "days=91", "days=0"])("refuses %s", async (query) => {
    const { status, body } = await own.call("GET", `/gate-preview?${query}`);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(query.split("=")[0]!)]);
  });
});
