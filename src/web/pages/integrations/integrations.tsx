/** Integrations of a team: what they are set to, what was delivered to them and how that went, tests and repeats. */

import * as v from "valibot";
import { write } from "../../site/write.ts";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import {
  changeIntegration,
  createIntegration,
  createSigningSecret,
  findIntegration,
  redeliver,
  removeIntegration,
  toIntegration,
  tryIntegration,
} from "../../../operations/automation/integrations.ts";
import type { Role } from "../../../schema/accounts.ts";
import { uuid } from "../../../schema/fields.ts";
import {
  type Delivery,
  type DeliveryAttempt,
  deliveryStatus,
  type Integration,
  integrationPatch,
  type Kind,
  KINDS,
  newIntegration,
} from "../../../schema/integrations.ts";
import { selectDeliveries, selectIntegrations } from "../../../store/integrations.ts";
import { tryForm } from "../../site/form_input.ts";
import { ActionForm, Csrf, Danger, Done, Field, FormError } from "../../components/form.tsx";
import { type ConfigFields, KIND_NAMES, configFields, configForm, toConfig, toConfigFields } from "./fields.tsx";
import { type Page, type PageContext, SeeOther, type View, form, page } from "../../site/page.ts";
import { Ago, toExact } from "../../components/text.tsx";
import { counted, toDuration } from "../../../wording/numbers.ts";
import { Mark } from "../../components/status.tsx";
import { Pager } from "../../components/pager.tsx";

const MAX_ROWS = 50;
const MAX_DELIVERIES = 20;
const SHOWN_ATTEMPTS = 5;

const DONE = {
  created: "The integration is there. Send a test to see that it arrives.",
  saved: "Saved.",
  tested: "The test was sent.",
  failed: "The test did not arrive: what came back is below.",
  redelivered: "It is sent again, in a moment.",
  enabled: "Enabled: what happens from now on is delivered.",
  disabled: "Disabled: nothing is sent, and nothing waits.",
  deleted: "The integration is deleted, with its deliveries.",
} as const;

type Shown = Pick<PageContext, "sql" | "fast" | "csrf" | "now"> & { role: Role; team: { id: string; name: string } };
type Place = { teamId: string; integrationId: string };

const pathOf = ({ teamId, integrationId }: Place): Path => `/teams/${teamId}/integrations/${integrationId}`;

/** In its colour, with its shape, and in words. */
function stateOf({ enabled, disabledReason, lastDelivery, givenUp }: Integration): { status: string; text: string } {
  if (!enabled)
    return { status: "cancelled", text: disabledReason === null ? "disabled" : `disabled: ${disabledReason}` };
  const lost = givenUp ? `; ${counted(givenUp, "message")} given up` : "";
  if (lastDelivery === null) return { status: "queued", text: `nothing sent yet${lost}` };
  const { status, statusCode } = lastDelivery;
  if (status === "sent") return { status: "passed", text: `the last delivery arrived${lost}` };
  const answer = statusCode === null ? "" : `, answered ${statusCode}`;
  return status === "failed"
    ? { status: "failed", text: `the last delivery failed${answer}${lost}` }
    : { status: "running", text: `the last delivery is on its way${answer}${lost}` };
}

async function list(
  { sql, team, role, now }: Shown,
  { cursor, told }: { cursor?: string | undefined; told?: keyof typeof DONE | undefined },
): Promise<View> {
  const found = await selectIntegrations(sql, team.id, { limit: MAX_ROWS }, cursor);
  const rows = found.slice(0, MAX_ROWS).map(toIntegration);
  const base: Path = `/teams/${team.id}/integrations`;
  const body = (
    <>
      {told ? <Done>{DONE[told]}</Done> : null}
      <h1>Integrations</h1>
      <p class="meta">
        <span>Places outside that automations send to: chats, trackers, engines, programs of yours.</span>
      </p>
      {role === "owner" ? (
        <p class="actions">
          <a class="button main" href={`${base}/new`}>
            New integration
          </a>
        </p>
      ) : null}
      <h2>
        {counted(rows.length, "integration")}
        {found.length > MAX_ROWS ? " on this page" : ""}
      </h2>
      {rows.length === 0 ? (
        <div class="card empty">
          <p>No integration yet.</p>
          <p>
            {role === "owner"
              ? "Slack, Teams, GitHub and six other kinds: the first one takes a minute."
              : "Owners of the team create them."}
          </p>
        </div>
      ) : (
        <div class="card">
          <table>
            <caption class="visually-hidden">Integrations, newest first</caption>
            <thead>
              <tr>
                <th scope="col">
                  <span class="visually-hidden">Status</span>
                </th>
                <th scope="col">Integration</th>
                <th scope="col" class="wide">
                  State
                </th>
                <th scope="col" class="number">
                  Last delivery
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => {
                const { status, text } = stateOf(row);
                return (
                  <tr>
                    <td class="mark-cell">
                      <Mark status={status} word={false} />
                    </td>
                    <td class="long">
                      <a href={`${base}/${row.id}`}>
                        <b>{row.name}</b>
                      </a>{" "}
                      <span class="soft">{KIND_NAMES[row.kind][0]}</span>
                      <span class="small soft narrow-only">{text}</span>
                    </td>
                    <td class="long wide">{text}</td>
                    <td class="number soft">
                      {row.lastDelivery === null ? "never" : <Ago at={row.lastDelivery.createdAt} now={now} />}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}{" "}
      <Pager path={base} query={{ cursor }} cursor={found.length > MAX_ROWS ? rows.at(-1)!.id : undefined} />
    </>
  );
  return { title: "Integrations", body, section: "integrations" };
}

const chooseKind = (base: Path): View => ({
  title: "New integration",
  section: "integrations",
  body: (
    <>
      <h1>New integration</h1>
      <p class="meta">
        <span>Where is it to send to?</span>
      </p>
      <div class="card top">
        <table>
          <caption class="visually-hidden">Kinds of integrations</caption>
          <tbody>
            {KINDS.map((kind) => {
              const [name, use] = KIND_NAMES[kind];
              return (
                <tr>
                  <td>
                    <a href={`${base}/new?kind=${kind}`}>
                      <b>{name}</b>
                    </a>
                  </td>
                  <td class="soft">{use}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  ),
});

type Given = { name: string; config: ConfigFields };

function createForm({ team, csrf }: Shown, kind: Kind, given: Given, problem?: string): View {
  const base: Path = `/teams/${team.id}/integrations`;
  const [name, use] = KIND_NAMES[kind];
  const body = (
    <>
      <h1>New integration: {name}</h1>
      <p class="meta">
        <span>{use}</span>
        <a href={`${base}/new`}>Another kind</a>
      </p>
      <FormError message={problem} />
      <form class="fields card padded top" method="post" action={`${base}/new`}>
        <Csrf token={csrf} />
        <input type="hidden" name="kind" value={kind} />{" "}
        <Field
          label="Name"
          name="name"
          value={given.name}
          max={200}
          placeholder={name}
          hint={`What automations and people call it. Empty: ${kind}.`}
        />{" "}
        {configForm(kind, given.config, "new")}
        <div>
          <button class="main">Create the integration</button>
        </div>
      </form>
    </>
  );
  return { title: "New integration", body, section: "integrations", ...(problem === undefined ? {} : { status: 400 }) };
}

const newConfigFields = (kind: Kind): ConfigFields => ({
  ...toConfigFields(kind, undefined),
  ...(kind === "webhook" ? { "config.secret": createSigningSecret() } : {}),
});

const ACTION_WORDS: Record<Delivery["action"], string> = {
  notify: "message",
  create_issue: "issue",
  set_commit_status: "commit status",
  dispatch: "pipeline",
};

function attemptRow({ attemptedAt, statusCode, latencyMs, error }: DeliveryAttempt, now: Date): Html {
  return (
    <tr>
      <td class="nowrap">
        <Ago at={attemptedAt} now={now} />
      </td>
      <td class="number">{statusCode ?? <span class="soft">no answer</span>}</td>
      <td class="number">{toDuration(latencyMs)}</td>
      <td class="long">{error ?? "arrived"}</td>
    </tr>
  );
}

function deliveryDetails({ team, role, csrf, now }: Shown, integration: Integration, delivery: Delivery): Html {
  const { id, status, action: what, title, eventType, attempts, nextAttemptAt, createdAt } = delivery;
  const last = attempts.at(-1);
  const shape = status === "sent" ? "passed" : status === "pending" ? "running" : "failed";
  const shown = attempts.slice(-SHOWN_ATTEMPTS).toReversed();
  const path: Path = `/teams/${team.id}/integrations/${integration.id}/deliveries/${id}/redeliver`;
  return (
    <details class="failure" id={`d-${id}`}>
      <summary>
        <span>
          <Mark status={shape} word={false} />
          <span class="visually-hidden">{status}</span>
        </span>{" "}
        <span class="long">
          {title}{" "}
          <span class="small soft">
            {ACTION_WORDS[what]} · {eventType}
          </span>
        </span>{" "}
        <span class="soft nowrap">
          {status === "pending" ? "waiting" : status}
          {last?.statusCode == null ? "" : ` · ${last.statusCode}`}
          {last ? ` · ${toDuration(last.latencyMs)}` : ""}
        </span>{" "}
        <span class="soft nowrap">
          <Ago at={createdAt} now={now} />
        </span>
      </summary>
      <div class="evidence one">
        {shown.length === 0 ? (
          <p class="soft">Not tried yet.</p>
        ) : (
          <>
            <div class="scroll">
              <table>
                <caption class="visually-hidden">Attempts, newest first</caption>
                <thead>
                  <tr>
                    <th scope="col">Attempt</th>
                    <th scope="col" class="number">
                      Status
                    </th>
                    <th scope="col" class="number">
                      Latency
                    </th>
                    <th scope="col">What came of it</th>
                  </tr>
                </thead>
                <tbody>{shown.map((one) => attemptRow(one, now))}</tbody>
              </table>
            </div>
            {attempts.length > shown.length ? (
              <p class="hint">and {attempts.length - shown.length} before them</p>
            ) : null}
          </>
        )}{" "}
        {nextAttemptAt === null ? null : (
          <p class="hint">
            It is tried {shown.length === 0 ? "" : "again "}at {toExact(nextAttemptAt)}.
          </p>
        )}{" "}
        {last?.answer ? (
          <div>
            <h3>The last answer</h3>
            <pre>{last.answer}</pre>
          </div>
        ) : null}
        <p class="hint">
          webhook-id <code>{id}</code>
        </p>
        {role === "owner" && integration.enabled ? (
          <ActionForm action={path} csrf={csrf} label="Deliver again" />
        ) : null}
      </div>
    </details>
  );
}

type OneQuery = {
  cursor?: string | undefined;
  status?: Delivery["status"] | undefined;
  told?: keyof typeof DONE | undefined;
};
type OneSaid = { problem?: { of: "settings" | "delivery"; text: string }; given?: Given };

async function one(
  context: Shown & { params: { integrationId: string } },
  query: OneQuery,
  { problem, given }: OneSaid = {},
): Promise<View> {
  const { sql, fast, team, role, csrf, params } = context;
  const place = { teamId: team.id, integrationId: params.integrationId };
  const integration = toIntegration(await findIntegration(fast, place));
  const { cursor, status, told } = query;
  const found = await selectDeliveries(sql, team.id, integration.id, { status, limit: MAX_DELIVERIES }, cursor);
  const deliveries = found.slice(0, MAX_DELIVERIES);
  const base: Path = pathOf(place);
  const { kind, name, enabled, actions } = integration;
  const state = stateOf(integration);
  const config = given?.config ?? toConfigFields(kind, integration.config);
  const text = (of: NonNullable<OneSaid["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  const body = (
    <>
      {told ? (
        told === "failed" ? (
          <p class="message bad" role="alert">
            {DONE.failed}
          </p>
        ) : (
          <Done>{DONE[told]}</Done>
        )
      ) : null}{" "}
      <FormError message={text("delivery")} />
      <h1>{name}</h1>
      <div class="meta">
        <span>{KIND_NAMES[kind][0]}</span>
        <span>
          <Mark status={state.status} word={false} /> {state.text}
        </span>{" "}
        <span>
          for {actions.map((one) => `${ACTION_WORDS[one]}${one === "set_commit_status" ? "es" : "s"}`).join(", ")}
        </span>
        <a href={`/teams/${team.id}/integrations`}>All integrations</a>
      </div>
      {role === "owner" ? (
        <div class="actions">
          <ActionForm action={`${base}/test`} csrf={csrf} label="Send a test" kind="main" />{" "}
          <ActionForm
            action={`${base}/state`}
            csrf={csrf}
            label={enabled ? "Disable" : "Enable"}
            fields={<input type="hidden" name="enabled" value={enabled ? "false" : "true"} />}
          />
        </div>
      ) : null}
      <h2 id="deliveries">
        Deliveries <small>newest first; what is older than 30 days is forgotten</small>
      </h2>
      <form class="filters" method="get" action={base}>
        <label>
          Status{" "}
          <select name="status">
            {(["", "sent", "failed", "pending"] as const).map((one) => (
              <option value={one} selected={one === (status ?? "")}>
                {one === "" ? "all" : one === "pending" ? "waiting" : one}
              </option>
            ))}
          </select>
        </label>
        <button>Show</button>
      </form>
      {deliveries.length === 0 ? (
        <div class="card empty">
          <p>
            {status === undefined
              ? "Nothing was sent yet: send a test, or let an automation send something."
              : "None with this status."}
          </p>
        </div>
      ) : (
        <div class="card">{deliveries.map((one) => deliveryDetails(context, integration, one))}</div>
      )}{" "}
      <Pager
        path={base}
        query={{ status, cursor }}
        cursor={found.length > MAX_DELIVERIES ? deliveries.at(-1)!.id : undefined}
      />
      <h2 id="settings">Settings</h2>
      <FormError message={text("settings")} />{" "}
      {role === "owner" ? (
        <>
          <form class="fields card padded" method="post" action={base}>
            <Csrf token={csrf} /> <Field label="Name" name="name" value={given?.name ?? name} required max={200} />{" "}
            {configForm(kind, config, "change")}
            <div>
              <button class="main">Save the integration</button>
            </div>
          </form>
          <h2>Delete it</h2>
          <Danger
            action={`${base}/delete`}
            csrf={csrf}
            label={`Delete ${name}`}
            loss="Its deliveries and its secrets are lost. Automations that send to it fail from then on, and say so."
          />
        </>
      ) : (
        <div class="card padded">
          <dl class="facts">
            {Object.entries(config).map(([key, value]) => (
              <>
                <dt>{key.replace("config.", "")}</dt>
                <dd class="long">
                  {integration.config[key.replace("config.", "")] === null && value === "" ? (
                    <span class="soft">not shown, or not set</span>
                  ) : (
                    <code>{value}</code>
                  )}
                </dd>
              </>
            ))}
          </dl>
          <p class="hint">Owners of the team can change this.</p>
        </div>
      )}
    </>
  );
  return { title: name, body, section: "integrations", ...(problem ? { status: 400 } : {}) };
}

const told = v.optional(v.picklist(Object.keys(DONE) as (keyof typeof DONE)[]));
const cursor = v.optional(uuid);
/** What is chosen in a form may be everything. */
const anyStatus = v.pipe(
  v.optional(v.union([v.literal(""), deliveryStatus])),
  v.transform((status) => status || undefined),
);
const settingsFields = v.strictObject({ name: v.string(), ...configFields });
const createFields = v.strictObject({ kind: v.picklist(KINDS), name: v.string(), ...configFields });

const toGiven = (fields: Record<string, string | undefined>): Given => ({ name: fields["name"] ?? "", config: fields });

const toChanged = ({ id, name }: Integration, fields: readonly string[]) =>
  ({ action: "integration.changed", subject: name, details: { integrationId: id, fields } }) as const;

export const integrations: Page[] = [
  page(
    "/teams/:teamId/integrations",
    { access: "viewer", query: v.strictObject({ cursor, told }) },
    async (context) => await list(context, context.query),
  ),

  page(
    "/teams/:teamId/integrations/new",
    { access: "owner", query: v.strictObject({ kind: v.optional(v.picklist(KINDS)) }) },
    async (context) => {
      const { kind } = context.query;
      if (kind === undefined) return chooseKind(`/teams/${context.team.id}/integrations`);
      return createForm(context, kind, { name: "", config: newConfigFields(kind) });
    },
  ),

  form("/teams/:teamId/integrations/new", { access: "owner", fields: createFields }, async (context) => {
    const { team, fields } = context;
    const { kind } = fields;
    const given = toGiven(fields as never);
    const made = await tryForm(() => {
      const name = given.name.trim();
      const wanted = { kind, ...(name === "" ? {} : { name }), config: toConfig(kind, given.config, "new") };
      const checked = check(newIntegration, wanted, false);
      return write(
        context,
        "owner",
        (sql) => createIntegration(sql, context, team.id, checked),
        ({ integration: { id, name, kind } }) => ({
          action: "integration.created",
          subject: name,
          details: { integrationId: id, kind },
        }),
      );
    });
    if ("problem" in made) return createForm(context, kind, given, made.problem);
    return new SeeOther(`/teams/${team.id}/integrations/${made.result.integration.id}?told=created`);
  }),

  page(
    "/teams/:teamId/integrations/:integrationId",
    { access: "viewer", query: v.strictObject({ cursor, told, status: anyStatus }) },
    async (context) => await one(context, context.query),
  ),

  form("/teams/:teamId/integrations/:integrationId", { access: "owner", fields: settingsFields }, async (context) => {
    const { fast, params, fields, log } = context;
    const given = toGiven(fields as never);
    const { kind } = await findIntegration(fast, params);
    const onBug = (error: unknown) => log.error("Cannot open the secrets of an integration", { ...params, error });
    const saved = await tryForm(() => {
      const patch = check(
        integrationPatch,
        { name: given.name.trim(), config: toConfig(kind, given.config, "change") },
        false,
      );
      return write(
        context,
        "owner",
        (sql) => changeIntegration(sql, { ...context, onBug }, params, patch),
        (row) => toChanged(row, Object.keys(patch)),
      );
    });
    if ("problem" in saved) return await one(context, {}, { problem: { of: "settings", text: saved.problem }, given });
    return new SeeOther(`${pathOf(params)}?told=saved`);
  }),

  form(
    "/teams/:teamId/integrations/:integrationId/state",
    { access: "owner", fields: v.strictObject({ enabled: v.picklist(["true", "false"]) }) },
    async (context) => {
      const { params, fields, log } = context;
      const enabled = fields.enabled === "true";
      const onBug = (error: unknown) => log.error("Cannot open the secrets of an integration", { ...params, error });
      await write(
        context,
        "owner",
        (sql) => changeIntegration(sql, { ...context, onBug }, params, { enabled }),
        (row) => toChanged(row, ["enabled"]),
      );
      return new SeeOther(`${pathOf(params)}?told=${enabled ? "enabled" : "disabled"}`);
    },
  ),

  form("/teams/:teamId/integrations/:integrationId/delete", { access: "owner" }, async (context) => {
    const { params } = context;
    const { integrationId } = params;
    await write(
      context,
      "owner",
      async (sql) => {
        const { name } = await findIntegration(sql, params);
        await removeIntegration(sql, params);
        return name;
      },
      (name) => ({ action: "integration.deleted", subject: name, details: { integrationId } }),
    );
    return new SeeOther(`/teams/${params.teamId}/integrations?told=deleted`);
  }),

  form("/teams/:teamId/integrations/:integrationId/test", { access: "owner" }, async (context) => {
    const { sql, begin, seal, outbound, publicUrl, log, params } = context;
    // What was sent is noted, whatever has become of his role meanwhile.
    await write(context, "owner", async () => {});
    const onBug = (error: unknown, deliveryId: string) => log.error("Cannot deliver", { ...params, deliveryId, error });
    const { status } = await tryIntegration({ sql, begin, seal, outbound, publicUrl, onBug }, params);
    return new SeeOther(`${pathOf(params)}?told=${status === "sent" ? "tested" : "failed"}#deliveries`);
  }),

  form(
    "/teams/:teamId/integrations/:integrationId/deliveries/:deliveryId/redeliver",
    { access: "owner" },
    async (context) => {
      const { params } = context;
      const asked = await tryForm(() => write(context, "owner", (sql) => redeliver(sql, params)));
      if ("problem" in asked) return await one(context, {}, { problem: { of: "delivery", text: asked.problem } });
      return new SeeOther(`${pathOf(params)}?told=redelivered#d-${params.deliveryId}`);
    },
  ),
];
