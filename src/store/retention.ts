/** Statements of retention. One list says which rows are deleted for their age; they are found, counted and deleted by it. */

import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import type { AgedKind, PlannedDeletion, PlannedDeletionRow, ServerRetention } from "../rules/retention.ts";
import { discardDays } from "./past_days.ts";
import { isOpen } from "./runner_presence.ts";

/** `key`: the column with the id whose time counts. `limit`: rows of one deletion. */
type AgedTable = { table: string; key: string; limit: number; only?: (sql: Sql, before: string) => Fragment };

/** The first table of a kind is the one that is counted. Other data of an execution is deleted with it. */
const AGED: Record<AgedKind, readonly [AgedTable, ...AgedTable[]]> = {
  results: [
    { table: "case_result", key: "run_id", limit: 5_000 },
    { table: "case_detail", key: "run_id", limit: 5_000 },
    { table: "failure", key: "run_id", limit: 5_000 },
    { table: "bug_occurrence", key: "run_id", limit: 5_000 },
    { table: "lease", key: "id", limit: 1_000, only: (sql) => sql`not ${isOpen(sql, sql`lease`)}` },
    { table: "shard_plan", key: "execution_id", limit: 500 },
    { table: "file_queue", key: "execution_id", limit: 500 },
  ],
  attachments: [
    { table: "attachment", key: "id", limit: 5_000 },
    { table: "attachment_reference", key: "run_id", limit: 5_000 },
  ],
  // One that is still running, or that a late report has completed, is not old.
  executions: [
    { table: "execution", key: "id", limit: 100, only: (sql, before) => sql`completed_at < ${before}::timestamptz` },
  ],
};

export type AgedRows = { projectId: string; kind: AgedKind; before: Date };

const isAged = (sql: Sql, { key, only }: AgedTable, { projectId, before }: AgedRows): Fragment => sql`
  project_id = ${projectId} and ${sql(key)} < ${firstIdAt(before.getTime())}::uuid
  ${only ? sql`and ${only(sql, before.toISOString())}` : sql``}`;

export async function selectHasAged(sql: Sql, rows: AgedRows): Promise<boolean> {
  for (const aged of AGED[rows.kind])
    if ((await sql`select from ${sql(aged.table)} where ${isAged(sql, aged, rows)} limit 1`).length > 0) return true;
  return false;
}

/** Deletes all of them in portions, as long as `goOn`. `begin` runs a transaction. */
export async function deleteAged(
  begin: <T>(work: (sql: Tx) => Promise<T>) => Promise<T>,
  rows: AgedRows,
  goOn: () => boolean,
  onDeleted: (table: string, rows: number) => void,
): Promise<void> {
  for (const aged of AGED[rows.kind])
    for (let count = 1; count > 0 && goOn();) {
      count = await begin((sql) => deletePortion(sql, aged, rows));
      if (count > 0) onDeleted(aged.table, count);
    }
}

async function deletePortion(sql: Tx, aged: AgedTable, rows: AgedRows): Promise<number> {
  const { table, key, limit } = aged;
  const isOld = isAged(sql, aged, rows);
  const found = await sql<{ id: string }[]>`
    select ${sql(key)} as id from ${sql(table)} where ${isOld} limit ${limit}
    ${rows.kind === "executions" ? sql`for update skip locked` : sql``}`;
  const ids = [...new Set(found.map(({ id }) => id))];
  if (ids.length === 0) return 0;
  if (rows.kind === "executions") await discardDays(sql, rows.projectId, ids);
  // The bound is repeated, so that PostgreSQL only reads the partitions of that time.
  const { count } = await sql`
    delete from ${sql(table)} where ${isOld} and ${sql(key)} = any(${toTextArray(ids)}::uuid[])`;
  return count;
}

/** Returns the retention of all existing projects. */
export const selectRetentions = (sql: Sql) => sql<
  { id: string; days: number | null; planned: Partial<Record<AgedKind, PlannedDeletion>> }[]
>`
  select id, retention_days as days, (
    select coalesce(json_object_agg(kind, json_build_object('days', days, 'beginsAt', begins_at)), '{}')
    from planned_deletion where project_id = project.id) as planned
  from project`;

/** Replaces the plan that there is. */
export async function planDeletion(sql: Sql, rows: AgedRows, days: number, beginsAt: Date): Promise<void> {
  const [counted] = AGED[rows.kind];
  await sql`
    insert into planned_deletion (project_id, kind, days, objects, before, begins_at)
    select ${rows.projectId}, ${rows.kind}, ${days}, count(distinct ${sql(counted.key)}),
      ${rows.before.toISOString()}, ${beginsAt.toISOString()}
    from ${sql(counted.table)} where ${isAged(sql, counted, rows)}
    on conflict (project_id, kind) do update
      set days = excluded.days, objects = excluded.objects, before = excluded.before, begins_at = excluded.begins_at`;
}

export const deletePlan = (sql: Sql, { projectId, kind }: AgedRows) =>
  sql`delete from planned_deletion where project_id = ${projectId} and kind = ${kind}`;

/** Returns the planned deletions of one project, or of all. */
export const selectPlannedDeletions = (sql: Sql, projectId?: string) => sql<PlannedDeletionRow[]>`
  select d.project_id as "projectId", p.name as "projectName", d.kind, d.days, d.objects, d.before, d.begins_at as "beginsAt"
  from planned_deletion d join project p on p.id = d.project_id
  ${projectId === undefined ? sql`` : sql`where p.id = ${projectId}`} order by p.name, p.id, d.kind`;

/** Lets planned deletions begin now, or never. */
export const updatePlannedDeletions = (sql: Sql, isConfirmed: boolean, projectId?: string) => sql`
  update planned_deletion set begins_at = ${isConfirmed ? sql`now()` : sql`null`}
  where ${projectId === undefined ? sql`true` : sql`project_id = ${projectId}`}`;

export const selectIsDeletionDue = async (sql: Sql): Promise<boolean> =>
  (await sql`select from planned_deletion where begins_at <= now() limit 1`).length > 0;

/** A server notes its settings each minute. */
const PRESENT_SECONDS = 300;

export async function noteServerRetention(
  sql: Sql,
  { serverId, host, settings }: ServerRetention & { serverId: string },
): Promise<void> {
  const { results, attachments, executions } = settings;
  await sql`
    insert into server_retention (server_id, host, results_days, attachments_days, executions_days)
    values (${serverId}, ${host}, ${results}, ${attachments}, ${executions})
    on conflict (server_id) do update set seen_at = now()`;
  await sql`
    delete from server_retention where server_id in (
      select server_id from server_retention where seen_at < now() - ${PRESENT_SECONDS}::int * interval '1 second'
      for update skip locked)`;
}

export const deleteServerRetention = (sql: Sql, serverId: string) =>
  sql`delete from server_retention where server_id = ${serverId}`;

/** Returns the settings of the servers that run. */
export const selectServerRetentions = (sql: Sql) => sql<ServerRetention[]>`
  select host, json_build_object(
    'results', results_days, 'attachments', attachments_days, 'executions', executions_days) as settings
  from server_retention where seen_at >= now() - ${PRESENT_SECONDS}::int * interval '1 second' order by host, server_id`;
