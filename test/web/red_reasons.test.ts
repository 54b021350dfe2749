import { describe, expect, test } from "bun:test";
import { toNotice } from "../../src/wording/notification.ts";
import { junit } from "../harness.ts";
import { createPages } from "./browser.ts";

const { ask, acme, createProject, database, look } = await createPages();

type Project = Awaited<ReturnType<typeof createProject>>;
type Build = { id: string; line: string };

async function see(path: string): Promise<string> {
  const { status, words } = await look("owner", path);
  expect(status).toBe(200);
  return words;
}
const send = async ({ project, key }: Project, query: string, body: string) => {
  const headers = { accept: "text/plain" };
  const { text } = await ask(`POST /projects/${project}/test-runs?branch=main&${query}`, { key, body, headers });
  return { line: text, id: /executions\/([0-9a-f-]{36})/.exec(text)![1]! };
};

/** Each ends an execution in red with "54 passed"; answers the last line that an upload got. */
const ENDS: [reason: string, build: (own: Project) => Promise<Build>][] = [
  [
    "Incomplete: e2e: shard 2 of 3 missing",
    async (own) => {
      const green = junit("p".repeat(27));
      await send(own, "task_slug=e2e&execution_key=1&shard=1/3", green);
      const others = green.replaceAll('name="case ', 'name="other ');
      return await send(own, "task_slug=e2e&execution_key=1&shard=3/3&complete=true", others);
    },
  ],
  [
    "Failed: e2e: report is incomplete",
    async (own) => {
      const whole = junit("p".repeat(55));
      return await send(own, "task_slug=e2e&complete=true", whole.slice(0, whole.indexOf("case 54")));
    },
  ],
  [
    "Failed: e2e: test runner exited with code 3",
    (own) => send(own, "task_slug=e2e&complete=true&exit_code=3", junit("p".repeat(54))),
  ],
  [
    "Timed out: e2e: did not report",
    async (own) => {
      const { id } = await own.post("/executions", { tasks: ["unit", "e2e"], branch: "main" });
      await send(own, `task_slug=unit&execution_id=${id}`, junit("p".repeat(54)));
      await own.post(`/executions/${id}/complete`);
      return { id, line: "did not report" };
    },
  ],
];

describe("an execution that is red beside 54 passed tests", () => {
  test.each(ENDS)("(%s) says so wherever it is shown", async (reason, build) => {
    const part = reason.split(": e2e: ")[1]!;
    const own = await createProject();
    const { id, line } = await build(own);
    const base = `${own.path}/executions/${id}`;
    expect(line).toContain(part);
    for (const path of [base, own.path, `${own.path}/executions`]) expect(await see(path)).toContain(reason);
    expect(await see(`${base}/tasks/e2e`)).toContain(`e2e: ${part}`);
    const execution = await own.get(`/executions/${id}`);
    expect([execution.reason, execution.passed]).toEqual([reason, 54]);
    const task = execution.tasks.find(({ slug }: { slug: string }) => slug === "e2e");
    expect(task.reason).not.toBeNull();
    const { text } = await ask(`GET ${base}`, { key: own.key, headers: { accept: "text/plain" } });
    expect(text).toContain(`: ${reason}; 54 passed`);
    const [event] = await database.pool<{ data: any }[]>`
      select data from event where project_id = ${own.project} and type = 'execution.failed'`;
    const project = { id: own.project, name: "Shop", defaultBranch: "main" };
    const about = { teamId: acme.team, project, data: event!.data, occurredAt: "2026-01-31T10:00:00Z" };
    const none = { failures: [], knownBugs: [], commitAuthor: null, commitSubject: null };
    expect(toNotice({ type: "execution.failed", ...about, ...none }, "https://assay.test").text).toStartWith(
      `${reason}; `,
    );
  });

  test("and has failing tests says both, or leads with the reason where all of them are quarantined", async () => {
    const own = await createProject();
    const { id: first } = await send(own, "task_slug=e2e&execution_key=0&shard=1/2&complete=true", junit("fpp"));
    for (const path of [`${own.path}/executions/${first}`, own.path])
      expect(await see(path)).toContain("1 new failure; Incomplete: e2e: shard 2 of 2 missing");
    const { causes } = await own.get(`/executions/${first}/failures`);
    await own.patch(`/test-cases/${causes[0].failures[0].testCaseId}`, { quarantine: { reason: "slow" } });
    const { id } = await send(own, "task_slug=e2e&execution_key=1&shard=1/2&complete=true", junit("fpp"));
    const page = await see(`${own.path}/executions/${id}`);
    expect(page).toContain("Incomplete: e2e: shard 2 of 2 missing");
    expect(page).not.toContain("Nothing new");
  });
});
