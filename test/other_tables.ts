/** Rows for the tables that the fixture of everything leaves empty, so that no table is forgotten. */

import type { createHarness } from "./harness.ts";

type Harness = Awaited<ReturnType<typeof createHarness>>;

/** Adds rows of Acme to the tables in which the requests of `createEverything` leave none. */
export async function fillOtherTables({ acme, ask, database: { pool } }: Harness): Promise<void> {
  const { project, team } = acme;
  const [{ execution, number }] = await pool<[{ execution: string; number: number }]>`
    select (select id from execution where project_id = ${project} limit 1) as execution,
      (select min(number) from test_case where project_id = ${project}) as number`;
  await pool`
    insert into automation_run (team_id, automation_id, id, cause, project_id, status, reason, actions)
    select team_id, id, ${Bun.randomUUIDv7()}, 'manual', ${project}, 'done', '', '[]' from automation
    where team_id = ${team} limit 1`;
  await pool`
    insert into branch_day (project_id, day, branch, sample, executions, passed)
    values (${project}, '2026-01-01', 'main', false, 1, 1) on conflict do nothing`;
  const [{ run }] = await pool<[{ run: string }]>`select id as run from test_run where project_id = ${project} limit 1`;
  await pool`
    insert into slower_result (project_id, run_id, test_case, duration_ms, usual_ms, longest_ms)
    values (${project}, ${run}, ${number}, 6200, 900, 1400)`;
  await pool`update delivery set project_id = ${project} where team_id = ${team}`;
  await pool`
    insert into file_queue (project_id, execution_id, task_slug, shards, runs, files, durations, file_shards, file_batches, holders,
      acknowledged)
    values (${project}, ${execution}, 'unit', 1, 0, '{a}', '{1}', '{0}', '{0}', '{""}', '{0}')`;
  await pool`
    insert into new_test_check (project_id, run_id, execution_id, runs) values (${project}, ${run}, ${execution}, 10)`;
  await pool`insert into onboarding (project_id) values (${project})`;
  await pool`insert into planned_deletion values (${project}, 'results', 90, 1, now(), now())`;
  await pool`insert into server_retention values (${crypto.randomUUID()}, 'host', 90, 30, 400)`;
  await pool`
    insert into pull_request_comment (team_id, integration_id, project_id, pull_request, execution_id)
    select team_id, id, ${project}, '12', ${execution} from integration where team_id = ${team} limit 1`;
  await pool`
    insert into red_task_message (project_id, branch, task_slug, since, team_id, automation_id, action)
    select ${project}, 'main', 'unit', now(), team_id, id, 0 from automation where team_id = ${team} limit 1`;
  await pool`
    insert into shard_plan (project_id, execution_id, task_slug, shards, runs, files, durations, file_shards)
    values (${project}, ${execution}, 'unit', 1, 0, '{a}', '{1}', '{1}')`;
  await pool`
    insert into test_case_alias (project_id, identity, number) values (${project}, ${crypto.randomUUID()}, ${number})`;
  await pool`
    insert into trust_rule (project_id, id, kind, issuer, repository_id, events, refs)
    values (${project}, ${Bun.randomUUIDv7()}, 'gitlab', 'https://gitlab.example.com', '1', '{}', '{}')`;
  await ask(`POST /projects/${project}/executions`, {
    key: acme.key,
    headers: { "idempotency-key": "once" },
    body: { tasks: ["unit"] },
  });
}
