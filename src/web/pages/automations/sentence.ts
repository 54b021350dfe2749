/** Describes an automation as a sentence, with the words for its events and actions. */

import type { Action, ActionType } from "../../../schema/automation_actions.ts";
import type { NewAutomation } from "../../../schema/automations.ts";
import type { EventType } from "../../../schema/events.ts";
import { counted } from "../../../wording/numbers.ts";

export type Named = { id: string; name: string };

/** The options of the form. */
export type Choices = {
  projects: readonly Named[];
  integrations: readonly (Named & { kind: string; enabled: boolean })[];
};

export const EVENT_WORDS: Record<EventType, string> = {
  "execution.completed": "an execution has ended",
  "execution.failed": "an execution has failed",
  "execution.recovered": "a task is green again",
  "execution.changed": "an execution has changed after its end, or was cancelled",
  "test_run.completed": "a task has reported",
  "bug_report.opened": "a bug is opened",
  "bug_report.regressed": "a bug comes back",
  "bug_report.resolved": "a bug is resolved",
  "bug_report.culprit_found": "the commit that broke a test is found",
  "test_case.became_flaky": "a test becomes flaky",
  "test_case.recovered": "a flaky test has recovered",
  "test_case.verified": "a verification of a test has ended",
  "task.missed": "a task has not reported in time",
  "integration.disabled": "an integration is disabled",
};

export const ACTION_WORDS: Record<ActionType, string> = {
  notify: "send a message",
  digest: "send a digest of what changed",
  create_issue: "create an issue",
  set_commit_status: "set the status of the commit",
  dispatch: "start a pipeline",
  open_bug_report: "open a bug",
  rerun_failed: "rerun failed tests",
  find_culprit: "search for the commit that broke the test",
  start_execution: "start an execution",
  quarantine: "quarantine the test",
  release: "end the automatic quarantine of the test",
};

/** Returns the slug of a task, which may be an object with requirements. */
const slugOf = (task: string | { slug: string }): string => (typeof task === "string" ? task : task.slug);

const quoted = (values: readonly string[]) => values.join(", ");

/** Returns a sentence such as "When an execution has failed in shop on main: send a message to Team chat". */
export function sentenceOf(
  { trigger, conditions, actions }: Pick<NewAutomation, "trigger" | "conditions" | "actions">,
  { projects, integrations }: Choices,
): string {
  const nameOf = (list: readonly Named[], id: string) => list.find((one) => one.id === id)?.name ?? "a deleted object";
  const { branches, environments, taskSlugs, owners, minFailed, severity } = conditions;
  const where = [
    conditions.projects && `in ${conditions.projects.map((id) => nameOf(projects, id)).join(", ")}`,
    branches && `on ${quoted(branches)}`,
    environments && `at ${quoted(environments)}`,
    taskSlugs && `of ${quoted(taskSlugs)}`,
    owners && `owned by ${quoted(owners)}`,
    minFailed && `with at least ${minFailed} failures`,
    severity && `of severity ${quoted(severity)}`,
  ].filter(Boolean);
  const when =
    "event" in trigger ? `When ${EVENT_WORDS[trigger.event]}` : `At ${trigger.schedule} (${trigger.timezone})`;
  const what = actions.map((action: Action) => {
    if ((action.type === "notify" || action.type === "digest") && action.owners)
      return `${ACTION_WORDS[action.type]} about what ${quoted(action.owners)} own to ${nameOf(integrations, action.integrationId)}`;
    if (action.type === "set_commit_status" && action.gate)
      return `${ACTION_WORDS[action.type]} to the decision of the gate "${action.gate}" in ${nameOf(integrations, action.integrationId)}`;
    if ("integrationId" in action)
      return `${ACTION_WORDS[action.type]} ${action.type === "notify" || action.type === "digest" ? "to" : "in"} ${nameOf(integrations, action.integrationId)}`;
    if (action.type === "start_execution") return `${ACTION_WORDS[action.type]} of ${quoted(action.tasks.map(slugOf))}`;
    if (action.type === "find_culprit")
      return `${ACTION_WORDS.find_culprit} with at most ${counted(action.maxProbes, "probe")} and ${counted(action.maxMinutes, "minute")}`;
    if (action.type === "quarantine")
      return `${ACTION_WORDS.quarantine} for ${counted(action.days, "day")}, at most ${counted(action.maxTests, "test")} and ${action.maxShare} % of all`;
    return ACTION_WORDS[action.type];
  });
  return `${[when, ...where].join(" ")}: ${what.join(", then ")}`;
}
