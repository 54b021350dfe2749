/** Parameters and answers of all lists. */

import * as v from "valibot";
import { described, integerText } from "./fields.ts";

const DEFAULT_LIMIT = 10;

export const pageQuery = {
  limit: described(v.optional(integerText(1, 100), String(DEFAULT_LIMIT)), "The maximum number of elements per page"),
  cursor: described(
    v.optional(v.string()),
    "The position to continue from: pagination.cursor of the previous page, with the same filters. A cursor of " +
      "another list is answered 400",
  ),
};

export const pagination = described(
  v.strictObject({
    hasMore: described(v.boolean(), "Whether there are further elements", true),
    cursor: described(
      v.optional(v.string()),
      "The cursor for the next request; present only if hasMore is true",
      "gAAxOTliMmM0Nw",
    ),
  }),
  "Whether there are further pages, and the cursor of the next one",
);

export type ListPage<Row> = { data: Row[]; pagination: v.InferOutput<typeof pagination> };

/** The answer of a list: `{ data, pagination }`. */
export const listPage = <const Row extends v.GenericSchema>(row: Row) =>
  v.strictObject({ data: described(v.array(row), "The elements of this page"), pagination });
