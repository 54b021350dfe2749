/** The building blocks of every schema: texts, numbers, ids and times, with the words for the expected value. */

import * as v from "valibot";

/**
 * Returns the schema with this description and these examples (the first is shown) instead of earlier ones. A description says what the
 * field is, its default, and what happens otherwise.
 */
export function described<const Schema extends v.GenericSchema>(
  schema: Schema,
  description: string,
  ...examples: unknown[]
): Schema {
  const [first, ...rest] = ("pipe" in schema ? schema.pipe : [schema]) as [v.GenericSchema, ...{ type: string }[]];
  const said = [v.description(description), ...(examples.length > 0 ? [v.examples(examples)] : [])];
  const kept = rest.filter((item) => !said.some(({ type }) => type === item.type));
  // The metadata follows the schema directly, so that it describes the input and not the result of a transformation. It is kept out of
  // validation: a pipe through it would take twice the time for a large report.
  return { ...schema, pipe: [first, ...said, ...kept] };
}

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed();

/** Replaces characters that cannot be stored with U+FFFD. Used for text from reports, which is changed and not refused. */
export const toStorable = (text: string): string => text.replaceAll("\0", "\ufffd").toWellFormed();

/** Non-empty text of at most `max` characters. */
export const text = (max: number) =>
  v.pipe(
    v.string(`expected a text of 1 to ${max} characters`),
    v.minLength(1, `expected a text of 1 to ${max} characters`),
    v.maxLength(max, `expected a text of 1 to ${max} characters`),
    v.check(isStorable, "expected a text without NUL and invalid characters"),
  );

/** Git's own name of a branch, refs/heads/main, which some CI systems give, is that of the branch. */
export const branchName = described(
  v.pipe(
    text(500),
    v.transform((name) => name.replace(/^refs\/heads\/(?=.)/, "")),
  ),
  "The branch; refs/heads/main is read as main",
  "main",
);

const EXPECTED_URL = "expected an http or https address";

/** An absolute address that a browser can follow. */
export const httpUrl = v.pipe(
  text(2_000),
  v.check((value) => /^https?:\/\/[^\s]+$/i.test(value) && URL.canParse(value), EXPECTED_URL),
  v.metadata({ format: "uri" }),
);

/** CI systems derive URLs from names of projects, so they may contain blanks. */
export const buildUrl = v.pipe(
  text(2_000),
  v.check((value) => /^https?:\/\/[^/?#\s]/i.test(value) && URL.canParse(value), EXPECTED_URL),
  v.metadata({ format: "uri" }),
  v.transform((value) => (/\s/.test(value) ? new URL(value).href : value)),
);

/** A parameter that CI fills from a variable, which may be empty: then it says nothing. */
export const mayBeEmpty = <const Schema extends v.GenericSchema<string, string>>(schema: Schema) =>
  v.optional(
    v.union(
      [
        v.pipe(
          v.literal(""),
          v.transform(() => undefined),
        ),
        schema,
      ],
      ({ input }) => v.safeParse(schema, input).issues?.[0].message ?? "expected a text",
    ),
  );

/** The machine that tests ran on. Names are free text: CI systems and people choose them. */
export const machineNames = {
  host: described(mayBeEmpty(text(200)), "The name of the machine that the tests ran on", "ci-3"),
  system: described(mayBeEmpty(text(200)), "The operating system and architecture of that machine", "linux x64"),
  image: described(mayBeEmpty(text(200)), "The image of that machine or container", "ubuntu-24.04"),
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Any UUID, in the one canonical spelling: lower case. */
export const uuid = v.pipe(
  v.string("expected a UUID"),
  v.regex(UUID, "expected a UUID"),
  v.examples(["0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21"]),
  v.metadata({ format: "uuid", openapi: { type: "string", format: "uuid" } }),
  v.transform((id) => id.toLowerCase()),
);

export const integer = (min: number, max: number) => {
  const expected = `expected an integer from ${min} to ${max}`;
  return v.pipe(v.number(expected), v.integer(expected), v.minValue(min, expected), v.maxValue(max, expected));
};

/** A whole number from 0, in answers. */
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));

const severalOf = (values: readonly string[]) => `expected one or several of ${values.join(", ")}, separated by commas`;

/** `a,b` as a query parameter → a list of distinct values. */
export const listText = <const Value extends string>(values: readonly Value[]) =>
  v.pipe(
    v.string(severalOf(values)),
    v.transform((value) => [...new Set(value.split(","))]),
    v.check((parts) => parts.every((part) => (values as readonly string[]).includes(part)), severalOf(values)),
    v.transform((parts) => parts as Value[]),
    v.metadata({ openapi: { type: "string", pattern: `^(${values.join("|")})(,(${values.join("|")}))*$` } }),
  );

/** An integer as a query parameter. */
export const integerText = (min: number, max: number) => {
  const expected = `expected an integer from ${min} to ${max}`;
  return v.pipe(
    v.string(expected),
    v.regex(/^(0|[1-9][0-9]{0,9})$/, expected),
    v.transform(Number),
    v.minValue(min, expected),
    v.maxValue(max, expected),
    v.metadata({ openapi: { type: "integer", minimum: min, maximum: max } }),
  );
};

/** A flag as a query parameter. */
export const booleanText = v.pipe(
  v.picklist(["true", "false"], `expected "true" or "false"`),
  v.transform((flag) => flag === "true"),
  v.metadata({ openapi: { type: "boolean" } }),
);

const TIMESTAMP = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** `Date` turns 30 February into 2 March, so the parts are checked against the calendar. */
function isRealTime(value: string): boolean {
  const match = TIMESTAMP.exec(value);
  if (!match) return false;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const lastDay = new Date(Date.UTC(year!, month!, 0)).getUTCDate();
  const parts = month! >= 1 && month! <= 12 && day! >= 1 && day! <= lastDay && hour! <= 23 && minute! <= 59;
  if (!parts || second! > 59) return false;
  // The offset may lead out of the years that ids and columns can hold.
  const ms = Date.parse(value);
  return ms >= 0 && ms <= LAST_MS;
}

const LAST_MS = Date.UTC(10_000, 0) - 1;

const EXPECTED_TIME = "expected a date and time with offset, such as 2026-01-31T12:00:00Z";

/** ISO 8601 with an offset, from 1970 to 9999 in UTC; comes out in UTC with milliseconds. */
export const timestamp = v.pipe(
  v.string(EXPECTED_TIME),
  v.check(isRealTime, EXPECTED_TIME),
  v.examples(["2026-01-31T12:00:00Z"]),
  v.metadata({ format: "date-time" }),
  v.transform((value) => new Date(value).toISOString()),
);

/** A time in answers: ISO 8601, UTC, milliseconds. */
export const time = v.pipe(v.string(), v.isoTimestamp(), v.examples(["2026-01-31T12:00:00.000Z"]));
export const createdAt = described(time, "When it was created");
export const updatedAt = described(time, "When it was last changed");

export const MAX_SLUG_LENGTH = 200;

export const slug = described(text(MAX_SLUG_LENGTH), "The task of the execution, such as unit, e2e or lint", "unit");

/** Ids and slugs in answers. */
export const taskSlug = described(v.string(), "The task of the execution, such as unit, e2e or lint", "unit");
export const executionId = described(uuid, "The execution", "0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21");
export const testCaseId = described(uuid, "The test case", "0199b2c4-8e02-75cc-a1b0-52d7f90c6e13");
export const branch = described(v.nullable(v.string()), "The branch; null: unknown", "main");
export const commit = described(
  v.nullable(v.string()),
  "The commit; null: unknown",
  "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
);

const SHARD = /^([1-9][0-9]{0,3})\/([1-9][0-9]{0,3})$/;
const EXPECTED_SHARD = `expected a shard such as "2/4"`;

/** `"2/4"` → `{ index: 2, of: 4 }`. */
export const shard = v.pipe(
  v.string(EXPECTED_SHARD),
  v.regex(SHARD, EXPECTED_SHARD),
  v.examples(["2/4"]),
  v.transform((value) => {
    const [index, of] = value.split("/").map(Number);
    return { index: index!, of: of! };
  }),
  v.check(
    ({ index, of }) => index <= of,
    ({ input: { of } }) => `expected a shard from "1/${of}" to "${of}/${of}"`,
  ),
);
export type Shard = v.InferOutput<typeof shard>;

/** Refuses duplicates in a list of texts, and names the position of the first one. */
export const distinct = <Item = string>(expected: string, nameOf: (item: Item) => string = String) =>
  v.rawCheck<Item[]>(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const seen = new Set<string>();
    for (const [key, item] of dataset.value.entries()) {
      const value = nameOf(item);
      const place = { type: "array", origin: "value", input: dataset.value, key, value } as const;
      if (seen.has(value)) addIssue({ message: expected, input: value, path: [place] });
      seen.add(value);
    }
  });

/** The body of a PATCH: fields of which each may be left out, but not all. */
export const patchOf = <const Entries extends v.ObjectEntries>(entries: Entries) =>
  v.pipe(
    v.strictObject(entries),
    v.minEntries(
      1,
      `expected at least one of ${Object.keys(entries)
        .map((name) => `"${name}"`)
        .join(", ")}`,
    ),
  );

/** Maximum time that an execution waits for its next report: a minute to a week. */
export const timeoutMinutes = described(
  integer(1, 10_080),
  "The time in minutes that an execution waits for its next report. Then it ends, as timed_out if a task has not " +
    "reported",
  45,
);

export const caseStatus = described(
  v.picklist(["passed", "failed", "skipped"], `expected "passed", "failed" or "skipped"`),
  "The result of the test case: passed, failed or skipped",
  "failed",
);
export type CaseStatus = v.InferOutput<typeof caseStatus>;

/** Present only on sample data. */
export const sample = described(v.optional(v.literal(true)), "Present only on sample data");

/** Failed as soon as one failure counts. */
export const verdict = described(
  v.picklist(["passed", "failed"]),
  "failed: a test case that is not quarantined failed, the test tool failed, the report is truncated, or shards " +
    "are missing",
  "failed",
);

/** The totals of one or several runs. */
export const counts = {
  passed: described(count, "Test cases that passed, in their last attempt", 1204),
  failed: described(count, "Test cases that failed, including quarantined ones", 3),
  skipped: described(count, "Test cases that were skipped", 12),
  total: described(count, "passed + failed + skipped", 1219),
};
export type Verdict = v.InferOutput<typeof verdict>;
