/** Attachments of runs, and the references of results to them. */

import type { Given } from "../database/compose.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";

/** A result that names a file. */
export type AttachmentReference = {
  testCase: number;
  position: number;
  path: string;
  name: string;
  isKept: boolean;
};
export type RunReference = AttachmentReference & { runId: string; shard: number; attempt: number };

/** `rows`: references, see `toRows`. */
export const insertReferences = (sql: Sql, projectId: Given, rows: Given) => sql`
  insert into attachment_reference (project_id, run_id, test_case, shard, attempt, position, path, name, is_kept)
  select ${projectId}, "runId", "testCase", shard, attempt, position, path, name, "isKept"
  from json_to_recordset(${rows}::text::json) as fresh ("runId" uuid, "testCase" int, shard int, attempt int,
    position int, path text, name text, "isKept" boolean)
  on conflict do nothing`;

/** Identifies an upload of a run by its bytes. */
export type UploadDigest = {
  /** Hexadecimal. */
  digest: string;
  shard: number;
};

/** Which upload of a run a file belongs to. */
type AttachmentTarget = {
  path: string;
  shard: number;
  attempt: number;
  isKept: boolean;
  /** The name that the report gives it; null: no report refers to the path. */
  name: string | null;
};

/**
 * Returns the upload that each path belongs to: `upload` if it is known, else the last one that refers to it, preferring those without such
 * a file, else the last one of the run.
 */
export const selectTargets = (
  sql: Sql,
  projectId: string,
  runId: string,
  paths: readonly string[],
  upload: UploadDigest | undefined,
) => {
  const uploads = sql`
    select shard, number, received_at from attempt where project_id = ${projectId} and run_id = ${runId}
    ${upload ? sql`and shard = ${upload.shard} and digest = decode(${upload.digest}, 'hex')` : sql``}`;
  return sql<AttachmentTarget[]>`
    select p.path, coalesce(r.shard, n.shard, 0)::int as shard, coalesce(r.attempt, n.number, 0)::int as attempt,
      coalesce(r.is_kept, true) as "isKept", r.name
    from unnest(${toTextArray(paths)}::text[]) as p (path)
    left join lateral (
      select r.shard, r.attempt, bool_or(r.is_kept) as is_kept, min(r.name) as name
      from attachment_reference r join (${uploads}) u on u.shard = r.shard and u.number = r.attempt
      where r.project_id = ${projectId} and r.run_id = ${runId} and r.path = p.path
      group by r.shard, r.attempt
      order by exists (
          select from attachment a where a.project_id = ${projectId} and a.run_id = ${runId} and a.path = p.path
            and a.shard = r.shard and a.attempt = r.attempt),
        max(u.received_at) desc
      limit 1
    ) r on true
    left join lateral (select * from (${uploads}) u order by received_at desc, number desc limit 1) n on true`;
};

/** The fields that distinguish an attachment from others of its run. */
export type RunAttachment = { id: string; path: string; shard: number; attempt: number; sha256: string };

export const selectAttachmentsOfRun = (sql: Sql, projectId: string, runId: string) => sql<RunAttachment[]>`
  select id, path, shard, attempt, encode(sha256, 'hex') as sha256 from attachment
  where project_id = ${projectId} and run_id = ${runId}`;

/** Bytes of all attachments of an execution. */
export const selectAttachedBytes = async (sql: Sql, projectId: string, executionId: string): Promise<number> => {
  const [row] = await sql<{ bytes: number }[]>`
    select coalesce(sum(a.bytes), 0)::float8 as bytes
    from (select id from test_run where project_id = ${projectId} and execution_id = ${executionId}) r
    cross join lateral (
      select bytes from attachment where project_id = ${projectId} and run_id = r.id offset 0) a`;
  return row!.bytes;
};

export type NewAttachment = Omit<RunAttachment, "id"> & {
  id: string;
  runId: string;
  name: string;
  bytes: number;
  mediaType: string;
  preview: string | null;
};

/** `rows`: attachments, see `toRows`. */
export const insertAttachments = (sql: Tx, projectId: string, rows: string) => sql`
  insert into attachment (project_id, id, run_id, shard, attempt, path, name, sha256, bytes, media_type, preview)
  select ${projectId}, id, "runId", shard, attempt, path, name, decode(sha256, 'hex'), bytes, "mediaType", preview
  from json_to_recordset(${rows}::text::json) as fresh (id uuid, "runId" uuid, shard int, attempt int, path text,
    name text, sha256 text, bytes bigint, "mediaType" text, preview text)`;

/** Maximum number of warnings stored for a run. */
const MAX_WARNINGS = 100;

/** Adds warnings that a run does not have yet to it and to its last upload, of which the next upload makes those of the run. */
export async function addRunWarnings(
  sql: Tx,
  projectId: string,
  runId: string,
  warnings: readonly string[],
): Promise<void> {
  const added = sql`
    select array_agg(w) from (
      select w from unnest(${toTextArray(warnings)}::text[]) w where w <> all(warnings)
      limit greatest(0, ${MAX_WARNINGS} - cardinality(warnings))) fresh`;
  await sql`
    update test_run set warnings = warnings || coalesce((${added}), '{}')
    where project_id = ${projectId} and id = ${runId}`;
  await sql`
    update attempt set warnings = warnings || coalesce((${added}), '{}')
    where project_id = ${projectId} and run_id = ${runId} and (shard, number) = (
      select shard, number from attempt where project_id = ${projectId} and run_id = ${runId}
      order by received_at desc, number desc limit 1)`;
}

export type AttachmentRow = {
  id: string;
  name: string;
  path: string;
  mediaType: string;
  bytes: number;
  sha256: string;
  attempt: number;
  createdAt: string;
  /** At most `MAX_CASES` test cases whose results refer to it. */
  testCaseIds: string[];
};

const MAX_CASES = 20;

/** A condition: the reference `r` is one to the file `a`. */
const refersTo = (sql: Sql): Fragment => sql`(a.attempt = 0 or (a.shard = r.shard and a.attempt = r.attempt))`;

/** The same with the end of texts, for pages. */
type PreviewedRow = AttachmentRow & { preview: string | null };

const columns = (sql: Sql, projectId: string): Fragment => sql`
  a.id, a.name, a.path, a.media_type as "mediaType", a.bytes::float8 as bytes, encode(a.sha256, 'hex') as sha256, a.attempt,
  a.created_at as "createdAt", (
    select coalesce(json_agg(c.id), '[]') from (
      select distinct r.test_case from attachment_reference r
      where r.project_id = ${projectId} and r.run_id = a.run_id and r.path = a.path and ${refersTo(sql)}
      limit ${MAX_CASES}) r
    cross join lateral (
      select id from test_case where project_id = ${projectId} and number = r.test_case offset 0) c) as "testCaseIds"`;

type AttachmentQuery = {
  limit: number;
  /** The id of the last attachment of the page before. */
  after?: string[] | undefined;
};

/** Returns attachments in the order of arrival; one row more than `limit`. */
export const selectAttachments = (sql: Sql, projectId: string, runId: string, { limit, after }: AttachmentQuery) => sql<
  AttachmentRow[]
>`
  select ${columns(sql, projectId)} from attachment a
  where a.project_id = ${projectId} and a.run_id = ${runId} ${after ? sql`and a.id > ${after[0]!}` : sql``}
  order by a.id limit ${limit + 1}`;

/** The files of a run that no result refers to, as far as they fit on a page. */
export const selectRunFiles = (sql: Sql, projectId: string, runId: string, limit: number) => sql<PreviewedRow[]>`
  select ${columns(sql, projectId)}, a.preview from attachment a
  where a.project_id = ${projectId} and a.run_id = ${runId} and not exists (
    select from attachment_reference r
    where r.project_id = ${projectId} and r.run_id = ${runId} and r.path = a.path and ${refersTo(sql)} offset 0)
  order by a.id limit ${limit}`;

export const selectAttachment = async (sql: Sql, projectId: string, id: string): Promise<AttachmentRow | undefined> => {
  const [row] = await sql<AttachmentRow[]>`
    select ${columns(sql, projectId)} from attachment a where a.project_id = ${projectId} and a.id = ${id}`;
  return row;
};

/** Returns attachments in the order of the ids, without missing ones. */
export const selectAttachmentsByIds = (sql: Sql, projectId: string, ids: readonly string[]) => sql<AttachmentRow[]>`
  select ${columns(sql, projectId)}
  from unnest(${toTextArray(ids)}::uuid[]) with ordinality as wanted (id, place)
  join attachment a on a.project_id = ${projectId} and a.id = wanted.id
  order by wanted.place`;

/** A result of a test case in a run. */
export type ResultKey = { runId: string; number: number };

export type CaseAttachmentRow = ResultKey &
  Pick<AttachmentRow, "id" | "name" | "path" | "mediaType" | "bytes" | "attempt"> & {
    /** The end of a text; null for another file, or where it was not asked for. */
    preview: string | null;
  };

/** Maximum number of attachments of one result that are listed. */
const CASE_ATTACHMENTS = 20;

/** The attachments of results, those of the last attempt first, in the order of the report. */
export const selectCaseAttachments = (
  sql: Sql,
  projectId: string,
  results: readonly ResultKey[],
  { hasPreviews }: { hasPreviews: boolean },
) => sql<CaseAttachmentRow[]>`
  select w.run_id as "runId", w.number, a.*
  from unnest(${toTextArray(results.map(({ runId }) => runId))}::uuid[],
    ${toNumberArray(results.map(({ number }) => number))}::int[]) as w (run_id, number)
  cross join lateral (
    select a.id, r.name, a.path, a.media_type as "mediaType", a.bytes::float8 as bytes, r.attempt,
      ${hasPreviews ? sql`a.preview` : sql`null::text as preview`}
    from (
      select * from attachment_reference
      where project_id = ${projectId} and run_id = w.run_id and test_case = w.number and is_kept
      order by attempt desc, position limit ${CASE_ATTACHMENTS}) r
    cross join lateral (
      select * from attachment a
      where a.project_id = ${projectId} and a.run_id = w.run_id and a.path = r.path and ${refersTo(sql)}
      order by id limit 4) a
    order by r.attempt desc, r.position, a.id limit ${CASE_ATTACHMENTS}) a`;
