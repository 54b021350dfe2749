/** The native JSON body of a test report, for clients without a report file. */

import * as v from "valibot";
import { described } from "./fields.ts";

const MAX_INT = 2 ** 31 - 1;

const INTEGER = `expected an integer from 0 to ${MAX_INT}`;
const POSITIVE = `expected an integer from 1 to ${MAX_INT}`;
const TEXT = "expected a text without NUL characters and lone surrogates";
const SLUG = `${TEXT}, of 1 to 200 characters`;
const INSTANT = `expected an ISO 8601 date-time with an offset such as "2026-02-28T12:00:00Z"`;

const count = v.pipe(v.number(INTEGER), v.integer(INTEGER), v.minValue(0, INTEGER), v.maxValue(MAX_INT, INTEGER));
const positive = v.pipe(
  v.number(POSITIVE),
  v.integer(POSITIVE),
  v.minValue(1, POSITIVE),
  v.maxValue(MAX_INT, POSITIVE),
);
// Searches for invalid text, because a pattern of all valid text runs out of memory on long texts and then does not match. Without the flag
// "u", which JSON Schema cannot express.
const STORABLE = /^(?![\s\S]*(?:\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]))/;
const text = v.pipe(v.string(TEXT), v.regex(STORABLE, TEXT));
const slug = v.pipe(text, v.minLength(1, SLUG), v.maxLength(200, SLUG));
const nonEmpty = v.pipe(text, v.minLength(1, "expected a non-empty text"));

// Valid dates, as a pattern instead of a check, so that the OpenAPI document contains it.
const DAY =
  "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))" +
  "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const TIME = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
const instant = v.pipe(
  v.string(INSTANT),
  v.regex(new RegExp(`^${DAY}T${TIME}$`), INSTANT),
  v.metadata({ format: "date-time" }),
);

const toExpected = (options: readonly string[]) => {
  const quoted = options.map((option) => `"${option}"`);
  return `expected ${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
};
const STATUSES = ["passed", "failed", "skipped"] as const;
const KINDS = ["failure", "error", "timeout"] as const;

const nativeAttachment = v.strictObject(
  {
    path: described(nonEmpty, "The path of the file", "test-results/cart-actual.png"),
    name: v.optional(described(text, "The name to show; default: the last part of the path", "screenshot")),
  },
  "expected an object",
);

export const nativeCase = v.strictObject(
  {
    suite: v.optional(described(text, "The suites, outermost first", "checkout > cart")),
    name: described(
      nonEmpty,
      "The name of the test; suite, name and file together identify a test case",
      "adds an item",
    ),
    file: v.optional(described(text, "Its file", "test/cart.test.ts")),
    line: v.optional(described(positive, "The line in the file", 42)),
    status: described(v.picklist(STATUSES, toExpected(STATUSES)), "The result", "failed"),
    kind: v.optional(
      described(
        v.picklist(KINDS, toExpected(KINDS)),
        "The kind of failure. failure: an assertion did not hold; error: another error occurred; timeout: it took too " +
          "long",
        "failure",
      ),
    ),
    flaky: v.optional(
      described(v.boolean("expected true or false"), "Whether it passed only after a failure in the same run", false),
    ),
    attempts: v.optional(described(positive, "The number of times that it ran, including retries", 1)),
    durationMs: v.optional(described(count, "The duration in milliseconds", 830)),
    message: v.optional(described(text, "Why it failed, or was skipped; cut above 64 KiB", "expected 2 items, got 1")),
    stack: v.optional(described(text, "The stack of the failure; cut above 64 KiB", "at cart.test.ts:42:5")),
    output: v.optional(described(text, "The output; cut above 1 MiB", "GET /cart 200")),
    attachments: v.optional(
      described(
        v.array(nativeAttachment, "expected a list"),
        "Files that explain the result, by the paths under which they are uploaded",
      ),
    ),
  },
  "expected an object",
);

export const nativeReport = v.strictObject(
  {
    taskSlug: v.optional(described(slug, "The task of the execution; the parameter task_slug overrides it", "unit")),
    passed: v.optional(described(count, "The number of passed test cases", 3)),
    failed: v.optional(described(count, "The number of failed test cases", 1)),
    skipped: v.optional(described(count, "The number of skipped test cases", 0)),
    completedAt: v.optional(
      described(
        instant,
        "When the run was completed, if not now; the parameter completed_at overrides it",
        "2026-01-31T12:00:00Z",
      ),
    ),
    durationMs: v.optional(described(count, "The duration of the whole run in milliseconds", 252_000)),
    cases: v.optional(
      described(
        v.array(nativeCase, "expected a list"),
        "The test cases, at most 200,000. The counts are computed from them, and counts that differ cause a warning. " +
          "Without test cases the three counts are required and only they are stored",
      ),
    ),
  },
  "expected an object",
);

export type NativeReport = v.InferOutput<typeof nativeReport>;
export type NativeCase = v.InferOutput<typeof nativeCase>;
