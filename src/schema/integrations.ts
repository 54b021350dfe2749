/** Integrations: places outside that events go to, what each kind needs to know, and what was delivered there. */

import * as v from "valibot";
import { listOf, recordOf } from "./bounded.ts";
import { count, createdAt, described, patchOf, text, time, updatedAt, uuid, isStorable } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

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
  v.metadata({ format: "uri" }),
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
  workflow: described(
    v.optional(workflow),
    "GitHub only: the file of the workflow, or its id. Default: that of the integration",
    "tests.yml",
  ),
  ref: described(v.optional(text(200)), "The branch or tag that is run. Default: that of the integration", "main"),
  inputs: described(
    v.optional(
      recordOf(
        text(100),
        v.pipe(
          v.string("expected a text"),
          v.maxLength(1_000, "expected a text of at most 1000 characters"),
          v.check(isStorable, "expected a text without NUL and broken characters"),
        ),
        { max: 100, expected: "expected an object", tooMany: "expected at most 100 texts" },
      ),
    ),
    "What the pipeline gets, texts by their names: the inputs of a workflow (GitHub takes 25 in all), the variables of a pipeline",
    { browser: "chrome" },
  ),
};

/** An engine that is to run the tasks of an execution, and reports to it. */
export const dispatch = v.strictObject({
  integrationId: described(uuid, "Of the project's team, of a kind that starts pipelines: github or gitlab"),
  ...pipeline,
  ref: v.pipe(pipeline.ref, v.description("Default: the branch of the execution, else the integration's")),
  inputs: v.pipe(
    pipeline.inputs,
    v.description("The id of the execution goes along, as assay_execution_id or ASSAY_EXECUTION_ID"),
  ),
});
export type Dispatch = v.InferOutput<typeof dispatch>;

const label = text(100);
const labels = described(
  v.optional(listOf(label, { max: 20, expected: "expected a list of labels", tooMany: "expected at most 20 labels" }), [
    "assay",
  ]),
  "What issues are labelled with, at most 20",
  ["assay"],
);
const ref = described(
  v.optional(text(200), "main"),
  "The branch or tag that pipelines are started on, unless something says otherwise",
);
const baseUrl = (service: string, standard: string) =>
  described(v.optional(base, standard), `Where ${service} listens: of a server of your own its address`, standard);

const EXPECTED_TEAMS = "expected the address of a Workflows webhook: connectors at office.com are retired";
const RETIRED_TEAMS = /(^|\.)(webhook\.office|outlook\.office|outlook\.office365)\.com\.?$/i;

/** The `config` of each kind. */
export const CONFIGS = {
  webhook: v.strictObject({
    url: described(
      address,
      "Where messages are posted to, signed as Standard Webhooks says; a private address is refused unless OUTBOUND_ALLOW names it",
      "https://hooks.example/assay",
    ),
    secret: signingSecret,
  }),
  slack: v.strictObject({
    url: described(
      secretAddress,
      "The address of the incoming webhook. Write-only: null in answers",
      "https://hooks.slack.com/services/T000/B000/XXXX",
    ),
  }),
  discord: v.strictObject({
    url: described(
      secretAddress,
      "The address of the webhook. Write-only: null in answers",
      "https://discord.com/api/webhooks/1/XXXX",
    ),
  }),
  teams: v.strictObject({
    url: described(
      v.pipe(
        secretAddress,
        // It is looked at even where it has been found to be no address.
        v.check((value) => !URL.canParse(value) || !RETIRED_TEAMS.test(new URL(value).hostname), EXPECTED_TEAMS),
      ),
      "The address of a Workflows webhook: connectors at office.com are retired. Write-only: null in answers",
      "https://prod-01.westeurope.logic.azure.com/workflows/XXXX",
    ),
  }),
  github: v.strictObject({
    baseUrl: baseUrl("the API of GitHub", "https://api.github.com"),
    repository: described(
      path("expected owner/name", /^[\w.-]+\/[\w.-]+$/),
      "The repository, as owner/name",
      "acme/shop",
    ),
    token: described(
      secretText(500),
      "A token for the repository: commit statuses, issues, pull requests and actions, as far as they are used. Write-only: " +
        "null in answers",
      "github_pat_XXXX",
    ),
    labels,
    workflow: described(
      v.optional(v.nullable(workflow), null),
      "The file of the workflow, or its id, that is started unless something says otherwise; null: none",
      "tests.yml",
    ),
    ref,
  }),
  gitlab: v.strictObject({
    baseUrl: baseUrl("GitLab", "https://gitlab.com"),
    project: described(
      path("expected group/name or an id", /^[\w.-]+(\/[\w.-]+)*$/),
      "The project, as group/name or by its id",
      "acme/shop",
    ),
    token: described(
      secretText(500),
      "A token with the scope api: for commit statuses, issues and notes. Write-only: null in answers",
      "glpat-XXXX",
    ),
    triggerToken: described(
      v.optional(v.nullable(secretText(500)), null),
      "A pipeline trigger token, for starting pipelines; null: none. Write-only: null in answers",
      "glptt-XXXX",
    ),
    labels,
    ref,
  }),
  jira: v.strictObject({
    baseUrl: described(base, "Where Jira listens, Cloud or a Data Center", "https://acme.atlassian.net"),
    email: v.pipe(
      v.optional(
        v.nullable(v.pipe(text(200), v.regex(/^[^\s:][^\s:@]*@[^\s:]+$/, "expected an e-mail address"))),
        null,
      ),
      v.description("Of the token's owner on Jira Cloud; null: a Data Center, whose token stands alone"),
      v.examples(["ada@acme.example"]),
    ),
    token: described(secretText(1_000), "An API token. Write-only: null in answers", "ATATT-XXXX"),
    projectKey: described(
      path("expected a project key, such as WEB", /^[A-Z][A-Z0-9_]+$/),
      "The key of the project in Jira that gets the issues",
      "WEB",
    ),
    issueType: described(v.optional(text(100), "Bug"), "What kind of issue is made"),
    labels,
  }),
  linear: v.strictObject({
    baseUrl: baseUrl("the API of Linear", "https://api.linear.app"),
    token: described(secretText(500), "A personal API key. Write-only: null in answers", "lin_api_XXXX"),
    teamId: described(uuid, "Of the team in Linear that gets the issues"),
  }),
  pagerduty: v.strictObject({
    baseUrl: baseUrl("PagerDuty", "https://events.pagerduty.com"),
    routingKey: described(
      secretText(200),
      "The integration key of a service (Events API v2). Write-only: null in answers",
      "R0XXXX",
    ),
    severity: described(
      v.optional(
        v.picklist(["critical", "error", "warning", "info"], `expected "critical", "error", "warning" or "info"`),
        "error",
      ),
      "How bad bad news is; what is neither bad nor good is info",
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

const kind = described(
  v.picklist(KINDS, `expected one of ${KINDS.map((kind) => `"${kind}"`).join(", ")}`),
  "Which service it is",
  "webhook",
);

const common = {
  name: described(v.optional(text(200)), "What people call it. Default: its kind", "Team channel"),
  enabled: described(v.optional(v.boolean("expected true or false"), true), "Whether anything is sent there"),
};

const shownOnce = described(
  v.optional(signingSecret),
  'What messages are signed with: "whsec_" and 24 to 64 bytes in base64. Left out, it is generated, and shown in this one ' +
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
      kind: described(v.literal(kind), "Which service it is"),
      ...common,
      config: described<v.GenericSchema>(newConfig(kind), "How to reach it"),
    }),
  ) as never,
  `expected one of ${KINDS.map((kind) => `"${kind}"`).join(", ")}`,
) as unknown as v.GenericSchema<unknown, NewIntegration>;

export const integrationPatch = patchOf({
  name: described(v.optional(text(200)), "What people call it", "Team channel"),
  enabled: described(
    v.optional(v.boolean("expected true or false")),
    "Whether anything is sent there; true also after Assay has disabled it",
    true,
  ),
  config: v.pipe(
    v.optional(recordOf(v.string(), v.unknown(), { max: 100, expected: "expected an object" })),
    v.description(
      "Fields that are left out, and secrets that are null, stay as they are; an optional secret that is empty is removed. " +
        "Another server in baseUrl wants the secrets again",
    ),
    v.examples([{ ref: "release" }]),
  ),
});

/** So many deliveries wait for an integration at most: the oldest messages are given up for newer ones. */
export const MAX_WAITING = 1_000;

const DELIVERY_STATUSES = ["pending", "sent", "failed"] as const;
export const deliveryStatus = described(
  v.picklist(DELIVERY_STATUSES, `expected "pending", "sent" or "failed"`),
  "pending: it is still tried; sent: the receiver has taken it; failed: it was given up",
  "sent",
);
export type DeliveryStatus = v.InferOutput<typeof deliveryStatus>;

/** One try to deliver something. */
export const deliveryAttempt = v.strictObject({
  attemptedAt: described(time, "When it was tried"),
  statusCode: described(v.nullable(count), "The status of the answer; null: there was none", 200),
  latencyMs: described(count, "How many milliseconds the answer took", 120),
  answer: v.pipe(v.nullable(v.string()), v.description("The first 1 KiB of it"), v.examples(["ok"])),
  error: v.pipe(v.nullable(v.string()), v.description("Why it does not count as sent"), v.examples([null])),
});
export type DeliveryAttempt = v.InferOutput<typeof deliveryAttempt>;

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
  eventType: described(
    v.string(),
    "What it tells of: the type of an event, schedule, dispatch or test",
    "execution.failed",
  ),
  action: described(v.picklist(INTEGRATION_ACTIONS), "What the integration was asked for", "notify"),
  title: described(v.string(), "What it says, in a line", "shop: main is red"),
  status: deliveryStatus,
  attempts: v.pipe(v.array(deliveryAttempt), v.description("The last 20")),
  nextAttemptAt: described(v.nullable(time), "When it is tried next; null: not any more"),
  createdAt,
});
export type Delivery = v.InferOutput<typeof delivery>;
export const deliveryPage = listPage(delivery);
export const deliveryFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(deliveryStatus), "Only those of this status: pending, sent or failed", "failed"),
});

export const integration = v.strictObject({
  id: described(uuid, "The id of the integration"),
  kind,
  name: described(v.string(), "What people call it", "Team channel"),
  enabled: described(v.boolean(), "Whether anything is sent there", true),
  disabledReason: v.pipe(v.nullable(v.string()), v.description("Why Assay has disabled it"), v.examples([null])),
  config: v.pipe(
    v.record(v.string(), v.unknown()),
    v.description("How to reach it; secrets are null"),
    v.examples([{ url: "https://hooks.example/assay", secret: null }]),
  ),
  actions: v.pipe(
    v.array(v.picklist(INTEGRATION_ACTIONS)),
    v.description("What automations can ask of it"),
    v.examples([["notify"]]),
  ),
  lastDelivery: described(
    v.nullable(
      v.strictObject({
        id: described(uuid, "The id of the delivery"),
        status: deliveryStatus,
        statusCode: described(v.nullable(count), "The status of the last answer; null: there was none", 200),
        createdAt,
      }),
    ),
    "What was last sent there, or is to be; null: nothing yet",
  ),
  givenUp: v.pipe(
    v.optional(count),
    v.description(
      `Messages that were not sent because more than ${MAX_WAITING} deliveries were waiting: the oldest are given up; ` +
        "of those that are kept. Only there when there are some",
    ),
  ),
  createdAt,
  updatedAt,
});
export type Integration = v.InferOutput<typeof integration>;
export const integrationPage = listPage(integration);
export const integrationFilter = v.strictObject({
  ...pageQuery,
  kind: described(v.optional(kind), "Only those of this kind", "slack"),
});
