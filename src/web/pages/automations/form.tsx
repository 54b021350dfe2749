/** The form of an automation. */

import type { Html } from "../../../http/html.ts";
import type { ActionType } from "../../../schema/automation_actions.ts";
import type { GateMode } from "../../../schema/gate.ts";
import { EVENT_TYPES } from "../../../schema/events.ts";
import { Checkbox, field, type FieldOptions, Select } from "../../components/form.tsx";
import { type AutomationFields, MAX_ACTIONS, MAX_PROJECTS, SEVERITIES } from "./fields.tsx";
import { ACTION_WORDS, type Choices, EVENT_WORDS } from "./sentence.ts";

const GATES = [
  ["", "outcome of the tests"],
  ["quarantine", "gate: forgives quarantined tests"],
  ["new", "gate: forgives all but new failures"],
] as const satisfies readonly (readonly [GateMode | "", string])[];

const ZONES = ["UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "Asia/Tokyo"];

type FieldsProperties = { fields: AutomationFields };

function WhenFields({ fields }: FieldsProperties): Html {
  const when = fields["when"] ?? "event";
  const radio = (key: string, label: string) => (
    <label class="check">
      <input type="radio" name="when" value={key} checked={key === when} /> <span>{label}</span>
    </label>
  );
  return (
    <fieldset class="fields when">
      <legend>When</legend>
      {radio("event", "An event occurs")} {radio("schedule", "On a schedule")}
      <Select
        label="Event"
        name="event"
        options={EVENT_TYPES.map((type) => [type, EVENT_WORDS[type]] as const)}
        value={fields["event"] ?? "execution.failed"}
        kind="for-event"
      />
      {field(fields, "schedule", "Schedule", {
        max: 200,
        isCode: true,
        placeholder: "30 6 * * 1-5",
        kind: "for-schedule",
        hint: "Minute, hour, day, month, weekday; or @hourly, @daily, @weekly, @monthly.",
      })}
      {field(fields, "timezone", "Time zone", {
        fallback: "UTC",
        max: 100,
        isCode: true,
        kind: "for-schedule",
        hint: `For example ${ZONES.slice(1, 3).join(" or ")}.`,
      })}
    </fieldset>
  );
}

type ProjectsProperties = FieldsProperties & { projects: Choices["projects"] };

const ProjectFields = ({ fields, projects }: ProjectsProperties): Html | null =>
  projects.length === 0 ? null : (
    <div class="field" role="group" aria-label="Projects">
      <p class="small">Projects</p>
      {projects.slice(0, MAX_PROJECTS).map(({ id, name }, index) => (
        <Checkbox label={name} name={`project.${index}`} checked={fields[`project.${index}`] === id} value={id} />
      ))}
    </div>
  );

const SeverityFields = ({ fields }: FieldsProperties): Html => (
  <div class="field for-event for-bugs" role="group" aria-label="Severity of bugs">
    <p class="small">Severity of bugs</p>
    {SEVERITIES.map((one) => (
      <Checkbox label={one} name={`severity.${one}`} checked={fields[`severity.${one}`] === "true"} />
    ))}
  </div>
);

const WhereFields = ({ fields, projects }: ProjectsProperties): Html => (
  <fieldset class="fields">
    <legend>Where</legend>
    <p class="hint">Empty fields match everything.</p>
    <ProjectFields fields={fields} projects={projects} />
    {field(fields, "branches", "Branches", {
      type: "area",
      rows: 2,
      isCode: true,
      kind: "for-event",
      placeholder: "main\nrelease/**",
      hint: "One pattern per line. * matches within a path segment, ** across segments; ! excludes matches of the patterns before it.",
    })}
    {field(fields, "environments", "Environments", {
      type: "area",
      rows: 1,
      isCode: true,
      kind: "for-event",
      placeholder: "production",
    })}
    {field(fields, "taskSlugs", "Tasks", {
      type: "area",
      rows: 1,
      isCode: true,
      kind: "for-event",
      placeholder: "unit",
    })}
    {field(fields, "owners", "Owners", {
      type: "area",
      rows: 1,
      isCode: true,
      kind: "for-event",
      placeholder: "@acme/cart",
      hint: "Owners of failed tests, as set on the tests or by the ownership file.",
    })}
    {field(fields, "minFailed", "Minimum number of failures", {
      type: "number",
      kind: "for-event for-counts",
      hint: "Applies to executions and tasks.",
    })}
    <SeverityFields fields={fields} />
  </fieldset>
);

/** The fields. The style sheet hides those that a choice makes irrelevant, where the browser supports it. */
export const automationForm = (fields: AutomationFields, { projects, integrations }: Choices): Html => (
  <>
    {field(fields, "name", "Name", { required: true, max: 200, placeholder: "Notify the team when main breaks" })}
    <WhenFields fields={fields} />
    <WhereFields fields={fields} projects={projects} />
    <div class="stack">
      {Array.from({ length: MAX_ACTIONS }, (_, index) => (
        <ActionFields index={index} fields={fields} integrations={integrations} />
      ))}
    </div>
  </>
);

/** Shows a field of an action. */
type ShowField = (part: string, label: string, options: FieldOptions) => Html;

function ActionFields(properties: FieldsProperties & { index: number; integrations: Choices["integrations"] }): Html {
  const { index, fields, integrations } = properties;
  const name = (part: string) => `action.${index}.${part}`;
  const valueOf = (part: string) => ({ name: name(part), value: fields[name(part)] });
  const show: ShowField = (part, label, options) => field(fields, name(part), label, options);
  const types = Object.keys(ACTION_WORDS) as ActionType[];
  const first = index === 0 ? [] : [["", "no further action"] as const];
  const targets = integrations.map(
    ({ id, name, kind, enabled }) => [id, `${name} (${kind}${enabled ? "" : ", disabled"})`] as const,
  );
  return (
    <fieldset class="fields what">
      <legend>{`Action ${index + 1}`}</legend>
      <Select
        label="Action"
        name={name("type")}
        options={[...first, ...types.map((type) => [type, ACTION_WORDS[type]] as const)]}
        value={fields[name("type")] ?? (index === 0 ? "notify" : "")}
      />
      <Select
        label="Integration"
        {...valueOf("integrationId")}
        options={targets.length === 0 ? [["", "no integrations yet"]] : targets}
        kind="for-integration"
      />
      {show("owners", "Only for these owners", {
        max: 1000,
        isCode: true,
        kind: "for-message",
        placeholder: "@acme/cart",
        hint: "The message contains only their tests and bugs. If empty, it contains all.",
      })}
      <Select label="State of the status" {...valueOf("gate")} options={GATES} kind="for-status" />
      {show("title", "Title of the bug", {
        max: 300,
        kind: "for-bug",
        hint: "If empty, the event's description is used.",
      })}
      <Select
        label="Severity of the bug"
        name={name("severity")}
        value={fields[name("severity")] ?? "major"}
        options={SEVERITIES.map((one) => [one, one] as const)}
        kind="for-bug"
      />
      {show("maximum", "Maximum consecutive repeats", {
        fallback: "1",
        type: "number",
        kind: "for-rerun",
        hint: "1 to 5.",
      })}
      {startFields(show)}
      {searchFields(show)}
      {quarantineFields(show)}
    </fieldset>
  );
}

const startFields = (show: ShowField): Html[] => [
  show("tasks", "Tasks to start", { max: 1000, isCode: true, kind: "for-start", placeholder: "nightly, e2e" }),
  show("key", "Key of the execution", {
    max: 150,
    isCode: true,
    kind: "for-start",
    placeholder: "nightly-{date}",
    hint: "CI uploads with the same key join the execution. {date} and {time} are replaced.",
  }),
  show("environment", "Environment", { max: 200, isCode: true, kind: "for-start", placeholder: "staging" }),
];

const searchFields = (show: ShowField): Html[] => [
  show("maxProbes", "Maximum number of probes", {
    fallback: "30",
    type: "number",
    kind: "for-search",
    hint: "Each probe runs the test once on one commit. 1 to 200.",
  }),
  show("maxMinutes", "Maximum time in minutes", {
    fallback: "60",
    type: "number",
    kind: "for-search",
    hint: "1 to 1,440.",
  }),
];

const quarantineFields = (show: ShowField): Html[] => [
  show("maxTests", "Maximum number of tests", {
    fallback: "20",
    type: "number",
    kind: "for-quarantine",
    hint: "How many tests of a project automations quarantine at the same time. 1 to 1,000.",
  }),
  show("maxShare", "Maximum share of all tests, in percent", {
    fallback: "1",
    kind: "for-quarantine",
    hint: "Of the tests on the default branch, 0.1 to 100. At 1 %, a project with fewer than 100 tests has no automatic quarantine.",
  }),
  show("days", "Days", {
    fallback: "30",
    type: "number",
    kind: "for-quarantine",
    hint: "The quarantine ends after these days, or when the test breaks on the default branch. 1 to 30.",
  }),
];
