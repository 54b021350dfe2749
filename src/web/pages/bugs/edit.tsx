/** The fields of a bug, and the forms that create and change one. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { openBugByHand } from "../../../operations/bugs/bug_reports.ts";
import {
  type BugReportDetail,
  type BugStatus,
  bugReportPatch,
  bugStatus,
  newBugReport,
  severity as severitySchema,
} from "../../../schema/bug_reports.ts";
import { httpUrl, mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { refuse } from "../../../schema/refusal.ts";
import { selectTestCaseNames } from "../../../store/test_cases.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { ActionForm, Csrf } from "../../components/form.tsx";
import { Breakable } from "../../components/text.tsx";
import { SeeOther, form, page } from "../../site/page.ts";
import { bugPath, testPath } from "../../site/paths.ts";
import { write } from "../../site/write.ts";
import { SEVERITIES, bugsPath, change, onePath } from "./shared.tsx";

const state = (to: BugStatus): Html => <input type="hidden" name="status" value={to} />;

export function statusForms(path: Path, bug: BugReportDetail, me: string, csrf: string): Html {
  const { status, fixedInCommit, assignee } = bug;
  const isLive = status === "open" || status === "in_progress";
  const to: Path = `${path}/status`;
  return (
    <div class="actions">
      {isLive ? (
        <details class="panel">
          <summary class="button main">Resolve</summary>
          <form class="fields card padded" method="post" action={to}>
            <Csrf token={csrf} />
            {state("resolved")}

            <label>
              Fixed in commit (optional)
              <input name="fixedInCommit" maxlength={200} value={fixedInCommit ?? ""} />
            </label>
            <p class="hint">The bug reopens if it fails again on the default branch in a later execution.</p>
            <div>
              <button class="main">Resolve</button>
            </div>
          </form>
        </details>
      ) : (
        <ActionForm action={to} csrf={csrf} label="Reopen" kind="main" fields={state("open")} />
      )}

      {status === "open" ? (
        <ActionForm action={to} csrf={csrf} label="Start" fields={state("in_progress")} />
      ) : status === "in_progress" ? (
        <ActionForm action={to} csrf={csrf} label="Stop progress" fields={state("open")} />
      ) : null}

      {isLive ? <ActionForm action={to} csrf={csrf} label="Ignore" fields={state("ignored")} /> : null}

      {assignee === me ? null : <ActionForm action={`${path}/take`} csrf={csrf} label="Assign to me" />}

      <a class="button" href={`${path}/merge`}>
        Merge…
      </a>
      <details class="panel">
        <summary class="button">Edit</summary>
        <form class="fields card padded" method="post" action={path}>
          <Csrf token={csrf} />
          {bugFields(bug)}
          <div>
            <button class="main">Save</button>
          </div>
        </form>
      </details>
    </div>
  );
}

const editFields = {
  title: text(300),
  description: v.optional(v.string(), ""),
  severity: severitySchema,
  assignee: mayBeEmpty(text(200)),
  /** Labels are separated by commas. */
  labels: v.optional(v.string(), ""),
  externalUrl: mayBeEmpty(httpUrl),
  fixedInCommit: mayBeEmpty(text(200)),
};

const editForm = v.strictObject(editFields);

const newForm = v.strictObject({ ...editFields, tests: v.optional(v.string(), "") });

type Edited = v.InferOutput<typeof editForm>;

const toEdited = ({ title, description, severity, assignee, labels, externalUrl, fixedInCommit }: Edited) => ({
  title,
  // Forms send line breaks as CR LF.
  description: description.replaceAll("\r\n", "\n"),
  severity,
  assignee: assignee ?? null,
  labels: labels
    .split(",")
    .map((label) => label.trim())
    .filter((label) => label !== ""),
  externalUrl: externalUrl ?? null,
  fixedInCommit: fixedInCommit ?? null,
});

/** Validates like the API, and refuses with the name of the field. */
function hold<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema> {
  const read = v.safeParse(schema, value);
  if (read.success) return read.output;
  const [issue] = read.issues;
  return refuse(`Cannot read "${String(issue.path?.[0]?.key ?? "")}": ${issue.message}`);
}

type Editable = Pick<
  BugReportDetail,
  "title" | "description" | "severity" | "assignee" | "labels" | "externalUrl" | "fixedInCommit"
>;

const bugFields = (bug: Editable): Html => (
  <>
    <label>
      Title
      <input name="title" required maxlength={300} value={bug.title} />
    </label>
    <label>
      Description
      <textarea name="description" rows={6} maxlength={65536}>
        {"\n"}
        {bug.description}
      </textarea>
    </label>
    <label>
      Severity
      <select name="severity">
        {SEVERITIES.map((one) => (
          <option selected={one === bug.severity}>{one}</option>
        ))}
      </select>
    </label>
    <label>
      Assignee
      <input name="assignee" maxlength={200} value={bug.assignee ?? ""} />
    </label>
    <label>
      Labels, separated by commas
      <input name="labels" maxlength={5000} value={bug.labels.join(", ")} />
    </label>
    <label>
      External link
      <input type="url" name="externalUrl" maxlength={2000} value={bug.externalUrl ?? ""} />
    </label>
    <label>
      Fixed in commit
      <input name="fixedInCommit" maxlength={200} value={bug.fixedInCommit ?? ""} />
    </label>
  </>
);

export const newBugPage = page(
  "/projects/:projectId/bugs/new",
  { access: "member", query: v.strictObject({ test: mayBeEmpty(uuid) }) },
  async ({ fast, project, query, csrf }) => {
    const name = query.test === undefined ? undefined : (await selectTestCaseNames(fast, project.id, [query.test]))[0];
    const blank = {
      title: "",
      description: "",
      severity: "major" as const,
      assignee: null,
      labels: [],
      externalUrl: null,
      fixedInCommit: null,
    };
    const body = (
      <>
        <h1>New bug</h1>
        <form class="fields after" method="post" action={bugsPath(project.id)}>
          <Csrf token={csrf} />
          {bugFields(blank)}
          {name ? (
            <>
              <p>
                Linked test:{" "}
                <a href={testPath(project.id, name.id)}>
                  <Breakable text={shownCaseTitle(name)} />
                </a>
                . The bug is resolved when it passes in three consecutive runs of {project.defaultBranch}, the bug is
                resolved.
              </p>
              <input type="hidden" name="tests" value={name.id} />
            </>
          ) : null}
          <div>
            <button class="main">Create bug</button>{" "}
            <a class="button" href={bugsPath(project.id)}>
              Cancel
            </a>
          </div>
        </form>
      </>
    );
    return { title: "New bug", body, section: "bugs" };
  },
);

export const newBugForm = form("/projects/:projectId/bugs", { access: "member", fields: newForm }, async (context) => {
  const { project, fields } = context;
  const { tests, ...edited } = fields;
  const testCaseIds = tests.split(",").filter((id) => id !== "");
  const bug = hold(newBugReport, { ...toEdited(edited), testCaseIds });
  const { id } = await write(
    context,
    "member",
    (sql) => openBugByHand(sql, project.id, bug),
    ({ id, number }) => ({
      action: "bug.created",
      subject: `Bug ${number}`,
      details: { projectId: project.id, bugReportId: id },
    }),
  );
  return new SeeOther(bugPath(project.id, id));
});

export const editBugForm = form(onePath, { access: "member", fields: editForm }, async (context) => {
  const { project, params, fields } = context;
  await change(context, hold(bugReportPatch, toEdited(fields)), params.bugId);
  return new SeeOther(bugPath(project.id, params.bugId));
});

export const statusForm = form(
  `${onePath}/status`,
  { access: "member", fields: v.strictObject({ status: bugStatus, fixedInCommit: mayBeEmpty(text(200)) }) },
  async (context) => {
    const { project, params } = context;
    const { status, fixedInCommit } = context.fields;
    await change(context, fixedInCommit === undefined ? { status } : { status, fixedInCommit }, params.bugId);
    return new SeeOther(bugPath(project.id, params.bugId));
  },
);

export const takeForm = form(`${onePath}/take`, { access: "member" }, async (context) => {
  const { project, params, visitor } = context;
  await change(context, { assignee: visitor.name }, params.bugId);
  return new SeeOther(bugPath(project.id, params.bugId));
});
