/** Conditions on runners and leases: which runners are present, and which leases they take. */

import { type Fragment, type Sql, toJsonTime } from "../database/connect.ts";

/** Time without a request after which a runner is not seen. */
const SEEN_SECONDS = 120;

export const isOpen = (sql: Sql, lease: Fragment) => sql`${lease}.status in ('queued', 'offered', 'running')`;

export const isHeld = (sql: Sql, lease: Fragment) => sql`${lease}.status in ('offered', 'running')`;

/** A condition: the runner holds a lease that has not expired. */
export const isBusy = (sql: Sql, runner: Fragment): Fragment => sql`exists (
  select from lease mine where mine.project_id = ${runner}.project_id and mine.runner = ${runner}.name
    and ${isHeld(sql, sql`mine`)} and mine.expires_at > now())`;

/**
 * A condition: the runner is busy and still asks for work. It then leaves out the tasks that would overwrite the report
 * of a task that it runs, so its task_slugs do not say what it takes once it is idle.
 */
export const isBlocked = (sql: Sql, runner: Fragment): Fragment => sql`(${runner}.free > 0 and ${isBusy(sql, runner)})`;

/** A condition: the runner gets no new tasks, because it was paused by a person or after several tasks in a row that it could not run. */
export const isPaused = (sql: Sql, runner: Fragment): Fragment => sql`
  (${runner}.paused_at is not null and (${runner}.paused_until is null or ${runner}.paused_until > now()))`;

export const pauseOf = (sql: Sql, runner: Fragment): Fragment => sql`
  case when ${isPaused(sql, runner)} then json_build_object(
    'reason', ${runner}.pause_reason, 'until', ${toJsonTime(sql, sql`${runner}.paused_until`)}) end`;

/** A condition: the runner has asked lately, and has not ended since. */
export const isSeen = (sql: Sql, runner: Fragment): Fragment =>
  sql`(${runner}.seen_at > now() - ${SEEN_SECONDS}::int * interval '1 second' and not ${runner}.stopped)`;

/** A condition: the runner has asked within the last hour, so that it is likely to come back. */
export const isSeenWithinHour = (sql: Sql, runner: Fragment): Fragment =>
  sql`${runner}.seen_at > now() - interval '1 hour'`;

/** A condition: the runner has asked lately, or holds a lease; and it is not paused. */
export const isPresent = (sql: Sql, runner: Fragment): Fragment => sql`
  not ${isPaused(sql, runner)} and (${isSeen(sql, runner)} or ${isBusy(sql, runner)})`;

/** A condition: the runner takes the task of a lease. */
export const offersTask = (sql: Sql, runner: Fragment, lease: Fragment): Fragment => sql`
  (${runner}.task_slugs is null or ${lease}.task_slug = any(${runner}.task_slugs) or exists (
    -- It does not ask for a task while it has one that would write the same report.
    select from lease other where other.project_id = ${lease}.project_id and other.runner = ${runner}.name
      and other.task_slug = ${lease}.task_slug and ${isHeld(sql, sql`other`)}))`;

/** A condition: the runner is present, and fits a lease. */
export const canRun = (sql: Sql, runner: Fragment, lease: Fragment): Fragment => sql`
  ${isPresent(sql, runner)} and ${lease}.labels <@ ${runner}.labels
  and (not ${lease}.probe or ${lease}.task_slug = any(${runner}.probe_slugs)) and ${offersTask(sql, runner, lease)}`;
