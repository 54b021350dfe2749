/** One upload of 100,000 cases: all new, all known, against parsing alone and against COPY; and what others feel. */

import type { Sql } from "../../../src/database/connect.ts";
import { type BenchServer, median, wrk } from "./server.ts";

const CASES = 100_000;
const ROUNDS = 5;
const LONG = "a.package.name.that.is.as.long.as.they.are.in.large.repositories.of.large.companies";

/** About 20 MB of JUnit as surefire writes it, a failure in every thousand; `seed` makes the cases new. */
export function report(cases: number, seed: string): string {
  const parts = [`<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="bench">\n`];
  for (let suite = 0; suite < cases / 100; suite++) {
    parts.push(`  <testsuite name="com.acme.${seed}.Suite${suite}" tests="100">\n`);
    for (let index = 0; index < 100; index++) {
      const failure =
        (suite * 100 + index) % 1_000 === 0
          ? `\n      <failure message="expected ${index}" type="AssertionError">at com.acme.Suite${suite}.test(Suite.java:${index})</failure>\n    `
          : "";
      parts.push(
        `    <testcase classname="com.acme.${seed}.Suite${suite}" name="does what it should in the case of number ${index}" time="0.${100 + index}" file="src/test/java/com/acme/Suite${suite}.java">${failure}</testcase>\n`,
      );
    }
    parts.push("  </testsuite>\n");
  }
  parts.push("</testsuites>\n");
  return parts.join("");
}

async function time(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

async function upload({ url, project, key }: BenchServer, body: string, query = ""): Promise<void> {
  const response = await fetch(`${url}/api/v1/projects/${project}/test-runs?task_slug=bench${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body,
  });
  if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
  await response.text();
}

/** What follows an upload would otherwise be paid for by the next one. */
async function untilRemembered({ database }: BenchServer): Promise<void> {
  while ((await database.pool`select from test_run where not health_applied limit 1`).length > 0) await Bun.sleep(50);
}

async function copyFlat({ database }: BenchServer): Promise<void> {
  await database.begin(async (sql) => {
    await sql`create table if not exists flat (run int, suite text, name text, status text, duration int)`;
    const writable = await sql`copy flat from stdin`.writable();
    for (let start = 0; start < CASES; start += 1_000) {
      let chunk = "";
      for (let index = start; index < start + 1_000; index++)
        chunk += `1\tcom.acme.Suite${index / 100}\tdoes what it should in the case of number ${index % 100}\tpassed\t100\n`;
      if (!writable.write(chunk)) await new Promise((resolve) => writable.once("drain", resolve));
    }
    await new Promise((resolve, reject) => writable.once("finish", resolve).once("error", reject).end());
  });
}

/** Large ones at once, all of their cases new, and what others feel in the worst seconds of it. */
async function floodWith(server: BenchServer, bodies: readonly string[], measure: () => ReturnType<typeof wrk>) {
  await untilRemembered(server);
  await server.forgetPeak();
  let isOver = false;
  const uploads = Promise.all(bodies.map((body) => upload(server, body))).finally(() => (isOver = true));
  const seen: number[] = [];
  const took = time(() => uploads);
  while (!isOver) seen.push((await measure()).p99Ms);
  return { p99Ms: Math.max(...seen), ms: await took, peak: (await server.memory()).peak };
}

export async function benchIngest(server: BenchServer): Promise<string[][]> {
  const idle = await server.memory();
  const big = report(195_000, LONG);
  const list = `${server.url}/api/v1/projects/${server.project}/test-runs`;
  const measure = () => wrk(list, { key: server.key, connections: 4, seconds: 5 });
  const quiet = await measure();
  const [busy] = await Promise.all([measure(), Bun.sleep(300).then(() => upload(server, big))]);
  const { peak } = await server.memory();

  const known = report(CASES, "known");
  await upload(server, known);
  await untilRemembered(server);
  await server.database.pool`vacuum analyze`;
  const results = {
    parse: [] as number[],
    fresh: [] as number[],
    known: [] as number[],
    remember: [] as number[],
    copy: [] as number[],
  };
  for (let round = 0; round < ROUNDS; round++) {
    results.parse.push(await time(() => (Bun as any).XML.parse(known, { compact: false })));
    results.copy.push(await time(() => copyFlat(server)));
    results.known.push(await time(() => upload(server, known)));
    results.remember.push(await time(() => untilRemembered(server)));
  }
  // Afterwards, because the database is still busy with what is new when the answer is out.
  for (let round = 0; round < ROUNDS; round++) {
    const fresh = report(CASES, `fresh${round}`);
    results.fresh.push(await time(() => upload(server, fresh)));
    await untilRemembered(server);
  }
  const flood = await floodWith(
    server,
    Array.from({ length: 4 }, (_, index) => report(195_000, LONG.replace("large", `large${index}`))),
    () => wrk(list, { key: server.key, connections: 4, seconds: 2 }),
  );
  const [parse, copy, knownMs, freshMs] = [results.parse, results.copy, results.known, results.fresh].map(median) as [
    number,
    number,
    number,
    number,
  ];
  const ms = (value: number) => `${Math.round(value)} ms`;
  const megabytes = (text: string) => `${Math.round(text.length / 1_048_576)} MiB`;
  return [
    [
      `upload of 100,000 known cases (${megabytes(known)}) against \`Bun.XML.parse\` of it alone`,
      (knownMs / parse).toFixed(1),
      "≤ 7",
      `${ms(knownMs)} to ${ms(parse)}`,
    ],
    [
      "from that answer until the catalogue has counted the 100,000 results, in the background",
      ms(median(results.remember)),
      "",
      "",
    ],
    ["the same, all cases new", (freshMs / parse).toFixed(1), "≤ 14", ms(freshMs)],
    ["the same, known, against COPY of as many rows into one flat table", (knownMs / copy).toFixed(1), "≤ 3", ms(copy)],
    [
      `p99 of the list during an upload of ${megabytes(big)}`,
      ms(busy.p99Ms),
      "< 50 ms",
      `${quiet.p99Ms.toFixed(1)} ms without`,
    ],
    ["memory of the server: idle; peak during that upload", `${idle.now} MiB; ${peak} MiB`, "< 90; < 450", ""],
    [
      `p99 of the list during four such uploads at once, all cases new, in the worst two seconds`,
      ms(flood.p99Ms),
      "< 50 ms",
      `all four answered after ${(flood.ms / 1_000).toFixed(1)} s`,
    ],
    ["memory of the server: peak during these four", `${flood.peak} MiB`, "< 600", ""],
  ];
}

/** Of all months. */
const sizeOf = (sql: Sql) => sql`
  (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'case_result'::regclass)`;

/** Bytes per stored result, indexes included, with a steady set of cases. */
export async function benchSize(server: BenchServer, results: number): Promise<string[][]> {
  const { database, project } = server;
  // A project of its own: 2,000 cases in 5 tasks, run again and again; rows as the server writes them.
  const runs = results / 2_000;
  await database.begin(async (sql) => {
    await sql`set local statement_timeout = 0`;
    await sql`
      insert into execution (project_id, id, status, trigger, timeout_minutes, created_at)
      values (${project}, '00000000-0000-7000-8000-000000000000', 'passed', 'upload', 30, now())`;
    await sql`create table before as select ${sizeOf(sql)} as size`;
    await sql`
      insert into test_run (project_id, id, execution_id, task_slug, status)
      select ${project}, ('00000000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid,
        '00000000-0000-7000-8000-000000000000', 'size ' || n, 'passed' from generate_series(1, ${runs}::int) n`;
    await sql`
      insert into case_result (project_id, run_id, block, test_cases, statuses, durations)
      select ${project}, ('00000000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid, 1000000 + block,
        (select array_agg(i) from generate_series(128000000 + block * 128, 128000000 + block * 128 + size - 1) i),
        repeat('p', size), (select array_agg((random() * 500)::int) from generate_series(1, size))
      from generate_series(1, ${runs}::int) n, (select b as block, case when b < 15 then 128 else 80 end as size from generate_series(0, 15) b) blocks`;
  });
  const [row] = await database.pool`
    select (${sizeOf(database.pool)} - size)::float8 / ${results}::int as bytes from before`;
  return [
    [
      `bytes per stored case result, indexes included, at ${(results / 1e6).toFixed(0)} million`,
      row!["bytes"].toFixed(1),
      "≤ 90",
      "",
    ],
  ];
}
