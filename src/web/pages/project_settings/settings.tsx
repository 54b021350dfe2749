/** The settings of a project. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { changeProject } from "../../../operations/projects/projects.ts";
import { gateShareText } from "../../../schema/gate.ts";
import { projectPatch } from "../../../schema/projects.ts";
import { type ShownKey, selectProjectKey } from "../../../store/keys.ts";
import { type ProjectRow, selectProject } from "../../../store/projects.ts";
import { counted } from "../../../wording/numbers.ts";
import { DangerZone } from "../../components/deletion.tsx";
import { Field, FormError, Notice, noticeParameter, Form, field } from "../../components/form.tsx";
import { Ago } from "../../components/text.tsx";
import { gateShareCard, type GateChoices, readGateChoices } from "./gate_share.tsx";
import { type View, page, type ProjectContext } from "../../site/page.ts";
import { action } from "../../site/action.ts";

const NOTICES = {
  saved: "Settings saved.",
  shown: "The key was shown once. If you did not copy it, generate a new one.",
} as const;

const settingsFields = v.strictObject({
  name: v.string(),
  defaultBranch: v.string(),
  longLivedBranches: v.string(),
  executionTimeoutMinutes: v.string(),
  retentionDays: v.string(),
});

type SettingsFields = v.InferOutput<typeof settingsFields>;

/** Converts "12" to 12. Other texts go to the validation unchanged. */
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

const toDays = (days: number): string => (days === 0 ? "no expiry" : counted(days, "day"));

function keyCard({ project, role, now }: ProjectContext, key: ShownKey | undefined): Html {
  const path: Path = `/projects/${project.id}/settings/key`;
  if (!key)
    return (
      <div class="card empty">
        <p>This project has no key yet. Generate one to upload reports.</p>
        {role === "viewer" ? null : (
          <p>
            <a class="button main" href={path}>
              Generate key
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
          <code>{key.leading}…</code> <span class="soft small">the full key cannot be shown again</span>
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

function settingsForm({ project, csrf, retentionDays }: ProjectContext, fields: SettingsFields): Html {
  return (
    <Form to={`/projects/${project.id}/settings`} csrf={csrf} button="Save">
      <Field label="Name" name="name" value={fields.name} required max={200} />
      {field(fields, "defaultBranch", "Default branch", {
        required: true,
        max: 500,
        isCode: true,
        hint: "The state of the project is the state of this branch, and other branches are compared with it.",
      })}
      {field(fields, "longLivedBranches", "Long-lived branches", {
        max: 4_000,
        isCode: true,
        hint: "Release branches, for example. Each is compared with its own builds instead of the default branch. * matches any text.",
      })}
      {field(fields, "executionTimeoutMinutes", "Execution time-out, minutes", {
        type: "number",
        required: true,
        hint: "An execution times out if no report arrives for this long.",
      })}
      {field(fields, "retentionDays", "Retention, days", {
        type: "number",
        hint: `Older results are deleted, a day later if there are many; runs keep their counts. 0 keeps them forever. If empty, the server's setting applies: ${toDays(retentionDays)}.`,
      })}
    </Form>
  );
}

function settingsFacts({ retentionDays }: ProjectContext, row: ProjectRow): Html {
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
        <dd>{row.retentionDays === null ? `server setting: ${toDays(retentionDays)}` : toDays(row.retentionDays)}</dd>
      </dl>
      <p class="hint">Owners of the team can change this.</p>
    </div>
  );
}

type Loaded = { row: ProjectRow; key: ShownKey | undefined; fields: SettingsFields; choices: GateChoices };

/** `tried`: a share of gates that is not saved. */
export async function loadSettings({ fast, sql, project, now }: ProjectContext, tried?: number): Promise<Loaded> {
  const [row, key] = await Promise.all([selectProject(fast, project.id), selectProjectKey(fast, project.id)]);
  const choices = await readGateChoices(sql, project.id, { saved: row!.gateShare, tried, now });
  return { row: row!, key, fields: toFields(row!), choices };
}

type Shown = Loaded & { problem?: string; gateProblem?: string; notice?: keyof typeof NOTICES | undefined };

export function settings(
  shown: ProjectContext,
  { row, key, fields, choices, problem, gateProblem, notice }: Shown,
): View {
  const { project, team, role, publicUrl } = shown;
  const body = (
    <>
      <Notice notices={NOTICES} name={notice} />
      <h1>Settings</h1>
      <div class="meta">
        <span>of {project.name}</span> <a href={`/teams/${team.id}/settings`}>Settings of {team.name}</a>
        <a href={`/projects/${project.id}/onboarding`}>How to send reports</a>
        <a href={`/projects/${project.id}/settings/owners`}>Owners of tests</a>
        <a href={`/projects/${project.id}/shares`}>Links and badges</a>
      </div>
      <h2>
        API key <small>uploads reports and runs tasks of this project</small>
      </h2>
      {keyCard(shown, key)}
      <p class="hint">
        This key has full access to the project. A <a href={`/projects/${project.id}/settings/keys`}>named key</a> is
        limited to a scope and can be revoked separately. GitHub Actions and GitLab CI need no stored key:{" "}
        <a href={`/projects/${project.id}/settings/ci`}>trust their jobs</a>.
      </p>
      <h2 id="project">Project</h2>
      <FormError message={problem} />
      {role === "owner" ? settingsForm(shown, fields) : settingsFacts(shown, row)}
      <FormError message={gateProblem} />
      {gateShareCard(shown, choices)}
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
      <h2>Data</h2>
      <div class="card padded">
        <p class="actions">
          <a class="button" href={`/projects/${project.id}/export`}>
            Export as NDJSON
          </a>
        </p>
        <p class="hint">
          Downloads test cases, executions, results and bug reports as one file, without the content of attachments. The
          last line says that the file is complete. <code>assay export</code> verifies this, and also downloads
          attachments.
        </p>
      </div>
      {role === "owner" ? <DangerZone what="project" path={`/projects/${project.id}/settings/delete`} /> : null}
    </>
  );
  return {
    title: "Settings",
    body,
    section: "settings",
    ...(problem === undefined && gateProblem === undefined ? {} : { status: 400 }),
  };
}

export const settingsPage = page(
  "/projects/:projectId/settings",
  {
    access: "viewer",
    query: v.strictObject({
      notice: noticeParameter(NOTICES),
      share: v.optional(v.fallback(v.optional(gateShareText), undefined)),
    }),
  },
  async (context) => {
    const { notice, share } = context.query;
    return settings(context, { ...(await loadSettings(context, share)), notice });
  },
);

export const changeForm = action(
  "/projects/:projectId/settings",
  { access: "owner", fields: settingsFields },
  {
    read: ({ fields }) => toPatch(fields),
    act: (sql, { project }, patch) => changeProject(sql, project.id, patch),
    record: ({ name }, { project, fields }) => ({
      action: "project.changed",
      subject: name,
      details: { projectId: project.id, fields: Object.keys(fields) },
    }),
    refused: async (context, problem) =>
      settings(context, { ...(await loadSettings(context)), fields: context.fields, problem }),
    done: ({ project }) => `/projects/${project.id}/settings?notice=saved`,
  },
);
