/** Conditions that many statements share, each stated once. What a test case's record says is in health.ts. */

import { FIRST_UNTRUSTED_NUMBER } from "../rules/untrusted.ts";
import type { Given } from "../database/compose.ts";
import type { Fragment, Sql } from "../database/connect.ts";

/** A condition: the project with this id, an expression, exists and is not deleted. */
export const isProject = (sql: Sql, id: Fragment): Fragment =>
  sql`exists (select from project there where there.id = ${id})`;

/** A condition: the row `r`, an alias, belongs to an existing team, and to an existing project or none. */
export const hasOwner = (sql: Sql, r: Fragment): Fragment => sql`(
  exists (select from team there where there.id = ${r}.team_id)
  and (${r}.project_id is null or ${isProject(sql, sql`${r}.project_id`)}))`;

/** The bug report `b`, an alias, is open or in progress, and not part of another one. */
export const isLiveBug = (sql: Sql, b: Fragment): Fragment =>
  sql`(${b}.status in ('open', 'in_progress') and ${b}.merged_into is null)`;

/** The quarantine `q`, an alias, has no end, or ends later. */
export const isActiveQuarantine = (sql: Sql, q: Fragment): Fragment => sql`(${q}.until is null or ${q}.until > now())`;

/** A statement: the test cases that jobs leave out, because of their quarantines. */
export const skippedCases = (sql: Sql, projectId: string): Fragment => sql`
  select q.test_case from quarantine q where q.project_id = ${projectId} and q.skip and ${isActiveQuarantine(sql, sql`q`)}`;

/**
 * A condition: the execution or the run `e`, an alias or a table, counts. An untrusted one comes from a fork or is a probe: it is shown,
 * but no figure and no decision may depend on it. Every statement about several executions or runs uses this; results of test cases and
 * test cases themselves are stored apart (rules/untrusted.ts).
 */
export const isTrustedBuild = (sql: Sql, e: Fragment): Fragment => sql`(not ${e}.untrusted)`;

/** The test case `c`, an alias or a table, belongs to the catalogue of the project: not only untrusted reports contain it. */
export const isInCatalogue = (sql: Sql, c: Fragment): Fragment =>
  sql`(${c}.number < ${sql.unsafe(String(FIRST_UNTRUSTED_NUMBER))})`;

/**
 * A condition: the execution `e`, an alias, agrees with a branch and a commit where both are known. The branch of a build of a merge queue
 * is the ref that the queue has created for it.
 */
export const agreesWithBuild = (
  sql: Sql,
  e: Fragment,
  { branch, commit }: { branch: Given; commit: Given },
): Fragment => sql`(
  (coalesce(${e}.queue_ref, ${e}.branch) is null or ${branch}::text is null or coalesce(${e}.queue_ref, ${e}.branch) = ${branch})
  and (${e}.commit is null or ${commit}::text is null or is_same_commit(${e}.commit, ${commit})))`;

/**
 * A condition: the executions `e` and `mine`, aliases, are of independent lines of builds. A build of a branch and one of its pull request
 * are of one line. A build of a merge queue contains the pull requests in front of it, so it is no evidence for another line, and builds of
 * other lines in the queue are none for it.
 */
export const isOfOtherLine = (sql: Sql, e: Fragment, mine: Fragment): Fragment => sql`(
  (${e}.branch is distinct from ${mine}.branch or ${e}.pull_request <> ${mine}.pull_request)
  and ${e}.queue_ref is null and ${isTrustedBuild(sql, e)}
  and (${mine}.queue_ref is null or ${e}.pull_request is null or not exists (
    select from execution q
    where q.project_id = ${e}.project_id and q.pull_request = ${e}.pull_request and q.queue_ref is not null)))`;

/**
 * A condition: execution `e`, an alias, is on the branch `name`, the default one, or names none. A pull request from a fork is not,
 * although its branch may have the same name.
 */
export const isOnDefault = (sql: Sql, e: Fragment, name: Fragment): Fragment =>
  sql`((${e}.branch is null or ${e}.branch = ${name}) and ${e}.pull_request is null and ${isTrustedBuild(sql, e)})`;

/**
 * A condition: the failure `f`, an alias, has a cause outside of the code: it is part of an incident, or it matches an infrastructure rule.
 * It counts neither in the health of its test case nor as evidence.
 */
export const isFromOutsideCode = (sql: Sql, f: Fragment): Fragment =>
  sql`(${f}.blame = 'incident' or ${f}.rule_id is not null)`;

/**
 * A condition: the automation `a`, an alias, waits for events of this type. What it has reported stays current: a change after the end of
 * an execution also concerns automations for its end that show the decision of a gate, and its end and changes concern those that comment
 * on pull requests.
 */
export const waitsForEvent = (sql: Sql, a: Fragment, type: Given): Fragment => sql`(
  ${a}.event = ${type}
  or ${type} = 'execution.changed' and ${a}.event = 'execution.completed' and exists (
    select from json_array_elements(${a}.actions) action where action->>'gate' is not null)
  or ${type} in ('execution.completed', 'execution.changed')
    and ${a}.event in ('test_run.completed', 'execution.completed', 'execution.failed') and exists (
      select from json_array_elements(${a}.actions) action
      join integration i on i.team_id = ${a}.team_id and i.id::text = action->>'integrationId'
      where action->>'type' = 'notify' and i.kind in ('github', 'gitlab')))`;
