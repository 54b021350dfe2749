/** What every list takes and answers. */

import * as v from "valibot";
import { integerText } from "./fields.ts";

const DEFAULT_LIMIT = 10;

export const pageQuery = {
  limit: v.optional(integerText(1, 100), String(DEFAULT_LIMIT)),
  cursor: v.optional(v.string()),
};

export const pagination = v.strictObject({
  hasMore: v.boolean(),
  /** There exactly when `hasMore`. */
  cursor: v.optional(v.string()),
});

export type Page<Row> = { data: Row[]; pagination: v.InferOutput<typeof pagination> };

/** The answer of a list: `{ data, pagination }`. */
export const page = <const Row extends v.GenericSchema>(row: Row) => v.strictObject({ data: v.array(row), pagination });
