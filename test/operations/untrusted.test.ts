/** Untrusted executions change nothing but themselves: a history is the same with and without them. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { isFull } from "../depth.ts";
import { createHarness } from "../harness.ts";
import { BUGS, dump, type GivenReport, historyOf, NOW, START, TABLES } from "./ingest_history.ts";
import { createRandom } from "../random.ts";
import { catchUp } from "../../src/operations/health/catch_up.ts";
import { locksFor, takeReport } from "../../src/operations/ingest/ingest.ts";
import { prepareReport } from "../../src/operations/ingest/prepare.ts";
import { resolveReport } from "../../src/operations/ingest/resolve.ts";
import type { TakenReport } from "../../src/operations/ingest/taken_report.ts";
import { readReport } from "../../src/reports/read.ts";
import { takeLock } from "../../src/database/locks.ts";
import { firstIdAt } from "../../src/database/time_bounds.ts";
import { selectSummary } from "../../src/store/automations.ts";
import { selectDays } from "../../src/store/branch_days.ts";
import { selectTaskSlugs } from "../../src/store/filter_options.ts";
import {
  selectBuildOrigins,
  selectFirstBuild,
  selectLastBuild,
  selectNewFailures,
  selectTally,
} from "../../src/store/overview.ts";
import { selectFileTimings } from "../../src/store/plans.ts";
import { selectBranch } from "../../src/store/state.ts";
import { selectUsualDurations } from "../../src/store/usual_durations.ts";

setDefaultTimeout(60_000);

const { ask, database, acme, addProject } = await createHarness();
const { pool, begin } = database;

async function take(project: string, { parameters: given, body }: GivenReport): Promise<TakenReport> {
  const parameters = { allow_empty: true, complete: false, ...given };
  const report = readReport([{ name: "report.xml", bytes: new TextEncoder().encode(body) }], {
    maxInflatedBytes: 1_000_000,
    mayBeEmpty: true,
  });
  const prepared = await prepareReport(project, report, parameters, Bun.SHA256.hash(body, "hex"));
  const numbers = await resolveReport(pool, begin, project, prepared, parameters);
  return await begin(async (sql) => {
    for (const lock of locksFor(project, parameters)) await takeLock(sql, lock);
    return await takeReport(sql, project, { prepared, parameters, numbers }, NOW);
  });
}

/** A fork reports the same builds as the history, by the same names, with other results and with tests of its own. */
function* forkOf(seed: number): Generator<GivenReport[]> {
  const { pick, chance } = createRandom(seed, "a fork");
  for (const reports of historyOf(seed, 0.6))
    yield reports.map(({ parameters, body }): GivenReport => {
      const isAll = chance(0.3);
      return {
        parameters: {
          ...parameters,
          untrusted: true,
          task_slug: pick([parameters.task_slug, parameters.task_slug, "of the fork"]),
          branch: pick([parameters.branch, "main", "alice:main"]),
          pull_request: pick([undefined, "9"]),
          host: pick(["ci-1", undefined]),
        },
        body: body
          .replaceAll(/<testcase ([^>]*)>(?!<failure)/g, (found) =>
            isAll ? `${found}<failure message="down"/>` : found,
          )
          .replaceAll(
            'name="case 3"',
            pick(['name="case 3"', 'name="case of the fork"', 'file="moved.ts" name="case 3"']),
          ),
      };
    });
}

const ALL = [
  ...[...TABLES, ...BUGS, "case_duration", "task_duration", "test_case", "test_case_alias"],
  ...["quarantine", "bug_change", "branch_day"],
];
const QUESTIONS = [
  ...["/state?branch=main", "/state?branch=topic", "/trends?days=90", "/trends?days=90&branch=main"],
  ...["/test-runs?limit=100", "/test-runs?task_slug=a", "/bug-reports", "/executions?untrusted=false&limit=100"],
  ...["/test-cases", "/test-cases?sort=flakeRate", "/test-cases?health=flaky", "/test-cases?health=new", "/events"],
  "/onboarding",
];

/** What the API answers about the project, without ids and moments of writing. */
async function answers({ project, key }: { project: string; key: string }): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {};
  for (const question of QUESTIONS) {
    const { status, text } = await ask(`GET /projects/${project}${question}`, { key });
    expect([question, status]).toEqual([question, 200]);
    all[question] = text
      .replace(/[0-9a-f]{8}-[0-9a-f-]{19}[0-9a-f]{8}/g, "an id")
      .replace(/"(?:firstSeenAt|occurredAt|createdAt|updatedAt|nextCursor|cursor)":\s*"[^"]*"/g, "")
      .replace(/"impactDueAt":\s*"[^"]*"/g, "")
      .replace(/http:\/\/[^"]*/g, "an address");
  }
  return all;
}

/** What pages, plans and runners are told about the project. */
async function figures(project: string): Promise<unknown> {
  const branch = await selectBranch(pool, project, "main", "main");
  const [last] = await pool<{ id: string }[]>`
    select id from execution where project_id = ${project} and not untrusted order by created_at desc, key limit 1`;
  const keyOf = (taskSlug: string) => ({ projectId: project, executionId: last!.id, taskSlug });
  const all = {
    tally: await selectTally(pool, project),
    origins: await selectBuildOrigins(pool, project),
    news: await selectNewFailures(pool, project, branch, firstIdAt(START), 100),
    tasks: await selectTaskSlugs(pool, project, 100),
    first: (await selectFirstBuild(pool, project))?.createdAt,
    last: (await selectLastBuild(pool, project, branch))?.createdAt,
    summary: await selectSummary(pool, project, new Date(START).toISOString()),
    days: await selectDays(pool, project, branch, ["2026-11-01"]),
    plans: await Promise.all(["a", "b", "c"].map((slug) => selectFileTimings(pool, keyOf(slug)))),
    usual: [...(await selectUsualDurations(pool, project, last!.id, ["a", "b", "c"]))],
  };
  return JSON.parse(
    JSON.stringify(all, (name, value) => (["id", "executionId", "number"].includes(name) ? undefined : value)),
  );
}

/** Of a history. */
const ROUNDS = 60;

describe.skipIf(!isFull).each([21, 22, 23])("a random history (%i)", (seed) => {
  test("is stored and told the same with untrusted executions in between", async () => {
    const [alone, beside] = [await addProject(acme), await addProject(acme)];
    const forks = forkOf(seed);
    const counted = { untrusted: 0, failures: 0 };
    for (const [round, given] of [...historyOf(seed, 0.3)].slice(0, ROUNDS).entries()) {
      const fork = forks.next().value as GivenReport[];
      for (const one of fork) {
        const { failures, bugReports, run } = await take(beside.project, one);
        expect([bugReports, run.untrusted]).toEqual([[], true]);
        counted.untrusted++;
        counted.failures += failures.length;
      }
      for (const report of given) {
        const [plain, mixed] = [await take(alone.project, report), await take(beside.project, report)];
        const told = ({ run, blames, bugReports, warnings }: TakenReport) => ({
          ...{ blames, warnings, verdict: run.verdict, counts: [run.passed, run.failed, run.skipped, run.flaky] },
          bugs: bugReports.map(({ number, change }) => ({ number, change })),
        });
        expect(told(mixed), `round ${round}`).toEqual(told(plain));
      }
      for (const { project } of [alone, beside]) await catchUp(pool, begin, project);
      expect(await dump(pool, beside.project, ALL), `round ${round}`).toEqual(await dump(pool, alone.project, ALL));
    }
    expect(await figures(beside.project)).toEqual(await figures(alone.project));
    expect(await answers(beside)).toEqual(await answers(alone));
    // Otherwise nothing has been compared.
    expect(counted.untrusted).toBeGreaterThan(ROUNDS);
    expect(counted.failures).toBeGreaterThan(ROUNDS);
    const pending =
      await pool`select from test_run where project_id = ${beside.project} and untrusted and health_applied`;
    expect(pending.length).toBe(0);
  });
});
