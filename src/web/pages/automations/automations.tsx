/** Automations of a team: what they do in a sentence, set by a form or as JSON, tried out, and what each run did. */

import * as v from "valibot";
import { write } from "../../site/write.ts";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { fail } from "../../../http/problem.ts";
import {
  changeAutomation,
  createAutomation,
  findAutomation,
  removeAutomation,
  runByHand,
} from "../../../operations/automation/automation_settings.ts";
import type { Role } from "../../../schema/accounts.ts";
import {
  automationPatch,
  type AutomationRun,
  newAutomation,
  type NewAutomation,
  runStatus,
} from "../../../schema/automations.ts";
import { uuid } from "../../../schema/fields.ts";
import {
  type AutomationRow,
  selectAutomationRuns,
  selectAutomations,
  selectTeamProjects,
} from "../../../store/automations.ts";
import type { Sql } from "../../../database/connect.ts";
import { selectIntegrations } from "../../../store/integrations.ts";
import {
  ACTION_WORDS,
  type AutomationFields,
  type Choices,
  automationFields,
  automationForm,
  sentenceOf,
  toAutomation,
  toAutomationFields,
} from "./fields.tsx";
import { bugPath, executionPath } from "../../site/paths.ts";
import { tryForm } from "../../site/form_input.ts";
import { ActionForm, Csrf, Danger, Done, Field, FormError } from "../../components/form.tsx";
import { type Page, type PageContext, SeeOther, type View, form, page } from "../../site/page.ts";
import { Ago, toExact } from "../../components/text.tsx";
import { counted } from "../../../wording/numbers.ts";
import { Mark, Tag } from "../../components/status.tsx";
import { Pager } from "../../components/pager.tsx";

const MAX_ROWS = 50;
const MAX_RUNS = 20;
const MAX_INTEGRATIONS = 100;

const DONE = {
  created: "The automation is there, and waits. A dry run says what it would do.",
  saved: "Saved.",
  ran: "It ran: what it did is below.",
  enabled: "Enabled: it looks at what happens from now on.",
  disabled: "Disabled: it does nothing until it is enabled.",
  deleted: "The automation is deleted, with its runs.",
} as const;

type Shown = Pick<PageContext, "sql" | "fast" | "csrf" | "now"> & { role: Role; team: { id: string; name: string } };
type Place = { teamId: string; automationId: string };

const pathOf = ({ teamId, automationId }: Place): Path => `/teams/${teamId}/automations/${automationId}`;

async function selectChoices(sql: Sql, teamId: string): Promise<Choices> {
  const [projects, integrations] = await Promise.all([
    selectTeamProjects(sql, teamId, undefined),
    selectIntegrations(sql, teamId, { limit: MAX_INTEGRATIONS }, undefined),
  ]);
  return {
    projects: projects.toSorted((a, b) => a.name.localeCompare(b.name)),
    integrations: integrations.map(({ id, name, kind, enabled }) => ({ id, name, kind, enabled })),
  };
}

/** Shapes and words of what became of a run, or of one of its actions. */
const MARKS: Record<string, string> = { done: "passed", skipped: "skipped", failed: "failed", planned: "queued" };

const wordOf = (run: AutomationRun["status"]) => ({ done: "done", skipped: "nothing to do", failed: "failed" })[run];

async function list(
  { sql, team, role, now }: Shown,
  { cursor, told }: { cursor?: string | undefined; told?: keyof typeof DONE | undefined },
): Promise<View> {
  const [found, choices] = await Promise.all([
    selectAutomations(sql, team.id, MAX_ROWS, cursor),
    selectChoices(sql, team.id),
  ]);
  const rows = found.slice(0, MAX_ROWS);
  const base: Path = `/teams/${team.id}/automations`;
  const body = (
    <>
      {told ? <Done>{DONE[told]}</Done> : null}
      <h1>Automations</h1>
      <p class="meta">
        <span>When something happens or it is time, and the conditions hold, these things are done.</span>
      </p>
      {role === "owner" ? (
        <p class="actions">
          <a class="button main" href={`${base}/new`}>
            New automation
          </a>
        </p>
      ) : null}
      <h2>
        {counted(rows.length, "automation")}
        {found.length > MAX_ROWS ? " on this page" : ""}
      </h2>
      {rows.length === 0 ? (
        <div class="card empty">
          <p>No automation yet.</p>
          <p>
            {role === "owner"
              ? "The usual first one: when an execution fails on main, tell the team."
              : "Owners of the team create them."}
          </p>
        </div>
      ) : (
        <div class="card">
          <table>
            <caption class="visually-hidden">Automations, newest first</caption>
            <thead>
              <tr>
                <th scope="col">
                  <span class="visually-hidden">Status</span>
                </th>
                <th scope="col">Automation</th>
                <th scope="col" class="wide">
                  Last run
                </th>
                <th scope="col" class="number">
                  When
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  <td class="mark-cell">
                    <Mark
                      status={!row.enabled ? "cancelled" : row.lastRun ? MARKS[row.lastRun.status]! : "queued"}
                      word={false}
                    />
                    <span class="visually-hidden">
                      {!row.enabled ? "disabled" : row.lastRun ? wordOf(row.lastRun.status) : "never ran"}
                    </span>
                  </td>
                  <td class="long">
                    <a href={`${base}/${row.id}`}>
                      <b>{row.name}</b>
                    </a>
                    {row.enabled ? null : (
                      <>
                        {" "}
                        <Tag>disabled</Tag>
                      </>
                    )}{" "}
                    <span class="small soft">{sentenceOf(row, choices)}</span>
                  </td>
                  <td class="long wide soft">
                    {row.lastRun ? `${wordOf(row.lastRun.status)}: ${row.lastRun.reason}` : "never ran"}
                  </td>
                  <td class="number soft">{row.lastRun ? <Ago at={row.lastRun.createdAt} now={now} /> : "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}{" "}
      <Pager path={base} query={{ cursor }} cursor={found.length > MAX_ROWS ? rows.at(-1)!.id : undefined} />
    </>
  );
  return { title: "Automations", body, section: "automations" };
}

/** What is edited as JSON. */
const toJson = ({ name, enabled, trigger, conditions, actions }: NewAutomation): string =>
  JSON.stringify({ name, enabled, trigger, conditions, actions }, null, 2);

const EXAMPLE = JSON.stringify(
  {
    name: "Nightly tests",
    trigger: { schedule: "30 2 * * *", timezone: "Europe/Berlin" },
    conditions: {},
    actions: [{ type: "start_execution", tasks: ["nightly"], key: "nightly-{date}" }],
  },
  null,
  2,
);

type Given = { fields: AutomationFields } | { json: string };
type Editing = { to: Path; csrf: string; button: string; choices: Choices };

/** The form for the usual cases, and all of it as JSON below; one of the two is open. */
function editors(
  { to, csrf, button, choices }: Editing,
  fields: AutomationFields | undefined,
  json: string,
  isJson: boolean,
): Html {
  const text = (
    <form class="fields fold-body" method="post" action={to}>
      <Csrf token={csrf} />{" "}
      <Field
        label="All of it as JSON"
        name="json"
        value={json}
        type="area"
        rows={18}
        isCode
        required
        hint={
          <>
            As the API takes it: trigger, conditions, actions. <a href="/openapi.json">The schema</a>.
          </>
        }
      />
      <div>
        <button class={fields === undefined ? "main" : ""}>{button}, from JSON</button>
      </div>
    </form>
  );
  if (fields === undefined)
    return (
      <>
        <p class="message">It says more than the form can: it is edited as JSON.</p>
        <div class="card padded">{text}</div>
      </>
    );
  return (
    <>
      <form class="fields parts card padded automation" method="post" action={to}>
        <Csrf token={csrf} />
        {automationForm(fields, choices)}
        <div>
          <button class="main">{button}</button>
        </div>
      </form>
      <div class="card top">
        <details class="fold" open={isJson}>
          <summary>For everything else: as JSON</summary>
          {text}
        </details>
      </div>
    </>
  );
}

const NEW_FIELDS: AutomationFields = { when: "event", event: "execution.failed", branches: "main" };

async function create({ sql, team, csrf }: Shown, given: Given | undefined, problem?: string): Promise<View> {
  const choices = await selectChoices(sql, team.id);
  const to: Path = `/teams/${team.id}/automations/new`;
  const editing = { to, csrf, choices, button: "Create the automation" };
  const isJson = given !== undefined && "json" in given;
  const body = (
    <>
      <h1>New automation</h1>
      <div class="meta">
        {choices.integrations.length === 0 ? (
          <span>
            To send something, <a href={`/teams/${team.id}/integrations/new`}>make an integration</a> first.
          </span>
        ) : null}
        <a href={`/teams/${team.id}/automations`}>All automations</a>
      </div>
      <FormError message={problem} />
      <div class="top">
        {editors(editing, isJson ? NEW_FIELDS : (given?.fields ?? NEW_FIELDS), isJson ? given.json : EXAMPLE, isJson)}
      </div>
    </>
  );
  return { title: "New automation", body, section: "automations", ...(problem === undefined ? {} : { status: 400 }) };
}

/** What became of each action, with the way to it. */
function results(team: { id: string }, run: AutomationRun): Html | null {
  if (run.actions.length === 0) return null;
  return (
    <ul class="plain small">
      {run.actions.map((one) => (
        <li>
          <Mark status={MARKS[one.status]!} word={false} /> <b>{ACTION_WORDS[one.type]}</b>: {one.status}{" "}
          <span class="soft">{one.reason}</span>{" "}
          {one.executionId && run.projectId ? (
            <a href={executionPath(run.projectId, one.executionId)}>The execution</a>
          ) : null}{" "}
          {one.bugReportId && run.projectId ? <a href={bugPath(run.projectId, one.bugReportId)}>The bug</a> : null}{" "}
          {one.integrationId ? (
            <a
              href={`/teams/${team.id}/integrations/${one.integrationId}${one.deliveryId ? `#d-${one.deliveryId}` : ""}`}
            >
              {one.deliveryId ? "The delivery" : "The integration"}
            </a>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

const causeOf = ({ cause, eventType }: AutomationRun): string =>
  [eventType ?? (cause === "manual" ? "" : cause), cause === "manual" ? "by hand" : ""].filter(Boolean).join(", ");

function runRow(team: { id: string }, run: AutomationRun, now: Date): Html {
  return (
    <tr>
      <td class="mark-cell">
        <Mark status={MARKS[run.status]!} word={false} />
        <span class="visually-hidden">{run.status}</span>
      </td>
      <td class="long">
        <b>{wordOf(run.status)}</b> <span class="soft">{causeOf(run)}</span>
        <span class="small">{run.reason}</span>
        {results(team, run)}
      </td>
      <td class="number soft">
        <Ago at={run.createdAt} now={now} />
      </td>
    </tr>
  );
}

const dryRunCard = (team: { id: string }, run: AutomationRun): Html => (
  <>
    <h2 id="dry-run">
      Dry run <small>nothing was done, and it is not kept</small>
    </h2>
    <div class="card padded">
      <p>
        <Mark status={MARKS[run.status]!} word={false} />{" "}
        <b>{{ done: "It would run", skipped: "It would do nothing", failed: "It would fail" }[run.status]}</b>:{" "}
        {run.reason}
      </p>
      {run.eventType === null ? null : <p class="hint">Tried with the last {run.eventType}.</p>}
      {results(team, run)}
    </div>
  </>
);

type OneQuery = {
  cursor?: string | undefined;
  status?: AutomationRun["status"] | undefined;
  told?: keyof typeof DONE | undefined;
};
type OneSaid = { given?: Given; problem?: { of: "settings" | "run"; text: string }; dryRun?: AutomationRun };

async function one(
  context: Shown & { params: { automationId: string } },
  query: OneQuery,
  { given, problem, dryRun }: OneSaid = {},
): Promise<View> {
  const { sql, team, role, csrf, now, params } = context;
  const place = { teamId: team.id, automationId: params.automationId };
  const { cursor, status, told } = query;
  const [automation, choices] = await Promise.all([findAutomation(sql, place), selectChoices(sql, team.id)]);
  const found = await selectAutomationRuns(sql, team.id, automation.id, { status, limit: MAX_RUNS }, cursor);
  const runs = found.slice(0, MAX_RUNS);
  const base: Path = pathOf(place);
  const isJson = given !== undefined && "json" in given;
  const fields = given && "fields" in given ? given.fields : toAutomationFields(automation, choices);
  const text = (of: NonNullable<OneSaid["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  const dry = (value: boolean) => <input type="hidden" name="dryRun" value={String(value)} />;
  const body = (
    <>
      {told ? <Done>{DONE[told]}</Done> : null}
      <h1>{automation.name}</h1>
      <p class="prose">{sentenceOf(automation, choices)}</p>
      <div class="meta">
        <span>{automation.enabled ? "enabled" : <b>disabled</b>}</span>{" "}
        {automation.nextRunAt === null ? null : <span>runs next at {toExact(automation.nextRunAt)}</span>}{" "}
        <span>{lastRunOf(automation, now)}</span>
        <a href={`/teams/${team.id}/automations`}>All automations</a>
      </div>
      {role === "owner" ? (
        <div class="actions">
          <ActionForm action={`${base}/run`} csrf={csrf} label="Dry run" kind="main" fields={dry(true)} />{" "}
          <ActionForm action={`${base}/run`} csrf={csrf} label="Run it now" fields={dry(false)} />{" "}
          <ActionForm
            action={`${base}/state`}
            csrf={csrf}
            label={automation.enabled ? "Disable" : "Enable"}
            fields={<input type="hidden" name="enabled" value={String(!automation.enabled)} />}
          />
        </div>
      ) : null}{" "}
      <FormError message={text("run")} /> {dryRun ? dryRunCard(team, dryRun) : null}
      <h2 id="runs">
        Runs{" "}
        <small>newest first, with their reasons; those that did nothing are kept for 7 days, the others for 30</small>
      </h2>
      <form class="filters" method="get" action={base}>
        <label>
          Status{" "}
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
            {status === undefined ? "It has not run yet: a dry run says what it would do." : "None with this status."}
          </p>
        </div>
      ) : (
        <div class="card">
          <table>
            <caption class="visually-hidden">Runs, newest first</caption>
            <thead class="visually-hidden">
              <tr>
                <th scope="col">Status</th>
                <th scope="col">What and why</th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>{runs.map((run) => runRow(team, run, now))}</tbody>
          </table>
        </div>
      )}{" "}
      <Pager path={base} query={{ status, cursor }} cursor={found.length > MAX_RUNS ? runs.at(-1)!.id : undefined} />
      <h2 id="settings">Settings</h2>
      <FormError message={text("settings")} />{" "}
      {role === "owner" ? (
        <>
          {editors(
            { to: base, csrf, choices, button: "Save the automation" },
            fields,
            isJson ? given.json : toJson(automation),
            isJson,
          )}
          <h2>Delete it</h2>
          <Danger
            action={`${base}/delete`}
            csrf={csrf}
            label={`Delete ${automation.name}`}
            loss="Its runs with their reasons are lost. What it has begun goes on."
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

const lastRunOf = ({ lastRun }: AutomationRow, now: Date): Html =>
  lastRun === null ? (
    <>never ran</>
  ) : (
    <>
      <Mark status={MARKS[lastRun.status]!} word={false} /> last run {wordOf(lastRun.status)},{" "}
      <Ago at={lastRun.createdAt} now={now} />
    </>
  );

/** An object of JSON. Fails with words of ours. */
function readJson(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    fail(
      "VALIDATION_ERROR",
      `Cannot read the JSON: ${(error as Error).message.replace(/^JSON Parse error: /, "").slice(0, 200)}`,
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    fail("VALIDATION_ERROR", "Cannot read the JSON: expected an object");
  return value as Record<string, unknown>;
}

const fieldsOf = v.strictObject({ json: v.optional(v.string()), ...automationFields });

const toGiven = ({ json, ...fields }: Record<string, string | undefined>): Given =>
  json === undefined ? { fields } : { json };
const read = (given: Given): Record<string, unknown> =>
  "json" in given ? readJson(given.json) : toAutomation(given.fields);

const told = v.optional(v.picklist(Object.keys(DONE) as (keyof typeof DONE)[]));
const cursor = v.optional(uuid);
/** What is chosen in a form may be everything. */
const anyStatus = v.pipe(
  v.optional(v.union([v.literal(""), runStatus])),
  v.transform((status) => status || undefined),
);
const flag = v.picklist(["true", "false"]);

const toChanged = ({ id, name }: { id: string; name: string }, fields: readonly string[]) =>
  ({ action: "automation.changed", subject: name, details: { automationId: id, fields } }) as const;

export const automations: Page[] = [
  page(
    "/teams/:teamId/automations",
    { access: "viewer", query: v.strictObject({ cursor, told }) },
    async (context) => await list(context, context.query),
  ),

  page("/teams/:teamId/automations/new", { access: "owner" }, async (context) => await create(context, undefined)),

  form("/teams/:teamId/automations/new", { access: "owner", fields: fieldsOf }, async (context) => {
    const { team, fields } = context;
    const given = toGiven(fields as never);
    const made = await tryForm(() => {
      const wanted = check(newAutomation, read(given));
      return write(
        context,
        "owner",
        (sql) => createAutomation(sql, context.seal, team.id, wanted),
        ({ name, id }) => ({ action: "automation.created", subject: name, details: { automationId: id } }),
      );
    });
    if ("problem" in made) return await create(context, given, made.problem);
    return new SeeOther(`/teams/${team.id}/automations/${made.result.id}?told=created`);
  }),

  page(
    "/teams/:teamId/automations/:automationId",
    { access: "viewer", query: v.strictObject({ cursor, told, status: anyStatus }) },
    async (context) => await one(context, context.query),
  ),

  form("/teams/:teamId/automations/:automationId", { access: "owner", fields: fieldsOf }, async (context) => {
    const { params, fields } = context;
    const given = toGiven(fields as never);
    const saved = await tryForm(() => {
      const patch = check(automationPatch, read(given));
      return write(
        context,
        "owner",
        (sql) => changeAutomation(sql, context.seal, params, patch),
        (row) => toChanged(row, Object.keys(patch)),
      );
    });
    if ("problem" in saved) return await one(context, {}, { problem: { of: "settings", text: saved.problem }, given });
    return new SeeOther(`${pathOf(params)}?told=saved`);
  }),

  form(
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
      return new SeeOther(`${pathOf(params)}?told=${enabled ? "enabled" : "disabled"}`);
    },
  ),

  form("/teams/:teamId/automations/:automationId/delete", { access: "owner" }, async (context) => {
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
    return new SeeOther(`/teams/${params.teamId}/automations?told=deleted`);
  }),

  form(
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
      return dryRun ? await one(context, {}, { dryRun: ran.result }) : new SeeOther(`${pathOf(params)}?told=ran#runs`);
    },
  ),
];
