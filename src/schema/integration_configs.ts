/** The configuration of each kind of integration, and which of its fields are secret. */

import * as v from "valibot";
import { listOf, recordOf } from "./bounded.ts";
import { described, integer, text, uuid, isStorable } from "./fields.ts";
import { privateKey } from "./private_key.ts";

/** The actions of integrations that automations can request. */
export const INTEGRATION_ACTIONS = ["notify", "digest", "create_issue", "set_commit_status", "dispatch"] as const;
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

/** The base address of a service, self-managed or not, without a slash at the end. */
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
export const signingSecret = v.pipe(
  v.string(EXPECTED_SIGNING),
  v.check((value) => {
    if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(value)) return false;
    const { length } = Buffer.from(value.slice(6), "base64");
    return length >= 24 && length <= 64;
  }, EXPECTED_SIGNING),
  v.description("Write-only: null in answers. After a change, the old and the new secret both sign for 24 hours"),
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

/** The pipeline that a CI system starts; each field has its default in the integration. */
export const pipeline = {
  workflow: described(
    v.optional(workflow),
    "GitHub only: the file of the workflow, or its id. Default: the workflow of the integration",
    "tests.yml",
  ),
  ref: described(v.optional(text(200)), "The branch or tag to run. Default: the ref of the integration", "main"),
  inputs: described(
    v.optional(
      recordOf(
        text(100),
        v.pipe(
          v.string("expected a text"),
          v.maxLength(1_000, "expected a text of at most 1000 characters"),
          v.check(isStorable, "expected a text without NUL and invalid characters"),
        ),
        { max: 100, expected: "expected an object", tooMany: "expected at most 100 texts" },
      ),
    ),
    "The inputs of a GitHub workflow (at most 25) or the variables of a GitLab pipeline, as texts by name",
    { browser: "chrome" },
  ),
};

/** The CI system that runs the tasks of an execution, and reports to it. */
export const dispatch = v.strictObject({
  integrationId: described(uuid, "An integration of the project's team that can start pipelines: github or gitlab"),
  ...pipeline,
  ref: v.pipe(pipeline.ref, v.description("Default: the branch of the execution, then the ref of the integration")),
  inputs: v.pipe(
    pipeline.inputs,
    v.description("The id of the execution is added as assay_execution_id or ASSAY_EXECUTION_ID"),
  ),
});
export type Dispatch = v.InferOutput<typeof dispatch>;

const label = text(100);
const labels = described(
  v.optional(listOf(label, { max: 20, expected: "expected a list of labels", tooMany: "expected at most 20 labels" }), [
    "assay",
  ]),
  "The labels of issues, at most 20",
  ["assay"],
);
export const ref = described(v.optional(text(200), "main"), "The default branch or tag of pipelines");
const baseUrl = (service: string, standard: string) =>
  described(v.optional(base, standard), `The address of ${service}; set it for a self-hosted server`, standard);

const EXPECTED_TEAMS = "expected the address of a Workflows webhook: connectors at office.com are retired";
const RETIRED_TEAMS = /(^|\.)(webhook\.office|outlook\.office|outlook\.office365)\.com\.?$/i;

const EXPECTED_HOST = "expected the name or address of a mail server, without port";
const mailHost = v.pipe(
  text(253),
  v.check(
    (value) => /^(?:[a-z0-9_.-]+|[0-9a-f:]*:[0-9a-f:.]*)$/i.test(value) && URL.canParse(urlOfHost(value)),
    EXPECTED_HOST,
  ),
);
const urlOfHost = (host: string) => `http://${host.includes(":") ? `[${host}]` : host}`;

const mailAddress = v.pipe(
  text(254),
  v.regex(/^[^\s@<>()[\],;:\\"\p{Cc}]+@[^\s@<>()[\],;:\\"\p{Cc}]+$/u, "expected an e-mail address"),
);

const EXPECTED_PASSWORD = "expected a text of 1 to 500 characters without control characters";
/** Passwords for applications are written with spaces. */
const password = v.pipe(
  v.string(EXPECTED_PASSWORD),
  v.regex(/^[^\p{Cc}]{1,500}$/u, EXPECTED_PASSWORD),
  v.check(isStorable, EXPECTED_PASSWORD),
  v.description("Write-only: null in answers"),
  v.metadata({ secret: true }),
);

/** How the connection to a mail server is encrypted. */
const MAIL_SECURITY = ["starttls", "tls", "none"] as const;

/** The `config` of each kind. */
export const CONFIGS = {
  webhook: v.strictObject({
    url: described(
      address,
      "The address that receives messages, signed according to Standard Webhooks; a private address is refused unless " +
        "OUTBOUND_ALLOW names it",
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
        // This check also runs if the text is not a URL.
        v.check((value) => !URL.canParse(value) || !RETIRED_TEAMS.test(new URL(value).hostname), EXPECTED_TEAMS),
      ),
      "The address of a Workflows webhook: connectors at office.com are retired. Write-only: null in answers",
      "https://prod-01.westeurope.logic.azure.com/workflows/XXXX",
    ),
  }),
  email: v.pipe(
    v.strictObject({
      host: described(
        mailHost,
        "The mail server (SMTP); a private address is refused unless OUTBOUND_ALLOW names it",
        "smtp.acme.example",
      ),
      port: described(v.optional(integer(1, 65_535), 587), "Its port: usually 587 for starttls, 465 for tls"),
      security: described(
        v.optional(v.picklist(MAIL_SECURITY, `expected "starttls", "tls" or "none"`), "starttls"),
        "starttls: encrypted before anything is sent, or not sent at all; tls: encrypted from the beginning; none: not encrypted, " +
          "which allows no password. The certificate must be valid for the host",
      ),
      user: described(v.optional(v.nullable(text(254)), null), "The user; null: no authentication", "assay"),
      password: described(
        v.optional(v.nullable(password), null),
        "The password of the user; null: no authentication. Write-only: null in answers",
        "correct horse",
      ),
      from: described(mailAddress, "The address of the sender", "assay@acme.example"),
      to: described(
        v.pipe(
          listOf(mailAddress, {
            max: 20,
            expected: "expected a list of e-mail addresses",
            tooMany: "expected 1 to 20 addresses",
          }),
          v.minLength(1, "expected 1 to 20 addresses"),
        ),
        "The recipients, 1 to 20",
        ["team@acme.example"],
      ),
    }),
    v.check(
      ({ user, password }) => (user === null) === (password === null),
      "expected user and password, or none of the two",
    ),
    v.check(
      ({ security, password }) => security !== "none" || password === null,
      `expected the security "starttls" or "tls" with a password`,
    ),
  ),
  github: v.pipe(
    v.strictObject({
      baseUrl: baseUrl("the API of GitHub", "https://api.github.com"),
      repository: described(
        path("expected owner/name", /^[\w.-]+\/[\w.-]+$/),
        "The repository, as owner/name",
        "acme/shop",
      ),
      token: described(
        v.optional(v.nullable(secretText(500)), null),
        "A token for the repository with access to the commit statuses, issues, pull requests and actions that you use; null: " +
          "a GitHub App. Write-only: null in answers",
        "github_pat_XXXX",
      ),
      appId: described(
        v.optional(
          v.nullable(v.pipe(text(100), v.regex(/^[\w.]+$/, "expected the id of a GitHub App, such as 123456"))),
          null,
        ),
        "The id, or client id, of a GitHub App that is installed in the repository: commits then get check runs, with " +
          "annotations where tests failed; null: a token",
        "123456",
      ),
      privateKey: described(
        v.optional(v.nullable(privateKey), null),
        "The private key of the App, in PEM; null: a token. Write-only: null in answers",
      ),
      labels,
      workflow: described(
        v.optional(v.nullable(workflow), null),
        "The file or id of the default workflow; null: none",
        "tests.yml",
      ),
      ref,
    }),
    v.check(
      ({ token, appId, privateKey }) =>
        (appId === null) === (privateKey === null) && (token !== null || appId !== null),
      "expected a token, or the appId and privateKey of a GitHub App",
    ),
  ),
  gitlab: v.strictObject({
    baseUrl: baseUrl("GitLab", "https://gitlab.com"),
    project: described(
      path("expected group/name or an id", /^[\w.-]+(\/[\w.-]+)*$/),
      "The project, as group/name or id",
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
    baseUrl: described(base, "The address of Jira, Cloud or Data Center", "https://acme.atlassian.net"),
    email: v.pipe(
      v.optional(
        v.nullable(v.pipe(text(200), v.regex(/^[^\s:][^\s:@]*@[^\s:]+$/, "expected an e-mail address"))),
        null,
      ),
      v.description(
        "The e-mail address of the token's owner on Jira Cloud; null for Data Center, which needs only the token",
      ),
      v.examples(["ada@acme.example"]),
    ),
    token: described(secretText(1_000), "An API token. Write-only: null in answers", "ATATT-XXXX"),
    projectKey: described(
      path("expected a project key, such as WEB", /^[A-Z][A-Z0-9_]+$/),
      "The key of the Jira project for new issues",
      "WEB",
    ),
    issueType: described(v.optional(text(100), "Bug"), "The type of new issues"),
    labels,
  }),
  linear: v.strictObject({
    baseUrl: baseUrl("the API of Linear", "https://api.linear.app"),
    token: described(secretText(500), "A personal API key. Write-only: null in answers", "lin_api_XXXX"),
    teamId: described(uuid, "The id of the Linear team for new issues"),
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
      "The severity of alerts about failures; other messages have the severity info",
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
