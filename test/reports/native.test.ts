import { describe, expect, test } from "bun:test";
import { toJsonSchema } from "@valibot/to-json-schema";
import { nativeReport } from "../../src/schema/reports.ts";
import { read as readAny, readWith, refusalOf } from "./reading.ts";

const COUNTS = { passed: 1, failed: 0, skipped: 0 };
const read = (json: unknown) => readWith({ format: "assay" }, json);
const refusal = (json: unknown) => refusalOf(json, { format: "assay" });

const INTEGER = "expected an integer from 0 to 2147483647";
const TEXT = "expected a text without NUL characters and lone surrogates";
const INSTANT = 'expected an ISO 8601 date-time with an offset such as "2026-02-28T12:00:00Z"';

describe("the native JSON body", () => {
  test("may be counts only", () => {
    const counts = { passed: 3, failed: 1, skipped: 2 };
    const body = { taskSlug: "unit", ...counts, completedAt: "2026-02-28T12:00:00.5+01:00", durationMs: 9 };
    expect(readAny(body)).toEqual({
      ...{ format: "assay", suite: "unit", cases: [], countsOnly: counts, partial: false },
      ...{ durationMs: 9, completedAt: new Date("2026-02-28T11:00:00.500Z"), context: {}, warnings: [] },
    });
  });

  test("may list its cases, which then count", () => {
    const full = {
      ...{ suite: "s", name: "a", file: "a.ts", line: 3, status: "failed", kind: "timeout", attempts: 2 },
      ...{ durationMs: 5, message: "m", stack: "at", output: "o" },
    };
    const { cases, countsOnly, suite, warnings } = read({
      ...COUNTS,
      cases: [full, { name: "b", status: "passed", flaky: true }],
    });
    const none = { file: null, line: null, kind: null, durationMs: null, message: null, stack: null, output: null };
    expect([countsOnly, suite]).toEqual([null, null]);
    expect(cases as unknown[]).toEqual([
      { ...full, flaky: false, properties: null },
      { ...none, suite: "", name: "b", status: "passed", flaky: true, attempts: 1, properties: null },
    ]);
    expect(warnings).toEqual([
      "The report declares 1 passed, 0 failed, 0 skipped, but its test cases are 1 passed, 1 failed, 0 skipped",
    ]);
  });

  test("a kind without a failure and a flaky failure are put right", () => {
    const odd = [
      { name: "a", status: "passed", kind: "error" },
      { name: "b", status: "failed", flaky: true },
    ];
    expect(read({ ...COUNTS, cases: odd }).cases).toMatchObject([
      { kind: null, flaky: false },
      { kind: "failure", flaky: false },
    ]);
  });

  test("a long message is cut, not refused", () => {
    const long = { name: "a", status: "passed", message: "m".repeat(100_000), output: "😀".repeat(3_000_000) };
    const { cases, warnings } = read({ ...COUNTS, cases: [long] });
    expect([cases[0]!.message!.length, cases[0]!.output!.length]).toEqual([65_536, 524_288]);
    expect(warnings).toEqual(["Cut 1 message to 64 KiB", "Cut 1 output to 1 MiB"]);
  });

  test("needs no counts beside its cases; counts that are there are compared with them", () => {
    const cases = [
      { name: "a", status: "passed" },
      { name: "b", status: "failed" },
    ];
    expect(readAny({ cases })).toMatchObject({ format: "assay", countsOnly: null, warnings: [] });
    expect(readAny({ cases, failed: 1 }).warnings).toEqual([]);
    expect(readAny({ cases, failed: 0 }).warnings).toEqual([
      "The report declares 0 failed, but its test cases are 1 failed",
    ]);
    expect(refusalOf({ cases, failed: -1 })).toBe(`Cannot read "failed": ${INTEGER}, got -1`);
  });

  test("names the counts that are missing, without a format that names this one", () => {
    const none = (...names: string[]) =>
      `Cannot read ${names.map((name) => `"${name}": expected a value, got none`).join("; ")}`;
    expect(refusalOf('{"taskSlug":"unit"}')).toBe(none("passed", "failed", "skipped"));
    expect(refusalOf('{"taskSlug":"unit","passed":1}')).toBe(none("failed", "skipped"));
    expect(refusalOf('{"taskSlug":"unit","passed":1,"pending":0}')).toContain("it is JSON of no known format");
  });

  test("refuses a NUL that other JSON may hold", () => {
    expect(refusal('{"taskSlug":"a\0","passed":1,"failed":0,"skipped":0}')).toBe("it holds a NUL character");
  });

  test("names every bad field in one message", () => {
    const cases = [{ name: "x", status: "ok", x: 1, y: 2 }, 3];
    const body = { taskSlug: "a\0", passed: -1, failed: 1.5, skipped: 2 ** 31, colour: 1, cases };
    expect(refusal(body)).toBe(
      "Cannot read " +
        [
          `"taskSlug": ${TEXT}, got "a\\u0000"`,
          `"passed": ${INTEGER}, got -1`,
          `"failed": ${INTEGER}, got 1.5`,
          `"skipped": ${INTEGER}, got 2147483648`,
          `"colour": expected no such field`,
          `"cases.0.status": expected "passed", "failed" or "skipped", got "ok"`,
          `"cases.0.x": expected no such field`,
          `"cases.0.y": expected no such field`,
          `"cases.1": expected an object, got 3`,
        ].join("; "),
    );
  });

  test.each<[string, string]>([
    [`{"passed":1,"failed":0}`, `"skipped": expected a value, got none`],
    [`{"passed":"1","failed":0,"skipped":0}`, `"passed": ${INTEGER}, got "1"`],
    [`{"passed":1e400,"failed":0,"skipped":0}`, `"passed": ${INTEGER}, got Infinity`],
    [`{"passed":9007199254740993,"failed":0,"skipped":0}`, `"passed": ${INTEGER}, got 9007199254740992`],
    [`{"passed":null,"failed":0,"skipped":0}`, `"passed": ${INTEGER}, got null`],
    [`{"passed":1,"failed":0,"skipped":0,"cases":{}}`, `"cases": expected a list, got an object`],
    [`{"passed":1,"failed":0,"skipped":0,"taskSlug":"\\ud800"}`, `"taskSlug": ${TEXT}, got "\ufffd"`],
    [
      `{"passed":1,"failed":0,"skipped":0,"cases":[{"name":"","status":"passed"}]}`,
      `"cases.0.name": expected a non-empty text, got ""`,
    ],
    [
      "[]",
      `"passed": expected a value, got none; "failed": expected a value, got none; "skipped": expected a value, got none`,
    ],
  ])("%s is refused", (body, problem) => {
    expect(refusal(body)).toBe(`Cannot read ${problem}`);
  });

  test("names of the prototype are unknown fields", () => {
    const body = `{"passed":1,"failed":0,"skipped":0,"__proto__":{"a":1},"constructor":1,"toString":2,"hasOwnProperty":3}`;
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    expect(refusal(body)).toBe(`Cannot read ${names.map((name) => `"${name}": expected no such field`).join("; ")}`);
    const cases = `[{"name":"a","status":"constructor","__proto__":{}}]`;
    const status = '"cases.0.status": expected "passed", "failed" or "skipped", got "constructor"';
    expect(refusal(`{"passed":1,"failed":0,"skipped":0,"cases":${cases}}`)).toBe(
      `Cannot read ${status}; "cases.0.__proto__": expected no such field`,
    );
  });

  test.each([
    ...["2026-02-30T00:00:00Z", "2025-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z"],
    ...["2026-01-01T00:00:00", "2026-01-01", "2026-01-01 00:00:00Z", "2026-01-01T24:00:00Z", "2026-13-01T00:00:00Z"],
    ...["+294277-01-01T00:00:00Z", "infinity", ""],
  ])("%p is no time", (completedAt) => {
    expect(refusal({ ...COUNTS, completedAt })).toBe(`Cannot read "completedAt": ${INSTANT}, got "${completedAt}"`);
  });

  test.each(["2024-02-29T23:59:59Z", "2000-02-29T00:00:00+14:00", "2026-12-31T00:00:00.123456789-00:30"])(
    "%p is a time",
    (completedAt) => {
      expect(read({ ...COUNTS, completedAt }).completedAt).toEqual(new Date(completedAt));
    },
  );

  test("a body of mistakes only is answered soon and briefly", () => {
    const many = (count: number, one: string) =>
      refusal(`{"passed":1,"failed":0,"skipped":0,"cases":[${Array(count).fill(one).join()}]}`);
    const message = many(200_000, '{"name":1,"status":"ok"}');
    expect(message.split("; ")).toHaveLength(21);
    expect(message).toEndWith("; and more");
    expect(many(200_001, "{}")).toBe('Cannot read "cases": expected at most 200,000, got 200001');
  });

  test("the number of keys does not matter", () => {
    const keys = Array.from({ length: 300_000 }, (_, n) => `"k${n}":1`).join();
    expect(refusal(`{"passed":1,"failed":0,"skipped":0,${keys}}`)).toEndWith("; and more");
  });

  test("its schema can be told in OpenAPI", () => {
    expect(toJsonSchema(nativeReport)).toMatchObject({
      type: "object",
      additionalProperties: false,
    });
  });
});
