/** The actions of automations: each performs its effect, or in a dry run says what it would do. */

import { quarantineFlaky, releaseRecovered } from "./automatic_quarantine.ts";
import { MAX_TITLE_CHARACTERS, openBug, reopenBug } from "../bugs/bug_reports.ts";
import { findSearchStart, startSearch } from "../bugs/culprit_searches.ts";
import { type AutomationServices, failed, type Occasion, type ActionAnswer, skipped } from "./occasion.ts";
import { sendAction } from "./send_action.ts";
import { askEngine, endUndispatched, lockEngine } from "./dispatch.ts";
import { findOrInsertExecution } from "../executions/found_execution.ts";
import { planTasks } from "../executions/executions.ts";
import { rerunExecution } from "../executions/reruns.ts";
import { resolveBranch } from "../../rules/branch.ts";
import type { Action } from "../../schema/automation_actions.ts";
import { type PlannedTask, toPlannedTask } from "../../schema/planned_tasks.ts";
import { Refusal } from "../../schema/refusal.ts";
import { selectTeamProjects } from "../../store/automations.ts";
import { lockBugs } from "../../store/bug_reports.ts";
import { selectBugsByFingerprint } from "../../store/bug_fingerprints.ts";
import { savepoint, type Tx } from "../../database/connect.ts";
import { selectHasEnvironment } from "../../store/environments.ts";
import { lockExecution } from "../../store/executions.ts";

/** Maximum number of automations in a chain. Beyond it no action runs that could trigger another one, which prevents loops. */
const MAX_DEPTH = 3;

/** Performs an action in a transaction. A refused action is undone and reported as its failure. */
export async function perform(
  sql: Tx,
  services: AutomationServices,
  action: Action,
  occasion: Occasion,
): Promise<ActionAnswer> {
  try {
    return await savepoint(sql, (sql) => begin(sql, services, action, occasion));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return failed(error.message);
  }
}

async function begin(sql: Tx, services: AutomationServices, action: Action, occasion: Occasion): Promise<ActionAnswer> {
  switch (action.type) {
    case "open_bug_report":
      return await openBugReport(sql, services, action, occasion);
    case "rerun_failed":
      return await rerunFailed(sql, services, action, occasion);
    case "find_culprit":
      return await findCulprit(sql, services, action, occasion);
    case "start_execution":
      return await startExecution(sql, services, action, occasion);
    case "quarantine":
    case "release":
      return await changeQuarantine(sql, services, action, occasion);
    default:
      return await sendAction(sql, services, action, occasion);
  }
}

/** One bug report per automation and branch: it is opened again rather than twice. */
async function openBugReport(
  sql: Tx,
  { dryRun, now }: AutomationServices,
  { title, severity, labels, assignee }: Extract<Action, { type: "open_bug_report" }>,
  { automation, project, notice, depth }: Occasion,
): Promise<ActionAnswer> {
  if (!project) return skipped("It is not about a project");
  if (depth >= MAX_DEPTH) return skipped(`Stopped: a chain of ${depth} automations led to this event`);
  const name = title ?? notice.subject;
  const digest = Bun.SHA256.hash(`automation ${project.id} ${automation.id} ${notice.topic}`, "hex").slice(0, 32);
  await lockBugs(sql, project.id);
  const [known] = await selectBugsByFingerprint(sql, project.id, [digest]);
  const at = now.toISOString();
  if (known && known.status !== "resolved")
    return { ...skipped(`Bug report #${known.number} is ${known.status} already`), bugReportId: known.id };
  if (dryRun)
    return { status: "planned", reason: `Would ${known ? "reopen" : "open"} the bug report ${JSON.stringify(name)}` };
  if (known) {
    await reopenBug(sql, project.id, { id: known.id, now: at, depth: depth + 1 });
    return { status: "done", reason: `Reopened bug report #${known.number}`, bugReportId: known.id };
  }
  const bug = {
    title: name.slice(0, MAX_TITLE_CHARACTERS).toWellFormed(),
    severity,
    source: "automatic" as const,
    labels,
    assignee,
    description: `Opened by the automation "${automation.name}": ${notice.title}. ${notice.text}`,
    now: at,
  };
  const fingerprint = {
    kind: "automation" as const,
    digest,
    exceptionType: null,
    message: `Automation: ${automation.name}`,
    frames: [],
    test: null,
  };
  const { id, number } = await openBug(sql, project.id, bug, { fingerprint, depth: depth + 1 });
  return { status: "done", reason: `Opened bug report #${number}`, bugReportId: id };
}

async function changeQuarantine(
  sql: Tx,
  { dryRun = false }: AutomationServices,
  action: Extract<Action, { type: "quarantine" | "release" }>,
  { teamId, automation: { name: automation }, event, project }: Occasion,
): Promise<ActionAnswer> {
  if (!event || !project) return skipped("It is not about a test");
  const occasion = { teamId, projectId: project.id, automation, event, dryRun };
  return action.type === "quarantine"
    ? await quarantineFlaky(sql, action, occasion)
    : await releaseRecovered(sql, occasion);
}

async function rerunFailed(
  sql: Tx,
  { dryRun, now, publicUrl }: AutomationServices,
  { maximum }: Extract<Action, { type: "rerun_failed" }>,
  { teamId, event, project, depth }: Occasion,
): Promise<ActionAnswer> {
  const id = event?.data.execution?.id;
  const execution = id && project ? await lockExecution(sql, project.id, id) : undefined;
  if (!execution) return skipped("The execution was deleted");
  if (execution.reruns >= maximum) return skipped(`It has already been rerun ${execution.reruns} times`);
  if (dryRun) return { status: "planned", reason: "Would rerun the failed tasks" };
  const rerun = { failedOnly: true, trigger: "automation" as const, depth: depth + 1, teamId, publicUrl, now };
  const created = await rerunExecution(sql, project!.id, execution, rerun);
  if ("reason" in created) return skipped(`Nothing to rerun: ${created.reason}`);
  return { status: "done", reason: "Reran the failed tasks", executionId: created.id };
}

async function findCulprit(
  sql: Tx,
  { dryRun, now }: AutomationServices,
  { maxProbes, maxMinutes }: Extract<Action, { type: "find_culprit" }>,
  { event, project, depth }: Occasion,
): Promise<ActionAnswer> {
  const bugReportId = event?.data.bugReport?.id;
  if (bugReportId === undefined || !project) return skipped("It is not about a bug");
  const start = await findSearchStart(sql, project.id, bugReportId);
  if ("obstacle" in start) return { ...skipped(`No search for the commit: ${start.obstacle}`), bugReportId };
  if (dryRun) return { status: "planned", reason: "Would search for the commit that broke it", bugReportId };
  await startSearch(sql, project.id, bugReportId, { maxProbes, maxMinutes, depth: depth + 1, now });
  return { status: "done", reason: "Searches for the commit that broke it", bugReportId };
}

async function startExecution(
  sql: Tx,
  { dryRun, now, publicUrl }: AutomationServices,
  action: Extract<Action, { type: "start_execution" }>,
  { teamId, project, depth, cause, event, automation }: Occasion,
): Promise<ActionAnswer> {
  if (depth >= MAX_DEPTH) return skipped(`Stopped: a chain of ${depth} automations led to this event`);
  const { branch, environment, dispatch } = action;
  const [target] =
    action.projectId === undefined ? [project] : await selectTeamProjects(sql, teamId, [action.projectId]);
  if (!target) return failed(action.projectId === undefined ? "It is not about a project" : "The project was deleted");
  const engine = dispatch && (await lockEngine(sql, teamId, dispatch));
  const about = dispatch ? { integrationId: dispatch.integrationId } : {};
  if (engine && "problem" in engine)
    return { ...failed(`Cannot dispatch, by its ${engine.problem.field}: ${engine.problem.message}`), ...about };
  const at = now.toISOString();
  const key =
    action.key?.replaceAll("{date}", at.slice(0, 10)).replaceAll("{time}", at.slice(11, 16).replace(":", "-")) ?? null;
  const origin = event?.data.execution;
  const inherited = origin && project?.id === target.id ? origin : undefined;
  const where = environment ?? inherited?.environment ?? null;
  // Checked before anything begins, because a later refusal would be reported as an internal error.
  if (action.mode === "run" && where !== null && !(await selectHasEnvironment(sql, target.id, where)))
    return failed(`The team has no environment ${JSON.stringify(where)}, whose variables the tasks would get`);
  const tasks = toPlan(action.tasks);
  const named = `the tasks ${tasks.map(({ slug }) => JSON.stringify(slug)).join(", ")} in "${target.name}"`;
  const what = engine ? `${named}, with a pipeline by "${engine.name}" (${engine.kind})` : named;
  if (dryRun) return { status: "planned", reason: `Would start ${what}`, ...about };
  const { execution, isNew } = await findOrInsertExecution(sql, target.id, {
    // A build of a merge queue has a ref in the place of a branch: without it, this would be a build of the default branch.
    ...resolveBranch({
      branch: branch ?? inherited?.queueRef ?? inherited?.branch,
      baseBranch: inherited?.baseBranch,
    }),
    commit: inherited?.commit,
    environment: where,
    key,
    status: "queued",
    ...(action.mode ? { mode: action.mode } : {}),
    trigger: "schedule" in automation.trigger ? "schedule" : "automation",
    timeoutMinutes: action.timeoutMinutes ?? null,
    depth: depth + 1,
    now,
  });
  if (!isNew) return skipped(`There is an execution with the key ${JSON.stringify(key)} already`);
  await planTasks(sql, target.id, execution, tasks, now);
  const why = cause === "manual" ? " by hand" : "";
  const started: ActionAnswer = {
    status: "done",
    reason: `Started ${what}${why}`,
    executionId: execution.id,
    ...about,
  };
  if (!dispatch) return started;
  const asking = { publicUrl, now, eventId: event?.id ?? null };
  const { deliveryId, problem } = await askEngine(sql, { teamId, project: target, execution }, dispatch, asking);
  if (problem === undefined) return { ...started, deliveryId };
  await endUndispatched(sql, { projectId: target.id, id: execution.id }, problem, now);
  return { ...started, ...failed(problem), deliveryId };
}

/** Each task once, as it is named first. */
function toPlan(tasks: Extract<Action, { type: "start_execution" }>["tasks"]): PlannedTask[] {
  const planned = tasks.map(toPlannedTask);
  return planned.filter(({ slug }, index) => planned.findIndex((other) => other.slug === slug) === index);
}
