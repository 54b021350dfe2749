/** One environment: its settings and its variables. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import { type Html, type Path, safeUrl } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import {
  type EnvironmentKey,
  changeEnvironment,
  removeEnvironment,
  toVariable,
  addVariables,
  readVariables,
  removeVariable,
  replaceVariables,
  setVariable,
} from "../../../operations/projects/environments.ts";
import { environmentPatch, newVariable, variableName } from "../../../schema/environments.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import type { Seal } from "../../../secrets/seal.ts";
import { type VariableRow, selectEnvironment, selectVariables } from "../../../store/environments.ts";
import { counted } from "../../../wording/numbers.ts";
import { Danger, FormError, Notice } from "../../components/form.tsx";
import { Empty, Pager, toPagedRows } from "../../components/list.tsx";
import { Breakable } from "../../components/text.tsx";
import { action, toLines, deletion } from "../../site/action.ts";
import { type View, page, type TeamContext, type Page } from "../../site/page.ts";
import {
  NOTICES,
  type SettingsFields,
  query,
  settingsFields,
  settingsForm,
  toFields,
  toValues,
  PASTE_REFUSED_HINT,
  createEnvironmentForm,
  listPage,
} from "./list.tsx";
import { type EnteredVariable, PasteForm, type ShownVariable, VariableForm, variableTable } from "./variable_views.tsx";

const MAX_VARIABLE_ROWS = 100;

/** Keeps a value that cannot be decrypted, for example after SECRET_KEY changed, as a row of the table. */
function openVariable(seal: Seal, key: EnvironmentKey, row: VariableRow): ShownVariable {
  try {
    return toVariable(seal, key, row);
  } catch {
    return { name: row.name, secret: row.secret, value: null, updatedAt: row.updatedAt, isSealed: true };
  }
}

type FormState = {
  cursor?: string | undefined;
  notice?: keyof typeof NOTICES | undefined;
  problem?: { of: "settings" | "variable" | "paste"; text: string };
  fields?: SettingsFields;
  variable?: EnteredVariable;
};

type Context = TeamContext & { params: { environmentId: string } };

async function loadEnvironment({ sql, fast, seal, team, params }: Context, cursor: string | undefined) {
  const key = { teamId: team.id, environmentId: params.environmentId };
  const environment = (await selectEnvironment(fast, team.id, key.environmentId)) ?? refuseAbsent();
  const found = await selectVariables(sql, team.id, environment.id, MAX_VARIABLE_ROWS, cursor);
  const variables = toPagedRows(found, MAX_VARIABLE_ROWS, ({ name }) => name);
  return {
    environment,
    variables: { rows: variables.rows.map((row) => openVariable(seal, key, row)), next: variables.next },
  };
}

type EnvironmentData = Awaited<ReturnType<typeof loadEnvironment>>;

async function showEnvironment(context: Context, state: FormState): Promise<View> {
  return environmentView(context, await loadEnvironment(context, state.cursor), state);
}

type FactsProperties = { teamId: string; environment: EnvironmentData["environment"] };

function EnvironmentFacts({ teamId, environment }: FactsProperties): Html {
  const url = safeUrl(environment.baseUrl);
  return (
    <div class="meta">
      <code>{environment.slug}</code>
      {url ? (
        <a class="long" href={url} rel="noreferrer">
          <Breakable text={url} />
        </a>
      ) : null}
      <span>{counted(environment.variableCount, "variable")}</span>
      <a href={`/teams/${teamId}/environments`}>All environments</a>
    </div>
  );
}

type OwnerProperties = { base: Path; csrf: string; environment: EnvironmentData["environment"]; state: FormState };

/** The forms that set variables, change the environment and delete it. */
function OwnerForms({ base, csrf, environment, state: { problem, fields, variable } }: OwnerProperties): Html {
  const { name, variableCount } = environment;
  const problemOf = (of: NonNullable<FormState["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  return (
    <>
      <div class="columns">
        <VariableForm base={base} csrf={csrf} problem={problemOf("variable")} entered={variable} />
        <PasteForm base={base} csrf={csrf} problem={problemOf("paste")} />
      </div>
      <h2 id="settings">Environment</h2>
      <FormError message={problemOf("settings")} />
      {settingsForm(base, csrf, fields ?? toFields(environment), "Save")}
      <h2>Delete</h2>
      <Danger
        action={`${base}/delete`}
        csrf={csrf}
        label={`Delete ${name}`}
        loss={`${counted(variableCount, "variable")} ${variableCount === 1 ? "is" : "are"} deleted, and secrets cannot be recovered. Executions that ran in this environment are kept.`}
      />
    </>
  );
}

function environmentView(context: Context, { environment, variables }: EnvironmentData, state: FormState): View {
  const { team, role, csrf } = context;
  const base: Path = pathOf({ teamId: team.id, environmentId: environment.id });
  const body = (
    <>
      <Notice notices={NOTICES} name={state.notice} />
      <h1>{environment.name}</h1>
      <EnvironmentFacts teamId={team.id} environment={environment} />
      {environment.description === null ? null : <p class="prose lines top">{environment.description}</p>}
      <h2 id="variables">
        Variables{" "}
        <small>runners pass them to the tasks of executions in this environment; secrets cannot be viewed</small>
      </h2>
      {variables.rows.length === 0 ? (
        <Empty>No variables yet.{role === "owner" ? " Add one, or paste a .env file." : ""}</Empty>
      ) : (
        variableTable(base, csrf, role, variables.rows)
      )}
      <Pager path={base} query={{ cursor: state.cursor }} cursor={variables.next} />
      {role === "owner" ? <OwnerForms base={base} csrf={csrf} environment={environment} state={state} /> : null}
    </>
  );
  return { title: environment.name, body, section: "environments", ...(state.problem ? { status: 400 } : {}) };
}

const slugOf = async (sql: Sql, { teamId, environmentId }: EnvironmentKey): Promise<string> =>
  ((await selectEnvironment(sql, teamId, environmentId)) ?? refuseAbsent()).slug;

const onePath = "/teams/:teamId/environments/:environmentId";

const environmentPage = page(
  onePath,
  { access: "viewer", query },
  async (context) => await showEnvironment(context, context.query),
);

const changeForm = action(
  onePath,
  { access: "owner", fields: settingsFields },
  {
    // An empty name resets to the slug.
    read: ({ fields }) => check(environmentPatch, { name: fields.slug.trim(), ...toValues(fields) }),
    act: (sql, { params }, patch) => changeEnvironment(sql, params, patch),
    record: ({ slug, id }, _, patch) => ({
      action: "environment.changed",
      subject: slug,
      details: { environmentId: id, fields: Object.keys(patch) },
    }),
    refused: (context, text) => showEnvironment(context, { problem: { of: "settings", text }, fields: context.fields }),
    done: ({ params }) => `${pathOf(params)}?notice=saved`,
  },
);

const pathOf = ({ teamId, environmentId }: EnvironmentKey): Path => `/teams/${teamId}/environments/${environmentId}`;

const variableFields = v.strictObject({ name: v.string(), value: v.string(), secret: v.optional(v.literal("true")) });

const pasteFields = v.strictObject({
  text: v.string(),
  secret: v.optional(v.literal("true")),
  replace: v.optional(v.literal("true")),
});

/** Maximum number of names of pasted variables. */
const MAX_NAMES = 50;

const readVariable = ({ name, value, secret }: v.InferOutput<typeof variableFields>) => ({
  ...{ name: name.trim(), value: toLines(value), secret: secret === "true" },
});

const namedVariable = v.strictObject({ name: variableName, ...newVariable.entries });

const variableForm = action(
  `${onePath}/variables`,
  { access: "owner", fields: variableFields },
  {
    read: ({ fields }) => check(namedVariable, readVariable(fields), false),
    act: (sql, { seal, params }, variable) => setVariable(sql, seal, params, variable),
    record: (_, { params: { environmentId } }, { name }) => ({
      action: "variable.changed",
      subject: name,
      details: { environmentId },
    }),
    refused: (context, text) =>
      showEnvironment(context, { problem: { of: "variable", text }, variable: readVariable(context.fields) }),
    done: ({ params }) => `${pathOf(params)}?notice=set#variables`,
  },
);

const pasteForm = action(
  `${onePath}/variables/paste`,
  { access: "owner", fields: pasteFields },
  {
    read: ({ fields }) => {
      const secret = fields.secret === "true";
      return new Map(
        [...readVariables(fields.text, "text/plain")].map(([name, { value }]) => [name, { value, secret }]),
      );
    },
    act: async (sql, { seal, params, fields }, variables) => {
      await (fields.replace === "true" ? replaceVariables : addVariables)(sql, seal, params, variables);
      return await slugOf(sql, params);
    },
    record: (slug, { params, fields }, variables) => ({
      action: fields.replace === "true" ? "variables.replaced" : "variable.changed",
      subject: slug,
      details: { environmentId: params.environmentId, names: [...variables.keys()].slice(0, MAX_NAMES) },
    }),
    refused: (context, problem) =>
      showEnvironment(context, { problem: { of: "paste", text: `${problem}; ${PASTE_REFUSED_HINT}` } }),
    done: ({ params }) => `${pathOf(params)}?notice=pasted#variables`,
  },
);

const deleteVariableForm = action(
  `${onePath}/variables/:variableName/delete`,
  { access: "owner" },
  {
    act: (sql, { params }) => removeVariable(sql, params, params.variableName),
    record: (_, { params: { environmentId, variableName } }) => ({
      action: "variable.deleted",
      subject: variableName,
      details: { environmentId },
    }),
    done: ({ params }) => `${pathOf(params)}?notice=removed#variables`,
  },
);

export const environments: Page[] = [
  listPage,
  createEnvironmentForm,
  environmentPage,
  changeForm,
  deletion(onePath, "environment", removeEnvironment),
  variableForm,
  pasteForm,
  deleteVariableForm,
];
