/** The native JSON body of a test report: what a client posts that has no report file. */

import * as v from "valibot";

const MAX_INT = 2 ** 31 - 1;

const INTEGER = `expected an integer from 0 to ${MAX_INT}`;
const POSITIVE = `expected an integer from 1 to ${MAX_INT}`;
const TEXT = "expected a text without NUL and lone surrogates";
const SLUG = `${TEXT}, of 1 to 200 characters`;
const INSTANT = `expected an ISO 8601 date-time with an offset such as "2026-02-28T12:00:00Z"`;

const count = v.pipe(v.number(INTEGER), v.integer(INTEGER), v.minValue(0, INTEGER), v.maxValue(MAX_INT, INTEGER));
const positive = v.pipe(
  v.number(POSITIVE),
  v.integer(POSITIVE),
  v.minValue(1, POSITIVE),
  v.maxValue(MAX_INT, POSITIVE),
);
// A look for what is bad, because a pattern of all that is good runs out of memory on long texts and says no; without
// the flag "u", which JSON Schema cannot express.
const STORABLE = /^(?![\s\S]*(?:\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]))/;
const text = v.pipe(v.string(TEXT), v.regex(STORABLE, TEXT));
const slug = v.pipe(text, v.minLength(1, SLUG), v.maxLength(200, SLUG));
const nonEmpty = v.pipe(text, v.minLength(1, "expected a text that is not empty"));

// Days that exist, as a pattern and not as a check, so that the OpenAPI document says it too.
const DAY =
  "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))" +
  "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const TIME = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
const instant = v.pipe(v.string(INSTANT), v.regex(new RegExp(`^${DAY}T${TIME}$`), INSTANT));

const toExpected = (options: readonly string[]) => {
  const quoted = options.map((option) => `"${option}"`);
  return `expected ${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
};
const STATUSES = ["passed", "failed", "skipped"] as const;
const KINDS = ["failure", "error", "timeout"] as const;

export const nativeCase = v.strictObject(
  {
    suite: v.optional(text),
    name: nonEmpty,
    file: v.optional(text),
    line: v.optional(positive),
    status: v.picklist(STATUSES, toExpected(STATUSES)),
    kind: v.optional(v.picklist(KINDS, toExpected(KINDS))),
    flaky: v.optional(v.boolean("expected true or false")),
    attempts: v.optional(positive),
    durationMs: v.optional(count),
    message: v.optional(text),
    stack: v.optional(text),
    output: v.optional(text),
  },
  "expected an object",
);

export const nativeReport = v.strictObject(
  {
    taskSlug: v.optional(slug),
    passed: count,
    failed: count,
    skipped: count,
    completedAt: v.optional(instant),
    durationMs: v.optional(count),
    cases: v.optional(v.array(nativeCase, "expected a list")),
  },
  "expected an object",
);

export type NativeReport = v.InferOutput<typeof nativeReport>;
export type NativeCase = v.InferOutput<typeof nativeCase>;
