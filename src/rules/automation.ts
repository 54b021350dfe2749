/** Whether an event meets the conditions of an automation, and why. */

import { lineOf } from "./branch.ts";
import { isTaskAmong } from "./variants.ts";
import type { Conditions } from "../schema/automations.ts";
import type { EventData } from "../schema/events.ts";

/** The facts of an event that conditions check; null: the event does not have the fact. */
export type EventFacts = {
  projectId: string | null;
  branch: string | null;
  environment: string | null;
  taskSlugs: string[];
  /** Owners of the subject; for an execution, owners of the selected failures. */
  owners: string[];
  failed: number;
  severity: string | null;
};

/** An event that names no branch is on the default one; a fork's pull request from a branch of that name is `pull/12`. */
export function toFacts(
  { execution, testRun, bugReport, testCase, taskSlug }: EventData,
  projectId: string | null,
  defaultBranch: string | null,
): EventFacts {
  const single = testRun?.taskSlug ?? testCase?.taskSlug ?? taskSlug;
  return {
    projectId,
    branch:
      execution && defaultBranch !== null
        ? lineOf(execution, defaultBranch)
        : (execution?.branch ?? bugReport?.branch ?? defaultBranch),
    environment: execution?.environment ?? null,
    taskSlugs:
      single !== undefined ? [single] : (bugReport?.taskSlugs ?? execution?.tasks?.map(({ slug }) => slug) ?? []),
    owners: testCase?.owners ?? bugReport?.owners ?? [],
    failed: testRun?.failed ?? execution?.failed ?? 0,
    severity: bugReport?.severity ?? null,
  };
}

/** Returns the pattern that decides: the last one that matches the name, including or excluding. */
const lastMatch = (patterns: readonly string[], name: string): string | undefined =>
  patterns.findLast((pattern) => new Bun.Glob(pattern.replace(/^!/, "")).match(name));

const list = (values: readonly string[]) => values.map((value) => JSON.stringify(value)).join(", ");

/** A reason for the first condition that does not hold, else for all of them together. */
export function meets(conditions: Conditions, facts: EventFacts): { met: boolean; reason: string } {
  const { projects, branches, environments, taskSlugs, owners, minFailed, severity } = conditions;
  const held: string[] = [];
  const no = (reason: string) => ({ met: false, reason });
  if (projects) {
    if (facts.projectId === null || !projects.includes(facts.projectId))
      return no(`It is not about one of the ${projects.length} projects`);
    held.push("the project is one of them");
  }
  if (branches) {
    const { branch } = facts;
    const glob = branch === null ? undefined : lastMatch(branches, branch);
    if (glob?.startsWith("!")) return no(`The branch ${JSON.stringify(branch)} is excluded by ${JSON.stringify(glob)}`);
    if (glob === undefined) return no(`The branch ${JSON.stringify(branch)} matches none of ${list(branches)}`);
    held.push(`the branch ${JSON.stringify(branch)} matches ${JSON.stringify(glob)}`);
  }
  if (environments) {
    const { environment } = facts;
    if (environment === null || !environments.includes(environment))
      return no(`The environment ${JSON.stringify(environment)} is none of ${list(environments)}`);
    held.push(`the environment is ${JSON.stringify(environment)}`);
  }
  if (taskSlugs) {
    const slug = facts.taskSlugs.find((slug) => isTaskAmong(slug, taskSlugs));
    if (slug === undefined) return no(`It is about none of the tasks ${list(taskSlugs)}`);
    held.push(`it is about the task ${JSON.stringify(slug)}`);
  }
  if (owners) {
    const owner = owners.find((one) => facts.owners.includes(one));
    if (owner === undefined) return no(`Nothing in it belongs to ${list(owners)}`);
    held.push(`it belongs to ${JSON.stringify(owner)}`);
  }
  if (minFailed !== undefined) {
    if (facts.failed < minFailed) return no(`${facts.failed} failed, and it takes ${minFailed}`);
    held.push(`${facts.failed} failed, and it takes ${minFailed}`);
  }
  if (severity) {
    const found = severity.find((one) => one === facts.severity);
    if (found === undefined) return no(`The severity ${JSON.stringify(facts.severity)} is none of ${list(severity)}`);
    held.push(`the severity is ${JSON.stringify(found)}`);
  }
  const all = held.join(", ");
  return { met: true, reason: all === "" ? "No conditions to match" : `${all[0]!.toUpperCase()}${all.slice(1)}` };
}
