/** A receiver that refuses, thousands of events for it on two servers: what waits is bounded, and no issue is lost. */

import { judge, startServers } from "./servers.ts";

const UPLOADS = 1_000;
const MAX_WAITING = 1_000;
const AT_ONCE = 8;
const ISSUES = 40;
const SECONDS = 50;
const MEBIBYTE = 1_048_576;

// Nobody listens there.
const nobody = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
const address = `http://127.0.0.1:${nobody.port}`;
await nobody.stop(true);

const assay = await startServers({
  count: 2,
  environment: { OUTBOUND_ALLOW: "127.0.0.0/8" },
});
const { servers, team, teamKey, project, key, database } = assay;
const began = performance.now();
const isLate = () => performance.now() - began > SECONDS * 1000;

async function ask(method: string, path: string, bearer: string, body?: unknown, server = 0): Promise<any> {
  const response = await fetch(`${servers[server]!.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${bearer}` },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
}

const counts = async () => {
  const [row] = await database.pool<
    { pending: number; failed: number; replaced: number; issues: number; bytes: number }[]
  >`
    select count(*) filter (where status = 'pending')::int as pending,
      count(*) filter (where status = 'failed')::int as failed,
      count(*) filter (where status = 'failed' and not given_up)::int as replaced,
      count(*) filter (where status = 'pending' and action = 'create_issue')::int as issues,
      pg_total_relation_size('delivery')::float8 as bytes
    from delivery`;
  return row!;
};

try {
  const kind = { kind: "gitlab", config: { baseUrl: address, project: "acme/web", token: "http:" } };
  const { id: integrationId } = await ask("POST", `/teams/${team}/integrations`, teamKey, kind);
  const automate = (event: string, type: string) =>
    ask("POST", `/teams/${team}/automations`, teamKey, {
      ...{ name: type, trigger: { event }, actions: [{ type, integrationId }] },
    });
  for (const event of ["test_run.completed", "execution.completed"]) await automate(event, "notify");
  await automate("bug_report.opened", "create_issue");
  for (let index = 0; index < ISSUES; index++)
    await ask("POST", `/projects/${project}/bug-reports`, key, { title: `issue ${index}` });

  let [highest, slowest, uploads] = [0, 0, 0];
  const report = `<testsuite name="s"><testcase name="c" time="0.1"/></testsuite>`;
  const sampling = setInterval(
    async () => (highest = Math.max(highest, (await counts().catch(() => ({ pending: 0 }))).pending)),
    100,
  );
  const send = async (server: number) => {
    while (uploads < UPLOADS && !isLate()) {
      uploads++;
      const start = performance.now();
      const path = `/projects/${project}/test-runs?branch=main&pull_request=${uploads}`;
      await ask("POST", path, key, report, server % 2);
      slowest = Math.max(slowest, performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, server) => send(server)));
  const uploaded = performance.now();

  const eventsLeft = async () => {
    const [row] = await database.pool<
      { left: number }[]
    >`select count(*)::int as left from event where due_at <= now()`;
    return row!.left;
  };
  while ((await eventsLeft()) > 0 && !isLate()) await Bun.sleep(100);
  // Two servers that come to the bound at the same moment leave one too many until the next round of a loop.
  while ((await counts()).pending > MAX_WAITING && !isLate()) await Bun.sleep(100);
  const left = await eventsLeft();
  clearInterval(sampling);
  const { pending, failed, replaced, issues, bytes } = await counts();
  const { givenUp } = await ask("GET", `/teams/${team}/integrations/${integrationId}`, teamKey);
  const made = uploads * 2 + ISSUES;
  judge(
    [`${UPLOADS} uploads and the events of them are handled`, uploads === UPLOADS && left === 0, `${left} left`],
    ["at most 1,000 deliveries wait", pending <= MAX_WAITING, `${pending}, at their highest ${highest}`],
    ["and not many more for a moment", highest <= MAX_WAITING + AT_ONCE, highest],
    ["the rest is given up, and none is lost", pending + failed === made, `${failed} given up of ${made}`],
    ["the integration says how many", (givenUp ?? 0) === failed - replaced, givenUp],
    [`all ${ISSUES} issues wait`, issues === ISSUES, issues],
    ["deliveries take less than 32 MiB", bytes < 32 * MEBIBYTE, `${(bytes / MEBIBYTE).toFixed(1)} MiB`],
    ["no upload waits for them", slowest < 5_000, `the slowest took ${Math.round(slowest)} ms`],
    ["no server logs an error", servers.every(({ logged }) => logged("error").length === 0)],
  );
  console.log(
    `       uploads took ${Math.round((uploaded - began) / 1000)} s, all ${Math.round((performance.now() - began) / 1000)} s`,
  );
} finally {
  await assay.stop();
}
