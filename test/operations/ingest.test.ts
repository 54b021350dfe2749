/** Reports that are taken together make what they make when one is taken after the other. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { isFull } from "../depth.ts";
import { createHarness } from "../harness.ts";
import { BUGS, DURATIONS, dump, type GivenReport, historyOf, NOW, TABLES } from "./ingest_history.ts";
import { catchUp } from "../../src/operations/health/catch_up.ts";
import { type IncomingReport, locksFor, matchReports, takeMatched } from "../../src/operations/ingest/ingest.ts";
import { prepareReport } from "../../src/operations/ingest/prepare.ts";
import { resolveReport } from "../../src/operations/ingest/resolve.ts";
import type { TakenReport } from "../../src/operations/ingest/taken_report.ts";
import { readReport } from "../../src/reports/read.ts";
import { absentLines } from "../../src/wording/absent_tests.ts";
import { takeLock } from "../../src/database/locks.ts";

const { database, acme, addProject } = await createHarness();
const { pool, begin } = database;
setDefaultTimeout(60_000);

async function prepare(project: string, { parameters: given, body }: GivenReport) {
  const parameters = { allow_empty: true, complete: false, ...given };
  const report = readReport([{ name: "report.xml", bytes: new TextEncoder().encode(body) }], {
    maxInflatedBytes: 1_000_000,
    mayBeEmpty: true,
  });
  const prepared = await prepareReport(project, report, parameters, Bun.SHA256.hash(body, "hex"));
  return { prepared, parameters };
}

/** In one transaction. */
async function take(project: string, given: readonly GivenReport[]): Promise<TakenReport[]> {
  const reports = await Promise.all(given.map((one) => prepare(project, one)));
  const incoming: IncomingReport[] = [];
  for (const { prepared, parameters } of reports) {
    const numbers = await resolveReport(pool, begin, project, prepared, parameters);
    incoming.push({ prepared, parameters, numbers });
  }
  return await begin(async (sql) => {
    for (const { parameters } of reports) for (const lock of locksFor(project, parameters)) await takeLock(sql, lock);
    return await takeMatched(sql, project, incoming, await matchReports(sql, project, incoming, NOW));
  });
}

/**
 * Returns the reports that begin a build of their own, which may share a transaction, and the others. The first ones have only one report of
 * a branch of the task that fails, because two of them would be evidence for each other.
 */
function splitByBuild(given: readonly GivenReport[], known: Set<unknown>): [GivenReport[], GivenReport[]] {
  const branches = new Set<unknown>();
  const isFirst = (all: Set<unknown>, one: unknown) => !all.has(one) && all.add(one).has(one);
  const together = given.filter(({ parameters: { execution_key: key, task_slug: task, branch = "main" } }) => {
    const isNew = key === undefined || isFirst(known, key);
    return isNew && (task !== "c" || isFirst(branches, branch));
  });
  return [together, given.filter((one) => !together.includes(one))];
}

const withoutIds = ({
  run: { id: _, executionId: __, ...run },
  bugReports,
  failures,
  absent,
  ...rest
}: TakenReport) => ({
  ...rest,
  run,
  absent: absentLines(absent),
  failures: failures.map(({ testCaseId: _, ...failure }) => failure),
  bugReports: bugReports.map(({ number, change }) => ({ number, change })),
});

const ALL = [...TABLES, ...BUGS, ...DURATIONS];

describe.skipIf(!isFull).each([1, 2, 3])("of a random history (%i)", (seed) => {
  test("the same is stored and answered, one after the other or together", async () => {
    const [{ project: together }, { project: alone }] = [await addProject(acme), await addProject(acme)];
    let count = 0;
    const known = new Set<unknown>();
    for (const [round, given] of [...historyOf(seed, 0.1)].entries()) {
      const [batch, rest] = splitByBuild(given, known);
      const answers = await take(together, batch);
      if (batch.length > 1) count += batch.length;
      for (const one of rest) answers.push(...(await take(together, [one])));
      const others: TakenReport[] = [];
      for (const one of [...batch, ...rest]) others.push(...(await take(alone, [one])));
      expect(answers.map(withoutIds), `round ${round}`).toEqual(others.map(withoutIds));
      for (const project of [together, alone]) await catchUp(pool, begin, project);
      expect(await dump(pool, together, ALL), `round ${round}`).toEqual(await dump(pool, alone, ALL));
    }
    // Otherwise nothing has been compared.
    expect(count).toBeGreaterThan(20);
  });
});

test("a long branch that a report names is told as it is stored", async () => {
  const { project } = await addProject(acme);
  const branchName = `${"x".repeat(499)}\ud83d\ude00`;
  const tests = [{ name: "adds", status: "passed", duration: 1 }];
  const body = JSON.stringify({ results: { tool: { name: "any" }, summary: {}, tests, environment: { branchName } } });
  await take(project, [{ parameters: {}, body }]);
  const stored = await pool<{ branch: string }[]>`select branch from execution where project_id = ${project}`;
  const told = await pool<{ branch: string }[]>`
    select distinct data -> 'execution' ->> 'branch' as branch from event where project_id = ${project}`;
  expect([...told]).toEqual([...stored]);
});
