/** Integrations: places outside that events go to, what each kind needs to know, and what was delivered there. */

import * as v from "valibot";
import type { EventType } from "./events.ts";
import { count, patchOf, text, time, uuid } from "./fields.ts";
import { page, pageQuery } from "./page.ts";

/** What an automation can ask of an integration. */
const INTEGRATION_ACTIONS = ["notify", "create_issue", "set_commit_status", "dispatch"] as const;
export type IntegrationAction = (typeof INTEGRATION_ACTIONS)[number];

const EXPECTED_ADDRESS = "expected an http or https address without user, password and fragment";
const address = v.pipe(
  text(2_000),
  v.check((value) => {
    if (!/^https?:\/\/[^\s\\]+$/i.test(value) || !URL.canParse(value)) return false;
    const { username, password, hash } = new URL(value);
    return username === "" && password === "" && hash === "" && !value.includes("#");
  }, EXPECTED_ADDRESS),
);

/** Where a service listens; a self-managed one elsewhere. Without a slash at the end. */
const base = v.pipe(
  address,
  v.check((value) => !value.includes("?"), "expected an address without query"),
  v.transform((value) => value.replace(/\/+$/, "")),
);

/** Write-only. A header cannot hold everything that a text can. */
const secretText = (max: number) => {
  const expected = `expected a text of 1 to ${max} printable characters without spaces`;
  return v.pipe(
    v.string(expected),
    v.regex(/^[\x21-\x7e]+$/, expected),
    v.maxLength(max, expected),
    v.description("Write-only: null in answers"),
    v.metadata({ secret: true }),
  );
};
const secretAddress = v.pipe(address, v.description("Write-only: null in answers"), v.metadata({ secret: true }));

const EXPECTED_SIGNING = `expected "whsec_" and 24 to 64 bytes in base64, as in whsec_$(openssl rand -base64 32)`;
const signingSecret = v.pipe(
  v.string(EXPECTED_SIGNING),
  v.check((value) => {
    if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(value)) return false;
    const { length } = Buffer.from(value.slice(6), "base64");
    return length >= 24 && length <= 64;
  }, EXPECTED_SIGNING),
  v.description("Write-only: null in answers. When it is replaced, both sign for 24 hours"),
  v.metadata({ secret: true }),
);

/** Part of an address: "." and ".." would lead out of it. */
const path = (expected: string, pattern: RegExp) =>
  v.pipe(
    text(200),
    v.regex(pattern, expected),
    v.check((value) => !/(^|\/)\.{1,2}(\/|$)/.test(value), expected),
  );
const workflow = path("expected a workflow file or its id", /^[\w.-]+$/);

/** GitHub takes no more, the execution's id among them. */
export const MAX_INPUTS = 25;

/** What an engine is asked to start; each part has its default in the integration. */
export const pipeline = {
  workflow: v.optional(workflow),
  ref: v.optional(text(200)),
  inputs: v.optional(
    v.record(
      text(100),
      v.pipe(v.string("expected a text"), v.maxLength(1_000, "expected a text of at most 1000 characters")),
      "expected an object",
    ),
  ),
};

/** An engine that is to run the tasks of an execution, and reports to it. */
export const dispatch = v.strictObject({
  integrationId: v.pipe(uuid, v.description("Of the project's team, of a kind that starts pipelines")),
  ...pipeline,
  ref: v.pipe(pipeline.ref, v.description("Default: the branch of the execution, else the integration's")),
  inputs: v.pipe(
    pipeline.inputs,
    v.description("The id of the execution goes along, as assay_execution_id or ASSAY_EXECUTION_ID"),
  ),
});
export type Dispatch = v.InferOutput<typeof dispatch>;

const label = text(100);
const labels = v.optional(
  v.pipe(v.array(label, "expected a list of labels"), v.maxLength(20, "expected at most 20 labels")),
  ["assay"],
);

const EXPECTED_TEAMS = "expected the address of a Workflows webhook: connectors at office.com are retired";
const RETIRED_TEAMS = /(^|\.)(webhook\.office|outlook\.office|outlook\.office365)\.com\.?$/i;

/** The `config` of each kind. */
export const CONFIGS = {
  webhook: v.strictObject({ url: address, secret: signingSecret }),
  slack: v.strictObject({ url: secretAddress }),
  discord: v.strictObject({ url: secretAddress }),
  teams: v.strictObject({
    url: v.pipe(
      secretAddress,
      // It is looked at even where it has been found to be no address.
      v.check((value) => !URL.canParse(value) || !RETIRED_TEAMS.test(new URL(value).hostname), EXPECTED_TEAMS),
    ),
  }),
  github: v.strictObject({
    baseUrl: v.optional(base, "https://api.github.com"),
    repository: path("expected owner/name", /^[\w.-]+\/[\w.-]+$/),
    token: secretText(500),
    labels,
    workflow: v.optional(v.nullable(workflow), null),
    ref: v.optional(text(200), "main"),
  }),
  gitlab: v.strictObject({
    baseUrl: v.optional(base, "https://gitlab.com"),
    project: path("expected group/name or an id", /^[\w.-]+(\/[\w.-]+)*$/),
    token: secretText(500),
    triggerToken: v.optional(v.nullable(secretText(500)), null),
    labels,
    ref: v.optional(text(200), "main"),
  }),
  jira: v.strictObject({
    baseUrl: base,
    email: v.pipe(
      v.optional(
        v.nullable(v.pipe(text(200), v.regex(/^[^\s:][^\s:@]*@[^\s:]+$/, "expected an e-mail address"))),
        null,
      ),
      v.description("Of the token's owner on Jira Cloud; null: a Data Center, whose token stands alone"),
    ),
    token: secretText(1_000),
    projectKey: path("expected a project key, such as WEB", /^[A-Z][A-Z0-9_]+$/),
    issueType: v.optional(text(100), "Bug"),
    labels,
  }),
  linear: v.strictObject({
    baseUrl: v.optional(base, "https://api.linear.app"),
    token: secretText(500),
    teamId: v.pipe(uuid, v.description("Of the team in Linear that gets the issues")),
  }),
  pagerduty: v.strictObject({
    baseUrl: v.optional(base, "https://events.pagerduty.com"),
    routingKey: secretText(200),
    severity: v.optional(
      v.picklist(["critical", "error", "warning", "info"], `expected "critical", "error", "warning" or "info"`),
      "error",
    ),
  }),
};

export type Kind = keyof typeof CONFIGS;
export type ConfigOf<K extends Kind> = v.InferOutput<(typeof CONFIGS)[K]>;
export const KINDS = Object.keys(CONFIGS) as Kind[];

const isSecretSchema = (schema: v.GenericSchema): boolean => {
  if ((v.getMetadata(schema as never) as { secret?: boolean }).secret) return true;
  return "wrapped" in schema && isSecretSchema(schema.wrapped as v.GenericSchema);
};

/** The fields of each kind's config that are write-only. */
export const SECRETS = Object.fromEntries(
  Object.entries(CONFIGS).map(([kind, { entries }]) => [
    kind,
    Object.entries(entries).flatMap(([name, schema]) => (isSecretSchema(schema as v.GenericSchema) ? [name] : [])),
  ]),
) as Record<Kind, string[]>;

const kind = v.picklist(KINDS, `expected one of ${KINDS.map((kind) => `"${kind}"`).join(", ")}`);

const common = {
  name: v.optional(text(200)),
  enabled: v.optional(v.boolean("expected true or false"), true),
};

const shownOnce = v.pipe(
  v.optional(signingSecret),
  v.description("Left out, it is generated, and shown in this one answer"),
);
const newConfig = (kind: Kind) =>
  kind === "webhook" ? v.strictObject({ ...CONFIGS.webhook.entries, secret: shownOnce }) : CONFIGS[kind];

type NewIntegration = { kind: Kind; name?: string | undefined; enabled: boolean; config: Record<string, unknown> };

/** One of the kinds with its own config. */
export const newIntegration = v.variant(
  "kind",
  KINDS.map((kind) => v.strictObject({ kind: v.literal(kind), ...common, config: newConfig(kind) })) as never,
  `expected one of ${KINDS.map((kind) => `"${kind}"`).join(", ")}`,
) as unknown as v.GenericSchema<unknown, NewIntegration>;

export const integrationPatch = patchOf({
  name: v.optional(text(200)),
  enabled: v.optional(v.boolean("expected true or false")),
  config: v.pipe(
    v.optional(v.record(v.string(), v.unknown(), "expected an object")),
    v.description(
      "Fields that are left out, and secrets that are null, stay as they are; an optional secret that is empty is removed. " +
        "Another server in baseUrl wants the secrets again",
    ),
  ),
});

/** So many deliveries wait for an integration at most: the oldest messages are given up for newer ones. */
export const MAX_WAITING = 1_000;

const DELIVERY_STATUSES = ["pending", "sent", "failed"] as const;
export const deliveryStatus = v.picklist(DELIVERY_STATUSES, `expected "pending", "sent" or "failed"`);
export type DeliveryStatus = v.InferOutput<typeof deliveryStatus>;

/** One try to deliver something. */
export const attempt = v.strictObject({
  attemptedAt: time,
  statusCode: v.pipe(v.nullable(count), v.description("null: there was no answer")),
  latencyMs: count,
  answer: v.pipe(v.nullable(v.string()), v.description("The first 1 KiB of it")),
  error: v.pipe(v.nullable(v.string()), v.description("Why it does not count as sent")),
});
export type DeliveryAttempt = v.InferOutput<typeof attempt>;

/** What an attempt says when nothing was sent, and why. */
export const notSent = (now: Date, error: string): DeliveryAttempt => ({
  attemptedAt: now.toISOString(),
  statusCode: null,
  latencyMs: 0,
  answer: null,
  error,
});

export const delivery = v.strictObject({
  id: v.pipe(uuid, v.description("The webhook-id, the same at every attempt")),
  eventId: v.pipe(v.nullable(uuid), v.description("null: a test, or a schedule")),
  eventType: v.string(),
  action: v.picklist(INTEGRATION_ACTIONS),
  title: v.string(),
  status: deliveryStatus,
  attempts: v.pipe(v.array(attempt), v.description("The last 20")),
  nextAttemptAt: v.nullable(time),
  createdAt: time,
});
export type Delivery = v.InferOutput<typeof delivery>;
export const deliveryPage = page(delivery);
export const deliveryFilter = v.strictObject({ ...pageQuery, status: v.optional(deliveryStatus) });

export const integration = v.strictObject({
  id: uuid,
  kind,
  name: v.string(),
  enabled: v.boolean(),
  disabledReason: v.pipe(v.nullable(v.string()), v.description("Why Assay has disabled it")),
  config: v.pipe(v.record(v.string(), v.unknown()), v.description("Secrets are null")),
  actions: v.pipe(v.array(v.picklist(INTEGRATION_ACTIONS)), v.description("What automations can ask of it")),
  lastDelivery: v.nullable(
    v.strictObject({ id: uuid, status: deliveryStatus, statusCode: v.nullable(count), createdAt: time }),
  ),
  givenUp: v.pipe(
    v.optional(count),
    v.description(
      `Messages that were not sent because more than ${MAX_WAITING} deliveries were waiting: the oldest are given up; ` +
        "of those that are kept. Only there when there are some",
    ),
  ),
  createdAt: time,
  updatedAt: time,
});
export type Integration = v.InferOutput<typeof integration>;
export const integrationPage = page(integration);
export const integrationFilter = v.strictObject({ ...pageQuery, kind: v.optional(kind) });

/** What there is to tell, for people and for programs; every sender makes its own request of it. */
export type Notice = {
  type: EventType | "schedule" | "dispatch" | "test";
  occurredAt: string;
  tone: "bad" | "good" | "neutral";
  title: string;
  /** What an issue about it is called. */
  subject: string;
  /** One line. */
  text: string;
  facts: { name: string; value: string }[];
  /** A line each: failed tests. */
  lines: string[];
  /** Its dashboard page. */
  url: string | null;
  buildUrl: string | null;
  branch: string | null;
  commit: string | null;
  pullRequest: string | null;
  /** What is wrong or right again: the same for the bad news and the good. */
  topic: string;
  /** Of its commit. */
  state: "success" | "failure" | "error" | null;
  /** The webhook's `data`. */
  data: Record<string, unknown>;
};
