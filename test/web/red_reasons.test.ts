import { describe, expect, test } from "bun:test";
import { toNotice } from "../../src/wording/notification.ts";
import { createHarness, createServer, junit } from "../harness.ts";
import { createPerson } from "../people.ts";

const { ask, acme, addProject, database } = await createHarness();
const { url } = await createServer(database);
const cookie = `assay_session=${(await createPerson(database, { team: acme.team, role: "owner" })).token}`;

/** What stands on the page, one blank between two words. */
async function see(path: string): Promise<string> {
  const response = await fetch(`${url}${path}`, { headers: { cookie, accept: "text/html" } });
  expect(response.status).toBe(200);
  return (await response.text()).replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

type Project = { project: string; key: string };
type Build = { id: string; line: string };
const send = async ({ project, key }: Project, query: string, body: string) => {
  const { text } = await ask(`POST /projects/${project}/test-runs?branch=main&${query}`, {
    key,
    body,
    headers: { accept: "text/plain" },
  });
  return { text, id: /executions\/([0-9a-f-]{36})/.exec(text)![1]! };
};
const complete = ({ project, key }: Project, id: string) =>
  ask(`POST /projects/${project}/executions/${id}/complete`, { key });

/** Each ends an execution in red with "54 passed"; answers the last line that an upload got. */
const ENDS: [what: string, reason: string, part: string, build: (own: Project) => Promise<Build>][] = [
  [
    "a missing shard",
    "Incomplete: e2e shard 2 of 3 missing",
    "shard 2 of 3 missing",
    async (own) => {
      const green = junit("p".repeat(27));
      await send(own, "task_slug=e2e&execution_key=1&shard=1/3", green);
      const { text, id } = await send(
        own,
        "task_slug=e2e&execution_key=1&shard=3/3&complete=true",
        green.replaceAll('name="case ', 'name="other '),
      );
      return { id, line: text };
    },
  ],
  [
    "a report that broke off",
    "Failed: e2e report is incomplete",
    "report is incomplete",
    async (own) => {
      const whole = junit("p".repeat(55));
      const { text, id } = await send(own, "task_slug=e2e&complete=true", whole.slice(0, whole.indexOf("case 54")));
      return { id, line: text };
    },
  ],
  [
    "an exit code",
    "Failed: e2e test runner exited with code 3",
    "test runner exited with code 3",
    async (own) => {
      const { text, id } = await send(own, "task_slug=e2e&complete=true&exit_code=3", junit("p".repeat(54)));
      return { id, line: text };
    },
  ],
  [
    "a task that did not report",
    "Timed out: e2e did not report",
    "did not report",
    async (own) => {
      const body = { tasks: ["unit", "e2e"], branch: "main" };
      const { body: execution } = await ask(`POST /projects/${own.project}/executions`, { key: own.key, body });
      await send(own, `task_slug=unit&execution_id=${execution.id}`, junit("p".repeat(54)));
      await complete(own, execution.id);
      return { id: execution.id, line: "did not report" };
    },
  ],
];

describe("an execution that is red beside 54 passed tests", () => {
  test.each(ENDS)("because of %s says so wherever it is shown", async (_, reason, part, build) => {
    const own = await addProject(acme);
    const { id, line } = await build(own);
    const base = `/projects/${own.project}/executions/${id}`;
    expect(line).toContain(part);
    for (const path of [base, `/projects/${own.project}`, `/projects/${own.project}/executions`])
      expect(await see(path)).toContain(reason);
    expect(await see(`${base}/tasks/e2e`)).toContain(`e2e: ${part}`);
    const execution = (await ask(`GET ${base}`, { key: own.key })).body;
    expect([execution.reason, execution.passed]).toEqual([reason, 54]);
    const task = execution.tasks.find(({ slug }: { slug: string }) => slug === "e2e");
    expect(task.reason).not.toBeNull();
    const { text } = await ask(`GET ${base}`, { key: own.key, headers: { accept: "text/plain" } });
    expect(text).toContain(`: ${reason}; 54 passed`);
    const [event] = await database.pool<{ data: any }[]>`
      select data from event where project_id = ${own.project} and type = 'execution.failed'`;
    const project = { id: own.project, name: "Shop", defaultBranch: "main" };
    const about = { teamId: acme.team, project, data: event!.data, occurredAt: "2026-01-31T10:00:00Z" };
    const none = { failures: [], knownBugs: [] };
    expect(toNotice({ type: "execution.failed", ...about, ...none }, "https://assay.test").text).toStartWith(
      `${reason}; `,
    );
  });

  test("and whose only failures are quarantined leads with the reason", async () => {
    const own = await addProject(acme);
    const { id: first } = await send(own, "task_slug=e2e&execution_key=0&complete=true", junit("fpp"));
    const { body } = await ask(`GET /projects/${own.project}/executions/${first}/failures`, { key: own.key });
    const { testCaseId } = body.causes[0].failures[0];
    await ask(`PATCH /projects/${own.project}/test-cases/${testCaseId}`, {
      key: own.key,
      body: { quarantine: { reason: "slow" } },
    });
    const { id } = await send(own, "task_slug=e2e&execution_key=1&shard=1/2&complete=true", junit("fpp"));
    const page = await see(`/projects/${own.project}/executions/${id}`);
    expect(page).toContain("Incomplete: e2e shard 2 of 2 missing");
    expect(page).not.toContain("Nothing new");
  });

  test("and has failing tests says both", async () => {
    const own = await addProject(acme);
    const { id } = await send(own, "task_slug=e2e&execution_key=1&shard=1/2&complete=true", junit("fpp"));
    for (const path of [`/projects/${own.project}/executions/${id}`, `/projects/${own.project}`])
      expect(await see(path)).toContain("1 new failure; Incomplete: e2e shard 2 of 2 missing");
  });

  test("a shared link does not show what a runner has said", async () => {
    const own = await addProject(acme);
    const body = { tasks: ["e2e"], branch: "main" };
    const { body: execution } = await ask(`POST /projects/${own.project}/executions`, { key: own.key, body });
    await complete(own, execution.id);
    await database.pool`update test_run set reason = 'The runner secret-host was lost' where project_id = ${own.project}`;
    const base = `/projects/${own.project}/executions/${execution.id}`;
    expect(await see(base)).toContain("Timed out: e2e did not report (The runner secret-host was lost)");
    const page = await (await fetch(`${url}${base}`, { headers: { cookie, accept: "text/html" } })).text();
    const csrf = /name="csrf" value="([^"]*)"/.exec(page)![1]!;
    const made = await fetch(`${url}${base}/share`, {
      method: "POST",
      headers: { cookie, accept: "text/html", origin: url },
      body: new URLSearchParams({ csrf }),
    });
    const address = /data-copy>[^<]*(\/shared\/[^<]*)</.exec(await made.text())![1]!;
    const shared = await see(address);
    expect(shared).toContain("Timed out: e2e did not report");
    expect(shared).not.toContain("secret-host");
  });
});
