import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { check, parseBody, parseQuery } from "../../src/http/input.ts";
import { integerText, text, timestamp, uuid } from "../../src/schema/fields.ts";

const message = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it did not fail");
};

describe("check", () => {
  const schema = v.strictObject({ limit: v.optional(integerText(1, 100)), name: text(5), id: v.optional(uuid) });

  test("names every bad field, what was expected and what came", () => {
    expect(message(() => check(schema, { limit: "abc", name: "too long", nope: 1, no2: 1 }))).toBe(
      'Cannot read "limit": expected an integer from 1 to 100, got "abc"; ' +
        'Cannot read "name": expected a text of 1 to 5 characters, got "too long"; ' +
        'Unknown field "nope"; Unknown field "no2"',
    );
    expect(message(() => check(schema, {}))).toBe('Missing field "name"');
  });

  test("quotes values short and on one line", () => {
    const long = message(() => check(schema, { name: `${"x".repeat(1_000)}\n` }));
    expect(long.length).toBeLessThan(200);
    expect(message(() => check(schema, { name: { a: 1 } }))).toContain("got an object");
    expect(message(() => check(schema, { name: {} }))).toContain("got an empty object");
    expect(message(() => check(schema, { name: ["a", "b"] }))).toContain("got an array of 2");
  });

  test("ids come out in one canonical spelling", () => {
    const id = crypto.randomUUID();
    expect(check(schema, { name: "a", id: id.toUpperCase() })).toEqual({ name: "a", id });
    for (const bad of [`{${id}}`, ` ${id}`, `${id}\n`, id.replaceAll("-", "")])
      expect(message(() => check(schema, { name: "a", id: bad }))).toContain("expected a UUID");
  });

  test("times must exist and come out in UTC with milliseconds", () => {
    expect(check(timestamp, "2026-01-31T12:00:00+02:00")).toBe("2026-01-31T10:00:00.000Z");
    expect(check(timestamp, "2024-02-29T00:00:00.123456Z")).toBe("2024-02-29T00:00:00.123Z");
    for (const bad of [
      "2026-02-30T00:00:00Z",
      "2025-02-29T00:00:00Z",
      "2026-13-01T00:00:00Z",
      "2026-01-01T24:00:00Z",
      "2026-01-01T00:00:00",
      "2026-01-01",
      "infinity",
      "294277-01-01T00:00:00Z",
      "1e3",
    ])
      expect([bad, message(() => check(timestamp, bad))]).toEqual([bad, expect.stringContaining("expected a date")]);
  });
});

describe("parseQuery", () => {
  test("decodes names and values once", () => {
    expect({ ...parseQuery("a=1&b%20c=x+y%2B&d=%2525&e&&f==") }).toEqual({
      a: "1",
      "b c": "x y+",
      d: "%25",
      e: "",
      f: "=",
    });
    expect({ ...parseQuery("__proto__=1&constructor=2") }).toEqual(JSON.parse(`{"__proto__":"1","constructor":"2"}`));
  });

  test("refuses repeated and badly encoded parameters by name", () => {
    expect(message(() => parseQuery("limit=1&limit=2"))).toBe('Cannot read "limit": given more than once');
    expect(message(() => parseQuery("limit=%ff"))).toContain('"limit"');
  });
});

describe("parseJson", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);

  test("takes an object, and an empty body as an empty one", () => {
    expect(parseBody(bytes(`{"a":1}`))).toEqual({ a: 1 });
    expect(parseBody(bytes(""))).toEqual({});
  });

  test("says what is wrong with anything else", () => {
    expect(message(() => parseBody(bytes("[]")))).toContain("expected a JSON object, got an array");
    expect(message(() => parseBody(bytes("{")))).toContain("not valid JSON");
    expect(message(() => parseBody(new Uint8Array([123, 255, 125])))).toContain("not valid UTF-8");
    expect(message(() => parseBody(bytes("[".repeat(1_000_000))))).toContain("Cannot read the body");
  });
});
