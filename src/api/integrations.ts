/** Integrations of a team: external receivers of events, test messages, and deliveries. */

import {
  changeIntegration,
  createIntegration,
  findIntegration,
  redeliver,
  removeIntegration,
  toIntegration,
  tryIntegration,
} from "../operations/automation/integrations.ts";
import { toPage } from "../request/page.ts";
import { jsonOnce, noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { delivery, deliveryFilter, deliveryPage } from "../schema/deliveries.ts";
import {
  integration,
  integrationFilter,
  integrationPage,
  integrationPatch,
  newIntegration,
} from "../schema/integrations.ts";
import { selectDeliveries } from "../store/deliveries.ts";
import { selectIntegrations } from "../store/integrations.ts";

export const integrations: Route[] = [
  route(
    "GET /teams/:teamId/integrations",
    {
      summary: "List integrations, newest first",
      description: "Each with its last delivery; secrets are null.",
      example: { query: { kind: "webhook" } },
      query: integrationFilter,
      answer: integrationPage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const rows = await selectIntegrations(sql, params.teamId, query, page.after?.[0]);
      return toPage(context, rows, ({ id }) => [id], toIntegration);
    },
  ),

  route(
    "POST /teams/:teamId/integrations",
    {
      summary: "Create an integration",
      record: "integration.created",
      description:
        "Each kind has its own config. Nothing is sent until an automation uses the integration. If the secret of a " +
        "webhook is omitted, it is generated and shown only in this answer. Private addresses are refused unless " +
        "OUTBOUND_ALLOW names them.",
      example: { body: { kind: "webhook", name: "Our own", config: { url: "https://hooks.example/assay" } } },
      body: newIntegration,
      isSecret: true,
      answer: integration,
      status: 201,
    },
    async ({ params, body, conclude, services }) =>
      await conclude(async (sql) => {
        const { integration, made } = await createIntegration(sql, services, params.teamId, body);
        if (made === undefined) return integration;
        const shown = { ...integration, config: { ...integration.config, secret: made } };
        return jsonOnce(201, shown, integration);
      }),
  ),

  route(
    "GET /teams/:teamId/integrations/:integrationId",
    {
      summary: "One integration",
      description:
        "Its config without secrets, and the actions that automations can use. disabledReason says why Assay disabled " +
        "it.",
      answer: integration,
    },
    async ({ fast, params }) => toIntegration(await findIntegration(fast, params)),
  ),

  route(
    "PATCH /teams/:teamId/integrations/:integrationId",
    {
      summary: "Change an integration",
      record: "integration.changed",
      description:
        "Changes the given fields and keeps the others, including fields of config. If the server changes, the secrets " +
        "must be sent again, so that someone who cannot read them cannot send them elsewhere.",
      example: { body: { name: "Team channel" } },
      body: integrationPatch,
      isSecret: true,
      answer: integration,
    },
    async ({ params, body, transact, services }) => {
      const onBug = (error: unknown) =>
        services.log.error("Cannot decrypt the secrets of an integration", { ...params, error });
      return await transact((sql) => changeIntegration(sql, { ...services, onBug }, params, body));
    },
  ),

  route(
    "DELETE /teams/:teamId/integrations/:integrationId",
    {
      summary: "Delete an integration with its deliveries",
      description: "Waiting deliveries are not sent. The runs of automations that use it report this.",
      record: "integration.deleted",
      answer: null,
    },
    async ({ params, transact }) => {
      await transact((sql) => removeIntegration(sql, params));
      return noContent();
    },
  ),

  route(
    "POST /teams/:teamId/integrations/:integrationId/test",
    {
      summary: "Send a test message, or create a test issue",
      description:
        "Sends a message marked as a test to the real destination, or creates an issue if the kind has no messages. It " +
        "is tried once, and the answer has the result.",
      answer: delivery,
      deadlineSeconds: 60,
    },
    async ({ params, sql, transact, publicUrl, services: { seal, outbound, log } }) => {
      const onBug = (error: unknown, deliveryId: string) =>
        log.error("Cannot deliver", { ...params, deliveryId, error });
      const beginToSend: typeof transact = (work) => transact(work, { actsNext: true });
      return await tryIntegration({ sql, begin: transact, beginToSend, seal, outbound, publicUrl, onBug }, params);
    },
  ),

  route(
    "GET /teams/:teamId/integrations/:integrationId/deliveries",
    {
      summary: "List deliveries, newest first",
      description:
        "Each with its attempts, the answers of the receiver, and the time of the next attempt. A delivery is retried " +
        "for a day, at increasing intervals.",
      example: { query: { status: "failed" } },
      query: deliveryFilter,
      answer: deliveryPage,
    },
    async (context) => {
      const { sql, fast, params, query, page } = context;
      await findIntegration(fast, params);
      const rows = await selectDeliveries(sql, params.teamId, params.integrationId, query, page.after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),

  route(
    "POST /teams/:teamId/integrations/:integrationId/deliveries/:deliveryId/redeliver",
    {
      summary: "Redeliver, with the same webhook-id",
      description:
        "Works for sent deliveries as well; a receiver recognises a repeated delivery by its webhook-id. The delivery is " +
        "retried like a new one. Answered 400 if the integration is disabled or has 1,000 waiting deliveries.",
      answer: delivery,
    },
    async ({ params, conclude }) => await conclude((sql) => redeliver(sql, params)),
  ),
];
