/** Runs automations: checks an event or a schedule, performs the actions, and records their results. */

import { perform } from "./automation_actions.ts";
import { findDigest } from "./digest.ts";
import { type ActionAnswer, type AutomationServices, type Occasion, skipped } from "./occasion.ts";
import type { FailureSummary } from "../../schema/failures.ts";
import type { CountedBug } from "../../schema/known_bugs.ts";
import { selectFollowUps } from "./follow_ups.ts";
import { type EventFacts, meets, toFacts } from "../../rules/automation.ts";
import { failureReason } from "../../wording/failure_reason.ts";
import { toNotice, toSummaryNotice } from "../../wording/notification.ts";
import type { Action } from "../../schema/automation_actions.ts";
import type { ActionResult, AutomationRun } from "../../schema/automation_runs.ts";
import {
  type AutomationRow,
  insertAutomationRun,
  type NewAutomationRun,
  selectFailedCases,
  selectSummary,
  selectTeamProjects,
} from "../../store/automations.ts";
import { isUnavailable, savepoint, type Tx } from "../../database/connect.ts";
import type { EventRow } from "../../store/events.ts";
import { selectKnownBugs } from "../../store/known_bugs.ts";

const MAX_FAILURES = 20;
const DAY_MS = 86_400_000;

/** Returns the facts that conditions check. Throws if the event is invalid, which then holds for every automation. */
export const factsOf = ({ data, projectId, defaultBranch }: EventRow): EventFacts =>
  toFacts(data, projectId, defaultBranch);

/** The reason of a run that failed for an internal error or always timed out. */
export const reasonOf = (isStall: boolean): string =>
  isStall
    ? "The database did not answer in time after several tries: nothing was done"
    : "Internal error: nothing was done. See the log of the server";

/**
 * Runs an automation for an event. Undefined if it has handled the event before, or does nothing for it. An internal error is undone and
 * stored as a failed run; throws if the database is unavailable or too slow.
 */
export async function runForEvent(
  sql: Tx,
  services: AutomationServices,
  automation: AutomationRow,
  event: EventRow,
  cause: "event" | "manual",
): Promise<AutomationRun | undefined> {
  const { id: eventId, type: eventType, projectId, teamId } = event;
  const about = { cause, eventId, eventType, projectId };
  return await runSafely(sql, services, teamId, automation.id, about, (sql) =>
    actForEvent(sql, services, automation, event, cause),
  );
}

async function actForEvent(
  sql: Tx,
  services: AutomationServices,
  automation: AutomationRow,
  event: EventRow,
  cause: "event" | "manual",
): Promise<Outcome | undefined> {
  const { teamId, projectId, depth } = event;
  const { owners } = automation.conditions;
  const part = await selectPart(sql, event, owners);
  const facts = { ...factsOf(event), owners: part.owners };
  const { met, reason } = meets(automation.conditions, facts);
  const isOwn = "event" in automation.trigger && automation.trigger.event === event.type;
  const chosen = isOwn ? (met ? automation.actions : []) : await selectFollowUps(sql, automation, event, facts, met);
  if (!isOwn && chosen.length === 0) return undefined;
  const actions: ActionResult[] = [];
  if (chosen.length > 0) {
    const project =
      projectId === null
        ? null
        : { id: projectId, name: event.projectName ?? "", defaultBranch: event.defaultBranch ?? "" };
    const occasionOf = ({ failures, knownBugs }: EventPart): Occasion => {
      const context = { ...event, project, failures, knownBugs };
      const notice = toNotice(context, services.publicUrl);
      return { teamId, automation, event, project, notice, depth, cause };
    };
    for (const action of chosen) {
      const own = isOwn && action.type === "notify" ? action.owners : undefined;
      const theirs = own ? await selectPart(sql, event, own) : part;
      const result: Omit<ActionResult, "type"> =
        own && !own.some((owner) => theirs.owners.includes(owner))
          ? { status: "skipped", reason: `Nothing in it belongs to ${own.join(", ")}` }
          : await perform(sql, services, action, occasionOf(theirs));
      actions.push({ type: action.type, ...result });
    }
  }
  return isOwn
    ? { status: toStatus(met, actions), reason, actions }
    : { status: toStatus(true, actions), reason: met ? reason : CURRENT, actions };
}

const CURRENT = "It keeps what it has written current";

/** The part of an event that concerns some owners, or all of it: failures, known bugs and owners. */
type EventPart = { failures: FailureSummary[]; knownBugs: CountedBug[]; owners: string[] };

/** Loads the failures, because an event does not contain them; a bug and a test case have their owners. */
async function selectPart(sql: Tx, event: EventRow, owners: readonly string[] | undefined): Promise<EventPart> {
  const { data, projectId } = event;
  const { testRun, execution } = data;
  if ((testRun?.failed ?? execution?.failed ?? 0) === 0 || projectId === null || !execution)
    return { failures: [], knownBugs: [], owners: factsOf(event).owners };
  const wanted = { taskSlug: testRun?.taskSlug ?? null, owners };
  const { id } = execution;
  const { failedCases, bugCounts } = await selectFailedCases(sql, projectId, id, wanted, MAX_FAILURES);
  const { bugs } = await selectKnownBugs(sql, projectId, id, bugCounts);
  const numbers = new Map<string | null, number>(bugs.map((bug) => [bug.id, bug.number]));
  const failures = failedCases.map(({ bugId, change, shares, evidence, ruleName, ...one }) => ({
    ...one,
    reason: failureReason({ blame: one.blame, ruleName, change, shares, evidence }),
    knownBug: numbers.get(bugId) ?? null,
  }));
  return { failures, knownBugs: bugs, owners: [...new Set(failures.flatMap((failure) => failure.owners))] };
}

/**
 * Runs a scheduled automation for each of its projects. An internal error is undone and stored as a failed run; throws if the database is
 * unavailable or too slow.
 */
export async function runForSchedule(
  sql: Tx,
  services: AutomationServices,
  teamId: string,
  automation: AutomationRow,
  cause: "schedule" | "manual",
): Promise<AutomationRun> {
  const about = { cause, eventId: null, eventType: null, projectId: null };
  const run = await runSafely(sql, services, teamId, automation.id, about, (sql) =>
    actForSchedule(sql, services, teamId, automation, cause),
  );
  return run!;
}

async function actForSchedule(
  sql: Tx,
  services: AutomationServices,
  teamId: string,
  automation: AutomationRow,
  cause: "schedule" | "manual",
): Promise<Outcome> {
  const { publicUrl, now } = services;
  const projects = await selectTeamProjects(sql, teamId, automation.conditions.projects);
  const since = automation.lastRun?.createdAt ?? new Date(now.getTime() - DAY_MS).toISOString();
  const occasions: Occasion[] = [];
  for (const project of projects) {
    const notice = toSummaryNotice(project, await selectSummary(sql, project.id, since), publicUrl, now);
    occasions.push({ teamId, automation, event: null, project, notice, depth: 0, cause });
  }
  const actions: ActionResult[] = [];
  for (const action of automation.actions) {
    const whole = action.type === "dispatch" || (action.type === "start_execution" && action.projectId !== undefined);
    for (const occasion of whole ? occasions.slice(0, 1) : occasions)
      actions.push({ type: action.type, ...(await performOnSchedule(sql, services, action, occasion)) });
  }
  const any = projects.length > 0;
  return {
    status: toStatus(any, actions),
    reason: any ? "Scheduled time reached" : "The team has no such project",
    actions,
  };
}

/** Performs an action, of which a digest has a message of its own. */
async function performOnSchedule(
  sql: Tx,
  services: AutomationServices,
  action: Action,
  occasion: Occasion,
): Promise<ActionAnswer> {
  if (action.type !== "digest" || !occasion.project) return await perform(sql, services, action, occasion);
  const notice = await findDigest(sql, services, action, occasion, occasion.project);
  return notice === undefined
    ? { ...skipped(`Nothing has changed in "${occasion.project.name}"`), integrationId: action.integrationId }
    : await perform(sql, services, action, { ...occasion, notice });
}

type About = Pick<NewAutomationRun, "cause" | "eventId" | "eventType" | "projectId">;
type Outcome = Pick<NewAutomationRun, "status" | "reason" | "actions">;

/** Records what `act` did, if anything, or its internal error, which undoes everything. */
async function runSafely(
  sql: Tx,
  services: AutomationServices,
  teamId: string,
  automationId: string,
  about: About,
  act: (sql: Tx) => Promise<Outcome | undefined>,
): Promise<AutomationRun | undefined> {
  try {
    return await savepoint(sql, async (sql) => {
      const outcome = await act(sql);
      return outcome && (await note(sql, services, teamId, automationId, { ...about, ...outcome }));
    });
  } catch (error) {
    if (isUnavailable(error)) throw error;
    services.onBug(error);
    const failure = { status: "failed" as const, reason: reasonOf(false), actions: [] };
    return await savepoint(sql, (sql) => note(sql, services, teamId, automationId, { ...about, ...failure }));
  }
}

function toStatus(met: boolean, actions: readonly ActionResult[]): AutomationRun["status"] {
  if (!met) return "skipped";
  if (actions.some(({ status }) => status === "failed")) return "failed";
  return actions.every(({ status }) => status === "skipped") ? "skipped" : "done";
}

async function note(
  sql: Tx,
  { dryRun, now }: AutomationServices,
  teamId: string,
  automationId: string,
  run: NewAutomationRun,
): Promise<AutomationRun | undefined> {
  if (dryRun) return { id: null, ...run, createdAt: now.toISOString() };
  return await insertAutomationRun(sql, teamId, automationId, run);
}
