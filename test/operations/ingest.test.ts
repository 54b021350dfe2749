/** Reports that are taken together make what they make when one is taken after the other. */

import { describe, expect, test } from "bun:test";
import { isFull } from "../depth.ts";
import { createHarness } from "../harness.ts";
import { BUGS, DURATIONS, dump, type GivenReport, historyOf, NOW, TABLES } from "./ingest_history.ts";
import { catchUp } from "../../src/operations/health/catch_up.ts";
import { isBatchable } from "../../src/operations/ingest/decide.ts";
import { type IncomingReport, locksFor, takeReports } from "../../src/operations/ingest/ingest.ts";
import { prepareReport } from "../../src/operations/ingest/prepare.ts";
import { resolveReport } from "../../src/operations/ingest/resolve.ts";
import type { TakenReport } from "../../src/operations/ingest/store.ts";
import { readReport } from "../../src/reports/read.ts";
import { absentLines } from "../../src/wording/absent_tests.ts";
import { takeLock } from "../../src/database/locks.ts";

const { database, acme, addProject } = await createHarness();
const { pool, begin } = database;

function prepare(project: string, { parameters: given, body }: GivenReport): IncomingReport {
  const parameters = { allow_empty: true, complete: false, ...given };
  const report = readReport([{ name: "report.xml", bytes: new TextEncoder().encode(body) }], {
    maxInflatedBytes: 1_000_000,
    mayBeEmpty: true,
  });
  return { prepared: prepareReport(project, report, parameters, Bun.SHA256.hash(body, "hex")), parameters };
}

async function takeAlone(project: string, given: GivenReport): Promise<TakenReport> {
  const { prepared, parameters } = prepare(project, given);
  const numbers = await resolveReport(pool, begin, project, prepared, parameters);
  return await begin(async (sql) => {
    for (const lock of locksFor(project, parameters)) await takeLock(sql, lock);
    const { outputs } = await takeReports(sql, project, [{ prepared, parameters, numbers }], {
      mayWait: true,
      now: NOW,
    });
    return outputs[0]!;
  });
}

/** What has come of those that went together, by their places. */
async function takeTogether(project: string, given: readonly GivenReport[]): Promise<Map<number, TakenReport>> {
  const places = [...given.keys()].filter((place) => {
    const { prepared, parameters } = prepare(project, given[place]!);
    return isBatchable(prepared, parameters);
  });
  const taken = await begin(async (sql) => {
    const reports = places.map((place) => prepare(project, given[place]!));
    for (const { parameters } of reports) for (const lock of locksFor(project, parameters)) await takeLock(sql, lock);
    const admitted = Promise.resolve(reports.map(() => true));
    const { outputs, written } = await takeReports(sql, project, reports, { admitted, mayWait: false, now: NOW });
    await written;
    return outputs;
  });
  return new Map(places.flatMap((place, index) => (taken[index] ? [[place, taken[index]] as const] : [])));
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
    for (const [round, given] of [...historyOf(seed, 0.1)].entries()) {
      const usual = await takeTogether(together, given);
      count += usual.size;
      const rest = [...given.keys()].filter((place) => !usual.has(place));
      const answers: unknown[] = [...usual.values()].map(withoutIds);
      const others: unknown[] = [];
      for (const place of rest) answers.push(withoutIds(await takeAlone(together, given[place]!)));
      for (const place of [...usual.keys(), ...rest]) others.push(withoutIds(await takeAlone(alone, given[place]!)));
      expect(answers, `round ${round}`).toEqual(others);
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
  await takeAlone(project, { parameters: {}, body });
  const stored = await pool<{ branch: string }[]>`select branch from execution where project_id = ${project}`;
  const told = await pool<{ branch: string }[]>`
    select distinct data -> 'execution' ->> 'branch' as branch from event where project_id = ${project}`;
  expect([...told]).toEqual([...stored]);
});
