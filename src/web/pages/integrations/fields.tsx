/** The config of an integration as fields of a form, made from the schema of its kind. */

import * as v from "valibot";
import type { Html } from "../../../http/html.ts";
import { CONFIGS, type Kind, SECRETS } from "../../../schema/integration_configs.ts";
import { Field, Select, Checkbox } from "../../components/form.tsx";
import { splitList } from "../../site/action.ts";

/** The names and descriptions of the kinds. */
export const KIND_NAMES: Record<Kind, readonly [name: string, use: string]> = {
  webhook: ["Webhook", "signed requests to your own service"],
  slack: ["Slack", "messages to a channel"],
  discord: ["Discord", "messages to a channel"],
  teams: ["Microsoft Teams", "messages to a channel, by a Workflows webhook"],
  email: ["E-mail", "messages to people and lists, by SMTP"],
  github: ["GitHub", "commit statuses, comments, issues, workflows"],
  gitlab: ["GitLab", "commit statuses, comments, issues, pipelines"],
  jira: ["Jira", "issues for bugs"],
  linear: ["Linear", "issues for bugs"],
  pagerduty: ["PagerDuty", "incidents that open and close"],
};

type Entry = {
  name: string;
  isSecret: boolean;
  isRequired: boolean;
  /** Whether an empty field means null. */
  isNullable: boolean;
  isList: boolean;
  isNumber: boolean;
  choices: readonly string[] | undefined;
  /** The default value. */
  fallback: unknown;
};

type Wrapped = v.GenericSchema & { wrapped?: v.GenericSchema; default?: unknown; options?: readonly string[] };

function toEntry(kind: Kind, name: string, schema: v.GenericSchema): Entry {
  const entry: Entry = {
    name,
    isSecret: SECRETS[kind].includes(name),
    isRequired: true,
    isNullable: false,
    isList: false,
    isNumber: false,
    choices: undefined,
    fallback: undefined,
  };
  let inner = schema as Wrapped;
  for (; inner.wrapped; inner = inner.wrapped as Wrapped) {
    if (inner.type === "nullable") entry.isNullable = true;
    if (inner.type !== "optional") continue;
    entry.isRequired = false;
    entry.fallback = inner.default;
  }
  entry.isList = inner.type === "array";
  entry.isNumber = inner.type === "number";
  if (inner.type === "picklist") entry.choices = inner.options;
  return entry;
}

const entriesOf = (kind: Kind): Entry[] =>
  Object.entries(CONFIGS[kind].entries).map(([name, schema]) => toEntry(kind, name, schema as v.GenericSchema));

const LABELS: Record<string, string> = {
  url: "Address",
  secret: "Signing secret",
  baseUrl: "Server",
  repository: "Repository",
  project: "Project",
  projectKey: "Project key",
  token: "Token",
  triggerToken: "Trigger token",
  appId: "App ID",
  privateKey: "Private key of the App",
  workflow: "Workflow",
  ref: "Branch to start pipelines on",
  email: "E-mail of the token's owner",
  issueType: "Type of issues",
  teamId: "Team in Linear",
  routingKey: "Integration key",
  labels: "Labels of issues",
  to: "Recipients",
};

/** Hints for fields, by kind and name or by name. */
const HINTS: Record<string, string> = {
  "webhook.url": "Receives a POST for every message, signed according to Standard Webhooks.",
  "webhook.secret": "After a replacement, messages are signed with both secrets for 24 hours.",
  "slack.url": "The address of an incoming webhook of a Slack app.",
  "discord.url": "The address of a webhook of the channel.",
  "teams.url": "The address of a flow that posts to the channel when a webhook request is received.",
  "github.token":
    "Fine-grained, for this repository: commit statuses, issues, pull requests and actions, depending on what you use. Leave empty to use a GitHub App.",
  "github.appId":
    "A GitHub App that is installed in the repository makes check runs with annotations instead of commit statuses. It needs write access to checks, and to issues, pull requests and actions, depending on what you use.",
  "github.privateKey": "The whole .pem file.",
  "github.workflow": "The workflow that automations start, such as tests.yml. If empty, each automation names its own.",
  "gitlab.token": "An access token of the project or group with the scope api.",
  "gitlab.triggerToken": "A pipeline trigger token. If empty, pipelines are started with the access token.",
  "gitlab.project": "The path or the id of the project.",
  "jira.email": "For Jira Cloud. Leave empty for Jira Data Center.",
  "linear.teamId": "The id of the team that gets the issues, a UUID.",
  "pagerduty.routingKey": "The integration key of an Events API v2 integration of the service.",
  "email.host": "A mail server that accepts messages from this server (SMTP).",
  "email.port": "Usually 587 for starttls and 465 for tls.",
  "email.user": "Leave user and password empty if the server asks for none.",
  "email.to": "1 to 20 addresses, separated by commas.",
  labels: "Separated by commas.",
};

const PLACEHOLDERS: Record<string, string> = {
  "webhook.url": "https://example.com/assay",
  "slack.url": "https://hooks.slack.com/services/…",
  "discord.url": "https://discord.com/api/webhooks/…",
  "email.host": "smtp.example.com",
  "email.from": "assay@example.com",
  "email.to": "team@example.com",
  "github.repository": "acme/shop",
  "github.appId": "123456",
  "github.workflow": "tests.yml",
  "gitlab.project": "acme/shop",
  "jira.baseUrl": "https://acme.atlassian.net",
  "jira.projectKey": "WEB",
};

const labelOf = (name: string) =>
  LABELS[name] ??
  name
    .replace(/^./, (first) => first.toUpperCase())
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim();

const fieldName = (name: string) => `config.${name}`;
const forgetName = (name: string) => `forget.${name}`;

/** The fields of every kind, as a form sends them. */
export const configFields = Object.fromEntries(
  Object.values(CONFIGS).flatMap(({ entries }) =>
    Object.keys(entries).flatMap((name) => [
      [fieldName(name), v.optional(v.string())] as const,
      [forgetName(name), v.optional(v.literal("true"))] as const,
    ]),
  ),
);
export type ConfigFields = Record<string, string | undefined>;

/** Converts fields to a config for validation. Empty fields are left out, or cleared if the field allows it. */
export function toConfig(kind: Kind, values: ConfigFields, how: "new" | "change"): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  for (const { name, isSecret, isNullable, isList, isNumber, fallback } of entriesOf(kind)) {
    const text = values[fieldName(name)]?.trim() ?? "";
    if (isList) config[name] = splitList(text);
    else if (isNumber && /^\d{1,15}$/.test(text)) config[name] = Number(text);
    else if (text !== "") config[name] = text;
    else if (isSecret) {
      if (how === "change" && values[forgetName(name)] === "true") config[name] = "";
    } else if (isNullable) config[name] = null;
    else if (how === "change" && fallback !== undefined) config[name] = fallback;
    // An emptied required field must be refused instead of keeping its value.
    else if (how === "change") config[name] = "";
  }
  return config;
}

/** Converts a stored config to form fields. Secrets are not included. */
export const toConfigFields = (kind: Kind, config: Record<string, unknown> | undefined): ConfigFields =>
  Object.fromEntries(
    entriesOf(kind).map(({ name, isSecret, fallback }) => {
      const value = isSecret ? undefined : (config?.[name] ?? fallback);
      return [fieldName(name), Array.isArray(value) ? value.join(", ") : value == null ? "" : String(value)];
    }),
  );

/** `how` "change": secrets that are left empty stay unchanged. */
export function configForm(kind: Kind, values: ConfigFields, how: "new" | "change"): Html[] {
  return entriesOf(kind).map(({ name, isSecret, isRequired, isNullable, isList, choices, fallback }) => {
    const label = labelOf(name);
    const known = HINTS[`${kind}.${name}`] ?? HINTS[name];
    const value = values[fieldName(name)];
    const placeholder = PLACEHOLDERS[`${kind}.${name}`];
    if (choices)
      return (
        <Select
          label={label}
          name={fieldName(name)}
          options={choices.map((one) => [one, one] as const)}
          value={value || String(fallback)}
        />
      );
    if (kind === "webhook" && isSecret && how === "new")
      return (
        <Field
          label={label}
          name={fieldName(name)}
          {...{ value, required: true, isCode: true, max: 100 }}
          hint="The receiver verifies signatures with it. Copy it now; it is not shown again."
        />
      );
    if (isSecret) {
      const keep = how === "change" ? "The value is set and cannot be viewed. Leave empty to keep it." : undefined;
      const secret = (
        <Field
          label={label}
          name={fieldName(name)}
          type="secret"
          required={isRequired && how === "new"}
          max={10_000}
          {...(how === "change" ? { placeholder: "••••••••" } : placeholder ? { placeholder } : {})}
          hint={[known, keep].filter(Boolean).join(" ") || undefined}
        />
      );
      return isNullable && how === "change" ? (
        <>
          {secret}
          <Checkbox label={`Remove the ${label.toLowerCase()}`} name={forgetName(name)} checked={false} />
        </>
      ) : (
        secret
      );
    }
    return (
      <Field
        label={label}
        name={fieldName(name)}
        value={value}
        required={isRequired && !isList}
        isCode={!isList}
        max={2000}
        {...(placeholder ? { placeholder } : {})}
        hint={known}
      />
    );
  });
}
