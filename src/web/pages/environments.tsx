/** Environments of a team and their variables: secrets go in, and are not shown again. */

import * as v from "valibot";
import { write } from "../site/write.ts";
import { safeUrl, type Html, type Path } from "../../http/html.ts";
import { check } from "../../http/input.ts";
import {
  addVariables,
  changeEnvironment,
  createEnvironment,
  type EnvironmentPlace,
  readVariables,
  removeEnvironment,
  removeVariable,
  replaceVariables,
  setVariable,
  toVariable,
} from "../../operations/projects/environments.ts";
import type { Role } from "../../schema/accounts.ts";
import {
  type Environment,
  environmentPatch,
  newEnvironment,
  newVariable,
  type Variable,
  variableName,
} from "../../schema/environments.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import type { Seal } from "../../secrets/seal.ts";
import type { Sql } from "../../database/connect.ts";
import { selectEnvironment, selectEnvironments, selectVariables, type VariableRow } from "../../store/environments.ts";
import { toLines, tryForm } from "../site/form_input.ts";
import { Checkbox, Csrf, Danger, Done, Field, FormError } from "../components/form.tsx";
import { type Page, type PageContext, SeeOther, type View, form, page } from "../site/page.ts";
import { Ago, Breakable, toExact } from "../components/text.tsx";
import { counted } from "../../wording/numbers.ts";
import { Pager } from "../components/pager.tsx";
import { Tag } from "../components/status.tsx";

const MAX_ROWS = 50;
const MAX_VARIABLE_ROWS = 100;

const DONE = {
  created: "The environment is there. Its variables come next.",
  saved: "Saved.",
  set: "The variable is set.",
  pasted: "The variables are set.",
  removed: "The variable is deleted.",
  deleted: "The environment is deleted, with its variables.",
} as const;

type Shown = Pick<PageContext, "sql" | "csrf" | "now"> & { role: Role; team: { id: string; name: string } };

const settingsFields = v.strictObject({
  slug: v.string(),
  name: v.string(),
  baseUrl: v.string(),
  description: v.string(),
});
type SettingsFields = v.InferOutput<typeof settingsFields>;

const NOT_SENT_BACK = "Nothing was set: what was pasted may hold secrets and is not sent back, so paste it again";

const NEW: SettingsFields = { slug: "", name: "", baseUrl: "", description: "" };

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());

const toGiven = ({ slug, name, baseUrl, description }: SettingsFields) => ({
  slug: slug.trim(),
  ...(name.trim() === "" ? {} : { name: name.trim() }),
  baseUrl: orNull(baseUrl),
  description: orNull(toLines(description)),
});

const toFields = ({ slug, name, baseUrl, description }: Environment): SettingsFields => ({
  slug,
  name,
  baseUrl: baseUrl ?? "",
  description: description ?? "",
});

const settingsForm = (to: Path, csrf: string, fields: SettingsFields, button: string): Html => (
  <form class="fields card padded" method="post" action={to}>
    <Csrf token={csrf} />{" "}
    <Field
      label="Slug"
      name="slug"
      value={fields.slug}
      required
      max={100}
      isCode
      placeholder="staging"
      hint="What uploads and executions call it: lower-case letters, digits, - and _."
    />{" "}
    <Field
      label="Name"
      name="name"
      value={fields.name}
      max={200}
      placeholder="Staging"
      hint="For people. Empty: the slug."
    />{" "}
    <Field
      label="Address"
      name="baseUrl"
      value={fields.baseUrl}
      type="url"
      max={2000}
      placeholder="https://staging.example.com"
      hint="Where the tests find it: runners get it as the base URL."
    />{" "}
    <Field label="Description" name="description" value={fields.description} type="area" rows={2} max={10_000} />
    <div>
      <button class="main">{button}</button>
    </div>
  </form>
);

async function list(
  { sql, team, role, csrf, now }: Shown,
  {
    cursor,
    told,
    problem,
    fields = NEW,
  }: { cursor?: string | undefined; told?: keyof typeof DONE | undefined; problem?: string; fields?: SettingsFields },
): Promise<View> {
  const found = await selectEnvironments(sql, team.id, MAX_ROWS, cursor);
  const rows = found.slice(0, MAX_ROWS);
  const base: Path = `/teams/${team.id}/environments`;
  const body = (
    <>
      {told ? <Done>{DONE[told]}</Done> : null}
      <h1>Environments</h1>
      <p class="meta">
        <span>Where tests run: an address, and variables that runners give to the tasks of an execution there.</span>
      </p>
      <h2>
        {counted(rows.length, "environment")}
        {found.length > MAX_ROWS ? " on this page" : ""}
      </h2>
      {rows.length === 0 ? (
        <div class="card empty">
          <p>No environment yet.</p>
          <p>
            {role === "owner"
              ? "Create one below: staging, production, a browser, a device."
              : "Owners of the team create them."}
          </p>
        </div>
      ) : (
        <div class="card">
          <table>
            <caption class="visually-hidden">Environments</caption>
            <thead>
              <tr>
                <th scope="col">Environment</th>
                <th scope="col" class="wide">
                  Address
                </th>
                <th scope="col" class="number">
                  Variables
                </th>
                <th scope="col" class="number wide">
                  Changed
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  <td class="long">
                    <a href={`${base}/${row.id}`}>
                      <b>{row.name}</b>
                    </a>{" "}
                    <code class="soft">{row.slug}</code>
                  </td>
                  <td class="long wide soft">{row.baseUrl === null ? "–" : <Breakable text={row.baseUrl} />}</td>
                  <td class="number">{row.variableCount}</td>
                  <td class="number soft wide">
                    <Ago at={row.updatedAt} now={now} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}{" "}
      <Pager path={base} query={{ cursor }} cursor={found.length > MAX_ROWS ? rows.at(-1)!.slug : undefined} />{" "}
      {role === "owner" ? (
        <>
          <h2 id="new">New environment</h2>
          <FormError message={problem} />
          {settingsForm(base, csrf, fields, "Create the environment")}
        </>
      ) : null}
    </>
  );
  return { title: "Environments", body, section: "environments", ...(problem === undefined ? {} : { status: 400 }) };
}

/** A value that does not open, after a change of SECRET_KEY for one, is a row like the others. */
function openVariable(seal: Seal, place: EnvironmentPlace, row: VariableRow): Variable & { isSealed?: true } {
  try {
    return toVariable(seal, place, row);
  } catch {
    return { name: row.name, secret: row.secret, value: null, updatedAt: row.updatedAt, isSealed: true };
  }
}

function variableTable(
  base: Path,
  csrf: string,
  role: Role,
  variables: readonly (Variable & { isSealed?: true })[],
): Html {
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">Variables</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            {role === "owner" ? (
              <th scope="col">
                <span class="visually-hidden">Change</span>
              </th>
            ) : null}
          </tr>
        </thead>
        <tbody>
          {variables.map(({ name, secret, value, updatedAt, isSealed }) => (
            <tr>
              <th scope="row" class="long ink">
                <code>
                  <Breakable text={name} />
                </code>
              </th>
              <td class="long">
                {isSealed ? (
                  <span class="failed">cannot be opened: set it again</span>
                ) : secret ? (
                  <Tag>secret</Tag>
                ) : (
                  <code class="lines">{value === "" ? <span class="soft">empty</span> : value}</code>
                )}{" "}
                <span class="small soft">set on {toExact(updatedAt)}</span>
              </td>
              {role === "owner" ? (
                <td class="number">
                  <Danger
                    action={`${base}/variables/${name}/delete`}
                    csrf={csrf}
                    label={
                      <>
                        Delete<span class="visually-hidden"> {name}</span>
                      </>
                    }
                    loss={
                      secret
                        ? "Its value cannot be read back: whoever needs it again must have it."
                        : "Executions that begin from now on do not get it."
                    }
                  />
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const variableFields = v.strictObject({ name: v.string(), value: v.string(), secret: v.optional(v.literal("true")) });
const pasteFields = v.strictObject({
  text: v.string(),
  secret: v.optional(v.literal("true")),
  replace: v.optional(v.literal("true")),
});

type OneSaid = {
  cursor?: string | undefined;
  told?: keyof typeof DONE | undefined;
  problem?: { of: "settings" | "variable" | "paste"; text: string };
  fields?: SettingsFields;
  /** A secret that was refused is not sent back. */
  variable?: { name: string; value: string; secret: boolean };
};

async function one(
  context: Shown & Pick<PageContext, "fast" | "seal"> & { params: { environmentId: string } },
  { cursor, told, problem, fields, variable }: OneSaid,
): Promise<View> {
  const { sql, fast, seal, team, role, csrf, params } = context;
  const place = { teamId: team.id, environmentId: params.environmentId };
  const environment = (await selectEnvironment(fast, team.id, place.environmentId)) ?? refuseAbsent();
  const found = await selectVariables(sql, team.id, environment.id, MAX_VARIABLE_ROWS, cursor);
  const rows = found.slice(0, MAX_VARIABLE_ROWS).map((row) => openVariable(seal, place, row));
  const base: Path = `/teams/${team.id}/environments/${environment.id}`;
  const url = safeUrl(environment.baseUrl);
  const text = (of: NonNullable<OneSaid["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  const body = (
    <>
      {told ? <Done>{DONE[told]}</Done> : null}
      <h1>{environment.name}</h1>
      <div class="meta">
        <code>{environment.slug}</code>
        {url ? (
          <a class="long" href={url} rel="noreferrer">
            <Breakable text={url} />
          </a>
        ) : null}{" "}
        <span>{counted(environment.variableCount, "variable")}</span>
        <a href={`/teams/${team.id}/environments`}>All environments</a>
      </div>
      {environment.description === null ? null : <p class="prose lines top">{environment.description}</p>}
      <h2 id="variables">
        Variables <small>runners give them to the tasks of executions here; secrets are never shown again</small>
      </h2>
      {rows.length === 0 ? (
        <div class="card empty">
          <p>No variable yet.{role === "owner" ? " Set one, or paste a .env file." : ""}</p>
        </div>
      ) : (
        variableTable(base, csrf, role, rows)
      )}{" "}
      <Pager path={base} query={{ cursor }} cursor={found.length > MAX_VARIABLE_ROWS ? rows.at(-1)!.name : undefined} />{" "}
      {role === "owner" ? (
        <>
          <div class="columns">
            <form class="fields card padded" method="post" action={`${base}/variables`}>
              <Csrf token={csrf} />
              <h3>Set a variable, or change one</h3>
              <FormError message={text("variable")} />{" "}
              <Field
                label="Name"
                name="name"
                value={variable?.name}
                id="variable-name"
                required
                max={128}
                isCode
                placeholder="DATABASE_URL"
              />{" "}
              <Field
                label="Value"
                name="value"
                value={variable?.secret ? "" : variable?.value}
                type="area"
                rows={3}
                isCode
              />{" "}
              <Checkbox label="Secret: nobody reads it here again" name="secret" checked={variable?.secret ?? true} />
              <div>
                <button class="main">Set the variable</button>
              </div>
            </form>
            <form class="fields card padded" method="post" action={`${base}/variables/paste`}>
              <Csrf token={csrf} />
              <h3>Paste a .env file</h3>
              <FormError message={text("paste")} />{" "}
              <Field
                label="Lines of NAME=value"
                name="text"
                type="area"
                rows={6}
                required
                isCode
                placeholder="API_TOKEN=…
BROWSER=firefox"
              />{" "}
              <Checkbox label="All of them are secrets" name="secret" checked />{" "}
              <Checkbox label="Delete the variables that it does not name" name="replace" checked={false} />
              <div>
                <button>Set these variables</button>
              </div>
            </form>
          </div>
          <h2 id="settings">Environment</h2>
          <FormError message={text("settings")} />
          {settingsForm(base, csrf, fields ?? toFields(environment), "Save the environment")}
          <h2>Delete it</h2>
          <Danger
            action={`${base}/delete`}
            csrf={csrf}
            label={`Delete ${environment.name}`}
            loss={`${counted(environment.variableCount, "variable")} ${environment.variableCount === 1 ? "is" : "are"} lost, and secrets cannot be read back. Executions that ran here stay, and keep its name.`}
          />
        </>
      ) : null}
    </>
  );
  return { title: environment.name, body, section: "environments", ...(problem ? { status: 400 } : {}) };
}

const told = v.optional(v.picklist(Object.keys(DONE) as (keyof typeof DONE)[]));
const cursor = v.optional(v.pipe(v.string(), v.maxLength(200)));
const query = v.strictObject({ told, cursor });

/** Of names of variables that were pasted. */
const MAX_TOLD = 50;

const slugOf = async (sql: Sql, { teamId, environmentId }: EnvironmentPlace): Promise<string> =>
  ((await selectEnvironment(sql, teamId, environmentId)) ?? refuseAbsent()).slug;

export const environments: Page[] = [
  page(
    "/teams/:teamId/environments",
    { access: "viewer", query },
    async (context) => await list(context, context.query),
  ),

  form("/teams/:teamId/environments", { access: "owner", fields: settingsFields }, async (context) => {
    const { team, fields } = context;
    const made = await tryForm(() => {
      const given = check(newEnvironment, toGiven(fields));
      return write(
        context,
        "owner",
        (sql) => createEnvironment(sql, team.id, given),
        ({ slug, id }) => ({ action: "environment.created", subject: slug, details: { environmentId: id } }),
      );
    });
    if ("problem" in made) return await list(context, { problem: made.problem, fields });
    return new SeeOther(`/teams/${team.id}/environments/${made.result.id}?told=created`);
  }),

  page(
    "/teams/:teamId/environments/:environmentId",
    { access: "viewer", query },
    async (context) => await one(context, context.query),
  ),

  form("/teams/:teamId/environments/:environmentId", { access: "owner", fields: settingsFields }, async (context) => {
    const { params, fields } = context;
    const saved = await tryForm(() => {
      // A name that is emptied is the slug again.
      const patch = check(environmentPatch, { name: fields.slug.trim(), ...toGiven(fields) });
      return write(
        context,
        "owner",
        (sql) => changeEnvironment(sql, params, patch),
        ({ slug, id }) => ({
          action: "environment.changed",
          subject: slug,
          details: { environmentId: id, fields: Object.keys(patch) },
        }),
      );
    });
    if ("problem" in saved) return await one(context, { problem: { of: "settings", text: saved.problem }, fields });
    return new SeeOther(`${pathOf(params)}?told=saved`);
  }),

  form("/teams/:teamId/environments/:environmentId/delete", { access: "owner" }, async (context) => {
    const { params } = context;
    const { environmentId } = params;
    await write(
      context,
      "owner",
      async (sql) => {
        const slug = await slugOf(sql, params);
        await removeEnvironment(sql, params);
        return slug;
      },
      (slug) => ({ action: "environment.deleted", subject: slug, details: { environmentId } }),
    );
    return new SeeOther(`/teams/${params.teamId}/environments?told=deleted`);
  }),

  form(
    "/teams/:teamId/environments/:environmentId/variables",
    { access: "owner", fields: variableFields },
    async (context) => {
      const { seal, params, fields } = context;
      const given = { name: fields.name.trim(), value: toLines(fields.value), secret: fields.secret === "true" };
      const set = await tryForm(() => {
        const { name, ...variable } = check(
          v.strictObject({ name: variableName, ...newVariable.entries }),
          given,
          false,
        );
        return write(
          context,
          "owner",
          (sql) => setVariable(sql, seal, params, { name, ...variable }),
          () => ({
            action: "variable.changed",
            subject: name,
            details: { environmentId: params.environmentId },
          }),
        );
      });
      if ("problem" in set)
        return await one(context, { problem: { of: "variable", text: set.problem }, variable: given });
      return new SeeOther(`${pathOf(params)}?told=set#variables`);
    },
  ),

  form(
    "/teams/:teamId/environments/:environmentId/variables/paste",
    { access: "owner", fields: pasteFields },
    async (context) => {
      const { seal, params, fields } = context;
      const secret = fields.secret === "true";
      const pasted = await tryForm(() => {
        const read = readVariables(fields.text, "text/plain");
        const variables = new Map([...read].map(([name, { value }]) => [name, { value, secret }]));
        const put = fields.replace === "true" ? replaceVariables : addVariables;
        return write(
          context,
          "owner",
          async (sql) => {
            await put(sql, seal, params, variables);
            return await slugOf(sql, params);
          },
          (slug) => ({
            action: fields.replace === "true" ? "variables.replaced" : "variable.changed",
            subject: slug,
            details: { environmentId: params.environmentId, names: [...variables.keys()].slice(0, MAX_TOLD) },
          }),
        );
      });
      if ("problem" in pasted)
        return await one(context, { problem: { of: "paste", text: `${pasted.problem}; ${NOT_SENT_BACK}` } });
      return new SeeOther(`${pathOf(params)}?told=pasted#variables`);
    },
  ),

  form(
    "/teams/:teamId/environments/:environmentId/variables/:variableName/delete",
    { access: "owner" },
    async (context) => {
      const { params } = context;
      const { environmentId, variableName } = params;
      await write(
        context,
        "owner",
        (sql) => removeVariable(sql, params, variableName),
        () => ({ action: "variable.deleted", subject: variableName, details: { environmentId } }),
      );
      return new SeeOther(`${pathOf(params)}?told=removed#variables`);
    },
  ),
];

const pathOf = ({ teamId, environmentId }: EnvironmentPlace): Path => `/teams/${teamId}/environments/${environmentId}`;
