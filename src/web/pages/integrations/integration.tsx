/** One integration: its settings and its deliveries. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import {
  changeIntegration,
  findIntegration,
  redeliver,
  removeIntegration,
  toIntegration,
  tryIntegration,
} from "../../../operations/automation/integrations.ts";
import { type Delivery, deliveryStatus } from "../../../schema/deliveries.ts";
import { booleanText, mayBeEmpty } from "../../../schema/fields.ts";
import { type Integration, integrationPatch } from "../../../schema/integrations.ts";
import { selectDeliveries } from "../../../store/deliveries.ts";
import { StatusFilter } from "../../components/filters.tsx";
import { ActionForm, type Choice, Danger, Field, FormError, Notice, Form, Hidden } from "../../components/form.tsx";
import { Empty, Pager, toPagedRows } from "../../components/list.tsx";
import { Mark } from "../../components/status.tsx";
import { action, deletion } from "../../site/action.ts";
import { type View, page, type TeamContext, type Page } from "../../site/page.ts";
import { type FormValues, toFormValues, createIntegrationForm, newPage } from "./create.tsx";
import { ACTION_WORDS, DELIVERY_STATES, deliveryDetails } from "./deliveries.tsx";
import { KIND_NAMES, configFields, configForm, toConfig, toConfigFields } from "./fields.tsx";
import { NOTICES, cursor, pathOf, stateOf, notice, listPage } from "./list.tsx";

const MAX_DELIVERIES = 20;

const STATUS_OPTIONS: readonly Choice[] = [
  ["", "all"],
  ...(["sent", "failed", "pending", "inapplicable"] as const).map((status): Choice => [
    status,
    DELIVERY_STATES[status].word,
  ]),
];

type OneQuery = {
  cursor?: string | undefined;
  status?: Delivery["status"] | undefined;
  notice?: keyof typeof NOTICES | undefined;
};

type FormState = { problem?: { of: "settings" | "delivery"; text: string }; values?: FormValues };

type Context = TeamContext & { params: { integrationId: string } };

async function loadIntegration({ sql, fast, team, params }: Context, { cursor, status }: OneQuery) {
  const found = await findIntegration(fast, { teamId: team.id, integrationId: params.integrationId });
  const integration = toIntegration(found);
  const deliveries = await selectDeliveries(sql, team.id, integration.id, { status, limit: MAX_DELIVERIES }, cursor);
  return { integration, deliveries: toPagedRows(deliveries, MAX_DELIVERIES, ({ id }) => id) };
}

type IntegrationData = Awaited<ReturnType<typeof loadIntegration>>;

async function showIntegration(context: Context, query: OneQuery, state: FormState = {}): Promise<View> {
  return integrationView(context, query, await loadIntegration(context, query), state);
}

const IntegrationFacts = ({ teamId, integration }: { teamId: string; integration: Integration }): Html => {
  const { kind, actions } = integration;
  const state = stateOf(integration);
  return (
    <div class="meta">
      <span>{KIND_NAMES[kind][0]}</span>
      <span>
        <Mark status={state.status} word={false} /> {state.text}
      </span>
      <span>
        for {actions.map((one) => `${ACTION_WORDS[one]}${one === "set_commit_status" ? "es" : "s"}`).join(", ")}
      </span>
      <a href={`/teams/${teamId}/integrations`}>All integrations</a>
    </div>
  );
};

type ActionsProperties = { base: Path; csrf: string; enabled: boolean };

const IntegrationActions = ({ base, csrf, enabled }: ActionsProperties): Html => (
  <div class="actions">
    <ActionForm action={`${base}/test`} csrf={csrf} label="Send test message" kind="main" />
    <ActionForm
      action={`${base}/state`}
      csrf={csrf}
      label={enabled ? "Disable" : "Enable"}
      fields={<Hidden name="enabled" value={String(!enabled)} />}
    />
  </div>
);

type PartProperties = { base: Path; context: Context; query: OneQuery; data: IntegrationData };

const Deliveries = ({ base, context, query, data: { integration, deliveries } }: PartProperties): Html => (
  <>
    <h2 id="deliveries">
      Deliveries <small>newest first; kept for 30 days</small>
    </h2>
    <StatusFilter path={base} options={STATUS_OPTIONS} value={query.status} />
    {deliveries.rows.length === 0 ? (
      <Empty>
        {query.status === undefined
          ? "No deliveries yet. Send a test message, or use the integration in an automation."
          : "No deliveries match this status."}
      </Empty>
    ) : (
      <div class="card">{deliveries.rows.map((one) => deliveryDetails(context, integration, one))}</div>
    )}
    <Pager path={base} query={{ status: query.status, cursor: query.cursor }} cursor={deliveries.next} />
  </>
);

type SettingsProperties = { base: Path; csrf: string; integration: Integration; values: FormValues | undefined };

const SettingsForm = ({ base, csrf, integration, values }: SettingsProperties): Html => (
  <>
    <Form to={base} csrf={csrf} button="Save">
      <Field label="Name" name="name" value={values?.name ?? integration.name} required max={200} />
      {configForm(integration.kind, values?.config ?? toConfigFields(integration.kind, integration.config), "change")}
    </Form>
    <h2>Delete</h2>
    <Danger
      action={`${base}/delete`}
      csrf={csrf}
      label={`Delete ${integration.name}`}
      loss="Its deliveries and secrets are deleted. Automations that use it will fail."
    />
  </>
);

/** The settings for those who cannot change them. */
const SettingsFacts = ({ integration: { kind, config } }: { integration: Integration }): Html => (
  <div class="card padded">
    <dl class="facts">
      {Object.entries(toConfigFields(kind, config)).map(([field, value]) => {
        const key = field.replace("config.", "");
        return (
          <>
            <dt>{key}</dt>
            <dd class="long">
              {config[key] === null && value === "" ? (
                <span class="soft">hidden or not set</span>
              ) : (
                <code>{value}</code>
              )}
            </dd>
          </>
        );
      })}
    </dl>
    <p class="hint">Owners of the team can change this.</p>
  </div>
);

function integrationView(
  context: Context,
  query: OneQuery,
  data: IntegrationData,
  { problem, values }: FormState,
): View {
  const { team, role, csrf } = context;
  const { integration } = data;
  const { name, enabled } = integration;
  const base: Path = pathOf({ teamId: team.id, integrationId: integration.id });
  const problemOf = (of: NonNullable<FormState["problem"]>["of"]) => (problem?.of === of ? problem.text : undefined);
  const body = (
    <>
      <Notice notices={NOTICES} name={query.notice} isError={query.notice === "failed"} />
      <FormError message={problemOf("delivery")} />
      <h1>{name}</h1>
      <IntegrationFacts teamId={team.id} integration={integration} />
      {role === "owner" ? <IntegrationActions base={base} csrf={csrf} enabled={enabled} /> : null}
      <Deliveries base={base} context={context} query={query} data={data} />
      <h2 id="settings">Settings</h2>
      <FormError message={problemOf("settings")} />
      {role === "owner" ? (
        <SettingsForm base={base} csrf={csrf} integration={integration} values={values} />
      ) : (
        <SettingsFacts integration={integration} />
      )}
    </>
  );
  return { title: name, body, section: "integrations", ...(problem ? { status: 400 } : {}) };
}

const settingsFields = v.strictObject({ name: v.string(), ...configFields });

const toChanged = ({ id, name }: Integration, fields: readonly string[]) =>
  ({ action: "integration.changed", subject: name, details: { integrationId: id, fields } }) as const;

const withBugLog = ({ seal, outbound, outboundAllow, log, params }: Context) => ({
  ...{ seal, outbound, outboundAllow },
  onBug: (error: unknown) => log.error("Cannot open the secrets of an integration", { ...params, error }),
});

const onePath = "/teams/:teamId/integrations/:integrationId";

const integrationPage = page(
  onePath,
  { access: "viewer", query: v.strictObject({ cursor, notice, status: mayBeEmpty(deliveryStatus) }) },
  async (context) => await showIntegration(context, context.query),
);

const changeForm = action(
  onePath,
  { access: "owner", fields: settingsFields },
  {
    act: async (sql, context) => {
      const { params, fields } = context;
      const { name, config } = toFormValues(fields as never);
      const { kind } = await findIntegration(sql, params);
      const patch = check(integrationPatch, { name: name.trim(), config: toConfig(kind, config, "change") }, false);
      return await changeIntegration(sql, withBugLog(context), params, patch);
    },
    record: (row) => toChanged(row, ["name", "config"]),
    refused: (context, text) =>
      showIntegration(
        context,
        {},
        { problem: { of: "settings", text }, values: toFormValues(context.fields as never) },
      ),
    done: ({ params }) => `${pathOf(params)}?notice=saved`,
  },
);

const stateForm = action(
  `${onePath}/state`,
  { access: "owner", fields: v.strictObject({ enabled: booleanText }) },
  {
    act: (sql, context) => changeIntegration(sql, withBugLog(context), context.params, context.fields),
    record: (row) => toChanged(row, ["enabled"]),
    done: ({ params, fields }) => `${pathOf(params)}?notice=${fields.enabled ? "enabled" : "disabled"}`,
  },
);

const testForm = action(
  `${onePath}/test`,
  { access: "owner" },
  {
    // The result of the delivery is stored even if the visitor's role has changed since.
    act: async () => {},
    done: async ({ sql, begin, seal, outbound, publicUrl, log, params }) => {
      const onBug = (error: unknown, deliveryId: string) =>
        log.error("Cannot deliver", { ...params, deliveryId, error });
      const { status } = await tryIntegration({ sql, begin, seal, outbound, publicUrl, onBug }, params);
      return `${pathOf(params)}?notice=${status === "sent" ? "tested" : "failed"}#deliveries`;
    },
  },
);

const redeliverForm = action(
  `${onePath}/deliveries/:deliveryId/redeliver`,
  { access: "owner" },
  {
    act: (sql, { params }) => redeliver(sql, params),
    refused: (context, text) => showIntegration(context, {}, { problem: { of: "delivery", text } }),
    done: ({ params }) => `${pathOf(params)}?notice=redelivered#d-${params.deliveryId}`,
  },
);

export const integrations: Page[] = [
  listPage,
  newPage,
  createIntegrationForm,
  integrationPage,
  changeForm,
  stateForm,
  deletion(onePath, "integration", removeIntegration),
  testForm,
  redeliverForm,
];
