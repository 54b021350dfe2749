/** Integrations: places outside that events go to. */

import * as v from "valibot";
import { recordOf } from "./bounded.ts";
import { count, createdAt, described, patchOf, text, updatedAt, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";
import { INTEGRATION_ACTIONS, signingSecret, CONFIGS, type Kind, KINDS } from "./integration_configs.ts";
import { MAX_WAITING, deliveryStatus } from "./deliveries.ts";

const kind = described(
  v.picklist(KINDS, `expected one of ${KINDS.map((kind) => `"${kind}"`).join(", ")}`),
  "The kind of service",
  "webhook",
);

const common = {
  name: described(v.optional(text(200)), "The display name. Default: the kind", "Team channel"),
  enabled: described(v.optional(v.boolean("expected true or false"), true), "Whether the integration is enabled"),
};

const shownOnce = described(
  v.optional(signingSecret),
  'The key that signs messages: "whsec_" and 24 to 64 bytes in base64. If omitted, it is generated and shown only in this ' +
    "answer",
);
const newConfig = (kind: Kind) =>
  kind === "webhook" ? v.strictObject({ ...CONFIGS.webhook.entries, secret: shownOnce }) : CONFIGS[kind];

type NewIntegration = { kind: Kind; name?: string | undefined; enabled: boolean; config: Record<string, unknown> };

/** One of the kinds with its own config. */
export const newIntegration = v.variant(
  "kind",
  KINDS.map((kind) =>
    v.strictObject({
      kind: described(v.literal(kind), "The kind of service"),
      ...common,
      config: described<v.GenericSchema>(newConfig(kind), "The configuration"),
    }),
  ) as never,
  `expected one of ${KINDS.map((kind) => `"${kind}"`).join(", ")}`,
) as unknown as v.GenericSchema<unknown, NewIntegration>;

export const integrationPatch = patchOf({
  name: described(v.optional(text(200)), "The display name", "Team channel"),
  enabled: described(
    v.optional(v.boolean("expected true or false")),
    "Whether the integration is enabled; true enables it again after Assay has disabled it",
    true,
  ),
  config: v.pipe(
    v.optional(recordOf(v.string(), v.unknown(), { max: 100, expected: "expected an object" })),
    v.description(
      "Omitted fields and null secrets are unchanged; an empty optional secret is removed. If baseUrl changes to " +
        "another server, the secrets must be sent again",
    ),
    v.examples([{ ref: "release" }]),
  ),
});

export const integration = v.strictObject({
  id: described(uuid, "The id of the integration"),
  kind,
  name: described(v.string(), "The display name", "Team channel"),
  enabled: described(v.boolean(), "Whether the integration is enabled", true),
  disabledReason: v.pipe(v.nullable(v.string()), v.description("Why Assay disabled it"), v.examples([null])),
  config: v.pipe(
    v.record(v.string(), v.unknown()),
    v.description("The configuration; secrets are null"),
    v.examples([{ url: "https://hooks.example/assay", secret: null }]),
  ),
  actions: v.pipe(
    v.array(v.picklist(INTEGRATION_ACTIONS)),
    v.description("The actions that automations can use"),
    v.examples([["notify"]]),
  ),
  lastDelivery: described(
    v.nullable(
      v.strictObject({
        id: described(uuid, "The id of the delivery"),
        status: deliveryStatus,
        statusCode: described(v.nullable(count), "The HTTP status of the last answer; null: no answer", 200),
        createdAt,
      }),
    ),
    "The last delivery; null: none yet",
  ),
  givenUp: v.pipe(
    v.optional(count),
    v.description(
      `The number of stored messages that were dropped because more than ${MAX_WAITING} deliveries were waiting. ` +
        "Absent if there are none",
    ),
  ),
  createdAt,
  updatedAt,
});
export type Integration = v.InferOutput<typeof integration>;
export const integrationPage = listPage(integration);
export const integrationFilter = v.strictObject({
  ...pageQuery,
  kind: described(v.optional(kind), "Only integrations of this kind", "slack"),
});

/** The figures that a schedule sends about a project. */
export type ProjectSummary = {
  executions: number;
  failedExecutions: number;
  openBugs: number;
  flakyCases: number;
  since: string;
};
