/** What gates have forgiven, on the pages of the execution, the task and the project, and their commit status in the form. */

import { beforeAll, describe, expect, test } from "bun:test";
import { createPages } from "./browser.ts";

const { ask, acme, createProject, look, fill } = await createPages();
const mine = await createProject();

const words = async (path: string) => (await look("viewer", `${mine.path}${path}`)).words;

beforeAll(() => mine.upload("ffp", { branch: "main" }));

describe("a gate", () => {
  test("that passed names what it forgave and why", async () => {
    const { executionId } = await mine.upload("ffp", { branch: "x", gate: "new", exit_code: "1" });
    const task = await words(`/executions/${executionId}/tasks/unit`);
    expect(task).toMatch(/Passed the gate "new": 2 failures forgiven.*unit › case 0 It failed in the baseline/);
    const execution = await words(`/executions/${executionId}`);
    expect(execution).toMatch(/Passed the gate: 2 failures forgiven unit: 2 failures It failed in the baseline/);
  });

  test("that did not pass says why, for each shard", async () => {
    const build = { branch: "x", execution_key: "1", gate: "new", exit_code: "1" };
    await mine.upload("ffp", { ...build, shard: "1/2" });
    const { executionId } = await mine.upload("f", { ...build, shard: "2/2" }, "<b>other</b>");
    const task = await words(`/executions/${executionId}/tasks/unit`);
    expect(task).toMatch(/Shard 1: Passed the gate "new": 2 failures forgiven/);
    expect(task).toMatch(/Shard 2: Failed the gate "new": unit: 1 new failure/);
    expect(await words(`/executions/${executionId}`)).toContain("Passed the gate: 2 failures forgiven");
  });

  test("that does not pass for unclear failures stands on no page that calls them known", async () => {
    await mine.call("PATCH", "", { gateShare: 0.01 });
    const { executionId } = await mine.upload("ffp", { branch: "y", gate: "new", exit_code: "1" });
    await mine.call("PATCH", "", { gateShare: 0.2 });
    expect(await words(`/executions/${executionId}/tasks/unit`)).toContain(
      "unit: 2 failures are unclear: a rerun tells",
    );
    const execution = await words(`/executions/${executionId}`);
    expect(execution).toMatch(/2 unclear failures since .* Unclear 2 causes, 2 tests · /);
    expect(execution).toMatch(
      /It failed in the baseline, with the same message: \d\d % not this change; a rerun tells\./,
    );
    expect(execution).not.toMatch(/Still failing|Known flaky/);
    expect(await words("/executions")).toContain("2 unclear failures");
  });

  test("is not mentioned where none was asked for", async () => {
    const { executionId } = await mine.upload("ffp", { branch: "x" });
    for (const path of ["", "/tasks/unit"])
      expect(await words(`/executions/${executionId}${path}`)).not.toContain("the gate");
  });

  test("is counted by day, in the API and in the table of the project", async () => {
    const today = new Date().toISOString().slice(0, 10);
    const trends = (query = "") => mine.get(`/trends?days=1${query}`);
    expect((await trends()).days[0]).toMatchObject({ day: today, forgiven: 4 });
    expect((await trends("&branch=main")).days[0].forgiven).toBe(0);
    expect((await trends()).tasks[0].days[0].forgiven).toBe(4);
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    await mine.upload("ppp", { branch: "main", completed_at: yesterday });
    expect(await words("")).toMatch(/Failures forgiven by gates, all branches .* 4$/);
  });
});

test("the form of an automation sets the commit status to the decision of a gate", async () => {
  const config = { repository: "acme/web", token: "t0ken" };
  const { body } = await ask(`POST /teams/${acme.team}/integrations`, {
    ...{ key: acme.teamKey, body: { kind: "github", name: "Code", config } },
  });
  const base = `/teams/${acme.team}/automations`;
  const { location } = await fill("owner", `${base}/new`, {
    ...{ name: "gate", when: "event", event: "execution.completed" },
    ...{ "action.0.type": "set_commit_status", "action.0.integrationId": body.id, "action.0.gate": "new" },
  });
  const id = /automations\/([^?]+)/.exec(location!)![1];
  const created = await ask(`GET ${base}/${id}`, { key: acme.teamKey });
  expect(created.body.actions).toEqual([{ type: "set_commit_status", integrationId: body.id, gate: "new" }]);
  const page = await look("owner", `${base}/${id}`);
  expect(page.words).toContain('set the status of the commit to the decision of the gate "new" in Code');
  expect(page.html).toMatch(/<option value="new" selected/);
});
