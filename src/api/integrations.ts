/** Integrations of a team: places outside that events go to, tried out, and what was delivered there. */

import {
  changeIntegration,
  createIntegration,
  findIntegration,
  redeliver,
  removeIntegration,
  toIntegration,
  tryIntegration,
} from "../operations/integrations.ts";
import { toPage } from "../request/page.ts";
import { jsonOnce, noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import {
  delivery,
  deliveryFilter,
  deliveryPage,
  integration,
  integrationFilter,
  integrationPage,
  integrationPatch,
  newIntegration,
} from "../schema/integrations.ts";
import { selectDeliveries, selectIntegrations } from "../store/integrations.ts";

export const integrations: Route[] = [
  route(
    "GET /teams/:teamId/integrations",
    { summary: "List integrations, newest first", query: integrationFilter, answer: integrationPage },
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
      record: "integration.created",
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
    { summary: "One integration", answer: integration },
    async ({ fast, params }) => toIntegration(await findIntegration(fast, params)),
  ),

  route(
    "PATCH /teams/:teamId/integrations/:integrationId",
    {
      summary: "Change an integration",
      record: "integration.changed",
      body: integrationPatch,
      isSecret: true,
      answer: integration,
    },
    async ({ params, body, transact, services }) => {
      const onBug = (error: unknown) =>
        services.log.error("Cannot open the secrets of an integration", { ...params, error });
      return await transact((sql) => changeIntegration(sql, { ...services, onBug }, params, body));
    },
  ),

  route(
    "DELETE /teams/:teamId/integrations/:integrationId",
    { summary: "Delete an integration with its deliveries", record: "integration.deleted", answer: null },
    async ({ params, transact }) => {
      await transact((sql) => removeIntegration(sql, params));
      return noContent();
    },
  ),

  route(
    "POST /teams/:teamId/integrations/:integrationId/test",
    {
      summary: "Send a sample right now: a message, or an issue where the kind knows no messages. Tried once",
      answer: delivery,
      deadlineSeconds: 60,
    },
    async ({ params, sql, transact, actOnce, publicUrl, services: { seal, outbound, log } }) => {
      const onBug = (error: unknown, deliveryId: string) =>
        log.error("Cannot deliver", { ...params, deliveryId, error });
      return await tryIntegration({ sql, begin: transact, seal, outbound, publicUrl, actOnce, onBug }, params);
    },
  ),

  route(
    "GET /teams/:teamId/integrations/:integrationId/deliveries",
    { summary: "What was sent to an integration, newest first", query: deliveryFilter, answer: deliveryPage },
    async (context) => {
      const { sql, fast, params, query, after } = context;
      await findIntegration(fast, params);
      const rows = await selectDeliveries(sql, params.teamId, params.integrationId, query, after?.[0]);
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),

  route(
    "POST /teams/:teamId/integrations/:integrationId/deliveries/:deliveryId/redeliver",
    { summary: "Send it again, with the same webhook-id and all its tries", answer: delivery },
    async ({ params, conclude }) => await conclude((sql) => redeliver(sql, params)),
  ),
];
