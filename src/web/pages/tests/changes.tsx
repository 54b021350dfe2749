/** Quarantine and owner of tests. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import { changeTestCases } from "../../../operations/projects/catalogue.ts";
import { mayBeEmpty, text } from "../../../schema/fields.ts";
import { refuse, refuseAbsent } from "../../../schema/refusal.ts";
import { MAX_SKIPPED_DAYS, type TestCasePatch } from "../../../schema/test_cases.ts";
import { type TestCaseRow, selectTestCase } from "../../../store/test_cases.ts";
import { ActionForm, Checkbox, Form, Field } from "../../components/form.tsx";
import { Ago, toExact, toSpan } from "../../components/text.tsx";
import { Tag } from "../../components/status.tsx";
import { SeeOther, form } from "../../site/page.ts";
import { testPath } from "../../site/paths.ts";
import { write } from "../../site/action.ts";

/** Time limit for counting the tests that match, in milliseconds. */
export const COUNT_TIMEOUT_MS = 500;

export const testsPath = (projectId: string): Path => `/projects/${projectId}/tests`;

/** A day ends at midnight UTC. */
export const day = v.pipe(
  v.string(),
  v.regex(/^\d{4}-\d\d-\d\d$/, "expected a date, such as 2026-01-31"),
  v.check((value) => !Number.isNaN(Date.parse(value)), "expected a date, such as 2026-01-31"),
);

const toEnd = (day: string | undefined): string | null => (day === undefined ? null : `${day}T23:59:59.999Z`);

export function toQuarantine(reason: string | undefined, until: string | undefined, skip = false): TestCasePatch {
  if (reason === undefined) refuse("A quarantine needs a reason");
  return { quarantine: { reason: reason!, until: toEnd(until), skip } };
}

export function quarantineNotice({ quarantine }: TestCaseRow, now: Date): Html | null {
  if (!quarantine) return null;
  const { until, createdAt, reason, automation, skip } = quarantine;
  const end =
    until === null
      ? "with no end date"
      : `until ${toExact(until)}, ${toSpan(Date.parse(until) - now.getTime())} from now`;
  return (
    <div class="message after">
      <b>{automation === null ? "Quarantined" : `Quarantined automatically by ${automation}`}</b>{" "}
      <Ago at={createdAt} now={now} />, {end}: {skip ? "jobs leave it out" : "its failures do not fail builds"}.{" "}
      {reason}
    </div>
  );
}

/** Says in a list that a test is quarantined, and since when it has not run if jobs leave it out. */
export function quarantineTag({ quarantine, lastRunAt }: TestCaseRow, now: Date): Html | null {
  if (!quarantine) return null;
  if (!quarantine.skip) return <Tag>quarantined</Tag>;
  return <Tag>skipped, {lastRunAt === null ? "never run" : ["last run ", <Ago at={lastRunAt} now={now} />]}</Tag>;
}

type CareContext = { csrf: string; now: Date; verifyForm: Html };

export function careForms(base: Path, test: TestCaseRow, { csrf, now, verifyForm }: CareContext): Html {
  const { quarantine } = test;
  const owner = test.isOwnerSet ? test.owner : null;
  return (
    <div class="actions">
      <details class="panel">
        <summary class="button">{quarantine ? "Change quarantine" : "Quarantine"}</summary>
        <Form to={`${base}/quarantine`} csrf={csrf} button={quarantine ? "Change" : "Quarantine"}>
          <p class="hint">The test keeps running, but its failures do not fail builds.</p>
          <Field label="Why" name="reason" max={1000} required value={quarantine?.reason} />
          <Field
            label="Until the end of the day (UTC); if empty, no end date"
            name="until"
            type="date"
            from={now.toISOString().slice(0, 10)}
            value={quarantine?.until?.slice(0, 10)}
          />
          <Checkbox
            label={`Do not run it until then, at most ${MAX_SKIPPED_DAYS} days: jobs leave it out (--skip-quarantined)`}
            name="skip"
            checked={quarantine?.skip === true}
          />
        </Form>
      </details>
      {quarantine ? <ActionForm action={`${base}/release`} csrf={csrf} label="End quarantine" /> : null}
      <details class="panel">
        <summary class="button">{owner === null ? "Set owner" : "Change owner"}</summary>
        <Form to={`${base}/owner`} csrf={csrf} button="Save">
          <Field label="Owner (empty: by the ownership file)" name="owner" max={200} value={owner} />
        </Form>
      </details>
      {verifyForm}
    </div>
  );
}

export const onePath = "/projects/:projectId/tests/:testId";

/** The page that the form is on, and that it leads back to; absent: that of the test. */
const from = v.optional(v.literal("overview"));

const quarantineFields = v.strictObject({
  reason: mayBeEmpty(text(1_000)),
  until: mayBeEmpty(day),
  skip: v.optional(v.literal("true")),
  from,
});

export const quarantineForm = form(
  `${onePath}/quarantine`,
  { access: "member", fields: quarantineFields },
  (context) => {
    const { reason, until, skip } = context.fields;
    return changeOne(context, toQuarantine(reason, until, skip === "true"));
  },
);

export const releaseForm = form(
  `${onePath}/release`,
  { access: "member", fields: v.strictObject({ from }) },
  (context) => changeOne(context, { quarantine: null }),
);

export const ownerForm = form(
  `${onePath}/owner`,
  { access: "member", fields: v.strictObject({ owner: mayBeEmpty(text(200)) }) },
  (context) => changeOne(context, { owner: context.fields.owner ?? null }),
);

type Changing = Parameters<typeof write>[0] & { project: { id: string } };
type ChangingOne = Changing & {
  sql: Sql;
  params: { testId: string };
  fields: { from?: "overview" | undefined; [field: string]: unknown };
};

export const change = (context: Changing, ids: readonly string[], patch: TestCasePatch) =>
  write(
    context,
    "member",
    (sql) => changeTestCases(sql, context.project.id, ids, patch),
    ({ changed }) =>
      changed === 0
        ? undefined
        : {
            action: "test_case.changed",
            subject: ids.length === 1 ? ids[0]! : `${ids.length} tests`,
            details: { projectId: context.project.id, testCaseIds: ids.slice(0, 100), fields: Object.keys(patch) },
          },
  );

async function changeOne(context: ChangingOne, patch: TestCasePatch): Promise<SeeOther> {
  const { testId } = context.params;
  if (!(await selectTestCase(context.sql, context.project.id, testId))) refuseAbsent();
  await change(context, [testId], patch);
  return new SeeOther(
    context.fields.from ? `/projects/${context.project.id}#flaky` : testPath(context.project.id, testId),
  );
}
