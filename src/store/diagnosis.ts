/** Reads what an operator of a server has to know about its runners and integrations. */

import type { Sql } from "../database/connect.ts";
import { isProject } from "./predicates.ts";
import { isSeen } from "./runner_presence.ts";

export type RunnerVersion = { version: string | null; runners: number; examples: string[] };

/** Returns the versions of the runners that are online. */
export const selectRunnerVersions = (sql: Sql) => sql<RunnerVersion[]>`
  select r.version, count(*)::int as runners, to_json((array_agg(r.name order by r.name))[1:3]) as examples
  from runner r
  where ${isSeen(sql, sql`r`)} and ${isProject(sql, sql`r.project_id`)}
  group by r.version order by r.version`;

export type FailingIntegration = { name: string; kind: string; seconds: number; error: string | null };

/** Returns integrations whose deliveries fail, since how many seconds, and the error of the last attempt. */
export const selectFailingIntegrations = (sql: Sql) => sql<FailingIntegration[]>`
  select i.name, i.kind, extract(epoch from now() - i.failing_since)::float as seconds, (
    select d.attempts -> -1 ->> 'error' from delivery d
    where d.team_id = i.team_id and d.integration_id = i.id and d.tries > 0 order by d.id desc limit 1) as error
  from integration i
  where i.failing_since is not null and i.enabled and exists (select from team t where t.id = i.team_id)
  order by i.failing_since limit 20`;

/** Returns how many seconds ago a server last noted that it reaches the database; null: never. */
export const selectServedSecondsAgo = async (sql: Sql): Promise<number | null> => {
  const [row] = await sql<{ seconds: number | null }[]>`
    select extract(epoch from now() - serving_at)::float as seconds from instance`;
  return row?.seconds ?? null;
};

/** Returns whether the store of attachments has content. */
export const selectHasStoredContent = async (sql: Sql): Promise<boolean> => {
  const [row] = await sql<{ has: boolean }[]>`select exists (select from attachment_content where is_stored) as has`;
  return row!.has;
};
