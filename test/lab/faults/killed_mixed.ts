/**
 * Kills a server with -9 under mixed load, again and again: uploads that are repeated with their idempotency key, and runners
 * that take leases, send logs and report. `bun test/lab/faults/killed_mixed.ts [rounds]`, 50 of them take about 4 minutes.
 */

import { judge, startServers } from "./servers.ts";

const ROUNDS = Number(process.argv[2] ?? 50);
const UPLOADERS = 8;
const RUNNERS = 8;
const TASKS = 6;
const CASES = 20;

const world = await startServers();
const base = () => `${world.servers[0]!.url}/api/v1/projects/${world.project}`;
const report = (name: string) =>
  `<testsuite name="${name}">${Array.from({ length: CASES }, (_, at) => `<testcase name="c${at}"/>`).join("")}</testsuite>`;

let isStopping = false;
type Answer = { status: number; body: any };

/** 0: no answer, so that nobody knows what has happened. */
async function send(path: string, body: string | object, key?: string): Promise<Answer> {
  try {
    const response = await fetch(`${base()}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${world.key}`, ...(key ? { "idempotency-key": key } : {}) },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  } catch {
    await Bun.sleep(5);
    return { status: 0, body: undefined };
  }
}

/** Until it is answered, by whichever server: at most one effect. */
async function insist(path: string, body: string | object): Promise<Answer> {
  const key = crypto.randomUUID();
  for (;;) {
    const answer = await send(path, body, key);
    if (answer.status !== 0 && answer.status < 500) return answer;
    await Bun.sleep(10);
  }
}

let number = 0;
let repeated = 0;
const uploads: { slug: string; executionId: string }[] = [];
async function uploader(): Promise<void> {
  while (!isStopping) {
    const slug = `upload-${number++}`;
    const began = world.servers[0];
    const { status, body } = await insist(`/test-runs?task_slug=${slug}`, report(slug));
    if (began !== world.servers[0]) repeated++;
    if (status !== 201) throw new Error(`An upload was answered ${status}: ${JSON.stringify(body)}`);
    uploads.push({ slug, executionId: body.executionId });
  }
}

const logs = new Map<string, { executionId: string; slug: string; acknowledged: string; sent: string }>();
const reported: { executionId: string; slug: string }[] = [];
const holders = new Map<string, string>();
let doubled = 0;
let lost = 0;

/** Takes tasks, prints some lines while it holds each, and reports it. */
async function runner(name: string): Promise<void> {
  const sync = async (held: object[], free = 0): Promise<Answer> => {
    for (;;) {
      const answer = await send("/leases", { runner: name, free, held });
      if (answer.status === 200) return answer;
      await Bun.sleep(10);
    }
  };
  while (!isStopping) {
    const { body } = await sync([], 1);
    for (const { id, execution, taskSlug } of body.leases) {
      const before = holders.get(id);
      if (before !== undefined && before !== name) doubled++;
      holders.set(id, name);
      const log = { executionId: execution.id, slug: taskSlug, acknowledged: "", sent: "" };
      logs.set(id, log);
      let isHeld = true;
      for (let line = 0; line < 4 && isHeld; line++) {
        const text = `${name} line ${line} ${crypto.randomUUID()}\n`;
        const offset = log.sent.length;
        log.sent += text;
        const answer = await sync([{ id, log: { offset, text } }]);
        isHeld = answer.body.held[0].expiresAt !== null;
        if (isHeld) log.acknowledged = log.sent;
      }
      const query = new URLSearchParams({ execution_id: execution.id, task_slug: taskSlug, lease_id: id });
      const done = await insist(`/test-runs?${query}`, report(taskSlug));
      if (done.status === 201) reported.push({ executionId: execution.id, slug: taskSlug });
      else lost++;
    }
  }
}

const executions: string[] = [];
async function producer(): Promise<void> {
  while (!isStopping) {
    const tasks = Array.from({ length: TASKS }, (_, at) => `task-${at}`);
    const { status, body } = await insist("/executions", { mode: "run", tasks });
    if (status !== 201) throw new Error(`An execution was answered ${status}: ${JSON.stringify(body)}`);
    executions.push(body.id);
    await Bun.sleep(40);
  }
}

const load = [
  ...Array.from({ length: UPLOADERS }, uploader),
  ...Array.from({ length: RUNNERS }, (_, at) => runner(`runner-${at}`)),
  producer(),
];
for (let round = 0; round < ROUNDS; round++) {
  const until = uploads.length + reported.length + 10 + Math.random() * 60;
  while (uploads.length + reported.length < until) await Promise.race([Bun.sleep(1), ...load]);
  const [server] = world.servers;
  server!.child.kill("SIGKILL");
  await server!.child.exited;
  await world.restart(0);
}
isStopping = true;
await Promise.all(load);

const { pool } = world.database;
const runs = await pool<{ id: string; slug: string; executionId: string; passed: number; stored: number }[]>`
  select r.id, r.task_slug as slug, r.execution_id as "executionId", r.passed,
    (select coalesce(sum(cardinality(c.test_cases)), 0)::int from case_result c
      where c.project_id = r.project_id and c.run_id = r.id) as stored
  from test_run r where r.project_id = ${world.project}`;
const bySlug = Map.groupBy(runs, ({ slug }) => slug);
const byTask = Map.groupBy(runs, ({ executionId, slug }) => `${executionId} ${slug}`);
const missing = uploads.filter(({ slug, executionId }) => bySlug.get(slug)?.[0]?.executionId !== executionId).length;
const twice = uploads.filter(({ slug }) => (bySlug.get(slug)?.length ?? 0) > 1).length;
const unreported = reported.filter(
  ({ executionId, slug }) => byTask.get(`${executionId} ${slug}`)?.[0]?.passed !== CASES,
);
const halves = runs.filter(
  ({ slug, passed, stored }) => (slug.startsWith("upload-") || passed > 0) && (passed !== CASES || stored !== CASES),
);
const leases = await pool<{ id: string; log: string }[]>`
  select l.id, coalesce((select convert_from(string_agg(g.bytes, ''::bytea order by g.start), 'UTF8') from lease_log g
    where g.project_id = l.project_id and g.lease_id = l.id), '') as log
  from lease l where l.project_id = ${world.project} and l.runner is not null`;
const kept = new Map(leases.map(({ id, log }) => [id, log]));
const torn = [...logs].filter(([id, { acknowledged, sent }]) => {
  const log = kept.get(id) ?? "";
  return !log.startsWith(acknowledged) || !sent.startsWith(log);
});
const uniqueReports = new Set(reported.map(({ executionId, slug }) => `${executionId} ${slug}`)).size;
console.log(
  `${ROUNDS} rounds; ${uploads.length} uploads (${repeated} over a kill), ${executions.length} executions, ${logs.size} leases, ` +
    `${reported.length} reports of leases, ${lost} of leases that were lost`,
);
judge(
  ["every acknowledged upload is there, in the execution that the answer named", missing === 0, `${missing} missing`],
  ["none is there twice", twice === 0, `${twice} twice`],
  ["none is there by halves", halves.length === 0, `${halves.length} damaged`],
  ["every acknowledged report of a lease is there", unreported.length === 0, `${unreported.length} missing`],
  ["no task was reported twice", uniqueReports === reported.length, `${reported.length - uniqueReports} twice`],
  ["no lease was given to two runners", doubled === 0, `${doubled}`],
  ["each log has what was acknowledged, once and in order", torn.length === 0, `${torn.length} of ${logs.size} torn`],
);
await world.stop();
