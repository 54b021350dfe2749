/** An automation as fields of a form, for the usual cases, and as a sentence. */

import * as v from "valibot";
import { CONDITIONS_OF, type Conditions, type NewAutomation } from "../../../schema/automations.ts";
import { severity as severitySchema } from "../../../schema/bug_reports.ts";
import type { EventType } from "../../../schema/events.ts";
import { splitList } from "../../site/form_input.ts";
import type { Choices } from "./sentence.ts";

export const SEVERITIES = severitySchema.options;

export const MAX_ACTIONS = 3;

export const MAX_PROJECTS = 50;

const text = v.optional(v.string(), "");

/** Names of each form field, which is a text or not there. */
export const automationFields = {
  name: text,
  when: v.optional(v.picklist(["event", "schedule"]), "event"),
  event: text,
  schedule: text,
  timezone: text,
  branches: text,
  environments: text,
  taskSlugs: text,
  minFailed: text,
  ...Object.fromEntries(
    Array.from({ length: MAX_PROJECTS }, (_, index) => [`project.${index}`, v.optional(v.string())]),
  ),
  ...Object.fromEntries(SEVERITIES.map((one) => [`severity.${one}`, v.optional(v.literal("true"))])),
  ...Object.fromEntries(
    Array.from({ length: MAX_ACTIONS }, (_, index) =>
      ["type", "integrationId", "title", "severity", "maximum", "tasks", "key", "environment"].map((name) => [
        `action.${index}.${name}`,
        text,
      ]),
    ).flat(),
  ),
} as unknown as Record<string, v.GenericSchema<string | undefined, string | undefined>>;

export type AutomationFields = Record<string, string | undefined>;

const needsIntegration = (type: string) => ["notify", "create_issue", "set_commit_status", "dispatch"].includes(type);

const isNumber = (given: string) => /^\d{1,9}$/.test(given);

const toNumber = (given: string): number | string => (isNumber(given) ? Number(given) : given);

/** As the API takes it, to be checked; what was left empty is left out. */
export function toAutomation(fields: AutomationFields): Record<string, unknown> {
  const given = (name: string) => fields[name]?.trim() ?? "";
  const isSchedule = given("when") === "schedule";
  const conditions: Record<string, unknown> = {};
  const projects = Array.from({ length: MAX_PROJECTS }, (_, index) => given(`project.${index}`)).filter(
    (id) => id !== "",
  );
  if (projects.length > 0) conditions["projects"] = projects;
  for (const name of ["branches", "environments", "taskSlugs"]) {
    const list = splitList(given(name));
    if (list.length > 0) conditions[name] = list;
  }
  if (given("minFailed") !== "") conditions["minFailed"] = toNumber(given("minFailed"));
  const severities = SEVERITIES.filter((one) => fields[`severity.${one}`] === "true");
  if (severities.length > 0) conditions["severity"] = severities;
  // What the occasion knows nothing of was left from another one, and may not even be shown.
  const known: readonly string[] = CONDITIONS_OF[isSchedule ? "schedule" : (given("event") as EventType)] ?? [];
  for (const name of Object.keys(conditions)) if (!known.includes(name)) delete conditions[name];
  const actions = Array.from({ length: MAX_ACTIONS }, (_, index) => index)
    .filter((index) => given(`action.${index}.type`) !== "")
    .map((index) => toAction((name) => given(`action.${index}.${name}`)));
  return {
    name: given("name"),
    trigger: isSchedule
      ? { schedule: given("schedule"), timezone: given("timezone") || "UTC" }
      : { event: given("event") },
    conditions,
    actions,
  };
}

function toAction(given: (name: string) => string): Record<string, unknown> {
  const type = given("type");
  if (needsIntegration(type)) return { type, integrationId: given("integrationId") };
  if (type === "open_bug_report")
    return {
      type,
      severity: given("severity") || "major",
      ...(given("title") === "" ? {} : { title: given("title") }),
    };
  if (type === "rerun_failed") return { type, maximum: toNumber(given("maximum") || "1") };
  if (type === "start_execution") {
    const rest = ["key", "environment"].filter((name) => given(name) !== "").map((name) => [name, given(name)]);
    return { type, tasks: splitList(given("tasks")), ...Object.fromEntries(rest) };
  }
  return { type };
}

/** As the form shows it; undefined where it says more than the form can. */
export function toAutomationFields(automation: NewAutomation, { projects }: Choices): AutomationFields | undefined {
  const { name, trigger, conditions, actions } = automation;
  if (actions.length > MAX_ACTIONS) return undefined;
  const fields: AutomationFields = { name, when: "event" in trigger ? "event" : "schedule" };
  if ("event" in trigger) fields["event"] = trigger.event;
  else Object.assign(fields, { schedule: trigger.schedule, timezone: trigger.timezone });
  for (const name of ["branches", "environments", "taskSlugs"] as const)
    fields[name] = conditions[name]?.join("\n") ?? "";
  fields["minFailed"] = conditions.minFailed === undefined ? "" : String(conditions.minFailed);
  for (const one of conditions.severity ?? []) fields[`severity.${one}`] = "true";
  projects.slice(0, MAX_PROJECTS).forEach(({ id }, index) => {
    if (conditions.projects?.includes(id)) fields[`project.${index}`] = id;
  });
  actions.forEach((action, index) => {
    for (const [name, value] of Object.entries(action))
      fields[`action.${index}.${name}`] = Array.isArray(value) ? value.join(", ") : String(value);
  });
  const again = toAutomation(fields);
  return isSame(
    { name, trigger, conditions: sorted(conditions), actions },
    { ...again, conditions: sorted(again["conditions"] as Conditions) },
  )
    ? fields
    : undefined;
}

/** Lists whose order says nothing are compared in one order. */
const sorted = ({ projects, severity, ...rest }: Conditions) => ({
  ...rest,
  ...(projects ? { projects: [...projects].sort() } : {}),
  ...(severity ? { severity: [...severity].sort() } : {}),
});

const isSame = (a: unknown, b: unknown): boolean => Bun.deepEquals(a, b);
