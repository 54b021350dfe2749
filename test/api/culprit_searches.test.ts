/** Searches for culprits over the API, with a runner that this test plays. */

import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createLog } from "../../src/log.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { attemptDelivery } from "../../src/operations/automation/deliveries.ts";
import type { DueDelivery } from "../../src/store/deliveries.ts";
import { advanceSearches } from "../../src/work/culprits.ts";
import { createAutomating } from "../automating.ts";
import { createHarness, SECRET_KEY } from "../harness.ts";
import { createReceiver, outboundToReceivers, type Recorded } from "../receiver.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, addProject, database } = harness;
const { pool } = database;
const log = createLog("debug", () => {}, false);

let place: Asking;
beforeEach(async () => {
  place = createAsking(ask, await addProject(acme));
});

const request = (target: string, body?: object) => {
  const [method, path] = target.split(" ") as [string, string];
  return place.call(method, path, body);
};
const get = (path: string) => place.get(path);
const culpritOf = (bug: string) => get(`/bug-reports/${bug}/culprit`);
const message = ({ body }: { body: any }): string => body.error.message;
const foundEvents = () =>
  pool`select data from event where project_id = ${place.project} and type = 'bug_report.culprit_found'`;
const age = (search: string) =>
  pool`update culprit_search set created_at = created_at - interval '1 hour' where id = ${search}`;
const advance = () => advanceSearches(database, undefined, undefined, log);

const hash = (at: number) => at.toString(16).padStart(40, "c");
const range = (commits: number) =>
  Array.from({ length: commits }, (_, at) => ({
    ...{ hash: hash(at), author: at % 2 === 0 ? "Ada" : "Grace", date: "2026-01-31T10:00:00+01:00" },
    ...{ subject: `change ${at}`, files: [`file-${at}.ts`] },
  }));

const report = (failure: string | null) =>
  `<testsuite name="cart"><testcase classname="cart" name="adds">${failure === null ? "" : `<failure message="${failure}"/>`}</testcase></testsuite>`;
const build = (at: number, message: string | null, more = "") =>
  place.uploadReport(report(message), `task_slug=unit&branch=main&commit=${hash(at)}&complete=true${more}`);

const FAULT = "expected the cart to be full";

/** Builds that break between two commits; returns the id of the bug that they open. */
async function openBug(bad: number): Promise<string> {
  await build(0, null);
  const { bugReports } = await build(bad, FAULT);
  return bugReports[0].id;
}

/** A runner that can probe calls the server; returns its new leases. */
/** The same, with a runner that could probe it. */
async function openProbable(bad: number): Promise<string> {
  const bug = await openBug(bad);
  await sync();
  return bug;
}
const sync = async (free = 1, runner = "r") => {
  const body = { runner, taskSlugs: ["unit"], probeSlugs: ["unit"], free };
  const { leases } = (await request("POST /leases", body)).body;
  const held = leases.map(({ id }: { id: string }) => ({ id }));
  if (held.length > 0) await request("POST /leases", { ...body, free: 0, held });
  return leases;
};

/** What a commit does in a probe: a message of its failure, null for a pass, or that it does not build. */
type Outcome = string | null | "no_build";

/** Works until the search has ended, or for so many leases. Returns the numbers of the probed commits. */
async function work(commits: number, outcomeOf: (at: number) => Outcome, { free = 1, leases = 200 } = {}) {
  const probed: number[] = [];
  for (let count = 0; count < leases;) {
    await advance();
    const taken = await sync(free);
    if (taken.length === 0) return probed;
    for (const { id, commits: listed, execution } of taken) {
      count++;
      if (listed) {
        expect((await request(`POST /leases/${id}/commits`, { commits: range(commits) })).status).toBe(200);
        continue;
      }
      const at = Number.parseInt(execution.commit.replace(/^c+/, "") || "0", 16);
      probed.push(at);
      const outcome = outcomeOf(at);
      if (outcome === "no_build") await request(`POST /leases/${id}/fail`, { message: "broken", reason: "no_build" });
      else {
        const query = `lease_id=${id}&task_slug=unit&exit_code=${outcome === null ? 0 : 1}`;
        await place.uploadReport(report(outcome), query);
      }
    }
  }
  return probed;
}

const start = async (bug: string, body: object = {}) => {
  const { status, body: answer } = await request(`POST /bug-reports/${bug}/culprit`, body);
  return status === 201 ? answer : answer.error.message;
};

describe("a search", () => {
  test("names the commit that it has proven, in its answer, the bug report and an event", async () => {
    const bug = await openProbable(9);
    expect((await get(`/bug-reports/${bug}`)).culprit).toBeNull();
    expect((await request(`GET /bug-reports/${bug}/culprit`)).status).toBe(404);
    expect(await start(bug, { maxProbes: 40 })).toMatchObject({
      ...{ status: "running", verdict: null, reason: null, commitCount: null, culprit: null, suspects: [], probes: [] },
      ...{ bugReportId: bug, taskSlug: "unit", goodCommit: hash(0), badCommit: hash(9), maxProbes: 40, maxMinutes: 60 },
      summary: "Listing the commits after cccccccccc up to cccccccccc",
    });
    await work(10, (at) => (at >= 4 ? FAULT : null));
    const found = await culpritOf(bug);
    const proof =
      /^c{10} by Ada broke it: it failed there \d of \d times, on its parent c{10} it passed \d of \d times$/;
    const summary = expect.stringMatching(proof);
    expect(found).toMatchObject({
      ...{ status: "completed", verdict: "culprit", reason: null, commitCount: 9, summary },
      culprit: { commit: hash(4), author: "Ada", subject: "change 4", files: ["file-4.ts"] },
      parent: { commit: hash(3), author: "Grace" },
      suspects: [{ commit: hash(4), chance: expect.any(Number) }],
    });
    expect(found.probes.length).toBeLessThan(12);
    expect((await get(`/bug-reports/${bug}`)).culprit).toMatchObject({
      ...{ searchId: found.id, status: "completed", verdict: "culprit", summary, commit: hash(4), author: "Ada" },
    });
    const [event] = await foundEvents();
    expect(event!["data"]).toMatchObject({
      bugReport: { id: bug, number: 1 },
      culprit: { searchId: found.id, commit: hash(4), author: "Ada", subject: "change 4", files: ["file-4.ts"] },
    });
  });

  test("says what it waits for", async () => {
    const bug = await openBug(9);
    await sync(0);
    await start(bug);
    await advance();
    const waitingFor = async () => (await culpritOf(bug)).waitingFor;
    expect(await waitingFor()).toBe("The list of the commits waits for a free runner");
    await pool`update runner set seen_at = now() - interval '10 minutes' where project_id = ${place.project}`;
    const away = "The list of the commits waits for a runner: no runner has been online in the last 2 minutes";
    expect(await waitingFor()).toBe(away);
    const [listing] = await sync();
    expect(await waitingFor()).toBe("A runner lists the commits");
    await request(`POST /leases/${listing.id}/commits`, { commits: range(10) });
    expect(await waitingFor()).toBeNull();
    // A runner that has room for three.
    await sync(3);
    await advance();
    expect(await waitingFor()).toBe("3 probes wait for a free runner");
    await sync(1);
    expect(await waitingFor()).toBe("1 probe runs, 2 wait for a free runner");
    await sync(2);
    expect(await waitingFor()).toBe("3 probes run");
    await request(`POST /bug-reports/${bug}/culprit/cancel`);
    expect(await waitingFor()).toBeNull();
  });

  test("cannot tell which of the commits that do not build it was, and says which are left", async () => {
    const bug = await openProbable(8);
    await start(bug);
    await work(9, (at) => (at === 3 || at === 4 ? "no_build" : at >= 5 ? FAULT : null));
    expect(await culpritOf(bug)).toMatchObject({
      ...{ verdict: "undecided", reason: "no_result", culprit: null },
      summary: "Cannot tell which of these 3 commits broke it: 2 of them have no result",
      suspects: [{ commit: hash(3) }, { commit: hash(4) }, { commit: hash(5) }],
    });
    expect(await foundEvents()).toHaveLength(0);
  });

  test("ends when its probes or its time are used up", async () => {
    const bug = await openProbable(100);
    await start(bug, { maxProbes: 2 });
    await work(101, (at) => (at >= 40 ? FAULT : null));
    expect(await culpritOf(bug)).toMatchObject({
      ...{ verdict: "undecided", reason: "budget" },
      summary: expect.stringMatching(/^Cannot tell after 2 probes: at \d+ % it is one of \d+ commits$/),
    });
    const { id } = await start(bug);
    await work(101, (at) => (at >= 40 ? FAULT : null), { leases: 2 });
    await advance();
    await age(id);
    await advance();
    const found = await culpritOf(bug);
    expect(found).toMatchObject({
      ...{ verdict: "undecided", reason: "time", commitCount: 100 },
      summary: expect.stringMatching(/^Cannot tell after \d probes in 60 minutes: at \d+ % it is one of \d+ commits$/),
    });
    // The probe that nobody had taken yet is cancelled.
    expect(found.probes.at(-1)).toMatchObject({ result: "no_result", endedAt: expect.any(String) });
  });

  test("says that no runner took a probe, or why the commits cannot be listed", async () => {
    const bug = await openProbable(9);
    const { id } = await start(bug);
    await advance();
    await age(id);
    await advance();
    const late = "Cannot tell: no runner took a probe within 60 minutes";
    expect(await culpritOf(bug)).toMatchObject({ verdict: "undecided", reason: "no_runner", summary: late });
    await start(bug);
    await advance();
    const [listing] = await sync();
    expect(listing).toMatchObject({ probe: true, commits: { good: hash(0), bad: hash(9) } });
    await request(`POST /leases/${listing.id}/fail`, { message: "Cannot list the commits: there are too many" });
    await advance();
    const summary = "Cannot tell: cannot list the commits: there are too many";
    expect(await culpritOf(bug)).toMatchObject({ verdict: "undecided", reason: "no_commits", summary });
  });

  test("uses what other searches and builds have found, and the commits that they have listed", async () => {
    const bug = await openProbable(40);
    await start(bug, { maxProbes: 4 });
    await work(41, (at) => (at >= 30 ? FAULT : null));
    await start(bug);
    const probed = await work(41, (at) => (at >= 30 ? FAULT : null));
    expect(await culpritOf(bug)).toMatchObject({ verdict: "culprit", culprit: { commit: hash(30) } });
    expect(probed.length).toBeLessThan(9);
    const listings = await pool`select from probe where project_id = ${place.project} and kind = 'commits'`;
    expect(listings).toHaveLength(1);
  });

  test("runs as many probes at once as runners are free, and several servers advance it once", async () => {
    const bug = await openBug(60);
    await sync(4);
    await start(bug);
    await work(61, () => null, { free: 4, leases: 1 });
    await sync(4);
    await Promise.all([advance(), advance(), advance()]);
    const { probes } = await culpritOf(bug);
    expect(probes).toHaveLength(4);
    expect(new Set(probes.map(({ createdAt }: { createdAt: string }) => createdAt)).size).toBe(1);
  });

  test("can be cancelled: its probes are, too, and another one can start", async () => {
    const bug = await openProbable(9);
    const { id } = await start(bug);
    await work(10, () => null, { leases: 1 });
    await advance();
    const cancel = () => request(`POST /bug-reports/${bug}/culprit/cancel`, {});
    const { status, body } = await cancel();
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, status: "cancelled", verdict: null, summary: "Cancelled" });
    expect(body.probes).toMatchObject([{ result: "no_result" }]);
    await advance();
    expect(message(await cancel())).toBe("Cannot cancel the search: no search of this bug is running");
    expect((await start(bug)).status).toBe("running");
  });
});

describe("POST …/culprit refuses", () => {
  const REFUSED = "Cannot search for the commit that broke it";

  test("while a search runs, and if no runner can probe", async () => {
    const bug = await openBug(9);
    const nobody = "Cannot run the test case alone: no runner that was seen within the last hour";
    expect(await start(bug)).toStartWith(nobody);
    await sync();
    await start(bug);
    expect(await start(bug)).toBe(`${REFUSED}: a search is running already`);
  });

  test("without a range of commits", async () => {
    const { bugReports } = await build(3, FAULT);
    await sync();
    expect(await start(bugReports[0].id)).toBe(`${REFUSED}: no stored result of the default branch passed before it`);
    const { id } = (await request("POST /bug-reports", { title: "By hand" })).body;
    expect(await start(id)).toBe(`${REFUSED}: it has no test cases`);
  });

  test("for a flaky test, and commits that are none", async () => {
    const bug = await openBug(5);
    for (const key of ["a", "b"]) for (const message of [FAULT, null]) await build(0, message, `&execution_key=${key}`);
    await place.get("/test-cases?limit=1");
    await sync();
    expect(await start(bug)).toBe(`${REFUSED}: its test is flaky: it fails without a change of the code`);
    expect(await start(bug, { goodCommit: "main" })).toBe(
      'Cannot read "goodCommit": expected a commit hash of 7 to 64 hexadecimal digits, got "main"',
    );
  });
});

describe("POST …/leases/:leaseId/commits", () => {
  test("takes the commits once, and only for a lease that asks for them", async () => {
    const bug = await openProbable(3);
    await start(bug);
    await advance();
    const [listing] = await sync();
    const list = (lease: string, commits: number) =>
      request(`POST /leases/${lease}/commits`, { commits: range(commits) });
    const few = 'Cannot read "commits": expected at least two commits, got an array of 1';
    expect(message(await list(listing.id, 1))).toBe(few);
    const answer = await list(listing.id, 4);
    expect([answer.status, answer.body.status]).toEqual([200, "passed"]);
    expect((await culpritOf(bug)).commitCount).toBe(3);
    await advance();
    const [probe] = await sync();
    expect(probe.only).toEqual([{ suite: "cart", name: "adds", file: null }]);
    expect(message(await list(probe.id, 4))).toBe("Cannot accept the commits: the lease asks for none");
  });
});

describe("the pull request that brought the culprit", () => {
  const { team } = acme;
  const { integrate, settle, deliveriesOf, call, ...automating } = createAutomating(harness, acme);
  const list = "/repos/acme/web/issues/128/comments";

  /** A code host on which pull request 128 brought the commits of `merged`. */
  function createHost(merged: readonly number[]) {
    const comments = new Map<number, string>();
    const pull = { number: 128, merged_at: "2026-01-30T10:00:00Z", base: { repo: { full_name: "acme/web" } } };
    const receiver = createReceiver(({ method, path, body }: Recorded) => {
      if (path.endsWith("/user")) return { status: 200, body: { id: 7 } };
      if (path.includes("/commits/"))
        return { status: 200, body: merged.some((at) => path.includes(hash(at))) ? [pull] : [] };
      if (method === "GET")
        return { status: 200, body: [...comments].map(([id, body]) => ({ id, body, user: { id: 7 } })) };
      const id = method === "POST" ? 100 + comments.size : Number(path.split("/").at(-1));
      comments.set(id, body.body);
      return { status: method === "POST" ? 201 : 200, body: { id } };
    });
    return { ...receiver, comments };
  }

  async function automate(baseUrl: string): Promise<string> {
    const config = { baseUrl, repository: "acme/web", token: "S3CRET-token" };
    const integrationId = await integrate("github", config);
    await automating.automate({
      ...{ name: "tell the author", trigger: { event: "bug_report.culprit_found" } },
      ...{ conditions: { projects: [place.project] }, actions: [{ type: "notify", integrationId }] },
    });
    return integrationId;
  }

  /** A search that proves commit 4. */
  async function search(bug: string): Promise<void> {
    await sync();
    await start(bug);
    await work(10, (at) => (at >= 4 ? FAULT : null));
    await settle();
  }

  test("gets one comment, whatever is repeated", async () => {
    const host = createHost([4]);
    const integration = await automate(host.url);
    const bug = await openBug(9);
    await search(bug);
    const { testCaseId, culprit } = await culpritOf(bug);
    const base = `https://assay.test/projects/${place.project}`;
    const text = expect.stringMatching(
      new RegExp(
        `^<!-- assay ${place.project} culprit ${bug} -->\n\nThis change broke \\[\`cart › adds\`\\]\\(<${base}/tests/${testCaseId}>\\)\\. ` +
          `Commit ${culprit.commit.slice(0, 10)}: it failed there \\d of \\d times, on its parent c{10} it passed \\d of \\d times · ` +
          `\\[bug report #1\\]\\(<${base}/bugs/${bug}>\\)$`,
      ),
    );
    expect([...host.comments.values()]).toEqual([text]);
    const [delivery] = await deliveriesOf(integration);
    expect(delivery).toMatchObject({ status: "sent" });
    const again = `/integrations/${integration}/deliveries/${delivery.id}/redeliver`;
    expect((await call("POST", again)).status).toBe(200);
    await settle();
    // It proves the same commit, which is no event.
    await search(bug);
    expect([...host.comments.values()]).toEqual([text]);
    const writes = host.requests
      .filter(({ method }) => method !== "GET")
      .map(({ method, path }) => `${method} ${path}`);
    expect(writes).toEqual([`POST ${list}`, "PATCH /repos/acme/web/issues/comments/100"]);
  });

  /** The integration is as sound as if nothing had ever failed. */
  const expectSound = async (integration: string) =>
    expect(await pool`select failures, failing_since from integration where id = ${integration}`).toEqual([
      { failures: 0, failing_since: null },
    ] as never);
  test("that does not exist is no failure of the delivery or the integration", async () => {
    const host = createHost([]);
    const integration = await automate(host.url);
    await search(await openBug(9));
    const error = `Nothing to send: no merged pull request contains the commit ${hash(4).slice(0, 12)}`;
    expect(await deliveriesOf(integration)).toMatchObject([
      { status: "inapplicable", nextAttemptAt: null, attempts: [{ statusCode: 200, error }] },
    ]);
    const { body } = await call("GET", `/integrations/${integration}`);
    expect(body.lastDelivery).toMatchObject({ status: "inapplicable" });
    await expectSound(integration);
  });

  test("that does not exist means that a delivery given up meanwhile is not lost, and that the integration is reached", async () => {
    const host = createHost([]);
    const integration = await automate(host.url);
    await search(await openBug(9));
    await pool`update delivery set status = 'failed', given_up = true, attempts = '[]' where integration_id = ${integration}`;
    await pool`update integration set failures = 3, failing_since = now() where id = ${integration}`;
    const [delivery] = await pool<DueDelivery[]>`
      select i.kind, i.name as "integrationName", i.config, i.sealed, d.id, d.action, d.options, d.notice, d.tries, d.attempts
      from delivery d join integration i on i.team_id = d.team_id and i.id = d.integration_id where i.id = ${integration}`;
    const statuses: string[] = [];
    const services = {
      ...{ begin: database.begin, outbound: outboundToReceivers(), seal: createSeal(SECRET_KEY) },
      onBug: (error: unknown) => expect(error).toBeUndefined(),
      onAttempt: (status: string) => statuses.push(status),
    };
    await attemptDelivery(services, { teamId: team, id: integration }, delivery!, "once");
    expect(statuses).toEqual(["inapplicable"]);
    expect(await deliveriesOf(integration)).toMatchObject([{ status: "inapplicable" }]);
    const { body } = await call("GET", `/integrations/${integration}`);
    expect(body).not.toHaveProperty("givenUp");
    await expectSound(integration);
  });
});
