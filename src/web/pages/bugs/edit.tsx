/** The fields of a bug, and the forms that create and change one. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { openBugByHand } from "../../../operations/bugs/bug_reports.ts";
import { check } from "../../../http/input.ts";
import {
  type BugReportDetail,
  type BugStatus,
  bugReportPatch,
  bugStatus,
  newBugReport,
  SEVERITIES,
} from "../../../schema/bug_reports.ts";
import { mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { selectTestCaseNames } from "../../../store/test_cases.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { ActionForm, type Choice, Field, FormError, Select, Form, Hidden } from "../../components/form.tsx";
import { Breakable } from "../../components/text.tsx";
import { splitList, toLines, tryForm, action } from "../../site/action.ts";
import { SeeOther, type View, form, page, type ProjectContext } from "../../site/page.ts";
import { bugPath, testPath } from "../../site/paths.ts";
import { bugsPath, change, onePath } from "./shared.tsx";

const state = (to: BugStatus): Html => <Hidden name="status" value={to} />;

export function statusForms(path: Path, bug: BugReportDetail, me: string, csrf: string): Html {
  const { status, fixedInCommit, assignee } = bug;
  const isLive = status === "open" || status === "in_progress";
  const to: Path = `${path}/status`;
  return (
    <div class="actions">
      {isLive ? (
        <details class="panel">
          <summary class="button main">Resolve</summary>
          <Form to={to} csrf={csrf} button="Resolve">
            {state("resolved")}
            <Field
              label="Fixed in commit (optional)"
              name="fixedInCommit"
              max={200}
              value={fixedInCommit}
              hint="The bug reopens if it fails again on the default branch in a later execution."
            />
          </Form>
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
        <EditForm path={path} csrf={csrf} fields={toFields(bug)} />
      </details>
    </div>
  );
}

const editForm = v.strictObject({
  title: v.string(),
  description: v.optional(v.string(), ""),
  severity: v.string(),
  assignee: v.optional(v.string(), ""),
  labels: v.optional(v.string(), ""),
  externalUrl: v.optional(v.string(), ""),
  fixedInCommit: v.optional(v.string(), ""),
});

const newForm = v.strictObject({ ...editForm.entries, tests: mayBeEmpty(uuid) });

type BugFields = v.InferOutput<typeof editForm>;

/** Returns the body that the API expects; what the fields hold is checked there. */
const toBody = (fields: BugFields) => ({
  title: fields.title.trim(),
  description: toLines(fields.description),
  severity: fields.severity,
  labels: splitList(fields.labels),
  assignee: fields.assignee.trim() || null,
  externalUrl: fields.externalUrl.trim() || null,
  fixedInCommit: fields.fixedInCommit.trim() || null,
});

const toFields = (bug: BugReportDetail): BugFields => ({
  title: bug.title,
  description: bug.description,
  severity: bug.severity,
  assignee: bug.assignee ?? "",
  labels: bug.labels.join(", "),
  externalUrl: bug.externalUrl ?? "",
  fixedInCommit: bug.fixedInCommit ?? "",
});

const EMPTY: BugFields = {
  title: "",
  description: "",
  severity: "major",
  assignee: "",
  labels: "",
  externalUrl: "",
  fixedInCommit: "",
};

const BugForm = (fields: BugFields): Html => (
  <>
    <Field label="Title" name="title" required max={300} value={fields.title} />
    <Field label="Description" name="description" type="area" rows={6} max={65_536} value={fields.description} />
    <Select
      label="Severity"
      name="severity"
      value={fields.severity}
      options={SEVERITIES.map((one): Choice => [one, one])}
    />
    <Field label="Assignee" name="assignee" max={200} value={fields.assignee} />
    <Field label="Labels, separated by commas" name="labels" max={5_000} value={fields.labels} />
    <Field label="External link" name="externalUrl" type="url" max={2_000} value={fields.externalUrl} />
    <Field label="Fixed in commit" name="fixedInCommit" max={200} value={fields.fixedInCommit} />
  </>
);

/** `testId`: the test that the bug is created for. */
async function newBugView(
  { fast, project, csrf }: ProjectContext,
  { testId, fields = EMPTY, problem }: { testId: string | undefined; fields?: BugFields; problem?: string },
): Promise<View> {
  const [test] = testId === undefined ? [] : await selectTestCaseNames(fast, project.id, [testId]);
  const body = (
    <>
      <h1>New bug</h1>
      <FormError message={problem} />
      <Form to={bugsPath(project.id)} csrf={csrf} kind="fields after">
        <BugForm {...fields} />
        {test ? (
          <>
            <p>
              Linked test:{" "}
              <a href={testPath(project.id, test.id)}>
                <Breakable text={shownCaseTitle(test)} />
              </a>
              . The bug is resolved when this test passes in three consecutive runs of {project.defaultBranch}.
            </p>
            <Hidden name="tests" value={test.id} />
          </>
        ) : null}
        <div>
          <button class="main">Create bug</button>{" "}
          <a class="button" href={bugsPath(project.id)}>
            Cancel
          </a>
        </div>
      </Form>
    </>
  );
  return { title: "New bug", body, section: "bugs", ...(problem === undefined ? {} : { status: 400 }) };
}

export const newBugPage = page(
  "/projects/:projectId/bugs/new",
  { access: "member", query: v.strictObject({ test: mayBeEmpty(uuid) }) },
  (context) => newBugView(context, { testId: context.query.test }),
);

export const newBugForm = action(
  "/projects/:projectId/bugs",
  { access: "member", fields: newForm },
  {
    read: ({ fields: { tests, ...fields } }) =>
      check(newBugReport, { ...toBody(fields), testCaseIds: tests === undefined ? [] : [tests] }),
    act: (sql, { project }, bug) => openBugByHand(sql, project.id, bug),
    record: ({ id, number }, { project }) => ({
      action: "bug.created",
      subject: `Bug ${number}`,
      details: { projectId: project.id, bugReportId: id },
    }),
    refused: (context, problem) => {
      const { tests: testId, ...fields } = context.fields;
      return newBugView(context, { testId, fields, problem });
    },
    done: ({ project }, { id }) => bugPath(project.id, id),
  },
);

const EditForm = ({ path, csrf, fields }: { path: Path; csrf: string; fields: BugFields }): Html => (
  <Form to={path} csrf={csrf} button="Save">
    <BugForm {...fields} />
  </Form>
);

export const editBugForm = form(onePath, { access: "member", fields: editForm }, async (context) => {
  const { project, params, fields, csrf } = context;
  const path = bugPath(project.id, params.bugId);
  const edited = await tryForm(async () => change(context, check(bugReportPatch, toBody(fields)), params.bugId));
  if ("result" in edited) return new SeeOther(path);
  const body = (
    <>
      <h1>Edit bug</h1>
      <FormError message={edited.problem} />
      <EditForm path={path} csrf={csrf} fields={fields} />
      <p>
        <a href={path}>Cancel</a>
      </p>
    </>
  );
  return { title: "Edit bug", body, section: "bugs", status: 400 };
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
