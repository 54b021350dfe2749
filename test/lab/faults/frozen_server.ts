/**
 * Freezes one of two servers (SIGSTOP) in the middle of uploads, again and again: uploads into its projects go on through the
 * other one. `bun test/lab/faults/frozen_server.ts [rounds]`, 6 of them take about 3 minutes.
 */

import { judge, startServers } from "./servers.ts";

const ROUNDS = Number(process.argv[2] ?? 6);
const AT_ONCE = 16;
const CASES = 200;
const FROZEN_MS = 25_000;
const BOUND_MS = 10_000;

const world = await startServers({ count: 2, environment: { LOG_LEVEL: "info" } });
const headers = { authorization: `Bearer ${world.key}` };
let number = 0;

/** Into one build, so that uploads wait for each other; half of the cases have new names, so that they are named. */
async function upload(url: string, execution: string, fresh: boolean): Promise<number> {
  const name = `task-${number++}`;
  const cases = Array.from({ length: CASES }, (_, at) => {
    const test = `<testcase name="${fresh && at % 2 ? `${name}-${at}` : `c${at}`}"`;
    return at % 5 ? `${test}/>` : `${test}><failure message="no ${at}"/></testcase>`;
  });
  const query = new URLSearchParams({ task_slug: name, execution_key: execution, branch: "main" });
  const response = await fetch(`${url}/api/v1/projects/${world.project}/test-runs?${query}`, {
    method: "POST",
    headers: { ...headers, "idempotency-key": crypto.randomUUID() },
    body: `<testsuite name="${fresh ? name : "s"}">${cases.join("")}</testsuite>`,
    signal: AbortSignal.timeout(120_000),
  });
  await response.arrayBuffer();
  return response.status;
}

const [frozen, other] = world.servers;
let isOver = false;
const slowest: number[] = [];
const refused: number[] = [];
const atFreeze: string[] = [];
for (let round = 0; round < ROUNDS; round++) {
  isOver = false;
  const execution = `round-${round}`;
  const loads = Array.from({ length: AT_ONCE }, async (_, at) => {
    while (!isOver) await upload(frozen!.url, execution, at % 2 === 0).catch(() => {});
  });
  // It is frozen while a transaction holds what others need.
  await Bun.sleep(1_000 + Math.random() * 500);
  for (let tries = 0; tries < 400; tries++) {
    frozen!.child.kill("SIGSTOP");
    await Bun.sleep(20);
    const [held] = await world.database.pool<{ count: number }[]>`
      select count(distinct a.pid)::int as count from pg_stat_activity a join pg_locks l on l.pid = a.pid
      where a.state like 'idle in transaction%' and l.locktype in ('advisory', 'transactionid') and l.granted`;
    if (held!.count > 0) {
      atFreeze.push(`${held!.count}`);
      break;
    }
    frozen!.child.kill("SIGCONT");
    await Bun.sleep(Math.random() * 20);
  }
  const since = performance.now();
  isOver = true;
  let worst = 0;
  const others = Array.from({ length: 4 }, async (_, at) => {
    while (performance.now() - since < FROZEN_MS) {
      const began = performance.now();
      const status = await upload(other!.url, at < 2 ? execution : `${execution}-${at}`, at % 2 === 0);
      worst = Math.max(worst, performance.now() - began);
      if (status !== 201) refused.push(status);
    }
  });
  await Promise.all(others);
  slowest.push(Math.round(worst));
  frozen!.child.kill("SIGCONT");
  await Promise.all(loads);
}
console.log(
  `transactions held at the freeze: ${atFreeze.join()}; slowest upload of each round: ${slowest.join(", ")} ms`,
);
judge(
  [
    "uploads through the other server take at most 10 s",
    slowest.every((ms) => ms < BOUND_MS),
    `${Math.max(...slowest)} ms`,
  ],
  ["none of them fails", refused.length === 0, refused.join() || "none"],
  ["the server was frozen within transactions", atFreeze.length > ROUNDS / 2, `${atFreeze.length} of ${ROUNDS}`],
);
await world.stop();
