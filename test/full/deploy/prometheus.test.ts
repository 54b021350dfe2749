/** Debian's Prometheus scrapes a server, and evaluates the queries of the dashboard for Grafana and of the alerts. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createAsking } from "../../asking.ts";
import { createHarness, junit, until } from "../../harness.ts";
import { createPlace, guardProcess, readOutput, removePlace } from "../../places.ts";
import { updateBackedUp } from "../../../src/store/restored.ts";

const ROOT = join(import.meta.dir, "../../..");
const ALERTS = join(ROOT, "deploy/prometheus/alerts.yaml");
const hasPrometheus = ["prometheus", "promtool"].every((name) => Bun.which(name) !== null);
if (!hasPrometheus) console.warn("Prometheus is not installed: the dashboard and the alerts are not tested");

const harness = await createHarness({ ownDatabase: true });
const { ask, acme, database, metrics, url } = harness;
const folder = createPlace("prometheus");
let prometheus = "";
let child: Bun.Subprocess | undefined;

type Panel = {
  title: string;
  type: string;
  targets?: { expr: string }[];
  gridPos: Record<"x" | "y" | "w" | "h", number>;
};
const dashboard = JSON.parse(readFileSync(join(ROOT, "deploy/grafana/assay.json"), "utf8")) as {
  panels: Panel[];
  templating: { list: { name: string }[] };
};
const panels = dashboard.panels.filter(({ type }) => type !== "row");

/** Port 0 is not possible: Prometheus does not tell which one it has got. */
async function findFreePort(): Promise<number> {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as { port: number };
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

async function get(path: string): Promise<any> {
  const answer = await fetch(`${prometheus}/api/v1/${path}`);
  return await answer.json();
}
const evaluate = async (query: string) => await get(`query?${new URLSearchParams({ query })}`);

/** Uploads, a refused upload, a task that waits, and a backup. */
async function makeFigures(): Promise<void> {
  const own = createAsking(ask, acme);
  for (const letters of ["pp", "pf"]) await own.post("/test-runs?task_slug=unit&branch=main", junit(letters));
  await ask(`POST /projects/${acme.project}/test-runs`, { key: acme.key, body: "no report" });
  await own.post("/executions", { mode: "run", tasks: ["e2e"] });
  await own.post("/leases", { runner: "ann", free: 0 });
  metrics.deleted("case_result", 3);
  await updateBackedUp(database.pool, new Date().toISOString());
}

beforeAll(async () => {
  if (!hasPrometheus) return;
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: [ALERTS],
    scrape_configs: [{ job_name: "assay", static_configs: [{ targets: [new URL(url).host] }] }],
  };
  writeFileSync(join(folder, "prometheus.yml"), JSON.stringify(config));
  prometheus = `http://127.0.0.1:${await findFreePort()}`;
  child = Bun.spawn(
    [
      ...["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"],
      `--web.listen-address=${new URL(prometheus).host}`,
    ],
    { cwd: folder, stdout: "ignore", stderr: "inherit" },
  );
  guardProcess(child);
  await until(async () => (await fetch(`${prometheus}/-/ready`).catch(() => undefined))?.status === 200);
  await makeFigures();
  // Rates need two scrapes after the first figures.
  const seen = async () =>
    (await evaluate("count_over_time(assay_uploads_total{outcome='accepted'}[1m])")).data.result[0];
  await until(async () => Number((await seen())?.value[1] ?? 0) >= 3);
}, 90_000);

afterAll(async () => {
  child?.kill("SIGKILL");
  await child?.exited;
  await removePlace(folder);
});

describe.skipIf(!hasPrometheus)("with Prometheus", () => {
  test("promtool accepts the alerts, and what a server answers in both formats", async () => {
    const check = async (command: string[], input = "") =>
      await readOutput(
        Bun.spawn(["promtool", "check", ...command], { stdin: new Blob([input]), stdout: "pipe", stderr: "pipe" }),
      );
    expect(await check(["rules", ALERTS])).toMatchObject({ code: 0, errors: "" });
    expect(await check(["metrics"], await metrics.exposition())).toEqual({ code: 0, output: "", errors: "" });
  });

  test("it scrapes OpenMetrics: counters have the names that the text format gives them", async () => {
    const { data } = await get("targets");
    expect(data.activeTargets).toMatchObject([{ health: "up", lastError: "" }]);
    const scraped = await fetch(`${url}/metrics`, {
      headers: { accept: "application/openmetrics-text;version=1.0.0" },
    });
    expect(scraped.headers.get("content-type")).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
    const about = await get("metadata?metric=assay_uploads");
    expect(about.data["assay_uploads"]).toMatchObject([{ type: "counter" }]);
    const samples = (text: string) =>
      new Set(
        text
          .split("\n")
          .filter((line) => !line.startsWith("#"))
          .map((line) => line.replace(/ \S+$/, "")),
      );
    expect(samples(await scraped.text())).toEqual(samples(await metrics.exposition()));
  });

  test.each(panels.flatMap(({ title, targets }) => targets!.map(({ expr }) => [title, expr] as const)))(
    "the dashboard's %s has figures: %s",
    async (_, expr) => {
      const query = expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(?:job|instance)/g, ".+");
      expect(query).not.toContain("$");
      const { status, data, error } = await evaluate(query);
      expect([status, error]).toEqual(["success", undefined]);
      expect(data.result.length).toBeGreaterThan(0);
    },
  );

  test("the alerts are evaluated without errors, and a server that works well causes none", async () => {
    const rules = async () => (await get("rules")).data.groups.flatMap((group: any) => group.rules);
    await until(async () => (await rules()).every(({ health }: any) => health === "ok"), 90);
    expect((await rules()).length).toBeGreaterThanOrEqual(8);
    // The disk of this machine may be full.
    const names = (await get("alerts")).data.alerts.map(({ labels }: any) => labels.alertname);
    expect(names.filter((name: string) => name !== "AssayDiskFillsUp")).toEqual([]);
  }, 100_000);
});

test("the panels of the dashboard do not overlap, and its variables are those of its queries", () => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  const used = JSON.stringify(dashboard.panels).matchAll(/\$\{?(?!__)(\w+)/g);
  const names = dashboard.templating.list.map(({ name }) => name);
  expect(new Set([...used].map(([, name]) => name!))).toEqual(new Set(names));
});
