/** Describes webhooks and the events of live streams in the OpenAPI document. */

import { streamEvents, webhookBodies } from "../schema/event_bodies.ts";
import { content, convert, type Json } from "./openapi_schemas.ts";

/** When a webhook is sent. */
const WEBHOOK_OCCASIONS: Record<string, string> = {
  "execution.completed": "An execution has ended",
  "execution.failed": "A task of a branch has turned red",
  "execution.recovered": "A red task of a branch is green again",
  "execution.changed": "The results of an execution that had ended have changed, or it was cancelled",
  "test_run.completed": "All reports of a task have arrived",
  "bug_report.opened": "Failures have opened a bug report",
  "bug_report.regressed": "A resolved bug has occurred again",
  "bug_report.resolved": "A bug report was resolved",
  "bug_report.culprit_found": "The commit that broke the test of a bug is proven",
  "test_case.became_flaky": "A test case has become flaky",
  "test_case.recovered": "A test case is no longer flaky",
  "test_case.verified": "A verification has ended",
  "task.missed": "A task that a schedule expected has not reported",
  "integration.disabled": "An integration was disabled",
  schedule: "The summary of an automation with a schedule",
  test: "The test message of an integration",
};

/** "execution.failed" → "ExecutionFailed". */
const toSchemaName = (type: string): string =>
  type.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase());

export const webhookSchemas = (): Json =>
  Object.fromEntries(
    Object.entries(webhookBodies).map(([type, body]) => [`${toSchemaName(type)}Webhook`, convert(body, "output")]),
  );

export function webhooks(): Json {
  const header = (name: string, description: string) => ({
    ...{ name, in: "header", required: true, description, schema: { type: "string" } },
  });
  return Object.fromEntries(
    Object.keys(webhookBodies).map((type) => [
      type,
      {
        post: {
          operationId: `on${toSchemaName(type)}`,
          summary: type,
          description: `${WEBHOOK_OCCASIONS[type]}. Signed as Standard Webhooks describes`,
          tags: ["integrations"],
          security: [],
          parameters: [
            header("webhook-id", "The id of the delivery, which a repetition has as well"),
            header("webhook-timestamp", "Unix seconds of the attempt"),
            header(
              "webhook-signature",
              "v1, and the HMAC-SHA-256 of id, timestamp and body in base64; several with blanks between them",
            ),
          ],
          requestBody: {
            required: true,
            description: "What happened",
            content: content({ $ref: `#/components/schemas/${toSchemaName(type)}Webhook` }),
          },
          responses: {
            "2XX": { description: "Received" },
            "410": { description: "The receiver wants no more messages: the integration is disabled" },
          },
        },
      },
    ]),
  );
}

/** A named event with its data, as a client library of Server-Sent Events returns it. */
export const streamEvent = (): Json => ({
  description: "One event of the stream: its name, and its data as JSON. Events of the list with an id are sent once",
  oneOf: Object.entries(streamEvents).map(([event, data]) => ({
    type: "object",
    required: ["event", "data"],
    properties: {
      event: { const: event, description: "The name of the event" },
      id: { type: "string", description: "The position in the stream, for Last-Event-ID" },
      data: { ...convert(data, "output"), description: "The data of the event" },
    },
  })),
});
