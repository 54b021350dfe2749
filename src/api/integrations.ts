/** Integrations of a team: places outside that events go to, tried out, and what was delivered there. */

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
    {
      summary: "List integrations, newest first",
      description: "With what was last sent there; secrets are null.",
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
        "Each kind has a config of its own. Nothing is sent there until an automation says so. The secret of a " +
        "webhook is made where it is left out, and shown in this answer alone; private addresses are refused unless " +
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
        "Its config without its secrets, and what automations can ask of it. disabledReason says why Assay has " +
        "switched it off.",
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
        "Changes what is given and leaves the rest, fields of config among them. Another server wants the secrets " +
        "again, so that who may not read them cannot have them sent elsewhere.",
      example: { body: { name: "Team channel" } },
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
    {
      summary: "Delete an integration with its deliveries",
      description: "What waits to be sent there is not sent any more. Automations that name it say so in their runs.",
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
      summary: "Send a sample right now: a message, or an issue where the kind knows no messages. Tried once",
      description:
        "A real message to the real place, or an issue; it says that it is a test. The answer says what came of it.",
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
      summary: "What was sent to an integration, newest first",
      description:
        "Each with its attempts, what the receiver answered, and when it is tried next. A delivery is tried for a " +
        "day, at longer and longer intervals.",
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
      summary: "Send it again, with the same webhook-id and all its tries",
      description:
        "Also what was sent already. A receiver that has taken it knows it by its webhook-id. A disabled integration " +
        "is a 400, and so is one for which 1,000 deliveries are waiting.",
      answer: delivery,
    },
    async ({ params, conclude }) => await conclude((sql) => redeliver(sql, params)),
  ),
];
