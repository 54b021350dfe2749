/** The pages that create and change an automation, as a form or as JSON. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { fail } from "../../../http/problem.ts";
import { createAutomation } from "../../../operations/automation/automation_settings.ts";
import { type NewAutomation, newAutomation } from "../../../schema/automations.ts";
import { Field, FormError, Form } from "../../components/form.tsx";
import { type View, page, type TeamContext } from "../../site/page.ts";
import { type AutomationFields, automationFields, toAutomation } from "./fields.tsx";
import type { Choices } from "./sentence.ts";
import { automationForm } from "./form.tsx";
import { selectChoices } from "./list.tsx";
import { action } from "../../site/action.ts";

/** The editable fields of the JSON form. */
export const toJson = ({ name, enabled, trigger, conditions, actions }: NewAutomation): string =>
  JSON.stringify({ name, enabled, trigger, conditions, actions }, null, 2);

const EXAMPLE = JSON.stringify(
  {
    name: "Nightly tests",
    trigger: { schedule: "30 2 * * *", timezone: "Europe/Berlin" },
    conditions: {},
    actions: [{ type: "start_execution", tasks: ["nightly"], key: "nightly-{date}" }],
  },
  null,
  2,
);

export type FormValues = { fields: AutomationFields } | { json: string };

type Editing = { to: Path; csrf: string; button: string; choices: Choices };

/** Shows the form and the JSON below it. One of the two is open. */
export function editors(
  { to, csrf, button, choices }: Editing,
  fields: AutomationFields | undefined,
  json: string,
  isJson: boolean,
): Html {
  const text = (
    <Form to={to} csrf={csrf} kind="fields fold-body">
      <Field
        label="Automation as JSON"
        name="json"
        value={json}
        type="area"
        rows={18}
        isCode
        required
        hint={
          <>
            The format of the API: trigger, conditions, actions. <a href="/openapi.json">The schema</a>.
          </>
        }
      />
      <div>
        <button class={fields === undefined ? "main" : ""}>{button}, from JSON</button>
      </div>
    </Form>
  );
  if (fields === undefined)
    return (
      <>
        <p class="message">This automation uses options that the form does not support. Edit it as JSON.</p>
        <div class="card padded">{text}</div>
      </>
    );
  return (
    <>
      <Form to={to} csrf={csrf} button={button} kind="fields parts card padded automation">
        {automationForm(fields, choices)}
      </Form>
      <div class="card top">
        <details class="fold" open={isJson}>
          <summary>Edit as JSON</summary>
          {text}
        </details>
      </div>
    </>
  );
}

const NEW_FIELDS: AutomationFields = { when: "event", event: "execution.failed", branches: "main" };

async function create(
  { sql, team, csrf }: TeamContext,
  values: FormValues | undefined,
  problem?: string,
): Promise<View> {
  const choices = await selectChoices(sql, team.id);
  const to: Path = `/teams/${team.id}/automations/new`;
  const editing = { to, csrf, choices, button: "Create automation" };
  const isJson = values !== undefined && "json" in values;
  const body = (
    <>
      <h1>New automation</h1>
      <div class="meta">
        {choices.integrations.length === 0 ? (
          <span>
            To send something, <a href={`/teams/${team.id}/integrations/new`}>create an integration</a> first.
          </span>
        ) : null}
        <a href={`/teams/${team.id}/automations`}>All automations</a>
      </div>
      <FormError message={problem} />
      <div class="top">
        {editors(editing, isJson ? NEW_FIELDS : (values?.fields ?? NEW_FIELDS), isJson ? values.json : EXAMPLE, isJson)}
      </div>
    </>
  );
  return { title: "New automation", body, section: "automations", ...(problem === undefined ? {} : { status: 400 }) };
}

/** Parses a JSON object. Throws a Refusal with a readable message. */
function readJson(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    fail(
      "VALIDATION_ERROR",
      `Cannot read the JSON: ${(error as Error).message.replace(/^JSON Parse error: /, "").slice(0, 200)}`,
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    fail("VALIDATION_ERROR", "Cannot read the JSON: expected an object");
  return value as Record<string, unknown>;
}

export const fieldsOf = v.strictObject({ json: v.optional(v.string()), ...automationFields });

export const toFormValues = ({ json, ...fields }: Record<string, string | undefined>): FormValues =>
  json === undefined ? { fields } : { json };

export const read = (values: FormValues): Record<string, unknown> =>
  "json" in values ? readJson(values.json) : toAutomation(values.fields);

export const newPage = page(
  "/teams/:teamId/automations/new",
  { access: "owner" },
  async (context) => await create(context, undefined),
);

export const createAutomationForm = action(
  "/teams/:teamId/automations/new",
  { access: "owner", fields: fieldsOf },
  {
    read: ({ fields }) => check(newAutomation, read(toFormValues(fields as never))),
    act: (sql, { seal, team }, wanted) => createAutomation(sql, seal, team.id, wanted),
    record: ({ name, id }) => ({ action: "automation.created", subject: name, details: { automationId: id } }),
    refused: (context, problem) => create(context, toFormValues(context.fields as never), problem),
    done: ({ team }, { id }) => `/teams/${team.id}/automations/${id}?notice=created`,
  },
);
