/** An automation as fields of a form, for the usual cases, and as a sentence. */

import * as v from "valibot";
import type { Html } from "../../../http/html.ts";
import {
  type Action,
  type ActionType,
  CONDITIONS_OF,
  type Conditions,
  type NewAutomation,
} from "../../../schema/automations.ts";
import { severity as severitySchema } from "../../../schema/bug_reports.ts";
import { EVENT_TYPES, type EventType } from "../../../schema/events.ts";
import { Checkbox, Field, Select } from "../../components/form.tsx";
import { splitList } from "../../site/form_input.ts";

const SEVERITIES = severitySchema.options;
export const MAX_ACTIONS = 3;
export const MAX_PROJECTS = 50;

export type Named = { id: string; name: string };
/** What the form lets choose from. */
export type Choices = {
  projects: readonly Named[];
  integrations: readonly (Named & { kind: string; enabled: boolean })[];
};

const EVENT_WORDS: Record<EventType, string> = {
  "execution.completed": "an execution has ended",
  "execution.failed": "an execution has failed",
  "execution.recovered": "a task is green again",
  "test_run.completed": "a task has reported",
  "bug_report.opened": "a bug is opened",
  "bug_report.regressed": "a bug comes back",
  "bug_report.resolved": "a bug is resolved",
  "test_case.became_flaky": "a test becomes flaky",
  "test_case.recovered": "a flaky test has recovered",
  "task.missed": "a task has not reported in time",
  "integration.disabled": "an integration is disabled",
};

export const ACTION_WORDS: Record<ActionType, string> = {
  notify: "send a message",
  create_issue: "create an issue",
  set_commit_status: "set the status of the commit",
  dispatch: "start a pipeline",
  open_bug_report: "open a bug",
  rerun_failed: "run what failed again",
  start_execution: "start an execution",
};

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

/** A task may come with what it asks for. */
const slugOf = (task: string | { slug: string }): string => (typeof task === "string" ? task : task.slug);

const quoted = (values: readonly string[]) => values.join(", ");

/** "When an execution has failed in shop on main: send a message to Team chat". */
export function sentenceOf(
  { trigger, conditions, actions }: Pick<NewAutomation, "trigger" | "conditions" | "actions">,
  { projects, integrations }: Choices,
): string {
  const nameOf = (list: readonly Named[], id: string) =>
    list.find((one) => one.id === id)?.name ?? "something that was deleted";
  const { branches, environments, taskSlugs, minFailed, severity } = conditions;
  const where = [
    conditions.projects && `in ${conditions.projects.map((id) => nameOf(projects, id)).join(", ")}`,
    branches && `on ${quoted(branches)}`,
    environments && `at ${quoted(environments)}`,
    taskSlugs && `of ${quoted(taskSlugs)}`,
    minFailed && `with ${minFailed} failed or more`,
    severity && `of severity ${quoted(severity)}`,
  ].filter(Boolean);
  const when =
    "event" in trigger ? `When ${EVENT_WORDS[trigger.event]}` : `At ${trigger.schedule} (${trigger.timezone})`;
  const what = actions.map((action: Action) => {
    if ("integrationId" in action)
      return `${ACTION_WORDS[action.type]} ${action.type === "notify" ? "to" : "in"} ${nameOf(integrations, action.integrationId)}`;
    if (action.type === "start_execution") return `${ACTION_WORDS[action.type]} of ${quoted(action.tasks.map(slugOf))}`;
    return ACTION_WORDS[action.type];
  });
  return `${[when, ...where].join(" ")}: ${what.join(", then ")}`;
}

const ZONES = ["UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "Asia/Tokyo"];

/** The fields; which of them a choice makes needless is hidden where the browser can. */
export function automationForm(fields: AutomationFields, { projects, integrations }: Choices): Html {
  const value = (name: string) => fields[name];
  const when = value("when") ?? "event";
  const radio = (key: string, label: string) => (
    <label class="check">
      <input type="radio" name="when" value={key} checked={key === when} /> <span>{label}</span>
    </label>
  );
  return (
    <>
      <Field
        label="Name"
        name="name"
        value={value("name")}
        required
        max={200}
        placeholder="Tell the team what broke on main"
      />
      <fieldset class="fields when">
        <legend>When</legend>
        {radio("event", "Something happens")} {radio("schedule", "It is time")}{" "}
        <Select
          label="What happens"
          name="event"
          options={EVENT_TYPES.map((type) => [type, EVENT_WORDS[type]] as const)}
          value={value("event") ?? "execution.failed"}
          kind="for-event"
        />{" "}
        <Field
          label="Schedule"
          name="schedule"
          value={value("schedule")}
          max={200}
          isCode
          placeholder="30 6 * * 1-5"
          kind="for-schedule"
          hint="Minute, hour, day, month, weekday; or @hourly, @daily, @weekly, @monthly."
        />{" "}
        <Field
          label="Time zone"
          name="timezone"
          value={value("timezone") ?? "UTC"}
          max={100}
          isCode
          kind="for-schedule"
          hint={`As in ${ZONES.slice(1, 3).join(" or ")}.`}
        />
      </fieldset>
      <fieldset class="fields">
        <legend>Where</legend>
        <p class="hint">What is left empty is everywhere.</p>
        {projects.length === 0 ? null : (
          <div class="field" role="group" aria-label="Projects">
            <p class="small">Projects</p>
            {projects.slice(0, MAX_PROJECTS).map(({ id, name }, index) => (
              <Checkbox label={name} name={`project.${index}`} checked={value(`project.${index}`) === id} value={id} />
            ))}
          </div>
        )}{" "}
        <Field
          label="Branches"
          name="branches"
          value={value("branches")}
          type="area"
          rows={2}
          isCode
          kind="for-event"
          placeholder="main
release/**"
          hint="One a line. * stays within a part of a name, ** does not, ! excludes of what stands before it."
        />{" "}
        <Field
          label="Environments"
          name="environments"
          value={value("environments")}
          type="area"
          rows={1}
          isCode
          kind="for-event"
          placeholder="production"
        />{" "}
        <Field
          label="Tasks"
          name="taskSlugs"
          value={value("taskSlugs")}
          type="area"
          rows={1}
          isCode
          kind="for-event"
          placeholder="unit"
        />{" "}
        <Field
          label="At least so many failed"
          name="minFailed"
          value={value("minFailed")}
          type="number"
          kind="for-event for-counts"
          hint="Of executions and tasks."
        />
        <div class="field for-event for-bugs" role="group" aria-label="Severity of bugs">
          <p class="small">Severity, of bugs</p>
          {SEVERITIES.map((one) => (
            <Checkbox label={one} name={`severity.${one}`} checked={value(`severity.${one}`) === "true"} />
          ))}
        </div>
      </fieldset>
      <div class="stack">
        {Array.from({ length: MAX_ACTIONS }, (_, index) => actionFields(index, fields, integrations))}
      </div>
    </>
  );
}

function actionFields(index: number, fields: AutomationFields, integrations: Choices["integrations"]): Html {
  const name = (part: string) => `action.${index}.${part}`;
  const types = Object.keys(ACTION_WORDS) as ActionType[];
  const first = index === 0 ? [] : [["", "nothing more"] as const];
  const targets = integrations.map(
    ({ id, name, kind, enabled }) => [id, `${name} (${kind}${enabled ? "" : ", disabled"})`] as const,
  );
  return (
    <fieldset class="fields what">
      <legend>{index === 0 ? "What to do" : "And then"}</legend>
      <Select
        label="Action"
        name={name("type")}
        options={[...first, ...types.map((type) => [type, ACTION_WORDS[type]] as const)]}
        value={fields[name("type")] ?? (index === 0 ? "notify" : "")}
      />{" "}
      <Select
        label="Integration"
        name={name("integrationId")}
        options={targets.length === 0 ? [["", "there is none yet"]] : targets}
        value={fields[name("integrationId")]}
        kind="for-integration"
      />{" "}
      <Field
        label="Title of the bug"
        name={name("title")}
        value={fields[name("title")]}
        max={300}
        kind="for-bug"
        hint="Empty: what has happened."
      />{" "}
      <Select
        label="Severity of the bug"
        name={name("severity")}
        options={SEVERITIES.map((one) => [one, one] as const)}
        value={fields[name("severity")] ?? "major"}
        kind="for-bug"
      />{" "}
      <Field
        label="Repeats in a row at most"
        name={name("maximum")}
        value={fields[name("maximum")] ?? "1"}
        type="number"
        kind="for-rerun"
        hint="1 to 5."
      />{" "}
      <Field
        label="Tasks to start"
        name={name("tasks")}
        value={fields[name("tasks")]}
        max={1000}
        isCode
        kind="for-start"
        placeholder="nightly, e2e"
      />{" "}
      <Field
        label="Key of the execution"
        name={name("key")}
        value={fields[name("key")]}
        max={150}
        isCode
        kind="for-start"
        placeholder={"nightly-{date}"}
        hint={"Where CI meets it: {date} and {time} become the day and the minute."}
      />{" "}
      <Field
        label="Environment"
        name={name("environment")}
        value={fields[name("environment")]}
        max={200}
        isCode
        kind="for-start"
        placeholder="staging"
      />
    </fieldset>
  );
}
