/** Events, written in the transaction that caused them, and read once by the automations. */

import { type CommitWords, wordsOfCommit } from "./commits.ts";
import type {
  CulpritData,
  EventData,
  EventType,
  NewEvent,
  FlakinessChange,
  VerificationData,
} from "../schema/events.ts";
import type { Given } from "../database/compose.ts";
import {
  type Fragment,
  type Sql,
  type Tx,
  thisMoment,
  toJson,
  toNumberArray,
  toRows,
  toTextArray,
} from "../database/connect.ts";
import { numberOfTestCase } from "../rules/test_case_id.ts";
import { flakeResultsOf } from "./health.ts";
import { firstOwnerOf, ownersJson, ownersOfBug } from "./owners.ts";
import { isDue } from "../database/retry_backoff.ts";
import { hasOwner, waitsForEvent } from "./predicates.ts";

/** When automations handle the event; null if none waits for its type. */
const due = (sql: Sql, teamId: Fragment, type: Fragment) => sql`
  case when exists (select from automation a where a.team_id = ${teamId} and ${waitsForEvent(sql, sql`a`, type)} and a.enabled)
    then ${thisMoment(sql)} end`;

/** Inserts events of a project. `rows` comes from `toEventRows`. */
export const insertEventRows = (sql: Sql, projectId: Given, rows: Given) => sql`
  insert into event (team_id, id, project_id, type, depth, data, execution_id, due_at)
  select p.team_id, e.id, p.id, e.type, e.depth, e.data, e."executionId", ${due(sql, sql`p.team_id`, sql`e.type`)}
  from project p, json_to_recordset(${rows}::text::json) as e (id uuid, type text, depth smallint, data json,
    "executionId" uuid)
  where p.id = ${projectId}`;

/** Converts events to rows, in the given order. */
export const toEventRows = (events: readonly NewEvent[]): string =>
  toRows(
    events.map(({ type, depth, data }) => {
      return { id: Bun.randomUUIDv7(), type, depth, data, executionId: data.execution?.id ?? null };
    }),
  );

/** Inserts events of a project, in the given order. */
export const insertEvents = (sql: Tx, projectId: string, events: readonly NewEvent[]) =>
  insertEventRows(sql, projectId, toEventRows(events));

export const insertTeamEvent = (sql: Tx, teamId: string, type: EventType, data: EventData) => sql`
  insert into event (team_id, id, type, data, due_at)
  values (${teamId}, ${Bun.randomUUIDv7()}, ${type}, ${toJson(sql, data)},
    ${due(sql, sql`${teamId}`, sql`${type}::text`)})`;

/** `isQuarantined`: it was caused only by failures of quarantined tests. */
export type BugEvent = { bugReportId: string; isQuarantined?: boolean } & (
  | { type: "bug_report.opened" | "bug_report.regressed" | "bug_report.resolved"; culprit?: undefined }
  | { type: "bug_report.culprit_found"; culprit: CulpritData }
);

/**
 * Inserts events with the current state of the bugs. Their execution is the last one on the default branch that had the bug: failures on
 * other branches are not events of the bug.
 */
export async function insertBugEvents(
  sql: Tx,
  projectId: string,
  events: readonly BugEvent[],
  depth: number,
): Promise<void> {
  if (events.length === 0) return;
  await sql`
    insert into event (team_id, id, project_id, type, depth, due_at, execution_id, data)
    select p.team_id, e.id, p.id, e.type, ${depth}, ${due(sql, sql`p.team_id`, sql`e.type`)}, b.home_execution_id, case
      when e.quarantined then json_build_object('bugReport', d.data, 'quarantined', true)
      when e.culprit is null then json_build_object('bugReport', d.data)
      else json_build_object('bugReport', d.data, 'culprit', e.culprit::json) end
    from project p, unnest(
      ${toTextArray(events.map(() => Bun.randomUUIDv7()))}::uuid[], ${toTextArray(events.map(({ type }) => type))}::text[],
      ${toTextArray(events.map(({ bugReportId }) => bugReportId))}::uuid[],
      ${toTextArray(events.map(({ culprit }) => (culprit ? JSON.stringify(culprit) : null)))}::text[],
      ${toTextArray(events.map(({ isQuarantined }) => String(isQuarantined === true)))}::boolean[]) as e (id, type, bug, culprit, quarantined)
    join bug_report b on b.project_id = ${projectId} and b.id = e.bug
    cross join lateral (select json_build_object(
      'id', b.id, 'number', b.number, 'title', b.title, 'status', b.status, 'severity', b.severity, 'source', b.source,
      'occurrences', b.occurrences,
      'taskSlugs', (select coalesce(json_agg(distinct c.task_slug), '[]') from bug_case k
        join test_case c on c.project_id = k.project_id and c.number = k.test_case
        where k.project_id = b.project_id and k.bug_report_id = b.id),
      'branch', b.home_branch, 'commit', b.home_commit, 'lastExecutionId', b.home_execution_id, 'assignee', b.assignee, 'owners', ${ownersOfBug(sql, sql`b`)},
      'labels', to_json(b.labels), 'externalUrl', b.external_url) as data) d
    where p.id = ${projectId}`;
}

/** Maximum number of events per run. If more cases change, something else is wrong; the catalogue shows them all. */
const MAX_FLAKINESS_EVENTS = 100;

/** An expression: the test case `c`, an alias, with its record `h`, as events have it. */
const caseDataOf = (sql: Sql, c: Fragment): Fragment => sql`
  json_build_object('id', ${c}.id, 'taskSlug', ${c}.task_slug, 'suite', ${c}.suite, 'name', ${c}.name, 'file', ${c}.file,
    'owner', ${firstOwnerOf(sql, c)}, 'owners', ${ownersJson(sql, c)}, 'flakeRate', round(coalesce(h.flake_rate, 0)::numeric, 4),
    'flakeFailures', coalesce(h.flake_failures, 0), 'flakeResults', ${flakeResultsOf(sql)})`;

/** Inserts events for at most 100 cases that became flaky, or recovered, in a run. */
export async function insertFlakinessEvents(
  sql: Tx,
  projectId: string,
  runId: string,
  changes: readonly FlakinessChange[],
): Promise<void> {
  const shown = changes.slice(0, MAX_FLAKINESS_EVENTS);
  if (shown.length === 0) return;
  await sql`
    insert into event (team_id, id, project_id, type, depth, due_at, execution_id, data)
    select p.team_id, t.id, p.id, y.type, e.depth, ${due(sql, sql`p.team_id`, sql`y.type`)}, e.id,
      json_build_object(
        'testCase', ${caseDataOf(sql, sql`c`)},
        'execution', json_build_object('id', e.id, 'key', e.key, 'status', e.status, 'branch', e.branch,
          'commit', e.commit, 'pullRequest', e.pull_request, 'baseBranch', e.base_branch,
          'queueRef', e.queue_ref, 'buildUrl', e.build_url, 'environment', e.environment))
    from project p, unnest(
      ${toTextArray(shown.map(() => Bun.randomUUIDv7()))}::uuid[], ${toNumberArray(shown.map(({ testCase }) => testCase))}::int[],
      ${toTextArray(shown.map(({ flaky }) => String(flaky)))}::boolean[]) as t (id, number, flaky)
    cross join lateral (
      select case when t.flaky then 'test_case.became_flaky' else 'test_case.recovered' end as type) y
    join test_case c on c.project_id = ${projectId} and c.number = t.number
    join case_health h on h.project_id = ${projectId} and h.test_case = t.number
    join test_run r on r.project_id = ${projectId} and r.id = ${runId}
    join execution e on e.project_id = ${projectId} and e.id = r.execution_id
    where p.id = ${projectId} and not c.sample and not e.sample
    order by t.number`;
}

/** A verification has ended. */
export const insertVerified = (sql: Tx, projectId: string, testCaseId: string, verification: VerificationData) => sql`
  insert into event (team_id, id, project_id, type, depth, due_at, data)
  select p.team_id, ${Bun.randomUUIDv7()}, p.id, 'test_case.verified', 0, ${due(sql, sql`p.team_id`, sql`'test_case.verified'`)},
    json_build_object('testCase', ${caseDataOf(sql, sql`c`)}, 'verification', ${toJson(sql, verification)})
  from project p join test_case c on c.project_id = p.id and c.number = ${numberOfTestCase(testCaseId)}
  left join case_health h on h.project_id = c.project_id and h.test_case = c.number
  where p.id = ${projectId}`;

export type EventRow = {
  teamId: string;
  id: string;
  projectId: string | null;
  projectName: string | null;
  defaultBranch: string | null;
  type: EventType;
  depth: number;
  data: EventData;
  occurredAt: string;
  tries: number;
} & CommitWords;

const columns = (sql: Sql) => sql`
  e.team_id as "teamId", e.id, e.project_id as "projectId", p.name as "projectName", p.default_branch as "defaultBranch",
  e.type, e.depth, e.data, e.occurred_at as "occurredAt", e.tries, k."commitAuthor", k."commitSubject"`;

/** A table of one row: the words for the commit of the execution or the bug that the event `e` is about. */
const wordsOfEvent = (sql: Sql) =>
  wordsOfCommit(sql, sql`e.project_id`, sql`coalesce(e.data->'execution'->>'commit', e.data->'bugReport'->>'commit')`);

/** Returns and locks the oldest event that automations have not handled, skipping those that another server has locked. */
export const lockDueEvent = async (sql: Tx): Promise<EventRow | undefined> => {
  const [row] = await sql<EventRow[]>`
    select ${columns(sql)} from event e left join project p on p.team_id = e.team_id and p.id = e.project_id cross join ${wordsOfEvent(sql)} k
    where e.due_at <= now() and ${hasOwner(sql, sql`e`)} and ${isDue(sql, "event", sql`e.id::text`)}
    order by e.due_at, e.id limit 1 for update of e skip locked`;
  return row;
};

export const markEventDone = (sql: Tx, { teamId, id }: EventRow) =>
  sql`update event set due_at = null where team_id = ${teamId} and id = ${id}`;

/** Postpones an event after an internal error and returns the number of tries. Undefined if another server was quicker. */
export async function postponeEvent(sql: Sql, { teamId, id, tries }: EventRow): Promise<number | undefined> {
  const [row] = await sql<{ tries: number }[]>`
    update event set tries = tries + 1, due_at = now() + interval '10 seconds' * ${2 ** Math.min(tries, 8)}::int
    where team_id = ${teamId} and id = ${id} and tries = ${tries} and due_at is not null returning tries`;
  return row?.tries;
}

/** The newest of a type, of these projects of the team, or of any. */
export const selectLastEvent = async (
  sql: Sql,
  teamId: string,
  type: EventType,
  projectIds: readonly string[] | undefined,
): Promise<EventRow | undefined> => {
  const [row] = await sql<EventRow[]>`
    select ${columns(sql)} from event e left join project p on p.team_id = e.team_id and p.id = e.project_id cross join ${wordsOfEvent(sql)} k
    where e.team_id = ${teamId} and e.type = ${type} and (e.project_id is null or p.id is not null)
      ${projectIds === undefined ? sql`` : sql`and e.project_id = any(${toTextArray(projectIds)}::uuid[])`}
    order by e.id desc limit 1`;
  return row;
};

const redTasksOf = (sql: Sql, projectId: string, branch: string) =>
  sql`red_task where project_id = ${projectId} and branch = ${branch}`;

export const selectRedTasks = async (sql: Sql, projectId: string, branch: string): Promise<string[]> => {
  const rows = await sql<{ slug: string }[]>`
    select task_slug as slug from ${redTasksOf(sql, projectId, branch)} order by task_slug`;
  return rows.map(({ slug }) => slug);
};

type RedTaskChanges = {
  /** The tasks that were not red before. */
  began: string[];
  /** The tasks that were red before. */
  ended: string[];
  /** The tasks of the branch that are still red. */
  left: string[];
};

/**
 * Stores which tasks of an ended execution are red on their branch. Executions that end at once lock the rows of their branch one after the
 * other, so that there is one last green after red; nothing is written or locked while green tasks stay green.
 */
export async function updateRedTasks(
  sql: Tx,
  projectId: string,
  branch: string,
  tasks: readonly { slug: string; failed: boolean }[],
): Promise<RedTaskChanges> {
  const red = tasks.flatMap(({ slug, failed }) => (failed ? slug : []));
  // A green execution ends the red of one that had no tasks at all.
  const green = [...tasks.flatMap(({ slug, failed }) => (failed ? [] : slug)), ...(red.length === 0 ? [""] : [])];
  const before = await selectRedTasks(sql, projectId, branch);
  const mayEnd = before.some((slug) => green.includes(slug));
  if (red.length === 0 && !mayEnd) return { began: [], ended: [], left: before };
  const place = redTasksOf(sql, projectId, branch);
  if (mayEnd) await sql`select from ${place} order by task_slug for update`;
  const began = await sql<{ slug: string }[]>`
    insert into red_task (project_id, branch, task_slug)
    select ${projectId}, ${branch}, slug from unnest(${toTextArray(red)}::text[]) as slug order by slug
    on conflict do nothing returning task_slug as slug`;
  const fresh = began.map(({ slug }) => slug);
  if (!mayEnd) return { began: fresh, ended: [], left: [...before, ...fresh] };
  const ended = await sql<{ slug: string }[]>`
    delete from ${place} and task_slug = any(${toTextArray(green)}::text[]) returning task_slug as slug`;
  const left = await selectRedTasks(sql, projectId, branch);
  return { began: fresh, ended: ended.map(({ slug }) => slug), left };
}

/** An action of an automation, and the branch whose tasks it sends messages about. */
type RedTaskMessages = {
  teamId: string;
  automationId: string;
  /** The index of the action. */
  action: number;
  projectId: string;
  branch: string;
};

/** Notes that an action says that these tasks are red. Returns false if it has said so of all that still are. */
export async function insertRedTaskMessages(
  sql: Tx,
  { teamId, automationId, action, projectId, branch }: RedTaskMessages,
  slugs: readonly string[],
): Promise<boolean> {
  const [row] = await sql<{ isNews: boolean }[]>`
    with red as materialized (
      select task_slug, since from ${redTasksOf(sql, projectId, branch)} and task_slug = any(${toTextArray(slugs)}::text[])),
    fresh as (
      insert into red_task_message (project_id, branch, task_slug, since, team_id, automation_id, action)
      select ${projectId}, ${branch}, task_slug, since, ${teamId}, ${automationId}, ${action} from red order by task_slug
      on conflict do nothing returning 1)
    select exists (select from fresh) or not exists (select from red) as "isNews"`;
  return row!.isNews;
}

/** Deletes processed events that are older than the API returns. */
export const deleteOldEvents = (sql: Sql, days: number) =>
  sql`delete from event where occurred_at < now() - interval '1 day' * ${days}::int and due_at is null`;

export async function deleteOldRedTasks(sql: Sql, days: number): Promise<number> {
  const { count } = await sql`delete from red_task where since < now() - interval '1 day' * ${days}::int`;
  await sql`
    delete from red_task_message m where not exists (
      select from red_task r where r.project_id = m.project_id and r.branch = m.branch and r.task_slug = m.task_slug
        and r.since = m.since)`;
  return count;
}
