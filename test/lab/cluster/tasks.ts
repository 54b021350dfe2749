/** Executions whose tasks run on real runners. Every task writes to a ledger when it begins: a lease must begin once. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunnerProcess, startRunner } from "../faults/runners.ts";
import type { Application } from "./application.ts";

const RUNNERS = 2;
const TASKS = 8;
const RETRY_MS = 500;
const POLL_MS = 500;
/** Longer than a lease whose runner is not heard of is kept. */
const END_MS = 240_000;

export function startTasks({ url, projects, database }: Application, folder: string) {
  const { project, key } = projects.at(-1)!;
  const ledger = join(folder, "ledger");
  writeFileSync(ledger, "");
  const command = `
    echo "$ASSAY_LEASE_ID" >> ${ledger}; sleep 0.$(( $$ % 9 + 1))
    printf '<testsuite name="%s"><testcase name="a"/><testcase name="b"/></testsuite>' "$ASSAY_TASK" > "$ASSAY_TASK.xml"`;
  const slugs = Array.from({ length: TASKS }, (_, at) => `task-${at}`);
  const tasks = Object.fromEntries(slugs.map((slug) => [slug, { command, report: `${slug}.xml` }]));
  // Each runner has a machine of its own: here at least a directory.
  const runners: RunnerProcess[] = Array.from({ length: RUNNERS }, (_, at) => {
    const directory = join(folder, `runner ${at}`);
    mkdirSync(directory);
    const config = join(directory, "assay.yaml");
    writeFileSync(config, JSON.stringify({ tasks }));
    return startRunner({ project, key }, { url, config, args: ["--concurrency", "2", "--name", `runner ${at}`] });
  });
  const executions: string[] = [];
  let isOver = false;
  let isStuck = false;
  let refused: string | undefined;

  async function ask(path: string, init: RequestInit = {}): Promise<Record<string, string> | undefined> {
    const headers = { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) };
    try {
      const response = await fetch(`${url}/api/v1/projects/${project}/executions${path}`, { ...init, headers });
      if (response.ok) return (await response.json()) as Record<string, string>;
      if (response.status < 500) refused ??= `${response.status} ${await response.text()}`;
    } catch {
      // It is repeated.
    }
    return undefined;
  }

  async function runOne(): Promise<void> {
    const body = JSON.stringify({ mode: "run", tasks: slugs, timeoutMinutes: 60 });
    const headers = { "content-type": "application/json", "idempotency-key": `execution-${executions.length}` };
    let created: Record<string, string> | undefined;
    while (!(created = await ask("", { method: "POST", headers, body }))) {
      if (refused !== undefined) throw new Error(`The execution is refused: ${refused}`);
      await Bun.sleep(RETRY_MS);
    }
    const id = created["id"]!;
    executions.push(id);
    for (const began = performance.now(); ; await Bun.sleep(POLL_MS)) {
      const status = (await ask(`/${id}`))?.["status"];
      if (status !== undefined && !["queued", "running"].includes(status)) return;
      if (performance.now() - began > END_MS) return void (isStuck = true);
    }
  }

  const working = (async () => {
    while (!isOver && !isStuck) await runOne();
  })();

  return {
    executions: () => executions.length,
    async finish() {
      isOver = true;
      await working;
      for (const { child } of runners) child.kill("SIGTERM");
      await Promise.all(runners.map(({ ended }) => ended));
      const begun = new Map<string, number>();
      for (const lease of readFileSync(ledger, "utf8").trim().split("\n"))
        begun.set(lease, (begun.get(lease) ?? 0) + 1);
      const leases = await database.pool<{ id: string; task: string; status: string; message: string | null }[]>`
        select id, execution_id || ' ' || task_slug as task, status, message from lease where project_id = ${project}`;
      const unsuccessful = await database.pool`
        select id from execution where project_id = ${project} and status <> 'passed'`;
      const runs = await database.pool<{ count: number }[]>`
        select count(*)::int as count from test_run
        where project_id = ${project} and execution_id = any (${`{${executions.join()}}`}::uuid[]) and status = 'passed'
          and passed = 2 and attempt = 1`;
      const ranByTask = Map.groupBy(
        leases.filter(({ id }) => begun.has(id)),
        ({ task }) => task,
      );
      return {
        executions: executions.length,
        unsuccessful: unsuccessful.length,
        isStuck,
        begun: begun.size,
        /** Leases whose command was started more than once. */
        twice: [...begun].filter(([, times]) => times > 1).map(([lease]) => lease),
        /** Tasks that ran again under another lease. */
        again: [...ranByTask].filter(([, those]) => those.length > 1).map(([task]) => task),
        /** Whether every task has one result. */
        results: runs[0]!.count,
        expected: executions.length * TASKS,
        messages: leases.flatMap(({ status, message }) => (status === "reported" ? [] : [`${status}: ${message}`])),
        statuses: Object.entries(Object.groupBy(leases, ({ status }) => status)).map(
          ([status, those]) => `${those!.length} ${status}`,
        ),
      };
    },
  };
}
