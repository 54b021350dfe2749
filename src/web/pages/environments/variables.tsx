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
import { toLines, tryForm } from "../../site/form_input.ts";
import { SeeOther, form } from "../../site/page.ts";
import { write } from "../../site/write.ts";
import { showEnvironment, pathOf, slugOf } from "./environment.tsx";
import { PASTE_REFUSED_HINT } from "./list.tsx";

const variableFields = v.strictObject({ name: v.string(), value: v.string(), secret: v.optional(v.literal("true")) });

const pasteFields = v.strictObject({
  text: v.string(),
  secret: v.optional(v.literal("true")),
  replace: v.optional(v.literal("true")),
});

/** Maximum number of names of pasted variables. */
const MAX_NAMES = 50;

export const variableForm = form(
  "/teams/:teamId/environments/:environmentId/variables",
  { access: "owner", fields: variableFields },
  async (context) => {
    const { seal, params, fields } = context;
    const values = { name: fields.name.trim(), value: toLines(fields.value), secret: fields.secret === "true" };
    const set = await tryForm(() => {
      const { name, ...variable } = check(
        v.strictObject({ name: variableName, ...newVariable.entries }),
        values,
        false,
      );
      return write(
        context,
        "owner",
        (sql) => setVariable(sql, seal, params, { name, ...variable }),
        () => ({
          action: "variable.changed",
          subject: name,
          details: { environmentId: params.environmentId },
        }),
      );
    });
    if ("problem" in set)
      return await showEnvironment(context, { problem: { of: "variable", text: set.problem }, variable: values });
    return new SeeOther(`${pathOf(params)}?notice=set#variables`);
  },
);

export const pasteForm = form(
  "/teams/:teamId/environments/:environmentId/variables/paste",
  { access: "owner", fields: pasteFields },
  async (context) => {
    const { seal, params, fields } = context;
    const secret = fields.secret === "true";
    const pasted = await tryForm(() => {
      const read = readVariables(fields.text, "text/plain");
      const variables = new Map([...read].map(([name, { value }]) => [name, { value, secret }]));
      const put = fields.replace === "true" ? replaceVariables : addVariables;
      return write(
        context,
        "owner",
        async (sql) => {
          await put(sql, seal, params, variables);
          return await slugOf(sql, params);
        },
        (slug) => ({
          action: fields.replace === "true" ? "variables.replaced" : "variable.changed",
          subject: slug,
          details: { environmentId: params.environmentId, names: [...variables.keys()].slice(0, MAX_NAMES) },
        }),
      );
    });
    if ("problem" in pasted)
      return await showEnvironment(context, {
        problem: { of: "paste", text: `${pasted.problem}; ${PASTE_REFUSED_HINT}` },
      });
    return new SeeOther(`${pathOf(params)}?notice=pasted#variables`);
  },
);

export const deleteVariableForm = form(
  "/teams/:teamId/environments/:environmentId/variables/:variableName/delete",
  { access: "owner" },
  async (context) => {
    const { params } = context;
    const { environmentId, variableName } = params;
    await write(
      context,
      "owner",
      (sql) => removeVariable(sql, params, variableName),
      () => ({ action: "variable.deleted", subject: variableName, details: { environmentId } }),
    );
    return new SeeOther(`${pathOf(params)}?notice=removed#variables`);
  },
);
