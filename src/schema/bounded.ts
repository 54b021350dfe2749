/** Lists and records whose size is checked before their items are: a body of 1 MiB holds half a million items. */

import * as v from "valibot";

type Run = v.GenericSchema["~run"];

/** Checks `rule` first and alone, so that the schema never reads the contents of a value that is too large. */
function sizeFirst<const Schema extends v.GenericSchema>(
  schema: Schema,
  isTooLarge: (value: object) => boolean,
  rule: { "~run": unknown },
): Schema {
  const validate = schema["~run"].bind(schema);
  const refuse = (rule["~run"] as Run).bind(rule);
  const run: Run = (dataset, config) => {
    const { value } = dataset;
    if (typeof value !== "object" || value === null || !isTooLarge(value)) return validate(dataset, config);
    // The rule itself writes the issue. What it leaves is not typed, because no item has been checked.
    const { issues } = refuse({ typed: true, value } as never, config);
    return { typed: false, value, issues } as never;
  };
  return { ...schema, "~run": run };
}

/** valibot accepts a list as an object, and would split a long one into its indexes. */
function withoutLists<const Schema extends v.GenericSchema>(schema: Schema): Schema {
  const validate = schema["~run"].bind(schema);
  const run: Run = (dataset, config) =>
    Array.isArray(dataset.value) ? validate({ value: undefined }, config) : validate(dataset, config);
  return { ...schema, "~run": run };
}

/** A list of at most `max` items. `expected` is the message for anything but a list, `tooMany` for a longer one. */
export function listOf<const Item extends v.GenericSchema>(
  item: Item,
  { max, expected, tooMany = `expected at most ${max} items` }: { max: number; expected: string; tooMany?: string },
) {
  const rule = v.maxLength<v.InferOutput<Item>[], number, string>(max, tooMany);
  const isTooLarge = (value: object) => Array.isArray(value) && value.length > max;
  return v.pipe(sizeFirst(v.array(item, expected), isTooLarge, rule), rule);
}

/** An object of at most `max` names. `expected` is the message for anything but an object, `tooMany` for a larger one. */
export function recordOf<const Key extends v.GenericSchema<string, string>, const Value extends v.GenericSchema>(
  key: Key,
  value: Value,
  { max, expected, tooMany = `expected at most ${max} fields` }: { max: number; expected: string; tooMany?: string },
) {
  type Given = v.GenericSchema<Record<string, v.InferInput<Value>>, Record<string, v.InferOutput<Value>>>;
  const rule = v.maxEntries<Record<string, v.InferOutput<Value>>, number, string>(max, tooMany);
  const isTooLarge = (given: object) => Object.keys(given).length > max;
  // The type of a record includes the names of its keys, which are not known here.
  const record = v.record(key, value, expected) as unknown as Given;
  return v.pipe(withoutLists(sizeFirst(record, isTooLarge, rule)), rule);
}

/** A list of 1 to 100 elements. */
export const someOf = <const Item extends v.GenericSchema>(item: Item) =>
  v.pipe(
    listOf(item, { max: 100, expected: "expected a list", tooMany: "expected at most 100 elements" }),
    v.minLength(1, "expected a non-empty list"),
  );
