/** Reports that are taken together make what they make when one is taken after the other. */

import { describe, expect, test } from "bun:test";
import { createHarness, junit } from "../harness.ts";
import { createRandom } from "../simulation/random.ts";
import { catchUp } from "../../src/operations/catch_up.ts";
import { isBatchable } from "../../src/operations/ingest/decide.ts";
import { type IncomingReport, locksFor, takeReports } from "../../src/operations/ingest/ingest.ts";
import { prepareReport } from "../../src/operations/ingest/prepare.ts";
import { resolveReport } from "../../src/operations/ingest/resolve.ts";
import type { TakenReport } from "../../src/operations/ingest/store.ts";
import { readReport } from "../../src/reports/read.ts";
import { takeTurn } from "../../src/database/locks.ts";

const { database, acme, addProject } = await createHarness();
const { pool, begin } = database;

const START = Date.parse("2026-11-01T12:00:00.000Z");
/** In the time of the reports: they are news. */
const NOW = new Date(START + 60 * 60_000);

type Given = { parameters: Partial<IncomingReport["parameters"]>; body: string };

function prepare(project: string, { parameters: given, body }: Given): IncomingReport {
  const parameters = { allow_empty: true, complete: false, ...given };
  const report = readReport([{ name: "report.xml", bytes: new TextEncoder().encode(body) }], {
    maxInflatedBytes: 1_000_000,
    mayBeEmpty: true,
  });
  return { prepared: prepareReport(project, report, parameters, Bun.SHA256.hash(body, "hex")), parameters };
}

async function takeAlone(project: string, given: Given): Promise<TakenReport> {
  const { prepared, parameters } = prepare(project, given);
  const numbers = await resolveReport(pool, begin, project, prepared, parameters);
  return await begin(async (sql) => {
    for (const lock of locksFor(project, parameters)) await takeTurn(sql, lock);
    const { outputs } = await takeReports(sql, project, [{ prepared, parameters, numbers }], {
      mayWait: true,
      now: NOW,
    });
    return outputs[0]!;
  });
}

/** What has come of those that went together, by their places. */
async function takeTogether(project: string, given: readonly Given[]): Promise<Map<number, TakenReport>> {
  const places = [...given.keys()].filter((place) => {
    const { prepared, parameters } = prepare(project, given[place]!);
    return isBatchable(prepared, parameters);
  });
  const taken = await begin(async (sql) => {
    const reports = places.map((place) => prepare(project, given[place]!));
    for (const { parameters } of reports) for (const lock of locksFor(project, parameters)) await takeTurn(sql, lock);
    const admitted = Promise.resolve(reports.map(() => true));
    const { outputs, written } = await takeReports(sql, project, reports, { admitted, mayWait: false, now: NOW });
    await written;
    return outputs;
  });
  return new Map(places.flatMap((place, index) => (taken[index] ? [[place, taken[index]] as const] : [])));
}

const TABLES = ["execution", "test_run", "attempt", "case_result", "case_detail", "event", "red_task", "case_health"];
const BUGS = ["bug_report", "bug_case", "bug_occurrence"];
/** What is of the moment of writing. */
const PASSING =
  /"(?:id|xact|expires_at|received_at|occurred_at|created_at|updated_at|since|turn|tries)":(?:"[^"]*"|\d+|null),?/g;

/** All that is stored of a project, with names that another one's rows would have as well in the place of ids. */
async function dump(project: string): Promise<Record<string, string[]>> {
  const names = await pool<{ id: string; name: string }[]>`
    select id, 'execution of ' || created_at as name from execution where project_id = ${project}
    union all
    select r.id, 'run of ' || r.task_slug || e.created_at from test_run r
      join execution e on e.project_id = r.project_id and e.id = r.execution_id where r.project_id = ${project}
    union all
    select id, 'bug ' || number from bug_report where project_id = ${project}
    union all
    select ${project}::uuid, 'project'`;
  const known = new Map(names.map(({ id, name }) => [id, name]));
  const all: Record<string, string[]> = {};
  for (const table of [...TABLES, ...BUGS]) {
    const rows = await pool.unsafe(`select to_json(t)::text as row from ${table} t where project_id = $1`, [project]);
    all[table] = rows
      .map(({ row }) => {
        const passed = table === "execution" || table === "test_run" ? /"(?:expires_at)":(?:"[^"]*"|null),?/g : PASSING;
        return (row as string)
          .replace(passed, "")
          .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, (id) => known.get(id) ?? "another");
      })
      .sort();
  }
  return all;
}

const withoutIds = ({ run: { id: _, executionId: __, ...run }, bugReports, failures, ...rest }: TakenReport) => ({
  ...rest,
  run,
  failures: failures.map(({ testCaseId: _, ...failure }) => failure),
  bugReports: bugReports.map(({ number, change }) => ({ number, change })),
});

describe.each([1, 2, 3])("of a random history (%i)", (seed) => {
  test("what is stored and told is the same", async () => {
    const { pick, chance, integer } = createRandom(seed, "usual reports");
    const [{ project: together }, { project: alone }] = [await addProject(acme), await addProject(acme)];
    let count = 0;
    let number = 0;
    for (let round = 0; round < 35; round++) {
      const size = integer(1, 6);
      // The later ones were completed earlier: none is compared with another one of its round.
      const given = Array.from({ length: size }, (_, index): Given => {
        const taskSlug = pick(["a", "a", "b", "b", "c"]);
        const letters = Array.from({ length: 4 }, () =>
          taskSlug === "c" && chance(0.1) ? "f" : chance(0.05) ? "s" : "p",
        ).join("");
        const completedAt = START + round * 60_000 - index * 1_000;
        // Some tell when they began, and some of these have the clock of another time zone.
        const began = completedAt - integer(0, 5_000) - (chance(0.2) ? 5 * 3_600_000 : 0);
        const times = chance(0.5) ? `timestamp="${new Date(began).toISOString()}" time="${integer(0, 9)}"` : "";
        const output = chance(0.2) ? "<system-out>what was \ud83d\ude00 said</system-out>" : "";
        return {
          body: junit(letters)
            .replace("<testsuite ", `<testsuite ${times} `)
            .replace("</testcase>", `${output}</testcase>`)
            .replace("time=", `line="${number++}" time=`),
          parameters: {
            execution_key: pick([undefined, "1", `${round}`, `${round}`, `${round} b`]),
            task_slug: taskSlug,
            branch: pick([undefined, "main", "main", "topic"]),
            commit: pick([undefined, undefined, undefined, "abcdef0", "abcdef0123", "1234567"]),
            environment: pick([undefined, undefined, "staging"]),
            host: pick([undefined, "ci-1", "ci-2"]),
            image: pick([undefined, "ubuntu-24.04"]),
            pull_request: pick([undefined, undefined, "7"]),
            exit_code: pick([undefined, undefined, 0]),
            shard: chance(0.1) ? { index: integer(1, 2), of: 2 } : undefined,
            complete: chance(0.2),
            completed_at: new Date(completedAt).toISOString(),
          },
        };
      });
      const usual = await takeTogether(together, given);
      count += usual.size;
      const rest = [...given.keys()].filter((place) => !usual.has(place));
      const answers: unknown[] = [...usual.values()].map(withoutIds);
      const others: unknown[] = [];
      for (const place of rest) answers.push(withoutIds(await takeAlone(together, given[place]!)));
      for (const place of [...usual.keys(), ...rest]) others.push(withoutIds(await takeAlone(alone, given[place]!)));
      expect(answers, `round ${round}`).toEqual(others);
      for (const project of [together, alone]) await catchUp(pool, begin, project);
      expect(await dump(together), `round ${round}`).toEqual(await dump(alone));
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
