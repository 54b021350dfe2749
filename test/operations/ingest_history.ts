/** Random histories of reports, and what a project has stored of them. */

import { junit } from "../harness.ts";
import { createRandom } from "../random.ts";
import type { Sql } from "../../src/database/connect.ts";
import type { UploadParameters } from "../../src/schema/test_runs.ts";

export const START = Date.parse("2026-11-01T12:00:00.000Z");
/** In the time of the reports: they are news. */
export const NOW = new Date(START + 60 * 60_000);
const ROUNDS = 35;

export type GivenReport = { parameters: Partial<UploadParameters>; body: string };

/** Rounds of reports that arrive together. `failing`: of the test cases of one task, the share that fails. */
export function* historyOf(seed: number, failing: number): Generator<GivenReport[]> {
  const { pick, chance, integer } = createRandom(seed, "usual reports");
  let number = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const size = integer(1, 6);
    // The later ones were completed earlier: none is compared with another one of its round.
    yield Array.from({ length: size }, (_, index): GivenReport => {
      const taskSlug = pick(["a", "a", "b", "b", "c"]);
      const letters = Array.from({ length: 4 }, () =>
        taskSlug === "c" && chance(failing) ? "f" : chance(0.05) ? "s" : "p",
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
  }
}

export const TABLES = "execution test_run attempt case_result case_detail event red_task case_health failure".split(
  " ",
);
export const DURATIONS = ["case_duration", "task_duration", "slower_result"];
export const BUGS = ["bug_report", "bug_case", "bug_occurrence"];
/** Columns whose values are of the moment of writing, or differ between projects. */
const OMITTED = new Set([
  ...["id", "xact", "expires_at", "received_at", "occurred_at", "created_at", "updated_at", "since", "tries"],
  "impact_due_at",
]);
/** Here the ids and times of the histories are compared. Executions of all projects are numbered by one sequence. */
const OMITTED_OF: Record<string, ReadonlySet<string>> = {
  execution: new Set(["expires_at", "number"]),
  test_run: new Set(["expires_at"]),
  test_case: new Set([...OMITTED, "first_seen_at"]),
};

/** The columns in alphabetical order, so that their order in the table does not count. */
function toText(row: Record<string, unknown>, omitted: ReadonlySet<string>): string {
  const names = Object.keys(row).filter((name) => !omitted.has(name));
  return JSON.stringify(Object.fromEntries(names.sort().map((name) => [name, row[name]])));
}

/** What of a table is not of untrusted executions. */
const TRUSTED: Record<string, string> = {
  execution: "and not untrusted",
  test_run: "and not untrusted",
  test_case: "and number < 1073741824",
  ...Object.fromEntries(
    ["attempt", "case_result", "case_detail", "failure"].map((table) => [
      table,
      "and run_id in (select id from test_run where project_id = $1 and not untrusted)",
    ]),
  ),
};

/** All that is stored of a project, with names that another one's rows would have as well in the place of ids. */
export async function dump(
  pool: Sql,
  project: string,
  tables: readonly string[] = [...TABLES, ...BUGS],
): Promise<Record<string, string[]>> {
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
  for (const table of tables) {
    const rows = await pool.unsafe<{ row: string }[]>(
      `select to_json(t)::text as row from ${table} t where project_id = $1 ${TRUSTED[table] ?? ""}`,
      [project],
    );
    const omitted = OMITTED_OF[table] ?? OMITTED;
    all[table] = rows
      .map(({ row }) => toText(JSON.parse(row), omitted))
      .map((text) => text.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, (id) => known.get(id) ?? "another"))
      .sort();
  }
  return all;
}
