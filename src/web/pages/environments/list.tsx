/** The environments of a team. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { createEnvironment } from "../../../operations/projects/environments.ts";
import { type Environment, newEnvironment } from "../../../schema/environments.ts";
import { selectEnvironments } from "../../../store/environments.ts";
import { AgoCell, CardTable, TeamList, toPagedRows } from "../../components/list.tsx";
import { Field, FormError, noticeParameter, Form, field } from "../../components/form.tsx";
import { Breakable } from "../../components/text.tsx";
import { toLines, action } from "../../site/action.ts";
import { type View, page, type TeamContext } from "../../site/page.ts";

const MAX_ROWS = 50;

export const NOTICES = {
  created: "Environment created. Add its variables below.",
  saved: "Saved.",
  set: "Variable saved.",
  pasted: "Variables saved.",
  removed: "Variable deleted.",
  deleted: "Environment deleted.",
} as const;

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
  <Form to={to} csrf={csrf} button={button}>
    {field(fields, "slug", "Slug", {
      required: true,
      max: 100,
      isCode: true,
      placeholder: "staging",
      hint: "The name in uploads and executions: lower-case letters, digits, - and _.",
    })}
    {field(fields, "name", "Name", {
      max: 200,
      placeholder: "Staging",
      hint: "The display name. If empty, the slug is used.",
    })}
    {field(fields, "baseUrl", "Address", {
      type: "url",
      max: 2000,
      placeholder: "https://staging.example.com",
      hint: "Runners pass it to tests as the base URL.",
    })}
    <Field label="Description" name="description" value={fields.description} type="area" rows={2} max={10_000} />
  </Form>
);

type TableProperties = { base: Path; environments: readonly Environment[]; now: Date };

const EnvironmentTable = ({ base, environments, now }: TableProperties): Html => (
  <CardTable
    caption="Environments"
    columns={["Environment", ["Address", "wide"], ["Variables", "number"], ["Changed", "number", "wide"]]}
  >
    {environments.map((row) => (
      <tr>
        <td class="long">
          <a href={`${base}/${row.id}`}>
            <b>{row.name}</b>
          </a>{" "}
          <code class="soft">{row.slug}</code>
        </td>
        <td class="long wide soft">{row.baseUrl === null ? "–" : <Breakable text={row.baseUrl} />}</td>
        <td class="number">{row.variableCount}</td>
        <AgoCell at={row.updatedAt} now={now} kind="number soft wide" />
      </tr>
    ))}
  </CardTable>
);

/** `refused`: a form, with what is wrong with it. */
type Refused = { problem: string; fields: SettingsFields };

async function showList(
  { sql, team, role, csrf, now }: TeamContext,
  query: ListQuery,
  refused?: Refused,
): Promise<View> {
  const found = await selectEnvironments(sql, team.id, MAX_ROWS, query.cursor);
  const list = toPagedRows(found, MAX_ROWS, ({ slug }) => slug);
  const base: Path = `/teams/${team.id}/environments`;
  const body = (
    <>
      <TeamList
        path={base}
        title="Environments"
        noun="environment"
        description="An environment has a base URL and variables, which runners pass to the tasks of an execution."
        suggestion="Create one below, for example staging, production, a browser or a device."
        notices={NOTICES}
        {...{ role, list, query }}
      >
        <EnvironmentTable base={base} environments={list.rows} now={now} />
      </TeamList>
      {role === "owner" ? (
        <>
          <h2 id="new">New environment</h2>
          <FormError message={refused?.problem} />
          {settingsForm(base, csrf, refused?.fields ?? NEW, "Create environment")}
        </>
      ) : null}
    </>
  );
  return { title: "Environments", body, section: "environments", ...(refused ? { status: 400 } : {}) };
}

export const notice = noticeParameter(NOTICES);

export const cursor = v.optional(v.pipe(v.string(), v.maxLength(200)));

export const query = v.strictObject({ notice, cursor });

type ListQuery = v.InferOutput<typeof query>;

export const listPage = page(
  "/teams/:teamId/environments",
  { access: "viewer", query },
  async (context) => await showList(context, context.query),
);

export const createEnvironmentForm = action(
  "/teams/:teamId/environments",
  { access: "owner", fields: settingsFields },
  {
    read: ({ fields }) => check(newEnvironment, toValues(fields)),
    act: (sql, { team }, values) => createEnvironment(sql, team.id, values),
    record: ({ slug, id }) => ({ action: "environment.created", subject: slug, details: { environmentId: id } }),
    refused: (context, problem) => showList(context, {}, { problem, fields: context.fields }),
    done: ({ team }, { id }) => `/teams/${team.id}/environments/${id}?notice=created`,
  },
);
