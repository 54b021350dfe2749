/**
 * Kills a server with -9 in the middle of a hundred uploads, again and again: what was acknowledged is there once and
 * whole, nothing is there by halves. `bun test/lab/faults/killed_server.ts [rounds]`, 50 of them take about 2 minutes.
 */

import { judge, startServers } from "./servers.ts";

const ROUNDS = Number(process.argv[2] ?? 50);
const UPLOADS = 100;
const AT_ONCE = 16;
const CASES = 40;

const world = await startServers();
const headers = { authorization: `Bearer ${world.key}` };
const acknowledged: string[] = [];
let number = 0;

async function upload(url: string): Promise<boolean> {
  const name = `task-${number++}`;
  const cases = Array.from({ length: CASES }, (_, at) =>
    at % 2 ? `<testcase name="c${at}"><failure message="no ${at}"/></testcase>` : `<testcase name="c${at}"/>`,
  );
  const path = `${url}/api/v1/projects/${world.project}/test-runs?task_slug=${name}`;
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { ...headers, "idempotency-key": name },
      body: `<testsuite name="${name}">${cases.join("")}</testsuite>`,
    });
    if (response.status !== 201) return false;
    await response.arrayBuffer();
    acknowledged.push(name);
    return true;
  } catch {
    return false;
  }
}

for (let round = 0; round < ROUNDS; round++) {
  const [server] = world.servers;
  let left = UPLOADS;
  let sound = 0;
  const uploaders = Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0 && (await upload(server!.url))) sound++;
  });
  const until = Math.floor(Math.random() * UPLOADS * 0.9);
  while (sound < until && left > 0) await Bun.sleep(1);
  server!.child.kill("SIGKILL");
  await Promise.all([...uploaders, server!.child.exited]);
  await world.restart(0);
}

const half = CASES / 2;
const [sum] = await world.database.pool<Record<"runs" | "slugs" | "executions" | "damaged", number>[]>`
  select count(*)::int as runs, count(distinct task_slug)::int as slugs,
    (select count(*)::int from execution) as executions,
    count(*) filter (where (passed, failed) <> (${half}::int, ${half}::int) or verdict is distinct from 'failed'
      or (select coalesce(sum(cardinality(c.test_cases)), 0) from case_result c
        where c.project_id = r.project_id and c.run_id = r.id) <> ${CASES}::int)::int as damaged
  from test_run r`;
const there = await world.database.pool<{ slug: string }[]>`select task_slug as slug from test_run`;
const slugs = new Set(there.map(({ slug }) => slug));
const lost = acknowledged.filter((slug) => !slugs.has(slug));
console.log(`${ROUNDS} rounds, ${number} uploads begun, ${acknowledged.length} acknowledged, ${sum!.runs} stored`);
judge(
  ["every acknowledged upload is there", lost.length === 0, `${lost.length} lost`],
  ["none is there twice", sum!.slugs === sum!.runs && sum!.executions === sum!.runs, `${sum!.executions} executions`],
  ["none is there by halves", sum!.damaged === 0, `${sum!.damaged} damaged`],
);
await world.stop();
