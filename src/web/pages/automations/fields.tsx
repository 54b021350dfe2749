/** Converts an automation to form fields and back. */

import * as v from "valibot";
import { CONDITIONS_OF, type Conditions, type NewAutomation } from "../../../schema/automations.ts";
import { severity as severitySchema } from "../../../schema/bug_reports.ts";
import type { EventType } from "../../../schema/events.ts";
import { splitList } from "../../site/action.ts";
import type { Choices } from "./sentence.ts";

export const SEVERITIES = severitySchema.options;

export const MAX_ACTIONS = 3;

export const MAX_PROJECTS = 50;

const text = v.optional(v.string(), "");

/** Conditions that are lists of texts. */
const LISTS = ["branches", "environments", "taskSlugs", "owners"] as const;

/** The names of the form fields. Each is a text or absent. */
export const automationFields = {
  name: text,
  when: v.optional(v.picklist(["event", "schedule"]), "event"),
  event: text,
  schedule: text,
  timezone: text,
  branches: text,
  environments: text,
  taskSlugs: text,
  owners: text,
  minFailed: text,
  ...Object.fromEntries(
    Array.from({ length: MAX_PROJECTS }, (_, index) => [`project.${index}`, v.optional(v.string())]),
  ),
  ...Object.fromEntries(SEVERITIES.map((one) => [`severity.${one}`, v.optional(v.literal("true"))])),
  ...Object.fromEntries(
    Array.from({ length: MAX_ACTIONS }, (_, index) =>
      [
        "type",
        "integrationId",
        "owners",
        "title",
        "severity",
        "maximum",
        "tasks",
        "key",
        "environment",
        "gate",
        "maxProbes",
        "maxMinutes",
        "maxTests",
        "maxShare",
        "days",
      ].map((name) => [`action.${index}.${name}`, text]),
    ).flat(),
  ),
} as unknown as Record<string, v.GenericSchema<string | undefined, string | undefined>>;

export type AutomationFields = Record<string, string | undefined>;

const needsIntegration = (type: string) =>
  ["notify", "digest", "create_issue", "set_commit_status", "dispatch"].includes(type);

const isNumber = (text: string) => /^\d{1,9}(?:\.\d{1,3})?$/.test(text);

const toNumber = (text: string): number | string => (isNumber(text) ? Number(text) : text);

/** Converts the fields to the input of the API. Empty fields are left out. */
export function toAutomation(fields: AutomationFields): Record<string, unknown> {
  const valueOf = (name: string) => fields[name]?.trim() ?? "";
  const isSchedule = valueOf("when") === "schedule";
  const conditions: Record<string, unknown> = {};
  const projects = Array.from({ length: MAX_PROJECTS }, (_, index) => valueOf(`project.${index}`)).filter(
    (id) => id !== "",
  );
  if (projects.length > 0) conditions["projects"] = projects;
  for (const name of LISTS) {
    const list = splitList(valueOf(name));
    if (list.length > 0) conditions[name] = list;
  }
  if (valueOf("minFailed") !== "") conditions["minFailed"] = toNumber(valueOf("minFailed"));
  const severities = SEVERITIES.filter((one) => fields[`severity.${one}`] === "true");
  if (severities.length > 0) conditions["severity"] = severities;
  // Fields that do not apply to the chosen trigger may still be sent, but are hidden.
  const known: readonly string[] = CONDITIONS_OF[isSchedule ? "schedule" : (valueOf("event") as EventType)] ?? [];
  for (const name of Object.keys(conditions)) if (!known.includes(name)) delete conditions[name];
  const actions = Array.from({ length: MAX_ACTIONS }, (_, index) => index)
    .filter((index) => valueOf(`action.${index}.type`) !== "")
    .map((index) => toAction((name) => valueOf(`action.${index}.${name}`)));
  return {
    name: valueOf("name"),
    trigger: isSchedule
      ? { schedule: valueOf("schedule"), timezone: valueOf("timezone") || "UTC" }
      : { event: valueOf("event") },
    conditions,
    actions,
  };
}

function toAction(valueOf: (name: string) => string): Record<string, unknown> {
  const type = valueOf("type");
  const owners = type === "notify" || type === "digest" ? splitList(valueOf("owners")) : [];
  if (needsIntegration(type))
    return {
      ...{ type, integrationId: valueOf("integrationId") },
      ...(owners.length > 0 ? { owners } : {}),
      ...(type === "set_commit_status" && valueOf("gate") !== "" ? { gate: valueOf("gate") } : {}),
    };
  if (type === "open_bug_report")
    return {
      type,
      severity: valueOf("severity") || "major",
      ...(valueOf("title") === "" ? {} : { title: valueOf("title") }),
    };
  if (type === "rerun_failed") return { type, maximum: toNumber(valueOf("maximum") || "1") };
  if (type === "quarantine" || type === "find_culprit") {
    const names = type === "quarantine" ? ["maxTests", "maxShare", "days"] : ["maxProbes", "maxMinutes"];
    const limits = names.filter((name) => valueOf(name) !== "");
    return { type, ...Object.fromEntries(limits.map((name) => [name, toNumber(valueOf(name))])) };
  }
  if (type === "start_execution") {
    const rest = ["key", "environment"].filter((name) => valueOf(name) !== "").map((name) => [name, valueOf(name)]);
    return { type, tasks: splitList(valueOf("tasks")), ...Object.fromEntries(rest) };
  }
  return { type };
}

/** Converts an automation to form fields. Returns undefined if the form cannot express it. */
export function toAutomationFields(automation: NewAutomation, { projects }: Choices): AutomationFields | undefined {
  const { name, trigger, conditions, actions } = automation;
  if (actions.length > MAX_ACTIONS) return undefined;
  const fields: AutomationFields = { name, when: "event" in trigger ? "event" : "schedule" };
  if ("event" in trigger) fields["event"] = trigger.event;
  else Object.assign(fields, { schedule: trigger.schedule, timezone: trigger.timezone });
  for (const name of LISTS) fields[name] = conditions[name]?.join("\n") ?? "";
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

/** Sorts lists whose order has no meaning before they are compared. */
const sorted = ({ projects, severity, ...rest }: Conditions) => ({
  ...rest,
  ...(projects ? { projects: [...projects].sort() } : {}),
  ...(severity ? { severity: [...severity].sort() } : {}),
});

const isSame = (a: unknown, b: unknown): boolean => Bun.deepEquals(a, b);
