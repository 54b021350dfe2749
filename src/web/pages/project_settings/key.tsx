/** The key of a project: its users, and its replacement. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { replaceProjectKey } from "../../../operations/people/keys.ts";
import { uuid } from "../../../schema/fields.ts";
import { selectSummaries } from "../../../store/execution_list.ts";
import { selectProjectKey } from "../../../store/keys.ts";
import { selectRunners } from "../../../store/runners.ts";
import { counted } from "../../../wording/numbers.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { Form, Hidden } from "../../components/form.tsx";
import { Ago } from "../../components/text.tsx";
import { page, type View, type ProjectContext } from "../../site/page.ts";
import { executionPath } from "../../site/paths.ts";
import { CiVariables, LastUse, newKeyView } from "../../components/keys.tsx";
import { action } from "../../site/action.ts";

const MAX_RUNNERS = 100;

/** Lists the users of the key: runners that poll with it, and the last report that was uploaded with it. */
async function usersOfKey({ sql, project, now }: ProjectContext): Promise<Html[]> {
  const [runners, [build]] = await Promise.all([
    selectRunners(sql, project.id, MAX_RUNNERS, undefined),
    selectSummaries(sql, project.id, 0),
  ]);
  const dayAgo = now.getTime() - 86_400_000;
  const lately = runners.filter(({ seenAt }) => Date.parse(seenAt) > dayAgo);
  const held = lately.reduce((sum, { leases }) => sum + leases.length, 0);
  const names = lately.slice(0, 5).map(({ name }) => name);
  const more = lately.length - names.length;
  return [
    build ? (
      <li>
        Uploads from CI and the command line. Latest execution:{" "}
        <a href={executionPath(project.id, build.id)}>{executionName(build)}</a>
        {build.branch === null ? null : (
          <>
            {" "}
            on <code>{build.branch}</code>
          </>
        )}
        , <Ago at={build.createdAt} now={now} />.
      </li>
    ) : (
      <li>Uploads from CI and the command line. No reports yet.</li>
    ),
    lately.length === 0 ? (
      <li>Runners: none active in the last 24 hours.</li>
    ) : (
      <li class="long">
        {counted(lately.length, "runner")}: {names.join(", ")}
        {more > 0 ? ` and ${more} more` : ""}.{" "}
        {held > 0 ? `They lose ${counted(held, "running task")}.` : "They are idle."}
      </li>
    ),
    <li>Scripts and other API clients.</li>,
  ];
}

const keyFields = v.strictObject({ replaces: v.union([v.literal("none"), uuid]) });

export const keyPage = page("/projects/:projectId/settings/key", { access: "member" }, async (context) => {
  const { fast, project, csrf, now } = context;
  const key = await selectProjectKey(fast, project.id);
  const path: Path = `/projects/${project.id}/settings`;
  const replaces = <Hidden name="replaces" value={key?.id ?? "none"} />;
  const button = (label: string, kind: string) => (
    <Form to={`${path}/key`} csrf={csrf} kind="actions">
      {replaces}
      <button class={kind}>{label}</button>
      <a class="button" href={path}>
        Cancel
      </a>
    </Form>
  );
  const body = key ? (
    <>
      <h1>Generate a new key for {project.name}</h1>
      <div class="message bad">
        <p>
          <b>
            The key <code>{key.leading}…</code> stops working immediately.
          </b>{" "}
          <LastUse at={key.lastUsedAt} now={now} />
        </p>
      </div>
      <div class="prose">
        <p>These use the key and fail until they have the new one:</p>
        <ul>{await usersOfKey(context)}</ul>
        <p>The new key is shown once. Be ready to update it in your CI secrets and on your runners.</p>
      </div>
      {button(`Generate, and revoke ${key.leading}…`, "danger")}
    </>
  ) : (
    <>
      <h1>Generate a key for {project.name}</h1>
      <div class="prose">
        <p>The key can upload reports and run tasks of this project. It is shown once.</p>
      </div>
      {button("Generate key", "main")}
    </>
  );
  return { title: "Generate a key", body, section: "settings" };
});

export const keyForm = action(
  "/projects/:projectId/settings/key",
  { access: "member", fields: keyFields },
  {
    act: (sql, { project, fields: { replaces } }, _, by) =>
      replaceProjectKey(sql, project.id, replaces === "none" ? null : replaces, by),
    // A form that is sent twice, for example by a reload, must not revoke the key that it has just shown.
    done: (context, made) =>
      made ? newKeyPage(context, made.key) : `/projects/${context.project.id}/settings?notice=shown`,
  },
);

type Replaced = ProjectContext & { fields: v.InferOutput<typeof keyFields> };

function newKeyPage({ project, publicUrl, fields }: Replaced, key: string): View {
  const upload = `curl -H "Authorization: Bearer ${key}" --data-binary @report.xml "${publicUrl}/api/v1/projects/${project.id}/test-runs"`;
  const links = (
    <>
      <a class="button main" href={`/projects/${project.id}/onboarding`}>
        Continue to the first report
      </a>
      <a class="button" href={`/projects/${project.id}/settings`}>
        Back to settings
      </a>
    </>
  );
  const note = fields.replaces !== "none" && "The previous key has stopped working.";
  return newKeyView(
    { heading: `New key of ${project.name}`, key, note, section: "settings", links },
    <>
      <h2>Upload a report</h2>
      <pre data-copy>{upload}</pre>
      <CiVariables publicUrl={publicUrl} projectId={project.id} apiKey={key} />
    </>,
  );
}
