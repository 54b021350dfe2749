/** Composes a statement once. The driver would otherwise join its fragments each time it is executed. */

import type { Fragment, Sql } from "./connect.ts";

/** A parameter of a statement, or an expression over its rows. */
export type Given = string | null | Fragment;

/** A statement by its parameters, all of them texts. */
export type Composed<Name extends string, Row> = (sql: Sql, values: Record<Name, string>) => Promise<Row[]>;

const part = (text: string) => ({ text }) as unknown as Fragment;

function toText(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "object" && value !== null && "text" in value) return String(value.text);
  throw new TypeError(`Only numbers and fragments have a place in a composed statement, got ${typeof value}`);
}

/**
 * Calls `build` once, when the statement is first executed, for a fragment that is constant except for the parameters that it gets by name
 * from `given`. The statement is prepared, so it is also planned once.
 */
export function compose<Name extends string, Row>(
  build: (sql: Sql, given: (name: Name) => Fragment) => Fragment,
): Composed<Name, Row> {
  let text: string | undefined;
  const names: Name[] = [];
  const given = (name: Name): Fragment => {
    const place = names.indexOf(name);
    return part(`$${place === -1 ? names.push(name) : place + 1}`);
  };
  const tag = (strings: TemplateStringsArray, ...values: unknown[]): Fragment =>
    part(strings.reduce((before, string, index) => before + toText(values[index - 1]) + string));
  return async (sql, values) => {
    text ??= toText(build(Object.assign(tag, { unsafe: part }) as unknown as Sql, given));
    return (await sql.unsafe(
      text,
      names.map((name) => values[name]),
      { prepare: true },
    )) as unknown as Row[];
  };
}
