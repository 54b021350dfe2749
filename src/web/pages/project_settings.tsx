/** Settings of a project, and its API key, which is shown in the one answer that generates it. */

import * as v from "valibot";
import { write } from "../site/write.ts";
import { check } from "../../http/input.ts";
import type { Html, Path } from "../../http/html.ts";
import { replaceProjectKey } from "../../operations/people/keys.ts";
import { changeProject } from "../../operations/projects/projects.ts";
import { uuid } from "../../schema/fields.ts";
import { projectPatch } from "../../schema/projects.ts";
import { selectProjectKey, type ShownKey } from "../../store/keys.ts";
import { selectRunners } from "../../store/runners.ts";
import { type ProjectRow, selectProject } from "../../store/projects.ts";
import { selectSummaries } from "../../store/execution_list.ts";
import { executionPath } from "../site/paths.ts";
import { executionName } from "../components/execution_table.tsx";
import { tryForm } from "../site/form_input.ts";
import { Csrf, Done, Field, FormError } from "../components/form.tsx";
import { type Page, type PageContext, SeeOther, type View, form, page } from "../site/page.ts";
import { Ago } from "../components/text.tsx";
import { counted } from "../../wording/numbers.ts";

const MAX_RUNNERS = 100;

const DONE = {
  saved: "The settings are saved.",
  shown:
    "The key was generated, and is shown only once. Whoever has not copied it generates another one: nothing brings it back.",
} as const;

const settingsFields = v.strictObject({
  name: v.string(),
  defaultBranch: v.string(),
  longLivedBranches: v.string(),
  executionTimeoutMinutes: v.string(),
  retentionDays: v.string(),
});
type SettingsFields = v.InferOutput<typeof settingsFields>;

/** "12" → 12; what is no number goes to the check as it is. */
const toNumber = (text: string): number | string => (/^\d{1,9}$/.test(text.trim()) ? Number(text.trim()) : text);

const toPatch = ({ name, defaultBranch, longLivedBranches, executionTimeoutMinutes, retentionDays }: SettingsFields) =>
  check(projectPatch, {
    name: name.trim(),
    defaultBranch: defaultBranch.trim(),
    longLivedBranches: longLivedBranches.split(/[\s,]+/).filter((pattern) => pattern !== ""),
    executionTimeoutMinutes: toNumber(executionTimeoutMinutes),
    retentionDays: retentionDays.trim() === "" ? null : toNumber(retentionDays),
  });

const toFields = (row: ProjectRow): SettingsFields => ({
  name: row.name,
  defaultBranch: row.defaultBranch,
  longLivedBranches: row.longLivedBranches.join(" "),
  executionTimeoutMinutes: String(row.executionTimeoutMinutes),
  retentionDays: row.retentionDays === null ? "" : String(row.retentionDays),
});

const toDays = (days: number): string => (days === 0 ? "for ever" : counted(days, "day"));

type Shown = Pick<PageContext, "csrf" | "publicUrl" | "retentionDays" | "now"> & {
  role: "viewer" | "member" | "owner";
  project: { id: string; name: string };
  team: { id: string; name: string };
};

function keyCard({ project, role, now }: Shown, key: ShownKey | undefined): Html {
  const path: Path = `/projects/${project.id}/settings/key`;
  if (!key)
    return (
      <div class="card empty">
        <p>This project has no key yet: nothing can be uploaded to it.</p>
        {role === "viewer" ? null : (
          <p>
            <a class="button main" href={path}>
              Generate its key
            </a>
          </p>
        )}
      </div>
    );
  return (
    <div class="card padded">
      <dl class="facts">
        <dt>Key</dt>
        <dd>
          <code>{key.leading}…</code> <span class="soft small">nobody can show the rest of it again</span>
        </dd>
        <dt>Created</dt>
        <dd>
          <Ago at={key.createdAt} now={now} />
          {key.madeBy === null ? null : <> by {key.madeBy}</>}
        </dd>
        <dt>Last used</dt>
        <dd>{key.lastUsedAt === null ? "never" : <Ago at={key.lastUsedAt} now={now} />}</dd>
      </dl>
      {role === "viewer" ? null : (
        <p class="actions">
          <a class="button" href={path}>
            Generate a new key…
          </a>
        </p>
      )}
    </div>
  );
}

function settingsForm({ project, csrf, retentionDays }: Shown, fields: SettingsFields): Html {
  return (
    <form class="fields card padded" method="post" action={`/projects/${project.id}/settings`}>
      <Csrf token={csrf} /> <Field label="Name" name="name" value={fields.name} required max={200} />{" "}
      <Field
        label="Default branch"
        name="defaultBranch"
        value={fields.defaultBranch}
        required
        max={500}
        isCode
        hint="Whether the project is green is told of this branch, and other branches are compared with it."
      />{" "}
      <Field
        label="Long-lived branches"
        name="longLivedBranches"
        value={fields.longLivedBranches}
        max={4_000}
        isCode
        hint="Branches of releases: each is compared with its own builds instead of the default branch. * stands for any text."
      />{" "}
      <Field
        label="Execution time-out, minutes"
        name="executionTimeoutMinutes"
        value={fields.executionTimeoutMinutes}
        type="number"
        required
        hint="An execution that waits so long for its next report ends as timed out."
      />{" "}
      <Field
        label="Retention, days"
        name="retentionDays"
        value={fields.retentionDays}
        type="number"
        hint={`Results that are older are deleted; runs keep their counts. 0: for ever. Empty: as the server is configured, ${toDays(retentionDays)}.`}
      />
      <div>
        <button class="main">Save the settings</button>
      </div>
    </form>
  );
}

function settingsFacts({ retentionDays }: Shown, row: ProjectRow): Html {
  return (
    <div class="card padded">
      <dl class="facts">
        <dt>Name</dt>
        <dd class="long">{row.name}</dd>
        <dt>Default branch</dt>
        <dd class="long">
          <code>{row.defaultBranch}</code>
        </dd>
        <dt>Long-lived branches</dt>
        <dd class="long">
          {row.longLivedBranches.length === 0 ? "none" : <code>{row.longLivedBranches.join(" ")}</code>}
        </dd>
        <dt>Execution time-out</dt>
        <dd>{counted(row.executionTimeoutMinutes, "minute")}</dd>
        <dt>Retention</dt>
        <dd>
          {row.retentionDays === null
            ? `as the server is configured: ${toDays(retentionDays)}`
            : toDays(row.retentionDays)}
        </dd>
      </dl>
      <p class="hint">Owners of the team can change this.</p>
    </div>
  );
}

function settings(
  shown: Shown,
  {
    row,
    key,
    fields,
    problem,
    told,
  }: {
    row: ProjectRow;
    key: ShownKey | undefined;
    fields: SettingsFields;
    problem?: string;
    told?: keyof typeof DONE | undefined;
  },
): View {
  const { project, team, role, publicUrl } = shown;
  const body = (
    <>
      {told ? <Done>{DONE[told]}</Done> : null}
      <h1>Settings</h1>
      <div class="meta">
        <span>of {project.name}</span> <a href={`/teams/${team.id}/settings`}>Settings of {team.name}</a>{" "}
        <a href={`/projects/${project.id}/onboarding`}>How to send reports</a>{" "}
        <a href={`/projects/${project.id}/shares`}>Links and badges</a>
      </div>
      <h2>
        API key <small>what uploads reports and runs tasks for this project</small>
      </h2>
      {keyCard(shown, key)}
      <p class="hint">
        It may do everything. A <a href={`/projects/${project.id}/settings/keys`}>named key</a> may do what its scope
        says, and is revoked without touching the others.
      </p>
      <h2 id="project">Project</h2>
      <FormError message={problem} /> {role === "owner" ? settingsForm(shown, fields) : settingsFacts(shown, row)}
      <h2>For scripts</h2>
      <div class="card padded">
        <dl class="facts">
          <dt>Project</dt>
          <dd class="long">
            <code data-copy>{project.id}</code>
          </dd>
          <dt>API</dt>
          <dd class="long">
            <code data-copy>
              {publicUrl}/api/v1/projects/{project.id}
            </code>
          </dd>
        </dl>
      </div>
    </>
  );
  return { title: "Settings", body, section: "settings", ...(problem === undefined ? {} : { status: 400 }) };
}

/** Who would notice: runners that ask with the key, and the last report that came with one. */
async function usersOfKey({ sql, project, now }: PageContext & Shown): Promise<Html[]> {
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
        Uploads, from CI and by hand: the newest execution is{" "}
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
      <li>Uploads, from CI and by hand: nothing has arrived yet.</li>
    ),
    lately.length === 0 ? (
      <li>Runners: none has asked for work in the last day.</li>
    ) : (
      <li class="long">
        {counted(lately.length, "runner")}: {names.join(", ")}
        {more > 0 ? ` and ${more} more` : ""}.{" "}
        {held > 0 ? `They lose ${counted(held, "task")} that they are at.` : "They run nothing at this moment."}
      </li>
    ),
    <li>Scripts and badges that ask the API with it.</li>,
  ];
}

const keyFields = v.strictObject({ replaces: v.union([v.literal("none"), uuid]) });

export const projectSettings: Page[] = [
  page(
    "/projects/:projectId/settings",
    { access: "viewer", query: v.strictObject({ told: v.optional(v.picklist(["saved", "shown"])) }) },
    async (context) => {
      const { fast, project, query } = context;
      const [row, key] = await Promise.all([selectProject(fast, project.id), selectProjectKey(fast, project.id)]);
      return settings(context, { row: row!, key, fields: toFields(row!), told: query.told });
    },
  ),

  form("/projects/:projectId/settings", { access: "owner", fields: settingsFields }, async (context) => {
    const { fast, project, fields } = context;
    const saved = await tryForm(() =>
      write(
        context,
        "owner",
        (sql) => changeProject(sql, project.id, toPatch(fields)),
        ({ name }) => ({
          action: "project.changed",
          subject: name,
          details: { projectId: project.id, fields: Object.keys(fields) },
        }),
      ),
    );
    if ("result" in saved) return new SeeOther(`/projects/${project.id}/settings?told=saved`);
    const [row, key] = await Promise.all([selectProject(fast, project.id), selectProjectKey(fast, project.id)]);
    return settings(context, { row: row!, key, fields, problem: saved.problem });
  }),

  page("/projects/:projectId/settings/key", { access: "member" }, async (context) => {
    const { fast, project, csrf, now } = context;
    const key = await selectProjectKey(fast, project.id);
    const path: Path = `/projects/${project.id}/settings`;
    const replaces = <input type="hidden" name="replaces" value={key?.id ?? "none"} />;
    const button = (label: string, kind: string) => (
      <form class="actions" method="post" action={`${path}/key`}>
        <Csrf token={csrf} />
        {replaces}
        <button class={kind}>{label}</button>{" "}
        <a class="button" href={path}>
          Leave it
        </a>
      </form>
    );
    const body = key ? (
      <>
        <h1>Generate a new key for {project.name}</h1>
        <div class="message bad">
          <p>
            <b>
              The key <code>{key.leading}…</code> stops working the moment you press the button.
            </b>{" "}
            {key.lastUsedAt === null ? (
              "It was never used."
            ) : (
              <>
                It was last used <Ago at={key.lastUsedAt} now={now} />.
              </>
            )}
          </p>
        </div>
        <div class="prose">
          <p>What has it, and fails until it gets the new one:</p>
          <ul>{await usersOfKey(context)}</ul>
          <p>The new key is shown once. Have the places at hand where it goes: the secrets of your CI, the runners.</p>
        </div>
        {button(`Generate, and revoke ${key.leading}…`, "danger")}
      </>
    ) : (
      <>
        <h1>Generate the key of {project.name}</h1>
        <div class="prose">
          <p>The key uploads reports and runs tasks for this project, and nothing else. It is shown once.</p>
        </div>
        {button("Generate the key", "main")}
      </>
    );
    return { title: "Generate a key", body, section: "settings" };
  }),

  form("/projects/:projectId/settings/key", { access: "member", fields: keyFields }, async (context) => {
    const { project, publicUrl, fields } = context;
    const before = fields.replaces === "none" ? null : fields.replaces;
    const generated = await write(context, "member", (sql, by) => replaceProjectKey(sql, project.id, before, by));
    // Sent twice, by a reload for one, it would revoke what it has just shown.
    if (!generated) return new SeeOther(`/projects/${project.id}/settings?told=shown`);
    const { key } = generated;
    const upload = `curl -H "Authorization: Bearer ${key}" --data-binary @report.xml "${publicUrl}/api/v1/projects/${project.id}/test-runs"`;
    const body = (
      <>
        <h1>The new key of {project.name}</h1>
        <div class="message good">
          <p>
            <b>Copy it now: it is shown this once.</b> {before === null ? null : "The one before has stopped working."}
          </p>
        </div>
        <pre data-copy>{key}</pre>
        <h2>Upload a report with it</h2>
        <pre data-copy>{upload}</pre>
        <h2>
          In CI and for runners <small>keep the key among the secrets</small>
        </h2>
        <pre data-copy>
          {"\n"}ASSAY_URL={publicUrl}
          {"\n"}ASSAY_PROJECT={project.id}
          {"\n"}ASSAY_KEY={key}
        </pre>
        <p class="actions">
          <a class="button main" href={`/projects/${project.id}/onboarding`}>
            See the first report arrive
          </a>{" "}
          <a class="button" href={`/projects/${project.id}/settings`}>
            To the settings
          </a>
        </p>
      </>
    );
    return { title: "The new key", body, section: "settings" };
  }),
];
