/** Stores the fingerprints by which bug reports are recognised. */

import type { Fingerprint } from "../rules/fingerprint.ts";
import type { BugReport } from "../schema/bug_reports.ts";
import { toStorable } from "../schema/fields.ts";
import { type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";

export const fingerprintText = (sql: Sql) => sql`'v' || f.version || ':' || replace(f.digest::text, '-', '')`;

/** Orders the fingerprints `f` of a bug, the most specific kind first. */
export const telling = (sql: Sql) => sql`
  array_position(array['message', 'outage', 'infrastructure', 'flaky', 'automation', 'case'], f.kind), f.created_at, f.digest`;

export type MatchedBug = Pick<BugReport, "id" | "number" | "title" | "status" | "resolvedAt">;

const knownColumns = (sql: Sql) => sql`b.id, b.number, b.title, b.status, b.resolved_at as "resolvedAt"`;

/** The bugs that have these fingerprints. */
export const selectBugsByFingerprint = (sql: Sql, projectId: string, digests: readonly string[]) =>
  sql<(MatchedBug & { digest: string })[]>`
  select replace(f.digest::text, '-', '') as digest, ${knownColumns(sql)}
  from bug_fingerprint f
  join bug_report b on b.project_id = f.project_id and b.id = f.bug_report_id
  where f.project_id = ${projectId} and f.digest = any(${toTextArray(digests)}::uuid[])`;

export type OldMark = MatchedBug & {
  testCase: number;
  exceptionType: string | null;
  message: string;
  frames: string[];
};

/** Returns the fingerprints from versions before `version` of bugs that have these test cases, newest bugs first. */
export const selectOldMarks = (sql: Sql, projectId: string, testCases: readonly number[], version: number) =>
  sql<OldMark[]>`
  select k.test_case as "testCase", f.exception_type as "exceptionType", f.message, to_json(f.frames) as frames,
    ${knownColumns(sql)}
  from bug_case k
  join bug_fingerprint f on f.project_id = k.project_id and f.bug_report_id = k.bug_report_id
  join bug_report b on b.project_id = k.project_id and b.id = k.bug_report_id
  where k.project_id = ${projectId} and k.test_case = any(${toNumberArray(testCases)}::int[])
    and f.kind = 'message' and f.version < ${version}::int
  order by b.number desc`;

/** Returns for each test case the newest bug that was opened by failures and has no other test case. */
export const selectOwnBugs = (sql: Sql, projectId: string, testCases: readonly number[]) =>
  sql<(MatchedBug & { testCase: number })[]>`
  select distinct on (k.test_case) k.test_case as "testCase", ${knownColumns(sql)}
  from bug_case k
  join bug_report b on b.project_id = k.project_id and b.id = k.bug_report_id
  where k.project_id = ${projectId} and k.test_case = any(${toNumberArray(testCases)}::int[])
    and b.source = 'automatic' and b.merged_into is null
    and not exists (
      select from bug_case o
      where o.project_id = k.project_id and o.bug_report_id = k.bug_report_id and o.test_case <> k.test_case)
    and not exists (
      select from bug_fingerprint f
      where f.project_id = b.project_id and f.bug_report_id = b.id and f.kind in ('outage', 'automation', 'infrastructure'))
  order by k.test_case, b.number desc`;

export type BugMark = { bugId: string; fingerprint: Fingerprint; now: string };

/** A fingerprint that another bug already has stays with that bug. */
export async function insertFingerprints(
  sql: Tx,
  projectId: string,
  marks: readonly BugMark[],
  version: number,
): Promise<void> {
  if (marks.length === 0) return;
  const texts = (of: (mark: BugMark) => string | null) => sql`${toTextArray(marks.map(of))}::text[]`;
  await sql`
    insert into bug_fingerprint (project_id, digest, bug_report_id, version, kind, exception_type, message, frames, test,
      created_at)
    select ${projectId}, m.digest::uuid, m.bug::uuid, ${version}, m.kind, m.exception_type, m.message,
      array(select json_array_elements_text(m.frames::json)), m.test, m.now::timestamptz
    from unnest(${texts(({ fingerprint }) => fingerprint.digest)}, ${texts(({ bugId }) => bugId)},
      ${texts(({ fingerprint }) => fingerprint.kind)}, ${texts(({ fingerprint }) => fingerprint.exceptionType)},
      ${texts(({ fingerprint }) => toStorable(fingerprint.message))},
      ${texts(({ fingerprint }) => JSON.stringify(fingerprint.frames.map(toStorable)))},
      ${texts(({ fingerprint }) => fingerprint.test && toStorable(fingerprint.test))},
      ${texts(({ now }) => now)}) as m (digest, bug, kind, exception_type, message, frames, test, now)
    on conflict (project_id, digest) do nothing`;
}
