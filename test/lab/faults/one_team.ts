/**
 * One team, with the usual rate limit, makes its transactions wait for each other: `bun test/lab/faults/one_team.ts`. Another team's
 * uploads are answered meanwhile.
 */

import { join } from "node:path";
import { judge, startServers } from "./servers.ts";

const CASES = 190_000;
/** More than there are connections for transactions. */
const WAITING = 56;
const MAX_MS = 2_000;

const servers = await startServers({
  environment: { RATE_LIMIT_PER_MINUTE: "60" },
  ...(process.argv[2] ? { source: process.argv[2] } : {}),
});
const { url } = servers.servers[0]!;

async function ask(
  key: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) {
  const began = performance.now();
  const init = { method: "POST", headers: { authorization: `Bearer ${key}`, ...headers }, ...(body ? { body } : {}) };
  const response = await fetch(`${url}/api/v1${path}`, init);
  const answer = (await response.json()) as Record<string, any>;
  return { status: response.status, answer, ms: Math.round(performance.now() - began) };
}

/** `assay admin` beside the server. */
async function admin(...args: string[]): Promise<Record<string, any>> {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "../../../src/cli/assay.ts"), "admin", ...args, "--json"],
    {
      env: { ...process.env, DATA_DIR: servers.directory, DATABASE_URL: "" },
      stdout: "pipe",
    },
  );
  return JSON.parse(await new Response(child.stdout).text()) as Record<string, any>;
}

try {
  const team = await admin("create-team", "--name", "Other");
  const project = await admin("create-project", "--team", team["id"], "--name", "Other");
  const { key: otherKey } = await admin(
    "generate-key",
    "--project",
    project["id"],
    "--name",
    "ci",
    "--scope",
    "upload",
  );
  const [list, otherList] = [servers.project, project["id"]].map((id) => `/projects/${id}/test-runs`) as [
    string,
    string,
  ];
  const small = `<testsuite name="s"><testcase name="one"/></testsuite>`;
  const { answer } = await ask(servers.key, `${list}?execution_key=x&task_slug=small`, small);
  const cases = Array.from({ length: CASES }, (_, at) => `<testcase name="${at}"/>`).join("");
  const large = Bun.gzipSync(`<testsuite name="s">${cases}</testsuite>`);
  let isOver = false;
  const upload = ask(servers.key, `${list}?execution_key=x&task_slug=large`, large, { "content-encoding": "gzip" });
  void upload.then(() => (isOver = true));
  const complete = `/projects/${servers.project}/executions/${answer["executionId"]}/complete`;
  const completions: ReturnType<typeof ask>[] = [];
  let [others, waited] = [0, 0];
  const own = (async () => {
    while (!isOver && completions.length < WAITING) {
      for (let at = 0; at < 2; at++) completions.push(ask(servers.key, complete));
      await Bun.sleep(400);
    }
  })();
  // Often, because a quiet machine holds the lock for a moment only.
  const looking = (async () => {
    while (!isOver) {
      waited = Math.max(waited, (await servers.database.pool`select from pg_locks where not granted`).length);
      await Bun.sleep(20);
    }
  })();
  let failed = 0;
  while (!isOver) {
    const { status, ms } = await ask(otherKey, `${otherList}?task_slug=t`, small);
    others = Math.max(others, ms);
    if (status !== 201 && status !== 429) failed++;
    await Bun.sleep(500);
  }
  await own;
  await looking;
  const { status, ms } = await upload;
  await Promise.all(completions);
  judge(
    ["the large upload is taken", status === 201, `${status} in ${ms} ms`],
    ["transactions of one team wait for a lock", waited > 0, `${waited} locks are waited for at the most`],
    [
      "uploads of another team are taken meanwhile",
      failed === 0 && others < MAX_MS,
      `at most ${others} ms, ${failed} refused`,
    ],
  );
} finally {
  await servers.stop();
}
