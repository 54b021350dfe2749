/** The environments of a team. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { createEnvironment } from "../../../operations/projects/environments.ts";
import type { Role } from "../../../schema/accounts.ts";
import { type Environment, newEnvironment } from "../../../schema/environments.ts";
import { selectEnvironments } from "../../../store/environments.ts";
import { counted } from "../../../wording/numbers.ts";
import { Csrf, Field, FormError } from "../../components/form.tsx";
import { Notice, noticeParameter } from "../../components/notice.tsx";
import { Pager } from "../../components/pager.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { toLines, tryForm } from "../../site/form_input.ts";
import { type PageContext, SeeOther, type View, form, page } from "../../site/page.ts";
import { write } from "../../site/write.ts";

const MAX_ROWS = 50;

export const NOTICES = {
  created: "Environment created. Add its variables below.",
  saved: "Saved.",
  set: "Variable saved.",
  pasted: "Variables saved.",
  removed: "Variable deleted.",
  deleted: "Environment deleted.",
} as const;

export type ViewContext = Pick<PageContext, "sql" | "csrf" | "now"> & {
  role: Role;
  team: { id: string; name: string };
};

export const settingsFields = v.strictObject({
  slug: v.string(),
  name: v.string(),
  baseUrl: v.string(),
  description: v.string(),
});

export type SettingsFields = v.InferOutput<typeof settingsFields>;

export const PASTE_REFUSED_HINT =
  "No variables were saved. The pasted text may contain secrets and is not shown again, so paste it again";

const NEW: SettingsFields = { slug: "", name: "", baseUrl: "", description: "" };

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());

export const toValues = ({ slug, name, baseUrl, description }: SettingsFields) => ({
  slug: slug.trim(),
  ...(name.trim() === "" ? {} : { name: name.trim() }),
  baseUrl: orNull(baseUrl),
  description: orNull(toLines(description)),
});

export const toFields = ({ slug, name, baseUrl, description }: Environment): SettingsFields => ({
  slug,
  name,
  baseUrl: baseUrl ?? "",
  description: description ?? "",
});

export const settingsForm = (to: Path, csrf: string, fields: SettingsFields, button: string): Html => (
  <form class="fields card padded" method="post" action={to}>
    <Csrf token={csrf} />

    <Field
      label="Slug"
      name="slug"
      value={fields.slug}
      required
      max={100}
      isCode
      placeholder="staging"
      hint="The name in uploads and executions: lower-case letters, digits, - and _."
    />

    <Field
      label="Name"
      name="name"
      value={fields.name}
      max={200}
      placeholder="Staging"
      hint="The display name. If empty, the slug is used."
    />

    <Field
      label="Address"
      name="baseUrl"
      value={fields.baseUrl}
      type="url"
      max={2000}
      placeholder="https://staging.example.com"
      hint="Runners pass it to tests as the base URL."
    />

    <Field label="Description" name="description" value={fields.description} type="area" rows={2} max={10_000} />
    <div>
      <button class="main">{button}</button>
    </div>
  </form>
);

async function list(
  { sql, team, role, csrf, now }: ViewContext,
  {
    cursor,
    notice,
    problem,
    fields = NEW,
  }: {
    cursor?: string | undefined;
    notice?: keyof typeof NOTICES | undefined;
    problem?: string;
    fields?: SettingsFields;
  },
): Promise<View> {
  const found = await selectEnvironments(sql, team.id, MAX_ROWS, cursor);
  const rows = found.slice(0, MAX_ROWS);
  const base: Path = `/teams/${team.id}/environments`;
  const body = (
    <>
      <Notice notices={NOTICES} name={notice} />
      <h1>Environments</h1>
      <p class="meta">
        <span>An environment has a base URL and variables, which runners pass to the tasks of an execution.</span>
      </p>
      <h2>
        {counted(rows.length, "environment")}
        {found.length > MAX_ROWS ? " on this page" : ""}
      </h2>
      {rows.length === 0 ? (
        <div class="card empty">
          <p>No environments yet.</p>
          <p>
            {role === "owner"
              ? "Create one below, for example staging, production, a browser or a device."
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
      )}

      <Pager path={base} query={{ cursor }} cursor={found.length > MAX_ROWS ? rows.at(-1)!.slug : undefined} />

      {role === "owner" ? (
        <>
          <h2 id="new">New environment</h2>
          <FormError message={problem} />
          {settingsForm(base, csrf, fields, "Create environment")}
        </>
      ) : null}
    </>
  );
  return { title: "Environments", body, section: "environments", ...(problem === undefined ? {} : { status: 400 }) };
}

export const notice = noticeParameter(NOTICES);

export const cursor = v.optional(v.pipe(v.string(), v.maxLength(200)));

export const query = v.strictObject({ notice, cursor });

export const listPage = page(
  "/teams/:teamId/environments",
  { access: "viewer", query },
  async (context) => await list(context, context.query),
);

export const createEnvironmentForm = form(
  "/teams/:teamId/environments",
  { access: "owner", fields: settingsFields },
  async (context) => {
    const { team, fields } = context;
    const made = await tryForm(() => {
      const values = check(newEnvironment, toValues(fields));
      return write(
        context,
        "owner",
        (sql) => createEnvironment(sql, team.id, values),
        ({ slug, id }) => ({ action: "environment.created", subject: slug, details: { environmentId: id } }),
      );
    });
    if ("problem" in made) return await list(context, { problem: made.problem, fields });
    return new SeeOther(`/teams/${team.id}/environments/${made.result.id}?notice=created`);
  },
);
