/** Environments of a team and their variables. */

import * as v from "valibot";
import { recordOf } from "./bounded.ts";
import { count, createdAt, described, httpUrl, isStorable, patchOf, text, updatedAt, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

const EXPECTED_SLUG = `expected lower-case letters, digits, "-" and "_", at most 100, such as "staging"`;
const environmentSlug = v.pipe(v.string(EXPECTED_SLUG), v.regex(/^[a-z0-9][a-z0-9_-]{0,99}$/, EXPECTED_SLUG));

export const environment = v.strictObject({
  id: described(uuid, "The id of the environment"),
  slug: described(v.string(), "The name that executions use", "staging"),
  name: described(v.string(), "The display name", "Staging"),
  baseUrl: described(
    v.nullable(v.string()),
    "The address of the system under test; null: none",
    "https://staging.shop.example",
  ),
  description: described(v.nullable(v.string()), "The description", "Reset every night"),
  variableCount: described(count, "The number of variables", 4),
  createdAt,
  updatedAt,
});
export type Environment = v.InferOutput<typeof environment>;
export const environmentPage = listPage(environment);
export const environmentFilter = v.strictObject(pageQuery);

export const newEnvironment = v.strictObject({
  slug: described(
    environmentSlug,
    'The name that executions use, unique in the team: lower-case letters, digits, "-" and "_", at most 100',
    "staging",
  ),
  name: described(v.optional(text(200)), "The display name. Default for a new environment: the slug", "Staging"),
  baseUrl: described(
    v.optional(v.nullable(httpUrl)),
    "The http or https address of the system under test, passed to runners; null: none",
    "https://staging.shop.example",
  ),
  description: described(v.optional(v.nullable(text(10_000))), "The description", "Reset every night"),
});
export type NewEnvironment = v.InferOutput<typeof newEnvironment>;

export const environmentPatch = patchOf({
  ...newEnvironment.entries,
  slug: described(
    v.optional(environmentSlug),
    "The name that executions use; existing executions keep the previous name",
    "staging",
  ),
});
export type EnvironmentPatch = v.InferOutput<typeof environmentPatch>;

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const EXPECTED_NAME = "expected a name of letters, digits and _, at most 128, not beginning with a digit";
export const variableName = v.pipe(v.string(EXPECTED_NAME), v.regex(VARIABLE_NAME, EXPECTED_NAME));

const MAX_VALUE_BYTES = 65_536;
const EXPECTED_SIZE = "expected a text of at most 64 KiB";
const variableValue = v.pipe(
  v.string(EXPECTED_SIZE),
  v.check((value) => value.length <= MAX_VALUE_BYTES && Buffer.byteLength(value) <= MAX_VALUE_BYTES, EXPECTED_SIZE),
  v.check(isStorable, "expected a text without NUL and invalid characters"),
);

export const variable = v.strictObject({
  name: described(v.string(), "The name of the variable", "BASE_URL"),
  secret: described(
    v.boolean(),
    "Whether the value is hidden everywhere: in the API, the logs and the dashboard",
    false,
  ),
  value: v.pipe(
    v.nullable(v.string()),
    v.description("null for a secret, which is write-only"),
    v.examples(["https://staging.shop.example"]),
  ),
  updatedAt: described(updatedAt, "When its value was last set"),
});
export type Variable = v.InferOutput<typeof variable>;
export const variablePage = listPage(variable);
export const variableFilter = v.strictObject(pageQuery);

const secret = described(
  v.optional(v.boolean("expected true or false"), true),
  "Whether the value is write-only",
  false,
);
export const newVariable = v.strictObject({
  value: described(variableValue, "Its value, at most 64 KiB", "https://staging.shop.example"),
  secret,
});

/** Variables of one execution, which take precedence over those of its environment. */
export const executionVariables = recordOf(variableName, variableValue, {
  max: 200,
  expected: "expected an object with texts as values",
  tooMany: "expected at most 200 variables",
});
export type ExecutionVariables = v.InferOutput<typeof executionVariables>;

/** A variable in the JSON body of PUT …/variables: a value, or a value with its kind. */
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

export const replacedVariables = v.strictObject({
  variableCount: described(count, "The number of variables in the environment after the change", 4),
});
