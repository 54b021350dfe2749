/** The named keys of a project. The scope of a key limits what it may do. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import { check } from "../../http/input.ts";
import { addNamedKey, revokeNamedKey } from "../../operations/people/keys.ts";
import { uuid } from "../../schema/fields.ts";
import { type NamedKey, type NamedScope, newNamedKey } from "../../schema/keys.ts";
import { selectNamedKeys, selectNewestNamedKeyId } from "../../store/keys.ts";
import { AgoCell, Empty, Pager, CardTable } from "../components/list.tsx";
import { CiVariables, newKeyView, RevokeKey } from "../components/keys.tsx";
import { Field, FormError, Notice, noticeParameter, Form, field, Hidden, Select } from "../components/form.tsx";
import { type Page, type View, page, type ProjectContext } from "../site/page.ts";
import { counted } from "../../wording/numbers.ts";
import { Tag } from "../components/status.tsx";
import { action } from "../site/action.ts";

const PAGE_SIZE = 50;
const DAY_MS = 86_400_000;

const SCOPES: readonly (readonly [NamedScope, string])[] = [
  ["upload", "upload: can read everything and upload reports; for CI"],
  ["run", "run: can also run tasks; for runners"],
  ["read", "read: can read everything; for scripts and assistants"],
  ["triage", "triage: can read everything, change tests and bugs, and rerun executions"],
];

/** The scopes of keys that are made for assistants. */
const ASSISTANT_SCOPES: readonly string[] = ["read", "triage"];

const NOTICES = {
  revoked: "Key revoked, including the keys of runners that were started with it.",
  shown: "The key was shown once. If you did not copy it, revoke it and create a new one.",
} as const;

const fields = v.strictObject({
  name: v.string(),
  scope: v.string(),
  days: v.string(),
  newest: v.union([v.literal("none"), uuid]),
});
type Fields = v.InferOutput<typeof fields>;

const lasts = ({ expiresAt }: NamedKey, now: Date): string =>
  expiresAt === null
    ? "no expiry"
    : `for ${counted(Math.ceil((Date.parse(expiresAt) - now.getTime()) / DAY_MS), "day")}`;

function table({ project, role, csrf, now }: ProjectContext, keys: readonly NamedKey[]): Html {
  if (keys.length === 0)
    return <Empty>No named keys yet. Use one key per purpose, so that each can be revoked separately.</Empty>;
  return (
    <CardTable
      caption="Named keys of the project"
      columns={["Key", "Scope", ["Valid", "wide"], "Last used", ["Revoke", "hidden"]]}
    >
      {keys.map((key) => (
        <tr>
          <td class="long">
            <b>{key.name}</b> <code class="soft">{key.leading}…</code>
          </td>
          <td>
            <Tag>{key.scope}</Tag>
          </td>
          <td class="soft wide">{lasts(key, now)}</td>
          <AgoCell at={key.lastUsedAt} now={now} kind="soft" />
          <td class="number">
            {role === "viewer" ? null : (
              <RevokeKey
                action={`/projects/${project.id}/settings/keys/${key.id}/revoke`}
                csrf={csrf}
                name={key.name}
                shown={key}
                now={now}
              />
            )}
          </td>
        </tr>
      ))}
    </CardTable>
  );
}

type FormState = {
  notice?: keyof typeof NOTICES | undefined;
  cursor?: string | undefined;
  problem?: string;
  values?: Fields;
};

async function keysPage(shown: ProjectContext, { notice, cursor, problem, values }: FormState): Promise<View> {
  const { fast, project, role, csrf } = shown;
  const [rows, newest] = await Promise.all([
    selectNamedKeys(fast, project.id, { limit: PAGE_SIZE, after: cursor }),
    selectNewestNamedKeyId(fast, project.id),
  ]);
  const path: Path = `/projects/${project.id}/settings/keys`;
  const keys = rows.slice(0, PAGE_SIZE);
  const body = (
    <>
      <Notice notices={NOTICES} name={notice} />
      <h1>Named keys</h1>
      <div class="meta">
        <span>of {project.name}</span>
        <a href={`/projects/${project.id}/settings`}>Settings and the project's own key</a>
        <a href={`/projects/${project.id}/settings/ci`}>CI without a stored key</a>
      </div>
      {table(shown, keys)}
      <Pager path={path} query={{ cursor }} cursor={rows.length > PAGE_SIZE ? keys.at(-1)!.id : undefined} />
      {role === "viewer" ? null : (
        <>
          <h2 id="new">
            New key <small>each key has its own rate limit</small>
          </h2>
          <FormError message={problem} />
          <Form to={path} csrf={csrf} button="Generate key">
            <Hidden name="newest" value={newest ?? "none"} />
            <Field label="Name" name="name" required max={200} placeholder="nightly e2e" value={values?.name} />
            <Select label="Scope" name="scope" options={SCOPES} value={values?.scope ?? "upload"} />
            {field(values, "days", "Expires after (days)", {
              type: "number",
              hint: "If empty, the key does not expire.",
            })}
          </Form>
        </>
      )}
    </>
  );
  return { title: "Named keys", body, section: "settings", ...(problem === undefined ? {} : { status: 400 }) };
}

const toNew = ({ name, scope, days }: Fields) =>
  check(newNamedKey, {
    name: name.trim(),
    scope,
    ...(days.trim() === "" ? {} : { expiresInDays: Number(days) }),
  });

export const keys: Page[] = [
  page(
    "/projects/:projectId/settings/keys",
    {
      access: "viewer",
      query: v.strictObject({ notice: noticeParameter(NOTICES), cursor: v.optional(uuid) }),
    },
    async (context) => await keysPage(context, context.query),
  ),

  action(
    "/projects/:projectId/settings/keys",
    { access: "member", fields },
    {
      read: ({ fields }) => toNew(fields),
      act: (sql, { project, fields: { newest } }, wanted, by) =>
        addNamedKey(sql, project.id, wanted, newest === "none" ? null : newest, by),
      refused: (context, problem) => keysPage(context, { problem, values: context.fields }),
      // A form that is sent twice, for example by a reload, must not create a second key.
      done: (context, made) =>
        made ? newKeyPage(context, made.key) : `/projects/${context.project.id}/settings/keys?notice=shown`,
    },
  ),

  action(
    "/projects/:projectId/settings/keys/:namedKeyId/revoke",
    { access: "member" },
    {
      act: (sql, { project, params }, _, by) => revokeNamedKey(sql, project.id, params.namedKeyId, by),
      done: ({ project }) => `/projects/${project.id}/settings/keys?notice=revoked`,
    },
  ),
];

function newKeyPage({ project, publicUrl, fields }: ProjectContext & { fields: Fields }, key: string): View {
  const links = (
    <a class="button" href={`/projects/${project.id}/settings/keys`}>
      Back to named keys
    </a>
  );
  return newKeyView(
    { heading: `New key: ${fields.name.trim()}`, key, section: "settings", links },
    <>
      <CiVariables publicUrl={publicUrl} projectId={project.id} apiKey={key} />
      {ASSISTANT_SCOPES.includes(fields.scope) ? (
        <>
          <h2>
            For an assistant <small>Claude Code; others take the same address and header</small>
          </h2>
          <pre data-copy>
            {"\n"}claude mcp add --transport http assay {publicUrl}/mcp --header "Authorization: Bearer {key}"
          </pre>
        </>
      ) : null}
    </>,
  );
}
