/** Integrations of a team: places outside that events go to, tried out, and what was delivered there. */

import { randomBytes } from "node:crypto";
import type { BlockList } from "node:net";
import { attemptDelivery, openSecrets, ROTATION_MS, type Secrets } from "../operations/deliveries.ts";
import { check } from "../http/input.ts";
import { isReachable, literalAddress } from "../http/outbound.ts";
import { absent, fail } from "../http/problem.ts";
import { toPage } from "../request/page.ts";
import { jsonOnce, noContent } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { integrationPlace } from "../secrets/places.ts";
import { toTestNotice } from "../rules/notice.ts";
import {
  CONFIGS,
  delivery,
  deliveryFilter,
  deliveryPage,
  type Integration,
  integration,
  integrationFilter,
  integrationPage,
  integrationPatch,
  type Kind,
  MAX_WAITING,
  newIntegration,
  SECRETS,
} from "../schema/integrations.ts";
import { actionsOf, sampleOf } from "../senders/send.ts";
import type { Sql } from "../store/connect.ts";
import {
  deleteIntegration,
  insertDelivery,
  insertIntegration,
  type IntegrationRow,
  lockIntegration,
  lockIntegrationForUse,
  selectDeliveries,
  selectDelivery,
  selectIntegration,
  selectIntegrations,
  selectIsCrowded,
  updateDeliveryDue,
  updateIntegration,
} from "../store/integrations.ts";

type One = Pick<Context<{ teamId: string; integrationId: string }>, "params">;

const toIntegration = ({ sealed: _, config, givenUp, ...row }: IntegrationRow): Integration => ({
  ...row,
  ...(givenUp > 0 ? { givenUp } : {}),
  config: { ...config, ...Object.fromEntries(SECRETS[row.kind].map((name) => [name, null])) },
  actions: [...actionsOf(row.kind)],
});

const find = async (sql: Sql, { params }: One): Promise<IntegrationRow> =>
  (await selectIntegration(sql, params.teamId, params.integrationId)) ?? absent();

/** Fails where an address is private for everybody to see; names are looked up when something is sent. */
function requirePublic(config: Record<string, unknown>, allow: BlockList): void {
  for (const name of ["url", "baseUrl"]) {
    if (typeof config[name] !== "string") continue;
    const url = new URL(config[name]);
    const address = literalAddress(url) ?? (/^localhost\.?$/i.test(url.hostname) ? "127.0.0.1" : undefined);
    if (address !== undefined && !isReachable(address, allow))
      fail(
        "VALIDATION_ERROR",
        `Cannot read "config.${name}": it is a private address, which is not reached unless OUTBOUND_ALLOW names it`,
      );
  }
}

/** Undefined for what is no address; a row may be older than the check of it. */
const originOf = (address: unknown) =>
  typeof address === "string" && URL.canParse(address) ? new URL(address).origin : undefined;

/** Fails where secrets that are kept would be sent to another server: who may not read them could have them sent to himself. */
function requireSecretsAgain(
  kind: Kind,
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  given: Record<string, unknown>,
): void {
  if (typeof before["baseUrl"] !== "string") return;
  if (originOf(before["baseUrl"]) === originOf(after["baseUrl"])) return;
  const kept = SECRETS[kind].filter((name) => after[name] !== null && given[name] === undefined);
  if (kept.length > 0)
    fail(
      "VALIDATION_ERROR",
      `Cannot change "config.baseUrl" to another server without ${kept.map((name) => `"config.${name}"`).join(", ")}`,
    );
}

const createSigningSecret = () => `whsec_${randomBytes(32).toString("base64")}`;

function split(kind: Kind, config: Record<string, unknown>): { open: Record<string, unknown>; secrets: Secrets } {
  const isSecret = (name: string) => SECRETS[kind].includes(name);
  const entries = Object.entries(config);
  return {
    open: Object.fromEntries(entries.filter(([name]) => !isSecret(name))),
    secrets: Object.fromEntries(entries.filter(([name]) => isSecret(name))) as Secrets,
  };
}

export const integrations: Route[] = [
  route(
    "GET /teams/:teamId/integrations",
    {
      summary: "List integrations, newest first",
      description: "With what was last sent there; secrets are null.",
      example: { query: { kind: "webhook" } },
      query: integrationFilter,
      answer: integrationPage,
    },
    async (context) => {
      const { sql, params, query, after } = context;
      const rows = await selectIntegrations(sql, params.teamId, query, after?.[0]);
      return toPage(context, rows, ({ id }) => [id], toIntegration);
    },
  ),

  route(
    "POST /teams/:teamId/integrations",
    {
      summary: "Create an integration",
      description:
        "Each kind has a config of its own. Nothing is sent there until an automation says so. The secret of a " +
        "webhook is made where it is left out, and shown in this answer alone; private addresses are refused unless " +
        "OUTBOUND_ALLOW names them.",
      example: { body: { kind: "webhook", name: "Our own", config: { url: "https://hooks.example/assay" } } },
      body: newIntegration,
      isSecret: true,
      answer: integration,
      status: 201,
    },
    async ({ params: { teamId }, body, conclude, services: { seal, outboundAllow } }) => {
      const { kind, name, enabled } = body;
      const made = kind === "webhook" && body.config["secret"] === undefined ? createSigningSecret() : undefined;
      const config = made === undefined ? body.config : { ...body.config, secret: made };
      requirePublic(config, outboundAllow);
      const { open, secrets } = split(kind, config);
      const id = Bun.randomUUIDv7();
      const sealed = seal.seal(integrationPlace(teamId, id), JSON.stringify(secrets));
      return await conclude(async (sql) => {
        await insertIntegration(sql, teamId, id, { kind, name: name ?? kind, enabled, config: open, sealed });
        const created = toIntegration(await find(sql, { params: { teamId, integrationId: id } }));
        if (made === undefined) return created;
        const shown = { ...created, config: { ...created.config, secret: made } };
        return jsonOnce(201, shown, created);
      });
    },
  ),

  route(
    "GET /teams/:teamId/integrations/:integrationId",
    {
      summary: "One integration",
      description:
        "Its config without its secrets, and what automations can ask of it. disabledReason says why Assay has " +
        "switched it off.",
      answer: integration,
    },
    async (context) => toIntegration(await find(context.fast, context)),
  ),

  route(
    "PATCH /teams/:teamId/integrations/:integrationId",
    {
      summary: "Change an integration",
      description:
        "Changes what is given and leaves the rest, fields of config among them. Another server wants the secrets " +
        "again, so that who may not read them cannot have them sent elsewhere.",
      example: { body: { name: "Team channel" } },
      body: integrationPatch,
      isSecret: true,
      answer: integration,
    },
    async (context) => {
      const { params, body, transact, services } = context;
      const { seal, outboundAllow, log } = services;
      const { teamId, integrationId } = params;
      return await transact(async (sql) => {
        if (!(await lockIntegration(sql, teamId, integrationId))) absent();
        const row = await find(sql, context);
        await updateIntegration(sql, teamId, integrationId, {
          name: body.name,
          enabled: body.enabled,
          ...reconfigure(row),
        });
        return toIntegration(await find(sql, context));
      });

      function reconfigure({ kind, config, sealed }: IntegrationRow) {
        if (body.config === undefined) return {};
        const before = openOrForget(sealed);
        const { previousSecret, previousUntil, ...old } = before;
        const isSecret = (name: string) => SECRETS[kind].includes(name);
        const given = Object.entries(body.config)
          .filter(([name, value]) => !(value === null && isSecret(name)))
          .map(([name, value]) => [name, value === "" && isSecret(name) ? null : value]);
        const merged = { ...config, ...old, ...Object.fromEntries(given) };
        const checked = check(CONFIGS[kind], merged, false, "config") as Record<string, unknown>;
        requirePublic(checked, outboundAllow);
        requireSecretsAgain(kind, config, checked, Object.fromEntries(given));
        const { open, secrets } = split(kind, checked);
        const rotated = kind === "webhook" && old["secret"] !== undefined && secrets["secret"] !== old["secret"];
        const until = new Date(Date.now() + ROTATION_MS).toISOString();
        const rotation = rotated
          ? { previousSecret: old["secret"], previousUntil: until }
          : previousSecret && previousUntil
            ? { previousSecret, previousUntil }
            : {};
        const stored = JSON.stringify({ ...secrets, ...rotation });
        return { config: open, sealed: seal.seal(integrationPlace(teamId, integrationId), stored) };
      }

      /** Secrets that do not open are missing, so that they can be entered again. */
      function openOrForget(sealed: Buffer): ReturnType<typeof openSecrets> {
        try {
          return openSecrets(seal, teamId, integrationId, sealed);
        } catch (error) {
          log.error("Cannot open the secrets of an integration", { teamId, integrationId, error });
          return {};
        }
      }
    },
  ),

  route(
    "DELETE /teams/:teamId/integrations/:integrationId",
    {
      summary: "Delete an integration with its deliveries",
      description: "What waits to be sent there is not sent any more. Automations that name it say so in their runs.",
      answer: null,
    },
    async ({ params, transact }) =>
      (await transact((sql) => deleteIntegration(sql, params.teamId, params.integrationId))) ? noContent() : absent(),
  ),

  route(
    "POST /teams/:teamId/integrations/:integrationId/test",
    {
      summary: "Send a sample right now: a message, or an issue where the kind knows no messages. Tried once",
      description:
        "A real message to the real place, or an issue; it says that it is a test. The answer says what came of it.",
      answer: delivery,
      deadlineSeconds: 60,
    },
    async (context) => {
      const { params, sql, transact, actOnce, publicUrl, services } = context;
      const { seal, outbound, log } = services;
      const { teamId, integrationId } = params;
      const { kind, name, config, sealed } = await find(sql, context);
      const id = Bun.randomUUIDv7();
      const notice = toTestNotice(teamId, name, publicUrl, new Date());
      const sample = { id, action: sampleOf(kind), options: {}, notice };
      await transact(async (sql) => {
        // It may have been deleted since.
        if (!(await lockIntegrationForUse(sql, teamId, integrationId))) absent();
        await insertDelivery(sql, teamId, { ...sample, integrationId, eventId: null, due: null });
        await actOnce(sql);
      });
      await attemptDelivery(
        {
          ...{ begin: transact, outbound, seal },
          onBug: (error) => log.error("Cannot deliver", { teamId, integrationId, deliveryId: id, error }),
        },
        { teamId, id: integrationId },
        { ...sample, kind, integrationName: name, config, sealed, tries: 0, attempts: [] },
        "once",
      );
      return (await selectDelivery(sql, teamId, integrationId, id)) ?? absent();
    },
  ),

  route(
    "GET /teams/:teamId/integrations/:integrationId/deliveries",
    {
      summary: "What was sent to an integration, newest first",
      description:
        "Each with its attempts, what the receiver answered, and when it is tried next. A delivery is tried for a " +
        "day, at longer and longer intervals.",
      example: { query: { status: "failed" } },
      query: deliveryFilter,
      answer: deliveryPage,
    },
    async (context) => {
      const { sql, fast, params, query, after } = context;
      await find(fast, context);
      const rows = await selectDeliveries(sql, params.teamId, params.integrationId, query, after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),

  route(
    "POST /teams/:teamId/integrations/:integrationId/deliveries/:deliveryId/redeliver",
    {
      summary: "Send it again, with the same webhook-id and all its tries",
      description:
        "Also what was sent already. A receiver that has taken it knows it by its webhook-id. A disabled integration " +
        "is a 400, and so is one for which 1,000 deliveries are waiting.",
      answer: delivery,
    },
    async (context) => {
      const { params, conclude } = context;
      const { teamId, integrationId, deliveryId } = params;
      return await conclude(async (sql) => {
        const { enabled } = await find(sql, context);
        const found = await selectDelivery(sql, teamId, integrationId, deliveryId);
        if (!found) absent();
        if (!enabled) fail("VALIDATION_ERROR", "Cannot redeliver: the integration is disabled");
        if (found.status !== "pending" && (await selectIsCrowded(sql, teamId, integrationId, MAX_WAITING)))
          fail(
            "VALIDATION_ERROR",
            `Cannot redeliver: ${MAX_WAITING} deliveries are waiting for the integration already`,
          );
        await updateDeliveryDue(sql, teamId, integrationId, deliveryId);
        return (await selectDelivery(sql, teamId, integrationId, deliveryId)) ?? absent();
      });
    },
  ),
];
