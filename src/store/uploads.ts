/** Uploads that were refused, or accepted with warnings: few, for a day. */

import type { LoggedUpload, UploadOutcome } from "../schema/uploads.ts";
import { type Sql, toJson } from "../database/connect.ts";
import { isLiveKey } from "./keys.ts";
import { firstIdAt } from "../database/time_bounds.ts";

const HOUR_MS = 3_600_000;

export type NewUpload = Omit<LoggedUpload, "keyLeading" | "times" | "lastAnsweredAt"> & {
  /** The key that the upload was sent with. An entry is stored only if the key is still live. */
  teamId: string;
  keyId: string;
};

/** Entries whose key has been revoked are not stored. */
export const insertUploads = (sql: Sql, uploads: readonly NewUpload[]) => sql`
  insert into upload_log (project_id, id, outcome, status_code, message, warnings, parameters, bytes, user_agent,
    client_address, key_leading, request_id, execution_id, task_slug, answered_at, last_answered_at)
  select k.project_id, u.id, u.outcome, u."statusCode", u.message, u.warnings, u.parameters, u.bytes, u."userAgent",
    u."clientAddress", k.leading_part, u."requestId", u."executionId", u."taskSlug", u."answeredAt", u."answeredAt"
  from json_to_recordset(${toJson(sql, uploads)}) as u (
    "teamId" uuid, "keyId" uuid, id uuid, outcome text, "statusCode" smallint, message text, warnings json,
    parameters json, bytes bigint, "userAgent" text, "clientAddress" text, "requestId" text, "executionId" uuid,
    "taskSlug" text, "answeredAt" timestamptz)
  join api_key k on k.team_id = u."teamId" and k.id = u."keyId" and ${isLiveKey(sql)}
  where k.project_id is not null`;

export type Repetition = { projectId: string; id: string; times: number; lastAnsweredAt: string };

/** Counts further requests like one that has been inserted. */
export const addRepetitions = (sql: Sql, { projectId, id, times, lastAnsweredAt }: Repetition) => sql`
  update upload_log set times = times + ${times}, last_answered_at = greatest(last_answered_at, ${lastAnsweredAt}::timestamptz)
  where project_id = ${projectId} and id = ${id}`;

type UploadQuery = {
  limit: number;
  outcome?: UploadOutcome | undefined;
  /** The id of the last one of the page before. */
  after?: string[] | undefined;
};

/** Returns uploads of the last `hours`, newest first, one row more than `limit`. */
export const selectUploads = (sql: Sql, projectId: string, hours: number, { limit, outcome, after }: UploadQuery) =>
  sql<LoggedUpload[]>`
    select id, answered_at as "answeredAt", outcome, status_code as "statusCode", message, warnings, parameters, bytes,
      user_agent as "userAgent", client_address as "clientAddress", key_leading as "keyLeading",
      request_id as "requestId", execution_id as "executionId", task_slug as "taskSlug", times,
      last_answered_at as "lastAnsweredAt"
    from upload_log
    where project_id = ${projectId} and id >= ${firstIdAt(Date.now() - hours * HOUR_MS)}
      ${outcome === undefined ? sql`` : sql`and outcome = ${outcome}`}
      ${after === undefined ? sql`` : sql`and id < ${after[0]!}`}
    order by id desc limit ${limit + 1}`;

/** `text` is why it was refused, or the first of its warnings. */
export type UploadTally = { outcome: UploadOutcome; text: string; number: number; lastAt: string };

/** Counts the uploads of the last `hours` by outcome and text, the most frequent first. */
export const selectUploadTally = (sql: Sql, projectId: string, hours: number) => sql<UploadTally[]>`
  select outcome, coalesce(message, warnings->>0, '') as text, sum(times)::int as number,
    max(last_answered_at) as "lastAt"
  from upload_log where project_id = ${projectId} and id >= ${firstIdAt(Date.now() - hours * HOUR_MS)}
  group by 1, 2 order by number desc, "lastAt" desc`;

/** Attempts that one request looks through: ids of backdated runs say nothing of when their reports arrived. */
const MAX_ATTEMPTS_READ = 20_000;

/**
 * Counts the reports that arrived in the last `hours`, with or without warnings, and says when the last one arrived. Stops
 * at `limit`. In a project with more attempts than are read, backdated reports from before all of those are not counted.
 */
export const selectTaken = async (
  sql: Sql,
  projectId: string,
  hours: number,
  limit: number,
): Promise<{ number: number; lastAt: string | null }> => {
  const [row] = await sql<{ number: number; lastAt: string | null }[]>`
    select count(*)::int as number, max(received_at) as "lastAt" from (
      select a.received_at from (
        select run_id, received_at from attempt where project_id = ${projectId}
        order by run_id desc limit ${MAX_ATTEMPTS_READ}
      ) a, lateral (
        select e.sample from test_run r join execution e on e.project_id = r.project_id and e.id = r.execution_id
        where r.project_id = ${projectId} and r.id = a.run_id offset 0
      ) as own
      where a.received_at >= now() - ${hours}::int * interval '1 hour' and not own.sample
      limit ${limit}
    ) taken`;
  return row!;
};

/** Deletes entries that are older than `hours`, and entries of a project beyond the newest `kept`. */
export async function deleteOldUploads(sql: Sql, { hours, kept }: { hours: number; kept: number }): Promise<void> {
  await sql`delete from upload_log where id < ${firstIdAt(Date.now() - hours * HOUR_MS)}`;
  await sql`
    with full_project as (select project_id from upload_log group by project_id having count(*) > ${kept}::int)
    delete from upload_log u using full_project f, lateral (
      select id from upload_log where project_id = f.project_id order by id desc offset ${kept - 1}::int limit 1) as last
    where u.project_id = f.project_id and u.id < last.id`;
}
