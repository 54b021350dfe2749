/** The pages that create an integration: choose a kind, then fill in its fields. */

import * as v from "valibot";
import type { Path } from "../../../http/html.ts";
import { check } from "../../../http/input.ts";
import { createIntegration, createSigningSecret } from "../../../operations/automation/integrations.ts";
import { KINDS, type Kind } from "../../../schema/integration_configs.ts";
import { newIntegration } from "../../../schema/integrations.ts";
import { FormError, Form, field, Hidden } from "../../components/form.tsx";
import { type View, page, type TeamContext } from "../../site/page.ts";
import { type ConfigFields, KIND_NAMES, configFields, configForm, toConfig, toConfigFields } from "./fields.tsx";
import { action } from "../../site/action.ts";

const chooseKind = (base: Path): View => ({
  title: "New integration",
  section: "integrations",
  body: (
    <>
      <h1>New integration</h1>
      <p class="meta">
        <span>Choose where to send messages.</span>
      </p>
      <div class="card top">
        <table>
          <caption class="visually-hidden">Kinds of integrations</caption>
          <tbody>
            {KINDS.map((kind) => {
              const [name, use] = KIND_NAMES[kind];
              return (
                <tr>
                  <td>
                    <a href={`${base}/new?kind=${kind}`}>
                      <b>{name}</b>
                    </a>
                  </td>
                  <td class="soft">{use}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  ),
});

export type FormValues = { name: string; config: ConfigFields };

function createForm({ team, csrf }: TeamContext, kind: Kind, values: FormValues, problem?: string): View {
  const base: Path = `/teams/${team.id}/integrations`;
  const [name, use] = KIND_NAMES[kind];
  const body = (
    <>
      <h1>New integration: {name}</h1>
      <p class="meta">
        <span>{use}</span>
        <a href={`${base}/new`}>Choose another kind</a>
      </p>
      <FormError message={problem} />
      <Form to={`${base}/new`} csrf={csrf} button="Create integration" kind="fields card padded top">
        <Hidden name="kind" value={kind} />
        {field(values, "name", "Name", {
          max: 200,
          placeholder: name,
          hint: `The name of the integration. If empty: ${kind}.`,
        })}
        {configForm(kind, values.config, "new")}
      </Form>
    </>
  );
  return { title: "New integration", body, section: "integrations", ...(problem === undefined ? {} : { status: 400 }) };
}

const newConfigFields = (kind: Kind): ConfigFields => ({
  ...toConfigFields(kind, undefined),
  ...(kind === "webhook" ? { "config.secret": createSigningSecret() } : {}),
});

const createFields = v.strictObject({ kind: v.picklist(KINDS), name: v.string(), ...configFields });

export const toFormValues = (fields: Record<string, string | undefined>): FormValues => ({
  name: fields["name"] ?? "",
  config: fields,
});

export const newPage = page(
  "/teams/:teamId/integrations/new",
  { access: "owner", query: v.strictObject({ kind: v.optional(v.picklist(KINDS)) }) },
  async (context) => {
    const { kind } = context.query;
    if (kind === undefined) return chooseKind(`/teams/${context.team.id}/integrations`);
    return createForm(context, kind, { name: "", config: newConfigFields(kind) });
  },
);

export const createIntegrationForm = action(
  "/teams/:teamId/integrations/new",
  { access: "owner", fields: createFields },
  {
    read: ({ fields }) => {
      const { name, config } = toFormValues(fields as never);
      const { kind } = fields;
      const named = name.trim() === "" ? {} : { name: name.trim() };
      return check(newIntegration, { kind, ...named, config: toConfig(kind, config, "new") }, false);
    },
    act: (sql, context, wanted) => createIntegration(sql, context, context.team.id, wanted),
    record: ({ integration: { id, name, kind } }) => ({
      action: "integration.created",
      subject: name,
      details: { integrationId: id, kind },
    }),
    refused: (context, problem) =>
      createForm(context, context.fields.kind, toFormValues(context.fields as never), problem),
    done: ({ team }, { integration }) => `/teams/${team.id}/integrations/${integration.id}?notice=created`,
  },
);
