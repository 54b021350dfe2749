/** One environment: its settings and its variables. */

import type { Sql } from "../../../database/connect.ts";
import { type Html, type Path, safeUrl } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import {
  type EnvironmentPlace,
  changeEnvironment,
  removeEnvironment,
  toVariable,
} from "../../../operations/projects/environments.ts";
import type { Role } from "../../../schema/accounts.ts";
import { type Variable, environmentPatch } from "../../../schema/environments.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import type { Seal } from "../../../secrets/seal.ts";
import { type VariableRow, selectEnvironment, selectVariables } from "../../../store/environments.ts";
import { counted } from "../../../wording/numbers.ts";
import { Checkbox, Csrf, Danger, Field, FormError } from "../../components/form.tsx";
import { Notice } from "../../components/notice.tsx";
import { Pager } from "../../components/pager.tsx";
import { Tag } from "../../components/status.tsx";
import { Breakable, toExact } from "../../components/text.tsx";
import { tryForm } from "../../site/form_input.ts";
import { type PageContext, SeeOther, type View, form, page } from "../../site/page.ts";
import { write } from "../../site/write.ts";
import {
  NOTICES,
  type SettingsFields,
  type ViewContext,
  query,
  settingsFields,
  settingsForm,
  toFields,
  toValues,
} from "./list.tsx";

const MAX_VARIABLE_ROWS = 100;

/** Keeps a value that cannot be decrypted, for example after SECRET_KEY changed, as a row of the table. */
function openVariable(seal: Seal, key: EnvironmentPlace, row: VariableRow): Variable & { isSealed?: true } {
  try {
    return toVariable(seal, key, row);
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
                  <span class="failed">cannot be decrypted; set it again</span>
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
                    loss={secret ? "The value cannot be recovered." : "New executions do not receive it."}
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

type FormState = {
  cursor?: string | undefined;
  notice?: keyof typeof NOTICES | undefined;
  problem?: { of: "settings" | "variable" | "paste"; text: string };
  fields?: SettingsFields;
  /** A refused secret is not sent back. */
  variable?: { name: string; value: string; secret: boolean };
};

export async function one(
  context: ViewContext & Pick<PageContext, "fast" | "seal"> & { params: { environmentId: string } },
  { cursor, notice, problem, fields, variable }: FormState,
): Promise<View> {
  const { sql, fast, seal, team, role, csrf, params } = context;
  const key = { teamId: team.id, environmentId: params.environmentId };
  const environment = (await selectEnvironment(fast, team.id, key.environmentId)) ?? refuseAbsent();
  const found = await selectVariables(sql, team.id, environment.id, MAX_VARIABLE_ROWS, cursor);
  const rows = found.slice(0, MAX_VARIABLE_ROWS).map((row) => openVariable(seal, key, row));
  const base: Path = `/teams/${team.id}/environments/${environment.id}`;
  const url = safeUrl(environment.baseUrl);
  const text = (of: NonNullable<FormState["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  const body = (
    <>
      <Notice notices={NOTICES} name={notice} />
      <h1>{environment.name}</h1>
      <div class="meta">
        <code>{environment.slug}</code>
        {url ? (
          <a class="long" href={url} rel="noreferrer">
            <Breakable text={url} />
          </a>
        ) : null}

        <span>{counted(environment.variableCount, "variable")}</span>
        <a href={`/teams/${team.id}/environments`}>All environments</a>
      </div>
      {environment.description === null ? null : <p class="prose lines top">{environment.description}</p>}
      <h2 id="variables">
        Variables{" "}
        <small>runners pass them to the tasks of executions in this environment; secrets cannot be viewed</small>
      </h2>
      {rows.length === 0 ? (
        <div class="card empty">
          <p>No variables yet.{role === "owner" ? " Add one, or paste a .env file." : ""}</p>
        </div>
      ) : (
        variableTable(base, csrf, role, rows)
      )}

      <Pager path={base} query={{ cursor }} cursor={found.length > MAX_VARIABLE_ROWS ? rows.at(-1)!.name : undefined} />

      {role === "owner" ? (
        <>
          <div class="columns">
            <form class="fields card padded" method="post" action={`${base}/variables`}>
              <Csrf token={csrf} />
              <h3>Add or change a variable</h3>
              <FormError message={text("variable")} />

              <Field
                label="Name"
                name="name"
                value={variable?.name}
                id="variable-name"
                required
                max={128}
                isCode
                placeholder="DATABASE_URL"
              />

              <Field
                label="Value"
                name="value"
                value={variable?.secret ? "" : variable?.value}
                type="area"
                rows={3}
                isCode
              />

              <Checkbox
                label="Secret: the value cannot be viewed again"
                name="secret"
                checked={variable?.secret ?? true}
              />
              <div>
                <button class="main">Save variable</button>
              </div>
            </form>
            <form class="fields card padded" method="post" action={`${base}/variables/paste`}>
              <Csrf token={csrf} />
              <h3>Paste a .env file</h3>
              <FormError message={text("paste")} />

              <Field
                label="Lines of NAME=value"
                name="text"
                type="area"
                rows={6}
                required
                isCode
                placeholder="API_TOKEN=…
BROWSER=firefox"
              />

              <Checkbox label="All are secrets" name="secret" checked />

              <Checkbox label="Delete variables that are not in the file" name="replace" checked={false} />
              <div>
                <button>Save variables</button>
              </div>
            </form>
          </div>
          <h2 id="settings">Environment</h2>
          <FormError message={text("settings")} />
          {settingsForm(base, csrf, fields ?? toFields(environment), "Save")}
          <h2>Delete</h2>
          <Danger
            action={`${base}/delete`}
            csrf={csrf}
            label={`Delete ${environment.name}`}
            loss={`${counted(environment.variableCount, "variable")} ${environment.variableCount === 1 ? "is" : "are"} deleted, and secrets cannot be recovered. Executions that ran in this environment are kept.`}
          />
        </>
      ) : null}
    </>
  );
  return { title: environment.name, body, section: "environments", ...(problem ? { status: 400 } : {}) };
}

export const slugOf = async (sql: Sql, { teamId, environmentId }: EnvironmentPlace): Promise<string> =>
  ((await selectEnvironment(sql, teamId, environmentId)) ?? refuseAbsent()).slug;

export const environmentPage = page(
  "/teams/:teamId/environments/:environmentId",
  { access: "viewer", query },
  async (context) => await one(context, context.query),
);

export const changeForm = form(
  "/teams/:teamId/environments/:environmentId",
  { access: "owner", fields: settingsFields },
  async (context) => {
    const { params, fields } = context;
    const saved = await tryForm(() => {
      // An empty name resets to the slug.
      const patch = check(environmentPatch, { name: fields.slug.trim(), ...toValues(fields) });
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
    return new SeeOther(`${pathOf(params)}?notice=saved`);
  },
);

export const deleteForm = form(
  "/teams/:teamId/environments/:environmentId/delete",
  { access: "owner" },
  async (context) => {
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
    return new SeeOther(`/teams/${params.teamId}/environments?notice=deleted`);
  },
);

export const pathOf = ({ teamId, environmentId }: EnvironmentPlace): Path =>
  `/teams/${teamId}/environments/${environmentId}`;
