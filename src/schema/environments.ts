/** Environments of a team and their variables. */

import * as v from "valibot";
import { count, httpUrl, isStorable, patchOf, text, time, uuid } from "./fields.ts";
import { page, pageQuery } from "./page.ts";

const EXPECTED_SLUG = `expected lower-case letters, digits, "-" and "_", at most 100, such as "staging"`;
const environmentSlug = v.pipe(v.string(EXPECTED_SLUG), v.regex(/^[a-z0-9][a-z0-9_-]{0,99}$/, EXPECTED_SLUG));

export const environment = v.strictObject({
  id: uuid,
  slug: v.string(),
  name: v.string(),
  baseUrl: v.nullable(v.string()),
  description: v.nullable(v.string()),
  variableCount: count,
  createdAt: time,
  updatedAt: time,
});
export type Environment = v.InferOutput<typeof environment>;
export const environmentPage = page(environment);
export const environmentFilter = v.strictObject(pageQuery);

export const newEnvironment = v.strictObject({
  slug: environmentSlug,
  name: v.optional(text(200)),
  baseUrl: v.optional(v.nullable(httpUrl)),
  description: v.optional(v.nullable(text(10_000))),
});
export type NewEnvironment = v.InferOutput<typeof newEnvironment>;

export const environmentPatch = patchOf({ ...newEnvironment.entries, slug: v.optional(environmentSlug) });
export type EnvironmentPatch = v.InferOutput<typeof environmentPatch>;

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const EXPECTED_NAME = "expected a name of letters, digits and _, at most 128, not beginning with a digit";
export const variableName = v.pipe(v.string(EXPECTED_NAME), v.regex(VARIABLE_NAME, EXPECTED_NAME));

const MAX_VALUE_BYTES = 65_536;
const EXPECTED_SIZE = "expected a text of at most 64 KiB";
const variableValue = v.pipe(
  v.string(EXPECTED_SIZE),
  v.check((value) => value.length <= MAX_VALUE_BYTES && Buffer.byteLength(value) <= MAX_VALUE_BYTES, EXPECTED_SIZE),
  v.check(isStorable, "expected a text without NUL and broken characters"),
);

export const variable = v.strictObject({
  name: v.string(),
  secret: v.boolean(),
  value: v.pipe(v.nullable(v.string()), v.description("null for a secret: it is write-only, for ever")),
  updatedAt: time,
});
export type Variable = v.InferOutput<typeof variable>;
export const variablePage = page(variable);
export const variableFilter = v.strictObject(pageQuery);

const secret = v.pipe(v.optional(v.boolean("expected true or false"), true), v.description("Write-only"));
export const newVariable = v.strictObject({ value: variableValue, secret });

/** Of one execution: they win over those of its environment. */
export const executionVariables = v.pipe(
  v.record(variableName, variableValue, "expected an object of names and texts"),
  v.check((variables) => Object.keys(variables).length <= 200, "expected at most 200 variables"),
);
export type ExecutionVariables = v.InferOutput<typeof executionVariables>;

/** What PUT …/variables takes as JSON for each name: a value, or a value with its kind. */
export const variableOrValue = v.union(
  [
    newVariable,
    v.pipe(
      variableValue,
      v.transform((value) => ({ value, secret: true })),
    ),
  ],
  "expected a text, or an object with value and secret",
);
export const MAX_VARIABLES = 1_000;

export const replacedVariables = v.strictObject({ variableCount: count });
