/** /metrics: what a server with something to tell tells, as a strict reader of the text format sees it. */

import { describe, expect, test } from "bun:test";
import { createGauges } from "../../src/store/gauges.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { connect } from "../../src/database/connect.ts";
import { createDeliverer } from "../../src/work/deliver.ts";
import { createOutbound } from "../../src/http/outbound.ts";
import { createAddressList } from "../../src/http/address.ts";
import { selectCursorSecret } from "../../src/store/instance.ts";
import { updateBackedUp } from "../../src/store/restored.ts";
import { createLog } from "../../src/log.ts";
import { createHealthProbes } from "../../src/web/site/probes.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { createAsking } from "../asking.ts";
import { createHarness, createServer, holdTransaction, junit, SECRET_KEY, until } from "../harness.ts";

const { ask, acme, database, url, metrics } = await createHarness({
  ownDatabase: true,
  outboundAllow: ["127.0.0.0/8"],
});
const { pool } = database;
const own = `/projects/${acme.project}`;

type Family = { type: string; help: string; samples: Map<string, number> };

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$/;

/** Fails on whatever the text format 0.0.4 does not allow, and on what promtool complains about. */
function parse(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  expect(text.endsWith("\n")).toBe(true);
  let current: [name: string, family: Family] | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    const [, word, about, rest] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (word === "HELP") {
      expect(families.has(about!)).toBe(false);
      families.set(about!, { type: "", help: rest!, samples: new Map() });
      current = [about!, families.get(about!)!];
    } else if (word === "TYPE") {
      expect([about, current![1].type]).toEqual([current![0], ""]);
      expect(["counter", "gauge", "histogram"]).toContain(rest!);
      current![1].type = rest!;
    } else {
      const [, name = "", labels = "", value] = LINE.exec(line) ?? [];
      const [family, { type, samples }] = current!;
      const suffix = name.slice(family.length);
      expect([line, name.startsWith(family)]).toEqual([line, true]);
      expect(type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]).toContain(suffix);
      expect(value === "+Inf" || Number.isFinite(Number(value))).toBe(true);
      const key = `${suffix}{${labels}}`;
      expect(samples.has(key)).toBe(false);
      samples.set(key, Number(value));
      if (type === "counter") expect(family).toEndWith("_total");
    }
  }
  for (const [name, { type, samples }] of families) {
    expect([name, samples.size > 0]).toEqual([name, true]);
    if (type !== "histogram") continue;
    const buckets = [...samples].filter(([key]) => key.startsWith("_bucket"));
    const series = Map.groupBy(buckets, ([key]) => key.replace(/,?le="[^"]*"/, "").slice("_bucket".length));
    for (const [labels, values] of series) {
      const counts = values.map(([, value]) => value);
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
      expect(values.at(-1)![0]).toContain(`le="+Inf"`);
      expect(samples.get(`_count${labels}`)).toBe(counts.at(-1)!);
    }
  }
  return families;
}

/** Returns the text of /metrics, without the second for which it answers the same. */
const scrape = async () => parse(await metrics.exposition());
const valueOf = (families: Map<string, Family>, name: string, labels = "") =>
  families.get(name)?.samples.get(`{${labels}}`);

test("room on disks, the size of the database, its clock, the last backup, and what is deleted for its age", async () => {
  const directories = { data: import.meta.dir, attachments: "/nowhere" };
  const own = createMetrics({ database, gauges: createGauges(database), directories });
  own.deleted("case_result", 3);
  own.deleted("case_result", 4);
  const before = parse(await own.exposition());
  expect(before.has("assay_backup_age_seconds")).toBe(false);
  expect([...before.get("assay_disk_free_bytes")!.samples.keys()]).toEqual(['{directory="data"}']);
  expect(valueOf(before, "assay_disk_bytes", 'directory="data"')).toBeGreaterThan(0);
  expect(valueOf(before, "assay_database_bytes")).toBeGreaterThan(1_000_000);
  expect(Math.abs(valueOf(before, "assay_clock_skew_seconds")!)).toBeLessThan(60);
  expect(valueOf(before, "assay_deleted_rows_total", 'table="case_result"')).toBe(7);
  expect(valueOf(before, "assay_planned_deletions")).toBe(0);
  await selectCursorSecret(pool);
  await updateBackedUp(pool, new Date(Date.now() - 3_600_000).toISOString());
  await pool`insert into planned_deletion values (${acme.project}, 'results', 90, 12, now(), now())`;
  const after = await fresh();
  expect(valueOf(after, "assay_backup_age_seconds")! / 3_600).toBeCloseTo(1, 1);
  expect(valueOf(after, "assay_planned_deletions")).toBe(12);
  await pool`delete from planned_deletion`;
});

/** Only with the figures of the database. */
const fresh = async () => parse(await createMetrics({ database, gauges: createGauges(database) }).exposition());

describe("/metrics", () => {
  test("counts requests by route and not by path, also those that are refused or lead nowhere", async () => {
    for (let index = 0; index < 3; index++) await ask(`GET ${own}/test-runs`, acme);
    await ask(`GET ${own}/test-runs?limit=0`, acme);
    await ask(`GET ${own}/test-runs`, {});
    await ask(`HEAD ${own}/test-runs`, acme);
    for (let index = 0; index < 20; index++) {
      await ask(`GET ${own}/nowhere/${index}`, acme);
      await fetch(`${url}/nowhere/${index}`, { method: index % 2 ? "GET" : "PATCH" });
    }
    await fetch(`${url}/healthz`);
    const families = await scrape();
    const total = (labels: string) => valueOf(families, "assay_http_requests_total", labels);
    const route = `route="/api/v1/projects/:projectId/test-runs"`;
    expect(total(`${route},method="GET",status="200"`)).toBe(3);
    expect(total(`${route},method="GET",status="400"`)).toBe(1);
    expect(total(`${route},method="GET",status="401"`)).toBe(1);
    expect(total(`${route},method="HEAD",status="200"`)).toBe(1);
    expect(total(`route="/healthz",method="GET",status="200"`)).toBe(1);
    expect(total(`route="unknown",method="GET",status="404"`)).toBe(30);
    expect(total(`route="unknown",method="PATCH",status="404"`)).toBe(10);
    const durations = families.get("assay_http_request_duration_seconds")!.samples;
    expect(durations.get(`_count{${route},method="GET"}`)).toBe(5);
  });

  test("counts uploads and their cases by format, what was sent again once, and how long they took", async () => {
    const before = await scrape();
    const { send, uploadReport } = createAsking(ask, acme, "m");
    await send(junit("ppf"), "execution_key=m");
    await send(junit("ppf"), "execution_key=m");
    await uploadReport("1..2\nok 1 - a\nok 2 - b\n");
    await uploadReport(`${junit("pp")}<!--${"x".repeat(1_100_000)}-->`);
    await uploadReport(junit("p").replace("<testsuite", `<testsuite tests="9"`));
    await send("hello");
    await ask(`POST ${own}/test-runs`, { body: junit("p") });
    const after = await scrape();
    const grown = (name: string, key: string) =>
      (after.get(name)?.samples.get(key) ?? 0) - (before.get(name)?.samples.get(key) ?? 0);
    for (const [outcome, format, count] of [
      ["accepted", "junit", 2],
      ["accepted", "tap", 1],
      ["warned", "junit", 1],
      ["repeated", "junit", 1],
      ["refused", "unknown", 1],
      ["unauthorized", "unknown", 1],
    ] as const) {
      const key = `{outcome="${outcome}",format="${format}"}`;
      expect([key, grown("assay_uploads_total", key)]).toEqual([key, count]);
    }
    expect(grown("assay_upload_cases_total", `{format="junit"}`)).toBe(6);
    expect(grown("assay_upload_cases_total", `{format="tap"}`)).toBe(2);
    expect(grown("assay_upload_bytes_total", "{}")).toBeGreaterThan(1_100_000);
    expect(grown("assay_upload_ingest_seconds", "_count{}")).toBe(4);
  });

  test("holds no id, no slug and no key", async () => {
    const { upload, get } = createAsking(ask, acme);
    const { executionId } = await upload("p", "task_slug=secretslug");
    await get(`/executions/${executionId}/test-runs/secretslug`);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toContain("/test-runs/:taskSlug");
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|secretslug|svc_|Acme/);
  });

  test("tells what waits in the database, for all servers together", async () => {
    const empty = await fresh();
    for (const name of ["assay_queue_length", "assay_queue_oldest_seconds", "assay_runners", "assay_deliveries_due"])
      expect([name, valueOf(empty, name)]).toEqual([name, 0]);
    expect(valueOf(empty, "assay_leases", `status="timed_out"`)).toBe(0);
    expect(valueOf(empty, "assay_database_up")).toBe(1);
    const [run] = await pool<{ id: string; executionId: string }[]>`
      update test_run set health_applied = false where project_id = ${acme.project} and completed_at is not null
      returning id, execution_id as "executionId"`;
    const uncounted = (await pool`select from test_run where not health_applied`).length;
    await pool`update attempt set received_at = now() - interval '5 minutes' where run_id = ${run!.id}`;
    const lease = (status: string, queued: string, ended: string | null, labels = "{}") => pool`
      insert into lease (project_id, id, execution_id, run_id, task_slug, shard, shards, status, timeout_seconds,
        queued_at, ended_at, labels)
      values (${acme.project}, ${Bun.randomUUIDv7()}, ${run!.executionId}, ${run!.id}, 't', 0, 1, ${status}, 60,
        now() - ${queued}::text::interval, now() - ${ended}::text::interval, ${labels}::text[])`;
    await lease("queued", "90 seconds", null);
    await lease("queued", "10 seconds", null, "{linux,gpu}");
    await lease("running", "1 hour", null);
    await lease("lost", "1 hour", "1 minute");
    await lease("reported", "1 hour", "10 minutes");
    await pool`
      insert into runner (project_id, name, labels, free, held, seen_at) values
        (${acme.project}, 'a', '{}', 2, 1, now() - interval '1 minute'),
        (${acme.project}, 'b', '{}', 3, 4, now() - interval '3 minutes')`;
    await pool`
      insert into event (team_id, id, type, data, occurred_at, due_at)
      values (${acme.team}, ${Bun.randomUUIDv7()}, 'execution.completed', '{}', now() - interval '2 minutes', now())`;
    const families = await fresh();
    const gauges = (name: string) => Object.fromEntries(families.get(name)!.samples);
    expect(gauges("assay_leases")).toMatchObject({
      ...{ '{status="queued"}': 2, '{status="running"}': 1, '{status="reported"}': 0, '{status="lost"}': 1 },
    });
    expect(valueOf(families, "assay_queue_length")).toBe(2);
    expect(valueOf(families, "assay_queue_oldest_seconds")).toBeCloseTo(90, -1);
    expect(gauges("assay_queue_waiting")).toEqual({ '{labels=""}': 1, '{labels="linux,gpu"}': 1 });
    expect(valueOf(families, "assay_queue_waiting_oldest_seconds", `labels="linux,gpu"`)).toBeCloseTo(10, -1);
    expect(valueOf(families, "assay_runners")).toBe(1);
    expect(gauges("assay_runner_slots")).toEqual({ '{state="free"}': 2, '{state="held"}': 1 });
    expect(valueOf(families, "assay_runs_uncounted")).toBe(uncounted);
    expect(valueOf(families, "assay_runs_uncounted_oldest_seconds")).toBeCloseTo(300, -1);
    expect(valueOf(families, "assay_events_waiting")).toBe(1);
    expect(valueOf(families, "assay_events_oldest_seconds")).toBeCloseTo(120, -1);
    expect(families.get("assay_leases")!.help).toContain("The same on all servers");
    expect(valueOf(families, "assay_database_pool_size", `pool="transactions"`)).toBe(4);
    expect(valueOf(families, "assay_database_sessions", `state="active"`)).toBeGreaterThan(0);
  });

  test("tells how busy the pools are", async () => {
    const { promise: end, resolve: finish } = Promise.withResolvers<void>();
    const busy = Array.from({ length: 6 }, () => database.begin(async (sql) => (await sql`select 1`, await end)));
    await until(() => database.load()["transactions"]!.inUse === 4);
    const families = await fresh();
    expect(valueOf(families, "assay_database_pool_in_use", `pool="transactions"`)).toBe(4);
    expect(valueOf(families, "assay_database_pool_waiting", `pool="transactions"`)).toBe(2);
    finish();
    await Promise.all(busy);
    expect(database.load()["transactions"]).toMatchObject({ inUse: 0, waiting: 0 });
  });

  test("counts what attempts to deliver have come to, and what is due", async () => {
    const answers = [200, 500, 410];
    const receiver = Bun.serve({ port: 0, fetch: () => new Response("", { status: answers.shift()! }) });
    const config = { url: `http://127.0.0.1:${receiver.port}/` };
    const { body: webhook } = await ask(`POST /teams/${acme.team}/integrations`, {
      ...{ key: acme.teamKey, body: { kind: "webhook", config } },
    });
    for (let index = 0; index < 3; index++)
      await pool`
        insert into delivery (team_id, integration_id, id, action, options, event_type, notice, due_at)
        values (${acme.team}, ${webhook.id}, ${Bun.randomUUIDv7()}, 'notify', '{}', 'test', ${JSON.stringify({
          ...{ type: "test", occurredAt: new Date().toISOString(), lines: [], facts: [], data: {} },
        })}::text::json, now() - interval '30 seconds')`;
    const waiting = await fresh();
    expect(valueOf(waiting, "assay_deliveries_due")).toBe(3);
    expect(valueOf(waiting, "assay_deliveries_due_oldest_seconds")).toBeCloseTo(30, -1);
    const outbound = createOutbound({ allow: createAddressList(["127.0.0.0/8"]) });
    const log = createLog("error", () => {}, false);
    const services = { outbound, seal: createSeal(SECRET_KEY), onAttempt: metrics.delivery };
    const deliverer = createDeliverer(database, services, log);
    await deliverer.start();
    await deliverer.ended();
    void receiver.stop(true);
    const attempts = (await scrape()).get("assay_delivery_attempts_total")!.samples;
    expect(Object.fromEntries(attempts)).toEqual({
      '{outcome="sent"}': 1,
      '{outcome="retry"}': 1,
      '{outcome="failed"}': 1,
      '{outcome="inapplicable"}': 0,
    });
    const after = await fresh();
    expect([valueOf(after, "assay_deliveries_pending"), valueOf(after, "assay_deliveries_due")]).toEqual([1, 0]);
  });

  test("is written once for all who scrape within a second, and anew after it", async () => {
    let count = 0;
    const find = createHealthProbes({
      ...{ publicUrl: url, api: "/api/v1", isReady: async () => true, metricsToken: undefined },
      exposition: async () => `text ${++count}`,
    });
    const read = async () => (await find(new Request(`${url}/metrics`), "/metrics")!.answer()).body;
    expect(new Set(await Promise.all(Array.from({ length: 50 }, read)))).toEqual(new Set(["text 1"]));
    expect(await read()).toBe("text 1");
    await until(async () => (await read()) === "text 2");
  });

  test("tells of the process also where the database is away", async () => {
    const away = connect({ host: "127.0.0.1", port: 1 }, 1);
    const alone = createMetrics({ database: away, gauges: createGauges(away) });
    const families = parse(await alone.exposition());
    expect(valueOf(families, "assay_database_up")).toBe(0);
    expect(valueOf(families, "process_resident_memory_bytes")).toBeGreaterThan(0);
    expect(families.has("assay_queue_length")).toBe(false);
    alone.stop();
    await away.close();
  });

  test("and where it does not answer, within its deadline", async () => {
    const blocked = createMetrics({ database, gauges: createGauges(database) });
    const { release } = await holdTransaction(database, (sql) => sql`lock table runner`);
    const [one, other] = await Promise.all([blocked.exposition(), blocked.exposition()]);
    for (const text of [one, other]) expect(valueOf(parse(text), "assay_database_up")).toBe(0);
    await release();
    await until(async () => valueOf(parse(await blocked.exposition()), "assay_database_up") === 1);
    blocked.stop();
  });

  test("is open without a token, and with one told to those who have it only", async () => {
    const guarded = await createServer(database, { metricsToken: "open-sesame" });
    const get = async (authorization?: string) => {
      const response = await fetch(`${guarded.url}/metrics`, { headers: authorization ? { authorization } : {} });
      return [
        response.status,
        (await response.text()).includes("assay_database_up"),
        response.headers.get("www-authenticate"),
      ];
    };
    for (const wrong of [undefined, "open-sesame", "Basic open-sesame", "Bearer", "Bearer open-sesam"])
      expect([wrong, ...(await get(wrong))]).toEqual([wrong, 401, false, "Bearer"]);
    expect(await get("Bearer open-sesame")).toEqual([200, true, null]);
    const open = await fetch(`${url}/metrics`);
    expect([open.status, open.headers.get("content-type")]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
    expect(parse(await open.text()).size).toBeGreaterThan(20);
  });
});
