/** One automation: its settings and its runs. */

import * as v from "valibot";
import type { Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import {
  changeAutomation,
  findAutomation,
  removeAutomation,
  runByHand,
} from "../../../operations/automation/automation_settings.ts";
import { type AutomationRun, automationPatch, runStatus } from "../../../schema/automations.ts";
import { mayBeEmpty } from "../../../schema/fields.ts";
import { selectAutomationRuns } from "../../../store/automations.ts";
import { ActionForm, Danger, FormError } from "../../components/form.tsx";
import { Notice } from "../../components/notice.tsx";
import { Pager } from "../../components/pager.tsx";
import { toExact } from "../../components/text.tsx";
import { tryForm } from "../../site/form_input.ts";
import { SeeOther, type View, form, page } from "../../site/page.ts";
import { write } from "../../site/write.ts";
import { type FormValues, editors, fieldsOf, read, toFormValues, toJson } from "./edit.tsx";
import { sentenceOf } from "./sentence.ts";
import { toAutomationFields } from "./fields.tsx";
import { NOTICES, type ViewContext, cursor, lastRunOf, pathOf, selectChoices, notice, wordOf } from "./list.tsx";
import { dryRunCard, runRow } from "./runs.tsx";

const MAX_RUNS = 20;

type OneQuery = {
  cursor?: string | undefined;
  status?: AutomationRun["status"] | undefined;
  notice?: keyof typeof NOTICES | undefined;
};

type FormState = { values?: FormValues; problem?: { of: "settings" | "run"; text: string }; dryRun?: AutomationRun };

export async function one(
  context: ViewContext & { params: { automationId: string } },
  query: OneQuery,
  { values, problem, dryRun }: FormState = {},
): Promise<View> {
  const { sql, team, role, csrf, now, params } = context;
  const place = { teamId: team.id, automationId: params.automationId };
  const { cursor, status, notice } = query;
  const [automation, choices] = await Promise.all([findAutomation(sql, place), selectChoices(sql, team.id)]);
  const found = await selectAutomationRuns(sql, team.id, automation.id, { status, limit: MAX_RUNS }, cursor);
  const runs = found.slice(0, MAX_RUNS);
  const base: Path = pathOf(place);
  const isJson = values !== undefined && "json" in values;
  const fields = values && "fields" in values ? values.fields : toAutomationFields(automation, choices);
  const text = (of: NonNullable<FormState["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  const dry = (value: boolean) => <input type="hidden" name="dryRun" value={String(value)} />;
  const body = (
    <>
      <Notice notices={NOTICES} name={notice} />
      <h1>{automation.name}</h1>
      <p class="prose">{sentenceOf(automation, choices)}</p>
      <div class="meta">
        <span>{automation.enabled ? "enabled" : <b>disabled</b>}</span>

        {automation.nextRunAt === null ? null : <span>runs next at {toExact(automation.nextRunAt)}</span>}

        <span>{lastRunOf(automation, now)}</span>
        <a href={`/teams/${team.id}/automations`}>All automations</a>
      </div>
      {role === "owner" ? (
        <div class="actions">
          <ActionForm action={`${base}/run`} csrf={csrf} label="Dry run" kind="main" fields={dry(true)} />

          <ActionForm action={`${base}/run`} csrf={csrf} label="Run now" fields={dry(false)} />

          <ActionForm
            action={`${base}/state`}
            csrf={csrf}
            label={automation.enabled ? "Disable" : "Enable"}
            fields={<input type="hidden" name="enabled" value={String(!automation.enabled)} />}
          />
        </div>
      ) : null}
      <FormError message={text("run")} />
      {dryRun ? dryRunCard(team, dryRun) : null}
      <h2 id="runs">
        Runs <small>newest first; runs that did nothing are kept for 7 days, all others for 30 days</small>
      </h2>
      <form class="filters" method="get" action={base}>
        <label>
          Status
          <select name="status">
            {(["", "done", "skipped", "failed"] as const).map((one) => (
              <option value={one} selected={one === (status ?? "")}>
                {one === "" ? "all" : wordOf(one)}
              </option>
            ))}
          </select>
        </label>
        <button>Show</button>
      </form>
      {runs.length === 0 ? (
        <div class="card empty">
          <p>
            {status === undefined
              ? "No runs yet. A dry run shows what the automation would do."
              : "No runs match this status."}
          </p>
        </div>
      ) : (
        <div class="card">
          <table>
            <caption class="visually-hidden">Runs, newest first</caption>
            <thead class="visually-hidden">
              <tr>
                <th scope="col">Status</th>
                <th scope="col">Actions and cause</th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>{runs.map((run) => runRow(team, run, now))}</tbody>
          </table>
        </div>
      )}
      <Pager path={base} query={{ status, cursor }} cursor={found.length > MAX_RUNS ? runs.at(-1)!.id : undefined} />
      <h2 id="settings">Settings</h2>
      <FormError message={text("settings")} />
      {role === "owner" ? (
        <>
          {editors(
            { to: base, csrf, choices, button: "Save" },
            fields,
            isJson ? values.json : toJson(automation),
            isJson,
          )}
          <h2>Delete</h2>
          <Danger
            action={`${base}/delete`}
            csrf={csrf}
            label={`Delete ${automation.name}`}
            loss="The history of its runs is deleted. Executions that it started continue."
          />
        </>
      ) : (
        <>
          <pre>{toJson(automation)}</pre>
          <p class="hint">Owners of the team can change this.</p>
        </>
      )}
    </>
  );
  return { title: automation.name, body, section: "automations", ...(problem ? { status: 400 } : {}) };
}

const flag = v.picklist(["true", "false"]);

const toChanged = ({ id, name }: { id: string; name: string }, fields: readonly string[]) =>
  ({ action: "automation.changed", subject: name, details: { automationId: id, fields } }) as const;

export const automationPage = page(
  "/teams/:teamId/automations/:automationId",
  { access: "viewer", query: v.strictObject({ cursor, notice, status: mayBeEmpty(runStatus) }) },
  async (context) => await one(context, context.query),
);

export const changeForm = form(
  "/teams/:teamId/automations/:automationId",
  { access: "owner", fields: fieldsOf },
  async (context) => {
    const { params, fields } = context;
    const values = toFormValues(fields as never);
    const saved = await tryForm(() => {
      const patch = check(automationPatch, read(values));
      return write(
        context,
        "owner",
        (sql) => changeAutomation(sql, context.seal, params, patch),
        (row) => toChanged(row, Object.keys(patch)),
      );
    });
    if ("problem" in saved) return await one(context, {}, { problem: { of: "settings", text: saved.problem }, values });
    return new SeeOther(`${pathOf(params)}?notice=saved`);
  },
);

export const stateForm = form(
  "/teams/:teamId/automations/:automationId/state",
  { access: "owner", fields: v.strictObject({ enabled: flag }) },
  async (context) => {
    const { params, fields } = context;
    const enabled = fields.enabled === "true";
    const changed = await tryForm(() =>
      write(
        context,
        "owner",
        (sql) => changeAutomation(sql, context.seal, params, { enabled }),
        (row) => toChanged(row, ["enabled"]),
      ),
    );
    if ("problem" in changed) return await one(context, {}, { problem: { of: "run", text: changed.problem } });
    return new SeeOther(`${pathOf(params)}?notice=${enabled ? "enabled" : "disabled"}`);
  },
);

export const deleteForm = form(
  "/teams/:teamId/automations/:automationId/delete",
  { access: "owner" },
  async (context) => {
    const { params } = context;
    const { automationId } = params;
    await write(
      context,
      "owner",
      async (sql) => {
        const { name } = await findAutomation(sql, params);
        await removeAutomation(sql, params);
        return name;
      },
      (name) => ({ action: "automation.deleted", subject: name, details: { automationId } }),
    );
    return new SeeOther(`/teams/${params.teamId}/automations?notice=deleted`);
  },
);

export const runForm = form(
  "/teams/:teamId/automations/:automationId/run",
  { access: "owner", fields: v.strictObject({ dryRun: flag }) },
  async (context) => {
    const { params, fields, publicUrl, log } = context;
    const dryRun = fields.dryRun === "true";
    const onBug = (error: unknown) => log.error("Cannot run an automation", { ...params, dryRun, error });
    const ran = await tryForm(() =>
      write(context, "owner", (sql) => runByHand(sql, { publicUrl, now: new Date(), dryRun, onBug }, params)),
    );
    if ("problem" in ran) return await one(context, {}, { problem: { of: "run", text: ran.problem } });
    return dryRun ? await one(context, {}, { dryRun: ran.result }) : new SeeOther(`${pathOf(params)}?notice=ran#runs`);
  },
);
