/** The form of an automation. */

import type { Html } from "../../../http/html.ts";
import type { ActionType } from "../../../schema/automation_actions.ts";
import type { GateMode } from "../../../schema/gate.ts";
import { EVENT_TYPES } from "../../../schema/events.ts";
import { Checkbox, Field, Select } from "../../components/form.tsx";
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
      <Field
        label="Schedule"
        name="schedule"
        value={fields["schedule"]}
        max={200}
        isCode
        placeholder="30 6 * * 1-5"
        kind="for-schedule"
        hint="Minute, hour, day, month, weekday; or @hourly, @daily, @weekly, @monthly."
      />
      <Field
        label="Time zone"
        name="timezone"
        value={fields["timezone"] ?? "UTC"}
        max={100}
        isCode
        kind="for-schedule"
        hint={`For example ${ZONES.slice(1, 3).join(" or ")}.`}
      />
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
    <Field
      label="Branches"
      name="branches"
      value={fields["branches"]}
      type="area"
      rows={2}
      isCode
      kind="for-event"
      placeholder="main
release/**"
      hint="One pattern per line. * matches within a path segment, ** across segments; ! excludes matches of the patterns before it."
    />
    <Field
      label="Environments"
      name="environments"
      value={fields["environments"]}
      type="area"
      rows={1}
      isCode
      kind="for-event"
      placeholder="production"
    />
    <Field
      label="Tasks"
      name="taskSlugs"
      value={fields["taskSlugs"]}
      type="area"
      rows={1}
      isCode
      kind="for-event"
      placeholder="unit"
    />
    <Field
      label="Owners"
      name="owners"
      value={fields["owners"]}
      type="area"
      rows={1}
      isCode
      kind="for-event"
      placeholder="@acme/cart"
      hint="Owners of failed tests, as set on the tests or by the ownership file."
    />
    <Field
      label="Minimum number of failures"
      name="minFailed"
      value={fields["minFailed"]}
      type="number"
      kind="for-event for-counts"
      hint="Applies to executions and tasks."
    />
    <SeverityFields fields={fields} />
  </fieldset>
);

/** The fields. The style sheet hides those that a choice makes irrelevant, where the browser supports it. */
export const automationForm = (fields: AutomationFields, { projects, integrations }: Choices): Html => (
  <>
    <Field
      label="Name"
      name="name"
      value={fields["name"]}
      required
      max={200}
      placeholder="Notify the team when main breaks"
    />
    <WhenFields fields={fields} />
    <WhereFields fields={fields} projects={projects} />
    <div class="stack">
      {Array.from({ length: MAX_ACTIONS }, (_, index) => (
        <ActionFields index={index} fields={fields} integrations={integrations} />
      ))}
    </div>
  </>
);

/** The value of a field of an action, and its name in the form. */
type FieldValue = { name: string; value: string | undefined };
type ActionField = (part: string) => FieldValue;

const withDefault = ({ name, value }: FieldValue, fallback: string) => ({ name, value: value ?? fallback });

function ActionFields(properties: FieldsProperties & { index: number; integrations: Choices["integrations"] }): Html {
  const { index, fields, integrations } = properties;
  const name = (part: string) => `action.${index}.${part}`;
  const field: ActionField = (part) => ({ name: name(part), value: fields[name(part)] });
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
        {...field("integrationId")}
        options={targets.length === 0 ? [["", "no integrations yet"]] : targets}
        kind="for-integration"
      />
      <Field
        label="Only for these owners"
        {...field("owners")}
        max={1000}
        isCode
        kind="for-message"
        placeholder="@acme/cart"
        hint="The message contains only their tests and bugs. If empty, it contains all."
      />
      <Select label="State of the status" {...field("gate")} options={GATES} kind="for-status" />
      <BugActionFields field={field} />
      <Field
        label="Maximum consecutive repeats"
        name={name("maximum")}
        value={fields[name("maximum")] ?? "1"}
        type="number"
        kind="for-rerun"
        hint="1 to 5."
      />
      <StartActionFields field={field} />
      <SearchActionFields field={field} />
      <QuarantineActionFields field={field} />
    </fieldset>
  );
}

const BugActionFields = ({ field }: { field: ActionField }): Html => (
  <>
    <Field
      label="Title of the bug"
      {...field("title")}
      max={300}
      kind="for-bug"
      hint="If empty, the event's description is used."
    />
    <Select
      label="Severity of the bug"
      {...withDefault(field("severity"), "major")}
      options={SEVERITIES.map((one) => [one, one] as const)}
      kind="for-bug"
    />
  </>
);

const StartActionFields = ({ field }: { field: ActionField }): Html => (
  <>
    <Field label="Tasks to start" {...field("tasks")} max={1000} isCode kind="for-start" placeholder="nightly, e2e" />
    <Field
      label="Key of the execution"
      {...field("key")}
      max={150}
      isCode
      kind="for-start"
      placeholder={"nightly-{date}"}
      hint={"CI uploads with the same key join the execution. {date} and {time} are replaced."}
    />
    <Field label="Environment" {...field("environment")} max={200} isCode kind="for-start" placeholder="staging" />
  </>
);

const SearchActionFields = ({ field }: { field: ActionField }): Html => (
  <>
    <Field
      label="Maximum number of probes"
      {...withDefault(field("maxProbes"), "30")}
      type="number"
      kind="for-search"
      hint="Each probe runs the test once on one commit. 1 to 200."
    />
    <Field
      label="Maximum time in minutes"
      {...withDefault(field("maxMinutes"), "60")}
      type="number"
      kind="for-search"
      hint="1 to 1,440."
    />
  </>
);

const QuarantineActionFields = ({ field }: { field: ActionField }): Html => (
  <>
    <Field
      label="Maximum number of tests"
      {...withDefault(field("maxTests"), "20")}
      type="number"
      kind="for-quarantine"
      hint="How many tests of a project automations quarantine at the same time. 1 to 1,000."
    />
    <Field
      label="Maximum share of all tests, in percent"
      {...withDefault(field("maxShare"), "1")}
      kind="for-quarantine"
      hint="Of the tests on the default branch, 0.1 to 100. At 1 %, a project with fewer than 100 tests has no automatic quarantine."
    />
    <Field
      label="Days"
      {...withDefault(field("days"), "30")}
      type="number"
      kind="for-quarantine"
      hint="The quarantine ends after these days, or when the test breaks on the default branch. 1 to 30."
    />
  </>
);
