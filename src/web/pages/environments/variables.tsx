/** The forms that set, paste and delete variables. */

import * as v from "valibot";
import { check } from "../../../http/input.ts";
import {
  addVariables,
  readVariables,
  removeVariable,
  replaceVariables,
  setVariable,
} from "../../../operations/projects/environments.ts";
import { newVariable, variableName } from "../../../schema/environments.ts";
import { toLines, action } from "../../site/action.ts";
import { onePath, pathOf, showEnvironment, slugOf } from "./environment.tsx";
import { PASTE_REFUSED_HINT } from "./list.tsx";

const variableFields = v.strictObject({ name: v.string(), value: v.string(), secret: v.optional(v.literal("true")) });

const pasteFields = v.strictObject({
  text: v.string(),
  secret: v.optional(v.literal("true")),
  replace: v.optional(v.literal("true")),
});

/** Maximum number of names of pasted variables. */
const MAX_NAMES = 50;

const toVariable = ({ name, value, secret }: v.InferOutput<typeof variableFields>) => ({
  ...{ name: name.trim(), value: toLines(value), secret: secret === "true" },
});

const namedVariable = v.strictObject({ name: variableName, ...newVariable.entries });

export const variableForm = action(
  `${onePath}/variables`,
  { access: "owner", fields: variableFields },
  {
    read: ({ fields }) => check(namedVariable, toVariable(fields), false),
    act: (sql, { seal, params }, variable) => setVariable(sql, seal, params, variable),
    record: (_, { params: { environmentId } }, { name }) => ({
      action: "variable.changed",
      subject: name,
      details: { environmentId },
    }),
    refused: (context, text) =>
      showEnvironment(context, { problem: { of: "variable", text }, variable: toVariable(context.fields) }),
    done: ({ params }) => `${pathOf(params)}?notice=set#variables`,
  },
);

export const pasteForm = action(
  `${onePath}/variables/paste`,
  { access: "owner", fields: pasteFields },
  {
    read: ({ fields }) => {
      const secret = fields.secret === "true";
      return new Map(
        [...readVariables(fields.text, "text/plain")].map(([name, { value }]) => [name, { value, secret }]),
      );
    },
    act: async (sql, { seal, params, fields }, variables) => {
      await (fields.replace === "true" ? replaceVariables : addVariables)(sql, seal, params, variables);
      return await slugOf(sql, params);
    },
    record: (slug, { params, fields }, variables) => ({
      action: fields.replace === "true" ? "variables.replaced" : "variable.changed",
      subject: slug,
      details: { environmentId: params.environmentId, names: [...variables.keys()].slice(0, MAX_NAMES) },
    }),
    refused: (context, problem) =>
      showEnvironment(context, { problem: { of: "paste", text: `${problem}; ${PASTE_REFUSED_HINT}` } }),
    done: ({ params }) => `${pathOf(params)}?notice=pasted#variables`,
  },
);

export const deleteVariableForm = action(
  `${onePath}/variables/:variableName/delete`,
  { access: "owner" },
  {
    act: (sql, { params }) => removeVariable(sql, params, params.variableName),
    record: (_, { params: { environmentId, variableName } }) => ({
      action: "variable.deleted",
      subject: variableName,
      details: { environmentId },
    }),
    done: ({ params }) => `${pathOf(params)}?notice=removed#variables`,
  },
);
