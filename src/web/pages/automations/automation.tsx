/** One automation: its settings and its runs. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import {
  changeAutomation,
  findAutomation,
  removeAutomation,
  runByHand,
} from "../../../operations/automation/automation_settings.ts";
import { type AutomationRun, runStatus } from "../../../schema/automation_runs.ts";
import { automationPatch } from "../../../schema/automations.ts";
import { booleanText, mayBeEmpty } from "../../../schema/fields.ts";
import { selectAutomationRuns } from "../../../store/automations.ts";
import { StatusFilter } from "../../components/filters.tsx";
import { ActionForm, type Choice, Danger, FormError, Notice, Hidden } from "../../components/form.tsx";
import { Empty, Pager, CardTable, toPagedRows } from "../../components/list.tsx";
import { toExact } from "../../components/text.tsx";
import { action, deletion } from "../../site/action.ts";
import { type View, page, type TeamContext, type Page } from "../../site/page.ts";
import {
  type FormValues,
  editors,
  fieldsOf,
  read,
  toFormValues,
  toJson,
  createAutomationForm,
  newPage,
} from "./edit.tsx";
import { toAutomationFields } from "./fields.tsx";
import { NOTICES, cursor, lastRunOf, pathOf, selectChoices, notice, wordOf, listPage } from "./list.tsx";
import { dryRunCard, runRow } from "./runs.tsx";
import { sentenceOf } from "./sentence.ts";

const MAX_RUNS = 20;

const STATUS_OPTIONS: readonly Choice[] = [
  ["", "all"],
  ...(["done", "skipped", "failed"] as const).map((one): Choice => [one, wordOf(one)]),
];

type OneQuery = {
  cursor?: string | undefined;
  status?: AutomationRun["status"] | undefined;
  notice?: keyof typeof NOTICES | undefined;
};

type Context = TeamContext & { params: { automationId: string } };

type FormState = { values?: FormValues; problem?: { of: "settings" | "run"; text: string }; dryRun?: AutomationRun };

async function loadAutomation({ sql, team, params }: Context, { cursor, status }: OneQuery) {
  const [automation, choices] = await Promise.all([
    findAutomation(sql, { teamId: team.id, automationId: params.automationId }),
    selectChoices(sql, team.id),
  ]);
  const found = await selectAutomationRuns(sql, team.id, automation.id, { status, limit: MAX_RUNS }, cursor);
  return { automation, choices, runs: toPagedRows(found, MAX_RUNS, ({ id }) => id) };
}

type AutomationData = Awaited<ReturnType<typeof loadAutomation>>;

async function showAutomation(context: Context, query: OneQuery, state: FormState = {}): Promise<View> {
  return automationView(context, query, await loadAutomation(context, query), state);
}

const hiddenDryRun = (isDry: boolean): Html => <Hidden name="dryRun" value={String(isDry)} />;

type ActionsProperties = { base: Path; csrf: string; enabled: boolean };

const AutomationActions = ({ base, csrf, enabled }: ActionsProperties): Html => (
  <div class="actions">
    <ActionForm action={`${base}/run`} csrf={csrf} label="Dry run" kind="main" fields={hiddenDryRun(true)} />
    <ActionForm action={`${base}/run`} csrf={csrf} label="Run now" fields={hiddenDryRun(false)} />
    <ActionForm
      action={`${base}/state`}
      csrf={csrf}
      label={enabled ? "Disable" : "Enable"}
      fields={<Hidden name="enabled" value={String(!enabled)} />}
    />
  </div>
);

type RunsProperties = { base: Path; query: OneQuery; team: Context["team"]; runs: AutomationData["runs"]; now: Date };

const Runs = ({ base, query: { status, cursor }, team, runs, now }: RunsProperties): Html => (
  <>
    <h2 id="runs">
      Runs <small>newest first; runs that did nothing are kept for 7 days, all others for 30 days</small>
    </h2>
    <StatusFilter path={base} options={STATUS_OPTIONS} value={status} />
    {runs.rows.length === 0 ? (
      <Empty>
        {status === undefined
          ? "No runs yet. A dry run shows what the automation would do."
          : "No runs match this status."}
      </Empty>
    ) : (
      <CardTable caption="Runs, newest first" columns={["Status", "Actions and cause", "When"]} hidesHead>
        {runs.rows.map((run) => runRow(team, run, now))}
      </CardTable>
    )}
    <Pager path={base} query={{ status, cursor }} cursor={runs.next} />
  </>
);

type SettingsProperties = { base: Path; context: Context; data: AutomationData; values: FormValues | undefined };

function Settings({ base, context: { csrf, role }, data: { automation, choices }, values }: SettingsProperties): Html {
  const isJson = values !== undefined && "json" in values;
  const fields = values && "fields" in values ? values.fields : toAutomationFields(automation, choices);
  if (role !== "owner")
    return (
      <>
        <pre>{toJson(automation)}</pre>
        <p class="hint">Owners of the team can change this.</p>
      </>
    );
  return (
    <>
      {editors({ to: base, csrf, choices, button: "Save" }, fields, isJson ? values.json : toJson(automation), isJson)}
      <h2>Delete</h2>
      <Danger
        action={`${base}/delete`}
        csrf={csrf}
        label={`Delete ${automation.name}`}
        loss="The history of its runs is deleted. Executions that it started continue."
      />
    </>
  );
}

function automationView(
  context: Context,
  query: OneQuery,
  data: AutomationData,
  { values, problem, dryRun }: FormState,
): View {
  const { team, role, csrf, now } = context;
  const { automation, choices, runs } = data;
  const base: Path = pathOf({ teamId: team.id, automationId: automation.id });
  const problemOf = (of: NonNullable<FormState["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  const body = (
    <>
      <Notice notices={NOTICES} name={query.notice} />
      <h1>{automation.name}</h1>
      <p class="prose">{sentenceOf(automation, choices)}</p>
      <div class="meta">
        <span>{automation.enabled ? "enabled" : <b>disabled</b>}</span>
        {automation.nextRunAt === null ? null : <span>runs next at {toExact(automation.nextRunAt)}</span>}
        <span>{lastRunOf(automation, now)}</span>
        <a href={`/teams/${team.id}/automations`}>All automations</a>
      </div>
      {role === "owner" ? <AutomationActions base={base} csrf={csrf} enabled={automation.enabled} /> : null}
      <FormError message={problemOf("run")} />
      {dryRun ? dryRunCard(team, dryRun) : null}
      <Runs base={base} query={query} team={team} runs={runs} now={now} />
      <h2 id="settings">Settings</h2>
      <FormError message={problemOf("settings")} />
      <Settings base={base} context={context} data={data} values={values} />
    </>
  );
  return { title: automation.name, body, section: "automations", ...(problem ? { status: 400 } : {}) };
}

const toChanged = ({ id, name }: { id: string; name: string }, fields: readonly string[]) =>
  ({ action: "automation.changed", subject: name, details: { automationId: id, fields } }) as const;

const onePath = "/teams/:teamId/automations/:automationId";

const automationPage = page(
  onePath,
  { access: "viewer", query: v.strictObject({ cursor, notice, status: mayBeEmpty(runStatus) }) },
  async (context) => await showAutomation(context, context.query),
);

const changeForm = action(
  onePath,
  { access: "owner", fields: fieldsOf },
  {
    read: ({ fields }) => check(automationPatch, read(toFormValues(fields as never))),
    act: (sql, { seal, params }, patch) => changeAutomation(sql, seal, params, patch),
    record: (row, _, patch) => toChanged(row, Object.keys(patch)),
    refused: (context, text) =>
      showAutomation(context, {}, { problem: { of: "settings", text }, values: toFormValues(context.fields as never) }),
    done: ({ params }) => `${pathOf(params)}?notice=saved`,
  },
);

const stateForm = action(
  `${onePath}/state`,
  { access: "owner", fields: v.strictObject({ enabled: booleanText }) },
  {
    act: (sql, { seal, params, fields }) => changeAutomation(sql, seal, params, fields),
    record: (row) => toChanged(row, ["enabled"]),
    refused: (context, text) => showAutomation(context, {}, { problem: { of: "run", text } }),
    done: ({ params, fields }) => `${pathOf(params)}?notice=${fields.enabled ? "enabled" : "disabled"}`,
  },
);

const runForm = action(
  `${onePath}/run`,
  { access: "owner", fields: v.strictObject({ dryRun: booleanText }) },
  {
    act: (sql, { params, fields: { dryRun }, publicUrl, log }) => {
      const onBug = (error: unknown) => log.error("Cannot run an automation", { ...params, dryRun, error });
      return runByHand(sql, { publicUrl, now: new Date(), dryRun, onBug }, params);
    },
    refused: (context, text) => showAutomation(context, {}, { problem: { of: "run", text } }),
    done: (context, run) =>
      context.fields.dryRun
        ? showAutomation(context, {}, { dryRun: run })
        : `${pathOf(context.params)}?notice=ran#runs`,
  },
);

export const automations: Page[] = [
  listPage,
  newPage,
  createAutomationForm,
  automationPage,
  changeForm,
  stateForm,
  deletion(onePath, "automation", removeAutomation),
  runForm,
];
