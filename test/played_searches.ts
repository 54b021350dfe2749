/** Searches for culprits in a project of their own, with a runner that a test plays. */

import { beforeEach, expect } from "bun:test";
import { createLog } from "../src/log.ts";
import type { Sql } from "../src/database/connect.ts";
import { advanceSearches } from "../src/work/culprits.ts";
import { createHarness, until } from "./harness.ts";

export const hash = (at: number) => `a${at.toString(16).padStart(39, "0")}`;
export const range = (commits: number) =>
  Array.from({ length: commits }, (_, at) => ({
    ...{ hash: hash(at), author: "Ada", date: "2026-01-31T10:00:00+01:00" },
    ...{ subject: `change ${at}`, files: [`file-${at}.ts`] },
  }));

/** Where each test breaks; the others pass. */
export type Breaks = Record<string, number>;

const NAMES = ["adds", "prints", "sorts"];
/** Tests that always pass: if nearly all failed, it would be an outage. */
const PASSING = Array.from({ length: 60 }, (_, at) => `passes ${at}`);

export type Lease = { id: string; execution: { commit: string }; only?: { name: string }[]; commits?: object };
type Work = {
  commits: number;
  breaks: Breaks;
  /** The test cases of which a report has results, of those that run together. */
  reported?: (names: string[]) => string[];
  free?: number;
};

const report = (names: readonly string[], at: number, breaks: Breaks) =>
  `<testsuite name="cart">${names
    .map((name) => {
      const failure = at >= (breaks[name] ?? Infinity) ? `<failure message="the ${name} is wrong"/>` : "";
      return `<testcase classname="${name}" name="${name}">${failure}</testcase>`;
    })
    .join("")}</testsuite>`;

/** Each test of the file gets a project. */
export async function createPlayedSearches() {
  const { ask, acme, addProject, database } = await createHarness();
  const { pool } = database;
  const log = createLog("debug", () => {}, false);

  let place: { project: string; key: string };
  const enterProject = async () => void (place = await addProject(acme));
  beforeEach(enterProject);

  const request = (target: string, body?: object | string) => {
    const [method, path] = target.split(" ") as [string, string];
    return ask(`${method} /projects/${place.project}${path}`, { key: place.key, ...(body ? { body } : {}) });
  };
  const get = async (path: string) => (await request(`GET ${path}`)).body;
  const advance = () => advanceSearches(database, undefined, undefined, log);

  const SYNC = { runner: "r", taskSlugs: ["unit"], probeSlugs: ["unit"] };
  const sync = async (free = 1) => {
    const { leases } = (await request("POST /leases", { ...SYNC, free })).body;
    const held = leases.map(({ id }: { id: string }) => ({ id }));
    if (held.length > 0) await request("POST /leases", { ...SYNC, free: 0, held });
    return leases;
  };

  /** Builds the last of so many commits after the good one, and starts searches for the bugs of these tests; returns the bugs. */
  async function startSearches(
    commits: number,
    breaks: Breaks,
    names = Object.keys(breaks),
    limits: Record<string, object> = {},
  ) {
    const upload = async (at: number) => {
      const path = `POST /test-runs?task_slug=unit&branch=main&commit=${hash(at)}&complete=true`;
      return (await request(path, report([...new Set([...NAMES, ...Object.keys(breaks), ...PASSING])], at, breaks)))
        .body;
    };
    await upload(0);
    await upload(commits);
    await sync();
    const bugs: Record<string, string> = {};
    for (const name of names) {
      const [testCase] = (await get(`/test-cases?q=${name}`)).data;
      const [bug] = (await get(`/bug-reports?test_case_id=${testCase.id}`)).data;
      bugs[name] = bug.id;
      expect((await request(`POST /bug-reports/${bug.id}/culprit`, limits[name] ?? {})).status).toBe(201);
    }
    return bugs;
  }

  /** Waits until another session waits for a lock of the transaction. */
  const waitForLock = async (sql: Sql) => {
    const [row] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
    await until(
      async () => (await pool`select from pg_stat_activity where ${row.pid} = any(pg_blocking_pids(pid))`).length > 0,
    );
  };

  const foundEvents = () => pool<{ bug: string }[]>`
    select data -> 'bugReport' ->> 'id' as bug from event
    where project_id = ${place.project} and type = 'bug_report.culprit_found'`;

  async function finish(lease: Lease, { commits, breaks, reported = (names) => names }: Work): Promise<void> {
    if (lease.commits) return void (await request(`POST /leases/${lease.id}/commits`, { commits: range(commits + 1) }));
    const at = Number.parseInt(lease.execution.commit.slice(1), 16);
    const names = reported(lease.only!.map(({ name }) => name));
    const body = report(names, at, breaks);
    const path = `POST /test-runs?lease_id=${lease.id}&exit_code=${body.includes("failure") ? 1 : 0}&allow_empty=true`;
    expect((await request(path, body)).status).toBe(201);
  }

  /** Works until the searches have ended. */
  async function work(given: Work): Promise<void> {
    for (;;) {
      await advance();
      const leases: Lease[] = await sync(given.free);
      if (leases.length === 0) return;
      for (const lease of leases) await finish(lease, given);
    }
  }

  /** The number of executions, and of probes over all searches. */
  async function count(kind = "test") {
    const [row] = await pool<[{ executions: number; probes: number }]>`
      select count(distinct execution_id)::int as executions, count(*)::int as probes from probe
      where project_id = ${place.project} and kind = ${kind}`;
    return { ...row };
  }

  const culpritOf = async (bug: string | undefined) => (await get(`/bug-reports/${bug}/culprit`)).culprit?.commit;
  return {
    database,
    request,
    get,
    advance,
    sync,
    startSearches,
    foundEvents,
    finish,
    work,
    count,
    culpritOf,
    project: () => place.project,
    enterProject,
    waitForLock,
  };
}
