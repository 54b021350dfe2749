/** What is sent to any endpoint or form is measured before it is looked into. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { ROUTES } from "../../src/server/app.ts";
import { check } from "../../src/http/input.ts";
import { listOf, recordOf } from "../../src/schema/bounded.ts";
import { text } from "../../src/schema/fields.ts";
import { PAGES } from "../../src/web/site/pages.ts";

/** As many items as a body of 1 MiB can hold. */
const MANY = 500_000;
/** No list or object of a request may hold more than this. */
const MOST = 1_000;

type Node = v.GenericSchema & {
  entries?: Record<string, v.GenericSchema>;
  item?: v.GenericSchema;
  value?: v.GenericSchema;
  wrapped?: v.GenericSchema;
  options?: unknown[];
  pipe?: v.GenericSchema[];
};
type Found = { at: string; schema: Node };

/** Every list and every record in a schema, each as it is validated: with its whole pipe. */
function findOpen(schema: Node, at: string): Found[] {
  const own = schema.type === "array" || schema.type === "record" ? [{ at, schema }] : [];
  const inner: [string, unknown][] = [
    ...Object.entries(schema.entries ?? {}),
    ["[]", schema.item],
    ["{}", schema.type === "record" ? schema.value : undefined],
    ["", schema.wrapped],
    ...(schema.options ?? []).map((option): [string, unknown] => ["|", option]),
    ...(schema.pipe ?? []).map((part): [string, unknown] => ["", part === schema ? undefined : part]),
  ];
  return inner
    .flatMap(([name, one]) => {
      const isSchema = typeof one === "object" && one !== null && "kind" in one && one.kind === "schema";
      if (!isSchema || (one as Node).type === undefined) return [];
      // The first part of a pipe is the schema itself, without the pipe.
      if (schema.pipe?.[0] === one) return findOpen({ ...(one as Node), type: "part" } as never, at);
      return findOpen(one as Node, `${at}.${name}`);
    })
    .concat(own);
}

const everything: Found[] = [
  ...ROUTES.flatMap(({ method, path, query, body }) => [
    ...findOpen(query as Node, `${method} ${path} query`),
    ...(typeof body === "object" ? findOpen(body as Node, `${method} ${path}`) : []),
  ]),
  ...PAGES.flatMap(({ method, path, query, fields }) => [
    ...findOpen(query as Node, `${method} ${path} query`),
    ...(fields ? findOpen(fields as Node, `${method} ${path} fields`) : []),
  ]),
];

/** How many items or fields a schema looks at. */
function countLooks(schema: v.GenericSchema, given: object): number {
  let looks = 0;
  const spy = new Proxy(given, {
    get(target, name, receiver) {
      if (typeof name === "string" && /^\d+$|^k\d+$/.test(name)) looks++;
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  v.safeParse(schema, spy);
  return looks;
}

describe("lists and records of every request", () => {
  test("are found, and one that is not bounded is noticed", () => {
    const found = everything.map(({ at }) => at);
    for (const known of ["leases.held", "executions.tasks", "executions.variables", "automations.actions"])
      expect(found.filter((at) => at.replace(/\.+/g, ".").includes(known))).not.toEqual([]);
    const late = v.pipe(v.array(v.null()), v.maxLength(2));
    expect(
      countLooks(
        late,
        Array.from({ length: 2 * MOST }, () => null),
      ),
    ).toBeGreaterThan(MOST);
  });

  test("are refused by their length, before any item is looked at", () => {
    const list = Array.from({ length: MANY }, () => null);
    const record = Object.fromEntries(Array.from({ length: 10 * MOST }, (_, index) => [`k${index}`, null]));
    const open = everything.filter(({ schema }) => countLooks(schema, schema.type === "array" ? list : record) > MOST);
    expect(open.map(({ at }) => at)).toEqual([]);
  });
});

const refusal = (schema: v.GenericSchema, input: unknown): string => {
  try {
    check(schema, input);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("It was not refused");
};

describe("listOf", () => {
  const schema = v.strictObject({ names: listOf(text(5), { max: 2, expected: "expected a list" }) });

  test("takes what fits, and names the items that do not", () => {
    expect(check(schema, { names: ["a", "b"] })).toEqual({ names: ["a", "b"] });
    expect(refusal(schema, { names: ["a", 1] })).toBe(
      'Cannot read "names.1": expected a text of 1 to 5 characters, got 1',
    );
    expect(refusal(schema, { names: "a" })).toBe('Cannot read "names": expected a list, got "a"');
  });

  test("says once that there are too many, and nothing of what they are", () => {
    expect(refusal(schema, { names: Array.from({ length: MANY }, () => null) })).toBe(
      'Cannot read "names": expected at most 2 items, got an array of 500000',
    );
  });
});

describe("recordOf", () => {
  const schema = v.strictObject({
    texts: recordOf(text(5), text(5), { max: 2, expected: "expected an object of texts" }),
  });

  test("takes what fits, and names the fields that do not", () => {
    expect(check(schema, { texts: { a: "b" } })).toEqual({ texts: { a: "b" } });
    expect(refusal(schema, { texts: { a: 1 } })).toStartWith('Cannot read "texts.a": expected a text');
  });

  test("refuses too many fields once, and a list for what it is", () => {
    expect(refusal(schema, { texts: { a: 1, b: 1, c: 1 } })).toBe(
      'Cannot read "texts": expected at most 2 fields, got an object',
    );
    expect(refusal(schema, { texts: [1] })).toBe('Cannot read "texts": expected an object of texts, got an array of 1');
  });
});

describe("a message", () => {
  test("names twenty bad fields and no more, however many there are", () => {
    const schema = v.strictObject({});
    const input = Object.fromEntries(Array.from({ length: 90_000 }, (_, index) => [`field${index}`, index]));
    const message = refusal(schema, input);
    expect(message.split("; ")).toHaveLength(21);
    expect(message).toEndWith("; and more");
  });

  test("names hidden fields in an input that is accepted, however deep, and looks at part of one that is not", () => {
    const schema = v.strictObject({ any: v.unknown() });
    const deep = JSON.parse(`{"any":${"[".repeat(20_000)}{"a":{"__proto__":1}}${"]".repeat(20_000)}}`) as object;
    expect(refusal(schema, deep)).toMatch(/^Unknown field "…[\d.]+\.0\.a\.__proto__"$/);
    let looks = 0;
    const inner = new Proxy(
      Array.from({ length: MANY }, () => ({})),
      { get: (target, name) => (looks++, Reflect.get(target, name) as unknown) },
    );
    expect(refusal(schema, { other: inner })).toContain('Unknown field "other"');
    expect(looks).toBeLessThan(50_000);
  });
});
