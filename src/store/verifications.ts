/** Verifications and the tallies of their probes. */

import type { VerificationTally } from "../rules/verification.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { VerificationStatus } from "../schema/verifications.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import type { Fragment, Sql, Tx } from "../database/connect.ts";
import { takeLock } from "../database/locks.ts";
import { isDue } from "../database/retry_backoff.ts";
import { caseRefOf } from "./case_ref.ts";
import { isProject } from "./predicates.ts";

export type VerificationRow = {
  id: string;
  testCase: CaseRef;
  commit: string;
  status: VerificationStatus;
  runs: number;
  passed: number;
  failed: number;
  noResult: number;
  noBuild: number;
  release: boolean;
  released: boolean;
  failedExecutionIds: string[];
  requestedBy: string;
  createdAt: string;
  endedAt: string | null;
};

const MAX_FAILED_PROBES = 20;

/** The table `v`, with the test case `c` of each. */
const verificationsWithCases = (sql: Sql): Fragment => sql`
  verification v join test_case c on c.project_id = v.project_id and c.number = v.test_case`;

const columns = (sql: Sql) => sql`
  v.id, v.commit, v.status, v.runs, v.passed, v.failed, v.no_result as "noResult", v.no_build as "noBuild", v.release, v.released,
  v.requested_by as "requestedBy", v.created_at as "createdAt", v.ended_at as "endedAt",
  ${caseRefOf(sql, sql`c`)} as "testCase", (
    select coalesce(json_agg(f.execution_id order by f.execution_id), '[]') from (
      select execution_id from probe
      where project_id = v.project_id and verification_id = v.id and ended_at is not null and (result = 'failed' or flaky)
      order by execution_id limit ${MAX_FAILED_PROBES}) f) as "failedExecutionIds"`;

export const selectVerification = async (
  sql: Sql,
  projectId: string,
  id: string,
): Promise<VerificationRow | undefined> => {
  const [row] = await sql<VerificationRow[]>`
    select ${columns(sql)} from ${verificationsWithCases(sql)}
    where v.project_id = ${projectId} and v.id = ${id}`;
  return row;
};

/** Newest first, one row more than `limit`. */
export const selectVerifications = (
  sql: Sql,
  projectId: string,
  testCaseId: string,
  { limit, after }: { limit: number; after?: string | undefined },
) => sql<VerificationRow[]>`
  select ${columns(sql)} from ${verificationsWithCases(sql)}
  where v.project_id = ${projectId} and v.test_case = ${numberOfTestCase(testCaseId)} and c.id = ${testCaseId}
    ${after === undefined ? sql`` : sql`and v.id < ${after}`}
  order by v.id desc limit ${limit + 1}`;

/** A test that an execution has added, and the state of its verification. */
export type NewTestRow = Pick<VerificationRow, "testCase" | "status" | "passed" | "failed" | "runs"> & {
  verificationId: string;
};

/** An expression: the verified tests that the execution `e`, an alias, has added, as JSON. */
export const newTestsOf = (sql: Sql, e: Fragment): Fragment => sql`(
  select coalesce(json_agg(json_build_object('verificationId', v.id, 'status', v.status, 'passed', v.passed,
    'failed', v.failed, 'runs', v.runs, 'testCase', ${caseRefOf(sql, sql`c`)}) order by v.id), '[]')
  from ${verificationsWithCases(sql)}
  where v.project_id = ${e}.project_id and v.new_in_execution_id = ${e}.id)`;

/** Locks verifications of the project until the commit, and returns the number of running ones. */
export const countRunningVerifications = async (sql: Tx, projectId: string): Promise<number> => {
  // A separate statement, because the one that counts must see what was committed before it began.
  await takeLock(sql, ["verifications", projectId]);
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from verification
    where project_id = ${projectId} and next_check_at is not null and new_in_execution_id is null`;
  return row!.count;
};

export const insertVerification = (
  sql: Tx,
  projectId: string,
  verification: Pick<VerificationRow, "id" | "commit" | "runs" | "release" | "requestedBy"> & {
    testCaseId: string;
    accountId: string | null;
    /** The execution that added the test; null: a person started the verification. */
    newIn: string | null;
    now: Date;
  },
) => {
  const { id, testCaseId, commit, runs, release, accountId, requestedBy, newIn, now } = verification;
  return sql`
    insert into verification (project_id, id, test_case, commit, runs, release, account_id, requested_by, new_in_execution_id, created_at, next_check_at)
    values (${projectId}, ${id}, ${numberOfTestCase(testCaseId)}, ${commit}, ${runs}, ${release}, ${accountId}, ${requestedBy}, ${newIn},
      ${now.toISOString()}, now())`;
};

export type LockedVerification = Pick<
  VerificationRow,
  "id" | "commit" | "status" | "runs" | "release" | "requestedBy"
> & {
  projectId: string;
  teamId: string;
  accountId: string | null;
  /** The execution that added the test; null: a person started the verification. */
  newIn: string | null;
  testCaseId: string;
  taskSlug: string;
};

const lockedColumns = (sql: Sql) => sql`
  v.project_id as "projectId", p.team_id as "teamId", v.id, v.commit, v.status, v.runs, v.release, v.account_id as "accountId", v.new_in_execution_id as "newIn",
  v.requested_by as "requestedBy", c.id as "testCaseId", c.task_slug as "taskSlug"`;

export const lockVerification = async (
  sql: Tx,
  projectId: string,
  id: string,
): Promise<LockedVerification | undefined> => {
  const [row] = await sql<LockedVerification[]>`
    select ${lockedColumns(sql)} from ${verificationsWithCases(sql)} join project p on p.id = v.project_id
    where v.project_id = ${projectId} and v.id = ${id} for update of v`;
  return row;
};

/** Returns and locks the next due verification, skipping those that another server has locked. */
export const lockDueVerification = async (sql: Tx): Promise<LockedVerification | undefined> => {
  const [row] = await sql<LockedVerification[]>`
    select ${lockedColumns(sql)} from ${verificationsWithCases(sql)} join project p on p.id = v.project_id
    where v.next_check_at <= now() and ${isProject(sql, sql`v.project_id`)} and ${isDue(sql, "verification", sql`v.id::text`)}
    order by v.next_check_at limit 1 for update of v skip locked`;
  return row;
};

export const tallyProbes = async (sql: Sql, projectId: string, verificationId: string): Promise<VerificationTally> => {
  const [row] = await sql<VerificationTally[]>`
    select count(*) filter (where result = 'passed' and not flaky)::int as passed,
      count(*) filter (where result = 'failed' or flaky)::int as failed,
      count(*) filter (where result in ('no_result', 'no_build'))::int as "noResult",
      count(*) filter (where result = 'no_build')::int as "noBuild",
      count(*) filter (where status = 'queued')::int as queued, count(*) filter (where status = 'running')::int as running
    from (
      select case when p.ended_at is not null then p.result end as result, p.flaky, case when p.ended_at is null then e.status end as status
      from probe p join execution e on e.project_id = p.project_id and e.id = p.execution_id
      where p.project_id = ${projectId} and p.verification_id = ${verificationId}) p`;
  return row!;
};

/** Seconds until the next check. While nothing runs, only a free runner changes anything. */
const BUSY_SECONDS = 1;
const IDLE_SECONDS = 3;

/** Stores the state, and the time of the next check; none if it has ended. */
export const updateVerification = (
  sql: Tx,
  { projectId, id }: Pick<LockedVerification, "projectId" | "id">,
  {
    status,
    released,
    passed,
    failed,
    noResult,
    noBuild,
    running,
  }: VerificationTally & { status: VerificationStatus; released: boolean },
) => sql`
  update verification set status = ${status}, released = ${released}, passed = ${passed}, failed = ${failed},
    no_result = ${noResult}, no_build = ${noBuild}, ended_at = case when ${status} <> 'running' then now() end,
    next_check_at = case when ${status} = 'running' then now() + ${running > 0 ? BUSY_SECONDS : IDLE_SECONDS}::int * interval '1 second' end
  where project_id = ${projectId} and id = ${id}`;

/** Whether a verification of a test that the execution has added is still running. */
export const selectHasRunningNewTests = async (sql: Tx, projectId: string, executionId: string): Promise<boolean> =>
  (
    await sql`
      select from verification
      where project_id = ${projectId} and new_in_execution_id = ${executionId} and status = 'running' limit 1`
  ).length === 1;
