/** Small uploads, as CI posts them all day: how many a second, against pgbench writing the same rows. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BenchServer, median, wrk } from "./server.ts";

const CONNECTIONS = 8;
const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);
const SECONDS = 4;
const WARM_UP = 4;

/** JUnit of so many cases, all passed; always the same ones. */
function greenReport(cases: number): string {
  const one = (index: number) =>
    `<testcase classname="com.acme.Suite${index % 5}" name="does what it should in the case of number ${index}" time="0.${100 + index}" file="src/test/java/com/acme/Suite${index % 5}.java"/>\n`;
  const all = Array.from({ length: cases }, (_, index) => one(index)).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="bench"><testsuite name="unit" tests="${cases}">\n${all}</testsuite></testsuites>\n`;
}

/** For wrk: every request is the first report of a build of its own, as in the README's line of curl, its commit a full hash. */
const posting = ({ project, key }: BenchServer, body: string, round: string) => `
local number = 0
local body = [==[${body}]==]
local headers = { ["Authorization"] = "Bearer ${key}" }
local path = "/api/v1/projects/${project}/test-runs?task_slug=small&branch=main&execution_key=${round}-"
request = function()
  number = number + 1
  return wrk.format("POST", path .. number .. "&commit=" .. string.format("%08x", number * 2654435761 % 4294967296) .. "${round}0123456789abcdef0123", headers, body)
end
`;

async function upload(server: BenchServer, cases: number) {
  const script = join(server.directory, "upload.lua");
  const round = Bun.randomUUIDv7("hex").replaceAll("-", "").slice(-12);
  await writeFile(script, posting(server, greenReport(cases), round));
  return await wrk(server.url, { connections: CONNECTIONS, seconds: SECONDS, script });
}

/** Milliseconds until the last of the runs is counted in the catalogue. */
async function untilCounted({ database }: BenchServer): Promise<number> {
  const started = performance.now();
  while ((await database.pool`select from test_run where not health_applied limit 1`).length > 0) await Bun.sleep(20);
  return performance.now() - started;
}

/** What every such upload cannot do without: its run with its packed results, in one prepared statement, and a commit. */
async function pgbench({ database, directory, connection, project }: BenchServer): Promise<number> {
  const [sample] = await database.pool`
    select r.execution_id, r.id, b.test_cases::text, b.statuses, b.durations::text from test_run r
    join case_result b on b.project_id = r.project_id and b.run_id = r.id
    where r.project_id = ${project} and r.task_slug = 'small' and cardinality(b.test_cases) > 1
    order by r.id desc limit 1`;
  const { execution_id, test_cases, statuses, durations } = sample!;
  const file = join(directory, "upload.sql");
  await writeFile(
    file,
    `with run as (
      insert into test_run (project_id, id, execution_id, task_slug, status, attempt, passed, verdict, format, completed_at)
      values ('${project}', gen_random_uuid(), '${execution_id}', 'pgbench' || random(), 'passed', 1, 50, 'passed',
        'junit', now())
      returning id)
    insert into case_result (project_id, run_id, block, test_cases, statuses, durations)
    select '${project}', id, 0, '${test_cases}', '${statuses}', '${durations}' from run;\n`,
  );
  const { host, port, username, password, database: name } = connection;
  const output =
    await Bun.$`pgbench -n -M prepared -c ${CONNECTIONS} -j 1 -T ${SECONDS} -f ${file} -h ${host} -p ${port} -U ${username} ${name}`
      .env({ ...process.env, PGPASSWORD: password })
      .quiet()
      .text();
  await database.pool`delete from test_run where project_id = ${project} and task_slug like 'pgbench%'`;
  return Number(/tps = ([\d.]+)/.exec(output)![1]);
}

export async function benchUploads(server: BenchServer): Promise<string[][]> {
  const results: Record<string, number[]> = {};
  const note = (name: string, value: number) => (results[name] ??= []).push(value);
  // What CI posts to has been running for days: its code is compiled.
  for (let round = 0; round < WARM_UP; round++) await upload(server, 50);
  await untilCounted(server);
  for (let round = 0; round < ROUNDS; round++) {
    const fifty = await upload(server, 50);
    note("counted", await untilCounted(server));
    note("50", fifty.perSecond);
    note("p50", fifty.p50Ms);
    note("p99", fifty.p99Ms);
    note("pgbench", await pgbench(server));
    note("1", (await upload(server, 1)).perSecond);
    await untilCounted(server);
    note("500", (await upload(server, 500)).perSecond);
    await untilCounted(server);
  }
  const of = (name: string) => median(results[name]!);
  const perSecond = (name: string) => `${Math.round(of(name)).toLocaleString("en")}/s`;
  return [
    [
      `uploads of 50 known cases, all effects included, ${CONNECTIONS} connections`,
      perSecond("50"),
      "≥ 1,000/s",
      `p50 ${of("p50").toFixed(0)} ms; 1 case ${perSecond("1")}, 500 cases ${perSecond("500")}`,
    ],
    ["the same: p99", `${of("p99").toFixed(0)} ms`, "< 40 ms", ""],
    ["from the last answer until all of them are counted", `${(of("counted") / 1_000).toFixed(1)} s`, "< 2 s", ""],
    [
      "the same against pgbench writing run, results and commit",
      (of("50") / of("pgbench")).toFixed(2),
      "≥ 0.20",
      `of ${perSecond("pgbench")}`,
    ],
  ];
}
